//! What happens to jobs and is worth a line in their log: failures, losses, stops. Not each step of each job: what went as it
//! should, the job itself says, and there are tens of thousands a second.

use rota_model::job::{Job, JobStatus};
use rota_model::log::Level;

use super::Processor;
use super::brake::Stop;
use super::run::Outcome;
use crate::journal::{About, Journal};

impl Processor {
    pub(super) fn journal(&self) -> &Journal {
        self.surroundings.journal()
    }

    /// What came of an attempt, now that it is written.
    pub(super) fn tell_of_end(&self, outcome: &Outcome, job: &Job) {
        let journal = self.journal();
        let went_well = job.status == JobStatus::Successful;
        if !journal.hears(if went_well { Level::Debug } else { Level::Error }) {
            return;
        }
        let about = About::job(job);
        if went_well {
            return journal.tell_of(&about, Level::Debug, "it ended as SUCCESSFUL", None);
        }
        if matches!(outcome, Outcome::Stopped(_) | Outcome::NotBegun(_)) {
            return journal.tell_of(&about, Level::Info, "it was given back, for any node to run", None);
        }
        let (level, title) = match (outcome, job.status) {
            (Outcome::Expired, _) => (Level::Error, "it expired before it could begin".to_owned()),
            (_, JobStatus::Queued) => (
                Level::Warn,
                format!(
                    "attempt {} of {} failed; the next is at {}",
                    job.attempt.saturating_sub(1),
                    job.attempts,
                    job.run_at
                ),
            ),
            (_, status) => {
                let (attempt, attempts, status) = (job.attempt, job.attempts, status.as_str());
                (Level::Error, format!("attempt {attempt} of {attempts} failed; it ended as {status}"))
            }
        };
        journal.tell_of(&about, level, &title, why(job));
    }

    /// An attempt was stopped of which nothing more is written.
    pub(super) fn tell_of_stop(&self, job: &Job, why: Stop) {
        let (level, title) = match why {
            Stop::NotOurs => {
                (Level::Info, "its handler was stopped: it was cancelled, or runs elsewhere by now")
            }
            Stop::LeaseOver => (
                Level::Warn,
                "its handler was stopped: its node cannot be sure any more that the job is its own",
            ),
            Stop::Release => return,
        };
        if self.journal().is_on() {
            self.journal().tell_of(&About::job(job), level, title, None);
        }
    }

    /// A job was queued again whose holder is gone.
    pub(super) fn tell_of_loss(&self, job: &Job) {
        if !self.journal().is_on() {
            return;
        }
        let (level, title) = match job.status {
            JobStatus::Queued => (Level::Warn, "its node is gone; it was queued again"),
            _ => (Level::Error, "its nodes died too often; it is not run again"),
        };
        self.journal().tell_of(&About::job(job), level, title, None);
    }

    /// Something that an operator has to know as well.
    pub(super) fn tell_operator(&self, job: &Job, level: Level, title: &str, detail: String) {
        match level {
            Level::Error => tracing::error!(job = %job.job_id, "{title}: {detail}"),
            _ => tracing::warn!(job = %job.job_id, "{title}: {detail}"),
        }
        self.journal().tell_of(&About::job(job), level, title, Some(detail));
    }
}

/// Why the last attempt failed: the result says it of a job that has ended, the history of one that is tried again.
fn why(job: &Job) -> Option<String> {
    let result = if job.status.is_terminal() {
        Some(&job.result)
    } else {
        job.history.last().map(|last| &last.result)
    };
    result?.get("error")?.as_str().map(str::to_owned)
}
