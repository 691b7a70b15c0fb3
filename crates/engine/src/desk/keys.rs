//! Jobs of which there is to be only one at a time (rule 7).
//!
//! The key is a document, written before its job, that names the job. Two submissions of twins both want to write it, and
//! the store lets one of them. Whoever finds a key whose job is missing creates that job, under the id in the key: so a
//! submitter that died in between, or is merely slow, leaves nothing behind that blocks the others, and nobody makes a
//! second job beside its own. A submission with a name of its own cannot be finished by others, since it must be found again
//! as what it was: it is left alone for a while, and then its id is barred. The key moves on only when its job was seen
//! outside its scope, by a replace of the version that was read before the job was looked at.

use std::time::Duration;

use rota_model::Extra;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use rota_model::metadata::Metadata;
use rota_model::unique_key::UniqueKey;
use rota_store::repository::{Created, Saved};
use rota_store::{StoreError, Versioned};
use tokio::time::sleep;

use super::{ChangeError, JobDesk, Made, SubmitError, Submitted, create_in_form};
use crate::flaws::Flaw;
use crate::patience::persevere;
use crate::registry::Known;

/// How often two submissions may come in each other's way before one of them is asked to come again.
const TRIES: usize = 16;
/// How long to leave alone those who come in each other's way.
const MOMENT: Duration = Duration::from_millis(5);
/// Whoever's key is younger than this may be about to create its job, and is left alone for a while:
const ABOUT_TO_CREATE: Duration = Duration::from_secs(1);
/// so long,
const LEAVE_ALONE: Duration = Duration::from_millis(50);
/// and so often. Who waits with many others goes by the age of the key before: one of them writes to it, and the rest wait on.
const LEAVES: usize = 40;

/// Whom a key belongs to.
enum Held {
    /// To our own submission: its job is to be created.
    ByUs,
    /// To a job that keeps twins away.
    By(Box<Versioned<Job>>),
    /// To a job that is not there: it is still to be created, or was deleted. The key was written to, so that nobody
    /// clears it away meanwhile.
    ByNobody(Box<Versioned<UniqueKey>>),
    /// To this job, which was named and is probably about to be created: its submitter is to be left alone.
    Soon(JobId),
    /// Somebody wrote to it meanwhile: look again.
    Moving,
}

/// Whose job is waited for, and how often it was not there.
#[derive(Default)]
struct LeftAlone {
    theirs: Option<JobId>,
    times: usize,
}

impl LeftAlone {
    fn once_more(&mut self, theirs: JobId) {
        let before = if self.theirs == Some(theirs) { self.times } else { 0 };
        (self.theirs, self.times) = (Some(theirs), before + 1);
    }

    /// Who is waited for no longer.
    fn given_up(&self) -> Option<JobId> {
        self.theirs.filter(|_| self.times >= LEAVES)
    }
}

/// What became of the job that a key names.
enum Keyed {
    Done(Box<Submitted>),
    /// It is there, and keeps nobody away, or nobody could tell yet: look again.
    Outside,
    /// Its id is taken by a job that is no more, and so is in nobody's way.
    Gone,
}

/// Why a job that was never to be stands where it would have stood.
const BAR: &str = "its submitter was too slow: another has its unique key";

/// Whether a job only keeps its id from being used.
fn is_bar(job: &Job) -> bool {
    job.result.get("cancelled").is_some_and(|why| why == BAR)
}

impl JobDesk {
    pub(super) async fn submit_unique(
        &self,
        domain: &Domain,
        submission: &NewJob,
        known: Option<&Known>,
        job_id: JobId,
        job_number: u64,
    ) -> Result<Submitted, SubmitError> {
        let Some(key) = submission.unique.as_ref().map(|unique| unique.key.as_str()) else {
            return Err(StoreError::refused("submit", "it has no unique key").into());
        };
        let named = submission.idempotency_key.is_some();
        if named
            && let Some(there) = persevere("submit", |_| self.jobs.get(domain, job_id)).await?
            && !is_bar(&there.document)
        {
            return repeated(there, submission);
        }
        let under = |id, number| self.job(domain, submission.clone(), known, id, number);
        let (mut gone, mut left_alone) = (0, LeftAlone::default());
        for _ in 0..TRIES + 2 * LEAVES {
            let given_up = left_alone.given_up();
            match persevere("take a unique key", |_| self.hold(domain, key, job_id, given_up)).await? {
                Held::Moving => sleep(MOMENT).await,
                Held::Soon(theirs) => {
                    left_alone.once_more(theirs);
                    sleep(LEAVE_ALONE).await;
                }
                Held::By(job) => return repeated(*job, submission),
                Held::ByUs => match self.create_keyed(under(job_id, job_number)).await? {
                    Keyed::Done(submitted) => return Ok(*submitted),
                    Keyed::Outside => {}
                    // Whoever took our id has moved the key on by now; if not, a person deleted the job.
                    Keyed::Gone => gone += 1,
                },
                Held::ByNobody(found) => {
                    let id = found.document.job_id;
                    let made = if is_named(id, job_id) {
                        self.bar(under(id, self.numbers.next().await?)).await?
                    } else {
                        self.create_keyed(under(id, job_number)).await?
                    };
                    match made {
                        Keyed::Done(submitted) => return Ok(*submitted),
                        Keyed::Outside => {}
                        Keyed::Gone => {
                            persevere("take a unique key", |_| self.move_on(&found, job_id)).await?;
                        }
                    }
                }
            }
            if named && gone > 1 {
                return Err(SubmitError::Deleted(job_id));
            }
        }
        Err(SubmitError::Busy)
    }

    /// Takes the id of a job that somebody is about to create, so that it is never created: what stands there has ended, and
    /// is deleted at once. If the job came to be meanwhile it stays, and keeps its key: the next look finds it.
    async fn bar(&self, mut job: Job) -> Result<Keyed, SubmitError> {
        job.input.payload.clear();
        (job.unique, job.idempotency_key, job.request_digest) = (None, None, None);
        if let Err(refusal) = job.cancel(BAR, self.surroundings.now(), self.node) {
            return Err(StoreError::refused("take a unique key", refusal).into());
        }
        persevere("take a unique key", |_| self.jobs.create_as(&job)).await?;
        let there = persevere("take a unique key", |_| self.jobs.get(&job.domain, job.job_id)).await?;
        match there {
            None => Ok(Keyed::Gone),
            Some(there) if is_bar(&there.document) => self.lift_bar(&there).await,
            Some(_) => Ok(Keyed::Outside),
        }
    }

    /// The id stays taken; who barred it may be no more, or others lift the bar at the same time.
    async fn lift_bar(&self, bar: &Versioned<Job>) -> Result<Keyed, SubmitError> {
        let Job { domain, job_id, .. } = &bar.document;
        match self.delete(domain, *job_id, Some(bar.version)).await {
            Ok(()) | Err(ChangeError::Missing | ChangeError::Changed) => Ok(Keyed::Gone),
            Err(ChangeError::Store(error)) => Err(error.into()),
            Err(error) => Err(StoreError::refused("take a unique key", error).into()),
        }
    }

    /// Creates the job that a key names.
    async fn create_keyed(&self, job: Job) -> Result<Keyed, SubmitError> {
        let made = create_in_form(&self.jobs, &self.surroundings, &job, || &job).await?;
        let maybe_by_us = matches!(made, Made::Taken { maybe_by_us: true });
        let ours = match made.of(job) {
            Created::New(job) => {
                self.processor.expect([&job.document]);
                return Ok(Keyed::Done(Box::new(Submitted::New(job))));
            }
            Created::Exists(ours) => ours,
        };
        let there = persevere("submit", |_| self.jobs.get(&ours.domain, ours.job_id)).await?;
        Ok(match there {
            // It may have been created, and deleted since: who made another job would make two of one submission.
            None if maybe_by_us && ours.idempotency_key.is_none() => {
                let why = "its answer was lost, and what was made of it is deleted, if anything was";
                return Err(StoreError::unknown("submit", why).into());
            }
            None => Keyed::Gone,
            Some(there) if is_bar(&there.document) => return self.lift_bar(&there).await,
            // Ours, if the answer to our own create was lost; otherwise that of whoever finished our half.
            Some(there) if there.document.job_number == ours.job_number => {
                Keyed::Done(Box::new(Submitted::New(there)))
            }
            Some(there) if there.document.is_in_scope(self.surroundings.now()) => {
                Keyed::Done(Box::new(Submitted::Twin(there)))
            }
            Some(_) => Keyed::Outside,
        })
    }

    /// Looks whom a key belongs to, and takes it if it is free.
    async fn hold(
        &self,
        domain: &Domain,
        key: &str,
        ours: JobId,
        given_up: Option<JobId>,
    ) -> Result<Held, StoreError> {
        let Some(found) = self.unique_keys.get(domain, key).await? else {
            let created = self.unique_keys.create(self.key_for(domain, key, ours)).await?;
            return Ok(if matches!(created, Created::New(_)) { Held::ByUs } else { Held::Moving });
        };
        let Some(job) = self.jobs.get(domain, found.document.job_id).await? else {
            if self.surroundings.has(Flaw::TakesKeyFromSlow) && found.document.job_id != ours {
                return self.move_on(&found, ours).await;
            }
            let theirs = found.document.job_id;
            if given_up != Some(theirs) && self.is_about_to_be(&found.document, ours) {
                return Ok(Held::Soon(theirs));
            }
            return self.keep(found, ours).await;
        };
        if self.finish_requeue(&found, &job).await? {
            return Ok(Held::Moving);
        }
        if job.document.is_in_scope(self.surroundings.now()) {
            return Ok(Held::By(Box::new(job)));
        }
        self.move_on(&found, ours).await
    }

    /// Whether the job of a key is missing because its submitter wrote the key just now.
    fn is_about_to_be(&self, key: &UniqueKey, ours: JobId) -> bool {
        let age = self.surroundings.now().since(key.metadata.updated_at);
        key.job_id != ours && is_named(key.job_id, ours) && age < ABOUT_TO_CREATE
    }

    /// Writes to a key whose job is missing, so that whoever thinks it old finds another version.
    async fn keep(&self, found: Versioned<UniqueKey>, ours: JobId) -> Result<Held, StoreError> {
        let mut after = found.document.clone();
        after.metadata.touch(self.surroundings.now(), self.node);
        let Saved::Applied(version) = self.unique_keys.save(&found, &after).await? else {
            return Ok(Held::Moving);
        };
        let kept = found.written(after, version);
        Ok(if kept.document.job_id == ours { Held::ByUs } else { Held::ByNobody(Box::new(kept)) })
    }

    /// A requeue that is under way is finished: who began it may be no more.
    async fn finish_requeue(
        &self,
        key: &Versioned<UniqueKey>,
        job: &Versioned<Job>,
    ) -> Result<bool, StoreError> {
        let under_way = key.document.requeue.is_some_and(|epoch| job.document.epoch < epoch);
        let mut after = job.document.clone();
        if !under_way || after.requeue(self.surroundings.now(), self.node).is_err() {
            return Ok(false);
        }
        self.jobs.save(job, &after).await.map(|_| true)
    }

    async fn move_on(&self, key: &Versioned<UniqueKey>, ours: JobId) -> Result<Held, StoreError> {
        let mut after = self.key_for(&key.document.domain, &key.document.key, ours);
        after.metadata.created_at = key.document.metadata.created_at;
        let saved = self.unique_keys.save(key, &after).await?;
        Ok(if matches!(saved, Saved::Applied(_)) { Held::ByUs } else { Held::Moving })
    }

    pub(super) fn key_for(&self, domain: &Domain, key: &str, job_id: JobId) -> UniqueKey {
        UniqueKey {
            domain: domain.clone(),
            key: key.to_owned(),
            job_id,
            requeue: None,
            metadata: Metadata::new(self.surroundings.now(), self.node),
            extra: Extra::new(),
        }
    }
}

/// Whether one of two twins goes by a name. Such a submission is found again by its own id alone: nobody else's stands there.
fn is_named(theirs: JobId, ours: JobId) -> bool {
    theirs.is_derived() || ours.is_derived()
}

/// A job that was found instead of made: the one of this very submission, or a twin.
fn repeated(there: Versioned<Job>, submission: &NewJob) -> Result<Submitted, SubmitError> {
    let named = submission.idempotency_key.is_some();
    if !named || there.document.idempotency_key != submission.idempotency_key {
        Ok(Submitted::Twin(there))
    } else if there.document.request_digest == Some(submission.digest()) {
        Ok(Submitted::Again(there))
    } else {
        Err(SubmitError::KeyReused(there.document.job_id))
    }
}
