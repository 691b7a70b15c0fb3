//! Writing what came of a job (rule 3): on the version last read; on a conflict it is read again, and given up only if the
//! job is no longer ours to change. While the store is away it is tried again and again: a result is not lost as long as the
//! node lives.

use std::time::Duration;

use rota_model::job::{Job, Refusal};
use rota_model::time::UnixMillis;
use rota_store::repository::Saved;
use rota_store::{StoreError, Versioned};
use tokio::time::sleep;

use super::Processor;
use crate::flaws::Flaw;
use crate::patience::{STORE_PAUSE, answered};

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

enum Settled {
    Written(Box<Job>),
    Overtaken,
    Refused(Refusal),
}

impl Processor {
    pub(super) async fn settle(
        &self,
        mut job: Versioned<Job>,
        epoch: u64,
        change: impl Fn(&mut Job, u64, UnixMillis) -> Result<(), Refusal>,
    ) {
        let id = job.document.job_id;
        let (mut meant, mut unstorable) = (None, None::<String>);
        let mut pauses = Pauses::default();
        loop {
            let change = |job: &mut Job, epoch, now| match &unstorable {
                None => change(job, epoch, now),
                Some(why) => job.fail(epoch, why, None, now, self.node()),
            };
            match self.try_settle(&job, epoch, &change, &mut meant).await {
                Ok(Settled::Written(after)) => return self.was_settled(&after),
                Ok(Settled::Refused(_)) if is_what_was_meant(&job.document, meant.as_deref()) => {
                    return self.was_settled(&job.document);
                }
                Ok(Settled::Refused(refusal)) => {
                    tracing::warn!(job = %id, %refusal, "a late answer was refused");
                    return;
                }
                Ok(Settled::Overtaken) if self.surroundings.has(Flaw::ConflictForgetsResult) => return,
                Ok(Settled::Overtaken) => {}
                Err(error) if error.is_passing() => {
                    tracing::debug!(job = %id, %error, "cannot record a result; trying again");
                    pauses.wait().await;
                }
                Err(error) if unstorable.is_some() => {
                    tracing::error!(job = %id, %error, "what came of a job cannot be recorded at all");
                    return;
                }
                // The store will never take it: that is what came of the job.
                Err(error) => unstorable = Some(format!("its result cannot be stored: {error}")),
            }
            match answered("read a job", self.jobs.get_any(id)).await {
                Ok(Some(now)) => job = now,
                Ok(None) => return,
                Err(_) => pauses.wait().await,
            }
        }
    }

    async fn try_settle(
        &self,
        job: &Versioned<Job>,
        epoch: u64,
        change: &impl Fn(&mut Job, u64, UnixMillis) -> Result<(), Refusal>,
        meant: &mut Option<Box<Job>>,
    ) -> Result<Settled, StoreError> {
        let mut after = Box::new(job.document.clone());
        let flawed = self.surroundings.has(Flaw::SettlesWithoutEpoch);
        let epoch = if flawed { after.epoch } else { epoch };
        if let Err(refusal) = change(&mut after, epoch, self.surroundings.now()) {
            return Ok(Settled::Refused(refusal));
        }
        let saved = answered("record a result", self.jobs.save(job, &after)).await;
        if matches!(saved, Err(StoreError::Unknown { .. })) {
            *meant = Some(after.clone());
        }
        Ok(match saved? {
            Saved::Applied(_) => Settled::Written(after),
            Saved::Overtaken => Settled::Overtaken,
        })
    }

    /// Who let go of a job that waits again looks for work once more.
    fn was_settled(&self, job: &Job) {
        if !job.status.is_terminal() {
            self.expect(job.run_at);
            self.work_again.notify_one();
        }
    }
}

/// Whether a job is what our own write, whose answer was lost, made of it.
fn is_what_was_meant(job: &Job, meant: Option<&Job>) -> bool {
    meant.is_some_and(|meant| {
        (job.epoch, job.status, &job.result, job.attempt)
            == (meant.epoch, meant.status, &meant.result, meant.attempt)
    })
}
