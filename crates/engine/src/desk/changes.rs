//! What people do to jobs that are there: cancel, requeue, delete. Each change is decided on the version that was read, and
//! decided anew if somebody else wrote meanwhile; who repeats one that already happened is told that it did.

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, Refusal};
use rota_model::log::Level;
use rota_model::unique_key::UniqueKey;
use rota_store::jobs::JobFilter;
use rota_store::limits::MAX_PAGE;
use rota_store::repository::Saved;
use rota_store::seam::Version;
use rota_store::{StoreError, Versioned};
use tokio::time::sleep;

use super::JobDesk;
use crate::flaws::Flaw;
use crate::journal::About;
use crate::patience::{STORE_PAUSE, answered, persevere};

/// How often a change is tried while the store is away or others write to the job.
const TRIES: usize = 20;
/// How many jobs are deleted at a time: whoever writes meanwhile waits for no more.
const SLICE: usize = 500;

/// Why a job was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such job")]
    Missing,
    /// It is not the version that the caller decided on.
    #[error("the job changed since it was read")]
    Changed,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the job is running: cancel it first")]
    Running,
    /// Another job has its unique key by now.
    #[error("its unique key belongs to job {0} by now")]
    KeyMoved(JobId),
    #[error("others write to the job, or submit its twins, at this moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a delete by filter did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    pub deleted: u64,
    /// Whether it stopped at its limit, and there may be more.
    pub more: bool,
}

/// What to do with a job that was read.
enum Act {
    Write(Box<Job>),
    Delete,
    /// It is as it should be.
    Nothing,
}

impl JobDesk {
    /// Ends a job that waits or runs. Its handler is told to stop, and what it still answers is refused.
    pub async fn cancel(
        &self,
        domain: &Domain,
        id: JobId,
        on: Option<Version>,
    ) -> Result<Versioned<Job>, ChangeError> {
        let cancelled = self.change(domain, id, on, |job, tried| {
            if tried && was_cancelled(job) {
                return Ok(Act::Nothing);
            }
            let mut after = job.clone();
            after.cancel("by a person", self.surroundings.now(), self.node)?;
            Ok(Act::Write(Box::new(after)))
        });
        let cancelled = cancelled.await?.ok_or(ChangeError::Missing)?;
        self.tell_of(&cancelled.document, "it was cancelled by a person");
        Ok(cancelled)
    }

    /// Runs a job once more that has ended: the same id, the next epoch, the old result kept.
    pub async fn requeue(
        &self,
        domain: &Domain,
        id: JobId,
        on: Option<Version>,
    ) -> Result<Versioned<Job>, ChangeError> {
        let job = persevere("requeue a job", |_| self.jobs.get(domain, id)).await?;
        let job = job.ok_or(ChangeError::Missing)?;
        let next = job.document.epoch + 1;
        job.document.clone().requeue(self.surroundings.now(), self.node)?;
        if on.is_none_or(|on| on == job.version) {
            self.keep_key(&job.document, next).await?;
        }
        let flawed = self.surroundings.has(Flaw::RequeueResetsEpoch);
        let requeued = self.change(domain, id, on, |job, _| {
            // Only a requeue leads on from where it ended: ours, whose answer was lost, or that of whoever finished it.
            if job.epoch >= next {
                return Ok(Act::Nothing);
            }
            let mut after = job.clone();
            after.requeue(self.surroundings.now(), self.node)?;
            if flawed {
                after.epoch = 0;
            }
            Ok(Act::Write(Box::new(after)))
        });
        let requeued = requeued.await?.ok_or(ChangeError::Missing)?;
        self.processor.expect([&requeued.document]);
        self.processor.wake();
        self.tell_of(&requeued.document, "it was queued once more by a person");
        Ok(requeued)
    }

    fn tell_of(&self, job: &Job, title: &str) {
        self.surroundings.journal().tell_of(&About::job(job), Level::Info, title, None);
    }

    /// Says in the job's unique key that a requeue is under way: from now on nobody takes the key, and whoever would like
    /// to finishes the requeue.
    async fn keep_key(&self, job: &Job, epoch: u64) -> Result<(), ChangeError> {
        let Some(unique) = &job.unique else { return Ok(()) };
        if self.surroundings.has(Flaw::RequeuesWithoutKey) {
            return Ok(());
        }
        for _ in 0..TRIES {
            let found =
                persevere("requeue a job", |_| self.unique_keys.get(&job.domain, &unique.key)).await?;
            let kept = match found {
                Some(key) if key.document.job_id != job.job_id => {
                    return Err(ChangeError::KeyMoved(key.document.job_id));
                }
                Some(key) if key.document.requeue >= Some(epoch) => return Ok(()),
                Some(key) => {
                    let mut after: UniqueKey = key.document.clone();
                    after.requeue = Some(epoch);
                    after.metadata.touch(self.surroundings.now(), self.node);
                    let saved = answered("requeue a job", self.unique_keys.save(&key, &after)).await;
                    saved.map(|saved| matches!(saved, Saved::Applied(_)))
                }
                // It was cleared away when the job had long ended.
                None => {
                    let mut key = self.key_for(&job.domain, &unique.key, job.job_id);
                    key.requeue = Some(epoch);
                    let created = answered("requeue a job", self.unique_keys.create(key)).await;
                    created.map(|created| created.into_new().is_some())
                }
            };
            match kept {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.is_passing() => sleep(STORE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ChangeError::Busy)
    }

    /// Deletes a job that does not run.
    pub async fn delete(&self, domain: &Domain, id: JobId, on: Option<Version>) -> Result<(), ChangeError> {
        let deletes_running = self.surroundings.has(Flaw::DeletesRunning);
        let deleted = self.change(domain, id, on, |job, _| match job.status {
            JobStatus::Started if !deletes_running => Err(ChangeError::Running),
            _ => Ok(Act::Delete),
        });
        deleted.await.map(|_| ())
    }

    /// Deletes what matches a filter and does not run, slice by slice, the newest first, up to a limit.
    pub async fn delete_matching(
        &self,
        domain: &Domain,
        filter: &JobFilter,
        limit: Option<u64>,
    ) -> Result<Deleted, StoreError> {
        let limit = limit.unwrap_or(u64::MAX);
        let (mut deleted, mut after) = (0, None);
        loop {
            let room = usize::try_from(limit - deleted).unwrap_or(SLICE).min(SLICE).min(MAX_PAGE);
            if room == 0 {
                return Ok(Deleted { deleted, more: true });
            }
            let (keys, next) =
                persevere("delete jobs", |_| self.jobs.keys_to_delete(domain, filter, room, after.clone()))
                    .await?;
            let now = self.surroundings.now();
            let saved = answered("delete jobs", self.jobs.delete_all(keys, now)).await;
            let gone =
                |saved: &[Saved]| saved.iter().filter(|saved| matches!(saved, Saved::Applied(_))).count();
            deleted += match saved {
                Ok(saved) => gone(&saved) as u64,
                // What was deleted before is told; the rest is still there, and asked for again.
                Err(error) if error.is_passing() && deleted > 0 => {
                    return Ok(Deleted { deleted, more: true });
                }
                Err(error) => return Err(error),
            };
            let Some(next) = next else { return Ok(Deleted { deleted, more: false }) };
            after = Some(next);
        }
    }

    /// Reads, decides and writes, until nobody came between. `decide` is told whether a write of ours may have happened. None
    /// if the job is gone after such a write.
    async fn change(
        &self,
        domain: &Domain,
        id: JobId,
        on: Option<Version>,
        decide: impl Fn(&Job, bool) -> Result<Act, ChangeError>,
    ) -> Result<Option<Versioned<Job>>, ChangeError> {
        let (mut tried, mut last) = (false, ChangeError::Busy);
        for _ in 0..TRIES {
            let found = persevere("read a job", |_| self.jobs.get(domain, id)).await?;
            let Some(job) = found else {
                return if tried { Ok(None) } else { Err(ChangeError::Missing) };
            };
            let other = on.is_some_and(|on| on != job.version);
            if other && !tried {
                return Err(ChangeError::Changed);
            }
            let act = decide(&job.document, tried)?;
            // Another version may be what our own write made of it; otherwise it is not what was decided on.
            if other && !matches!(act, Act::Nothing) {
                return Err(ChangeError::Changed);
            }
            match self.act(&job, act).await {
                Ok(Some(done)) => return Ok(Some(done)),
                Ok(None) => last = ChangeError::Busy,
                Err(error) if error.is_passing() => {
                    tried |= matches!(error, StoreError::Unknown { .. });
                    last = error.into();
                    sleep(STORE_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(if tried { StoreError::unknown("change a job", "its answer was lost").into() } else { last })
    }

    /// The job as it is after the act; none if somebody came between.
    async fn act(&self, job: &Versioned<Job>, act: Act) -> Result<Option<Versioned<Job>>, StoreError> {
        let (saved, after) = match act {
            Act::Nothing => return Ok(Some(job.clone())),
            Act::Write(after) => (answered("change a job", self.jobs.save(job, &after)).await?, *after),
            Act::Delete => {
                let deleted = self.jobs.delete(job, self.surroundings.now());
                (answered("delete a job", deleted).await?, job.document.clone())
            }
        };
        Ok(match saved {
            Saved::Applied(version) => Some(job.written(after, version)),
            Saved::Overtaken => None,
        })
    }
}

fn was_cancelled(job: &Job) -> bool {
    job.status == JobStatus::Failed && job.result.contains_key("cancelled")
}
