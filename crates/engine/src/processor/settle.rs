//! Writing what came of jobs (rule 3): each on the version last read. Whoever ends while others write leaves its result to
//! them: results that come together are written together.
//!
//! ```text
//!  ended ──▶ unsettled ──▶ one write for all of them ──▶ done
//!                                   └── what that did not do ──▶ one by one: read, decide, write, again and again
//! ```
//!
//! On a conflict a job is read again, and given up only if it is no longer ours to change. While the store is away it is
//! tried again and again: a result is not lost as long as the node lives.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::job::{Job, JobStatus, Refusal};
use rota_model::log::Level;
use rota_store::repository::Saved;
use rota_store::{StoreError, Versioned};
use tokio::time::{Instant, sleep};

use super::run::Outcome;
use super::{InHand, Processor};
use crate::flaws::Flaw;
use crate::meter::Count;
use crate::patience::{STORE_PAUSE, answered};

/// One writes while others gather; only if that takes longer than this another begins.
const SLOW: Duration = Duration::from_millis(50);
/// How often whoever writes looks whether more are about to end, before it writes what there is.
const LOOKS: usize = 32;
/// How many write at the same time at most.
const MAX_WRITERS: usize = 8;
/// How many results are written at once.
const TOGETHER: usize = 1_000;

/// A job whose handler has ended, until that is written.
pub(super) struct Finished {
    pub(super) held: InHand,
    pub(super) job: Box<Versioned<Job>>,
    pub(super) epoch: u64,
    pub(super) outcome: Outcome,
    /// From 0 to 1, for those that are tried again.
    pub(super) chance: f64,
}

#[derive(Default)]
pub(super) struct Unsettled {
    waiting: Vec<Finished>,
    writers: usize,
    /// When one of them began with its last write.
    since: Option<Instant>,
}

impl Unsettled {
    fn needs_writer(&self) -> bool {
        let is_slow = self.since.is_some_and(|since| since.elapsed() > SLOW);
        self.writers == 0 || (is_slow && self.writers < MAX_WRITERS)
    }
}

/// Writes for all who end meanwhile.
struct Writer {
    processor: Arc<Processor>,
    has_left: bool,
}

impl Writer {
    /// Leaves what came of a job to be written. None if enough others write.
    fn bring(finished: Finished) -> Option<Self> {
        let processor = Arc::clone(&finished.held.processor);
        {
            let mut unsettled = processor.unsettled();
            unsettled.waiting.push(finished);
            if !unsettled.needs_writer() {
                return None;
            }
            unsettled.writers += 1;
        }
        Some(Self { processor, has_left: false })
    }

    /// What is to be written next. When there is nothing, it leaves at once: who comes now writes.
    fn take(&mut self) -> Option<Vec<Finished>> {
        let mut unsettled = self.processor.unsettled();
        if unsettled.waiting.is_empty() {
            unsettled.writers -= 1;
            self.has_left = true;
            return None;
        }
        unsettled.since = Some(Instant::now());
        let rest = unsettled.waiting.len().min(TOGETHER);
        let rest = unsettled.waiting.split_off(rest);
        Some(std::mem::replace(&mut unsettled.waiting, rest))
    }

    async fn write(mut self) {
        loop {
            self.gather().await;
            let Some(together) = self.take() else { return };
            self.processor.settle_together(together).await;
        }
    }

    /// Those that end together are written together: while workers go through the line, more are about to end.
    async fn gather(&self) {
        for _ in 0..LOOKS {
            tokio::task::yield_now().await;
            let has_enough = self.processor.unsettled().waiting.len() >= TOGETHER;
            if has_enough || !self.processor.is_somebody_next() {
                return;
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.has_left {
            self.processor.unsettled().writers -= 1;
        }
    }
}

/// Has it written down what came of a job, by those who write already or by somebody new.
pub(super) fn settle(finished: Finished) {
    if let Some(writer) = Writer::bring(finished) {
        let surroundings = writer.processor.surroundings.clone();
        surroundings.spawn(writer.write());
    }
}

impl Processor {
    fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn settle_together(&self, together: Vec<Finished>) {
        let with_change = |finished: Finished| match finished.change(None) {
            Ok(after) => Some((finished, Box::new(after))),
            Err(refusal) => {
                finished.was_refused(&refusal);
                None
            }
        };
        let together: Vec<_> = together.into_iter().filter_map(with_change).collect();
        let changes = together.iter().map(|(finished, after)| (&*finished.job, &**after));
        let each = match answered("record results", self.jobs.save_all(changes)).await {
            Ok(saved) => saved.into_iter().map(|saved| Some(Ok(saved))).collect(),
            Err(error) if error.is_passing() => vec![Some(Err(error)); together.len()],
            // What no store takes is one of them perhaps, and not the others.
            Err(_) => vec![None; together.len()],
        };
        for ((finished, after), tried) in together.into_iter().zip(each) {
            if let Some(Ok(Saved::Applied(_))) = tried {
                self.was_settled(&finished.outcome, &after);
            } else {
                self.surroundings.spawn(finished.settle_alone(*after, tried));
            }
        }
    }

    /// Who let go of a job that waits again looks for work once more.
    fn was_settled(&self, outcome: &Outcome, job: &Job) {
        self.tell_of_end(outcome, job);
        self.surroundings.meter().count(counted_as(outcome, job.status), 1);
        if !job.status.is_terminal() {
            self.expect([job]);
            self.work_again.notify_one();
        }
    }
}

impl Finished {
    /// The job as it is to be written; failed, if what came of it cannot be stored.
    fn change(&self, unstorable: Option<&str>) -> Result<Job, Refusal> {
        let processor = &self.held.processor;
        let mut after = self.job.document.clone();
        let flawed = processor.surroundings.has(Flaw::SettlesWithoutEpoch);
        let epoch = if flawed { after.epoch } else { self.epoch };
        let (now, node) = (processor.surroundings.now(), processor.node());
        match unstorable {
            None => self.outcome.write(&mut after, epoch, self.chance, now, node)?,
            Some(why) => after.fail(epoch, why, None, now, node)?,
        }
        Ok(after)
    }

    /// Goes on after a first try, if there was one, until it is written or no longer ours to write.
    async fn settle_alone(mut self, mut after: Job, tried: Option<Result<Saved, StoreError>>) {
        let processor = Arc::clone(&self.held.processor);
        let id = self.held.id;
        let mut tried = match tried {
            Some(tried) => tried,
            None => answered("record a result", processor.jobs.save(&self.job, &after)).await,
        };
        let (mut meant, mut unstorable) = (None, None::<String>);
        let mut pauses = Pauses::default();
        loop {
            match tried {
                Ok(Saved::Applied(_)) => return processor.was_settled(&self.outcome, &after),
                Ok(Saved::Overtaken) if processor.surroundings.has(Flaw::ConflictForgetsResult) => return,
                Ok(Saved::Overtaken) => {}
                Err(error) if error.is_passing() => {
                    tracing::debug!(job = %id, %error, "cannot record a result; trying again");
                    if matches!(error, StoreError::Unknown { .. }) {
                        meant = Some(after);
                    }
                    pauses.wait().await;
                }
                Err(error) if unstorable.is_some() => return self.cannot_be_recorded(&error),
                // The store will never take it: that is what came of the job.
                Err(error) => unstorable = Some(format!("its result cannot be stored: {error}")),
            }
            let Some(now) = self.read_again(&mut pauses).await else { return };
            *self.job = now;
            after = match self.change(unstorable.as_deref()) {
                Ok(after) => after,
                Err(_) if is_what_was_meant(&self.job.document, meant.as_ref()) => {
                    return processor.was_settled(&self.outcome, &self.job.document);
                }
                Err(refusal) => return self.was_refused(&refusal),
            };
            tried = answered("record a result", processor.jobs.save(&self.job, &after)).await;
        }
    }

    /// The job as it is now; none if it is gone, or cannot be understood any more.
    async fn read_again(&self, pauses: &mut Pauses) -> Option<Versioned<Job>> {
        let id = self.held.id;
        loop {
            match answered("read a job", self.held.processor.jobs.get_any(id)).await {
                Ok(found) => return found,
                Err(error) if error.is_passing() => pauses.wait().await,
                Err(error) => {
                    self.cannot_be_recorded(&error);
                    return None;
                }
            }
        }
    }

    fn was_refused(&self, refusal: &Refusal) {
        let (job, title) = (&self.job.document, "a late answer was refused");
        self.held.processor.tell_operator(job, Level::Warn, title, refusal.to_string());
    }

    fn cannot_be_recorded(&self, error: &StoreError) {
        let (job, title) = (&self.job.document, "what came of it cannot be recorded at all");
        self.held.processor.tell_operator(job, Level::Error, title, error.to_string());
    }
}

fn counted_as(outcome: &Outcome, status: JobStatus) -> Count {
    match status {
        JobStatus::Successful => Count::JobsSuccessful,
        JobStatus::Failed => Count::JobsFailed,
        JobStatus::Error => Count::JobsInError,
        JobStatus::Queued | JobStatus::Started
            if matches!(outcome, Outcome::Stopped(_) | Outcome::NotBegun(_)) =>
        {
            Count::JobsGivenBack
        }
        JobStatus::Queued | JobStatus::Started => Count::JobsRetried,
    }
}

/// Ever longer ones: many results may wait for a store that is away.
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(STORE_PAUSE)
    }
}

impl Pauses {
    async fn wait(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Whether a job is what our own write, whose answer was lost, made of it.
fn is_what_was_meant(job: &Job, meant: Option<&Job>) -> bool {
    meant.is_some_and(|meant| {
        (job.epoch, job.status, &job.result, job.attempt)
            == (meant.epoch, meant.status, &meant.result, meant.attempt)
    })
}
