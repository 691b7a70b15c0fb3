//! Where jobs are handed in and asked for: what the web service calls.
//!
//! A job is checked, given an id and a number, and written; when [`JobDesk::submit`] returns, it is on disk. Under an
//! idempotency key the id is derived from domain and key, so that a repeat meets the job it made before.

use std::sync::Arc;
use std::time::Duration;

use rota_model::check::{Checker, Invalid};
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::submission::{MAX_KEY_CHARS, Place};
use rota_model::job::{Job, NewJob};
use rota_store::cursor::Cursor;
use rota_store::hints::Changes;
use rota_store::jobs::{JobFilter, Jobs};
use rota_store::repository::Created;
use rota_store::{StoreError, Versioned};
use tokio::time::{Instant, timeout_at};

use crate::numbers::Numbers;
use crate::surroundings::Surroundings;
use crate::types::JobTypes;
use crate::waiters::Waiters;

/// A hint may be lost: whoever waits looks again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    New(Versioned<Job>),
    /// The same submission was made before, under the same key.
    Again(Versioned<Job>),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used before for another submission, job {0}")]
    KeyReused(JobId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub struct JobDesk {
    jobs: Jobs,
    types: Arc<JobTypes>,
    numbers: Numbers,
    waiters: Waiters,
    surroundings: Surroundings,
    sections: u32,
    node: NodeId,
}

impl JobDesk {
    pub(crate) fn new(
        jobs: Jobs,
        types: Arc<JobTypes>,
        waiters: Waiters,
        surroundings: Surroundings,
        sections: u32,
        node: NodeId,
    ) -> Self {
        Self { numbers: Numbers::new(jobs.clone()), jobs, types, waiters, surroundings, sections, node }
    }

    /// Takes a job. On return it is on disk.
    pub async fn submit(&self, domain: &Domain, submission: NewJob) -> Result<Submitted, SubmitError> {
        submission.check()?;
        self.types.check(&submission)?;
        let digest = submission.idempotency_key.as_ref().map(|_| submission.digest());
        let job_id = self.job_id(domain, submission.idempotency_key.as_deref())?;
        let place = Place {
            domain: domain.clone(),
            job_id,
            job_number: self.numbers.next().await?,
            sections: self.sections,
            accepted_by: self.node,
        };
        let job = submission.into_job(place, self.surroundings.now());
        match self.jobs.create(job).await? {
            Created::New(job) => Ok(Submitted::New(job)),
            Created::Exists(_) => self.submitted_before(domain, job_id, digest).await,
        }
    }

    fn job_id(&self, domain: &Domain, idempotency_key: Option<&str>) -> Result<JobId, Invalid> {
        let Some(key) = idempotency_key else {
            return Ok(JobId::rising(self.surroundings.now(), &self.surroundings.randomness()));
        };
        let mut check = Checker::new();
        check.line("/idempotencyKey", key, 1..=MAX_KEY_CHARS);
        check.finish().map(|()| JobId::derived(&["idempotency", domain.as_str(), key]))
    }

    async fn submitted_before(
        &self,
        domain: &Domain,
        id: JobId,
        digest: Option<String>,
    ) -> Result<Submitted, SubmitError> {
        let there = self.jobs.get(domain, id).await?;
        let there = there.ok_or_else(|| StoreError::unavailable("submit", "the job's id is taken"))?;
        if there.document.request_digest == digest {
            Ok(Submitted::Again(there))
        } else {
            Err(SubmitError::KeyReused(id))
        }
    }

    pub async fn get(&self, domain: &Domain, id: JobId) -> Result<Option<Versioned<Job>>, StoreError> {
        self.jobs.get(domain, id).await
    }

    /// The job once it has ended, or as it is when the time is up.
    pub async fn wait(
        &self,
        domain: &Domain,
        id: JobId,
        patience: Duration,
    ) -> Result<Option<Versioned<Job>>, StoreError> {
        let deadline = Instant::now() + patience;
        let waiter = self.waiters.register(id);
        loop {
            // Listening begins before looking, so that a change in between is not missed.
            let next_change = waiter.changed();
            let found = self.jobs.get(domain, id).await?;
            let ended = found.as_ref().is_none_or(|job| job.document.status.is_terminal());
            if ended || Instant::now() >= deadline {
                return Ok(found);
            }
            let _ = timeout_at(deadline.min(Instant::now() + LOOK_AGAIN), next_change).await;
        }
    }

    /// Jobs of a domain, newest first.
    pub async fn list(
        &self,
        domain: &Domain,
        filter: &JobFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Job>, Option<Cursor>), StoreError> {
        self.jobs.list(domain, filter, limit, after).await
    }

    /// Those of the jobs that belong to the domain, as they are now.
    pub async fn get_all(&self, domain: &Domain, ids: Vec<String>) -> Result<Vec<Job>, StoreError> {
        let jobs = self.jobs.get_all(ids).await?.into_iter().map(|job| job.document);
        Ok(jobs.filter(|job| job.domain == *domain).collect())
    }

    pub fn changes(&self) -> Changes {
        self.jobs.changes()
    }
}
