//! Where jobs are handed in and asked for: what the web service calls.
//!
//! A job is checked, given an id and a number, and written; when [`JobDesk::submit`] returns, it is on disk. Under an
//! idempotency key the id is derived from domain and key, so that a repeat meets the job it made before. A create whose
//! answer was lost is repeated under the same id, and so is the same create.
//!
//! - [`batch`]: many at once
//! - [`keys`]: those of which there is to be only one at a time
//! - [`changes`]: cancel, requeue, delete
//! - [`held_up`]: whether a limit holds a job up

mod batch;
mod changes;
mod held_up;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use rota_model::check::{Checker, Invalid};
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::submission::{MAX_KEY_CHARS, Place};
use rota_model::job::{Job, NewJob};
use rota_store::cursor::Cursor;
use rota_store::job_limits::JobLimits;
use rota_store::jobs::{JobFilter, Jobs};
use rota_store::repository::Created;
use rota_store::seam::Version;
use rota_store::unique_keys::UniqueKeys;
use rota_store::{Store, StoreError, Versioned};
use tokio::time::{Instant, timeout_at};

use crate::flaws::Flaw;
use crate::meter::{Count, Latency};
use crate::numbers::Numbers;
use crate::patience::persevere;
use crate::processor::Processor;
use crate::registry::{Known, TypeRegistry};
use crate::surroundings::Surroundings;
use crate::waiters::Waiters;

pub use batch::{Accepted, MAX_BATCH};
pub use changes::{ChangeError, Deleted};
pub use held_up::HeldUp;

/// A hint may be lost: whoever waits looks again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    New(Versioned<Job>),
    /// The same submission was made before, under the same idempotency key.
    Again(Versioned<Job>),
    /// A job with the same unique key is there.
    Twin(Versioned<Job>),
}

impl Submitted {
    pub fn job(&self) -> &Versioned<Job> {
        let (Submitted::New(job) | Submitted::Again(job) | Submitted::Twin(job)) = self;
        job
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used before for another submission, job {0}")]
    KeyReused(JobId),
    /// The idempotency key was used for a job that was deleted since, or that was given up for a twin before it was made.
    #[error(
        "the idempotency key was used for job {0}, which was deleted or given up for one with the same unique key"
    )]
    Deleted(JobId),
    #[error("others are submitting jobs with the same unique key at this moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub struct JobDesk {
    jobs: Jobs,
    unique_keys: UniqueKeys,
    limits: JobLimits,
    registry: Arc<TypeRegistry>,
    numbers: Numbers,
    waiters: Waiters,
    surroundings: Surroundings,
    sections: u32,
    node: NodeId,
    processor: Arc<Processor>,
}

/// A submission against which there is nothing to be said.
struct Checked {
    job_id: JobId,
    known: Option<Arc<Known>>,
}

/// What a desk needs of its node.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<TypeRegistry>,
    pub(crate) waiters: Waiters,
    pub(crate) surroundings: Surroundings,
    pub(crate) sections: u32,
    pub(crate) node: NodeId,
    pub(crate) processor: Arc<Processor>,
}

impl JobDesk {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { store, registry, waiters, surroundings, sections, node, processor } = parts;
        let jobs = Jobs::new(Arc::clone(&store));
        let numbers = Numbers::new(jobs.clone());
        Self {
            jobs,
            unique_keys: UniqueKeys::new(Arc::clone(&store)),
            limits: JobLimits::new(store),
            registry,
            numbers,
            waiters,
            surroundings,
            sections,
            node,
            processor,
        }
    }

    /// The types of jobs, and what domains say of them.
    pub fn types(&self) -> &TypeRegistry {
        &self.registry
    }

    /// Takes a job. On return it is on disk.
    pub async fn submit(&self, domain: &Domain, submission: NewJob) -> Result<Submitted, SubmitError> {
        let meter = self.surroundings.meter();
        let began = meter.begin();
        let submitted = self.take(domain, submission).await?;
        meter.end(Latency::JobRequest, began);
        meter.count(Count::JobsSubmitted, u64::from(matches!(submitted, Submitted::New(_))));
        Ok(submitted)
    }

    async fn take(&self, domain: &Domain, submission: NewJob) -> Result<Submitted, SubmitError> {
        let checked = self.checked(domain, &submission).await?;
        self.take_checked(domain, submission, checked).await
    }

    async fn take_checked(
        &self,
        domain: &Domain,
        submission: NewJob,
        Checked { job_id, known }: Checked,
    ) -> Result<Submitted, SubmitError> {
        let number = self.numbers.next().await?;
        if submission.unique.is_some() {
            let unique = self.submit_unique(domain, &submission, known.as_deref(), job_id, number);
            return Box::pin(unique).await;
        }
        let limits = known.as_ref().map(|known| known.job_type.limits()).unwrap_or_default();
        let is_limited = limits.apply_to(submission.limit_key.is_some());
        let job = self.job(domain, submission, known.as_deref(), job_id, number);
        self.create(job, is_limited).await
    }

    /// The id of the job, if there is nothing to be said against it, and what the domain says of its type.
    async fn checked(&self, domain: &Domain, submission: &NewJob) -> Result<Checked, SubmitError> {
        submission.check()?;
        let known = self.registry.known(domain, &submission.input.kind).await?;
        self.registry.check(submission, known.as_deref())?;
        let job_id = self.job_id(domain, submission.idempotency_key.as_deref())?;
        Ok(Checked { job_id, known })
    }

    fn job_id(&self, domain: &Domain, idempotency_key: Option<&str>) -> Result<JobId, Invalid> {
        let Some(key) = idempotency_key else {
            return Ok(JobId::rising(self.surroundings.now(), &self.surroundings.randomness()));
        };
        let mut check = Checker::new();
        check.line("/idempotencyKey", key, 1..=MAX_KEY_CHARS);
        check.finish().map(|()| JobId::derived(&["idempotency", domain.as_str(), key]))
    }

    /// The job as it is to be stored.
    fn job(
        &self,
        domain: &Domain,
        submission: NewJob,
        known: Option<&Known>,
        job_id: JobId,
        job_number: u64,
    ) -> Job {
        let place = Place {
            domain: domain.clone(),
            job_id,
            job_number: if self.surroundings.has(Flaw::SharesNumbers) { job_number & !1 } else { job_number },
            sections: self.sections,
            accepted_by: self.node,
        };
        let defaults = known.map(|known| known.job_type.defaults()).unwrap_or_default();
        submission.into_job_of(&defaults, place, self.surroundings.now())
    }

    /// Stores a job, already claimed if this node can begin with it at once.
    async fn create(&self, job: Job, is_limited: bool) -> Result<Submitted, SubmitError> {
        let created = match self.processor.seat_for(&job, is_limited) {
            Some(seat) => Processor::begin_new(&self.processor, seat, job).await,
            None => self.create_queued(job).await,
        };
        match created? {
            Created::New(job) => Ok(Submitted::New(job)),
            Created::Exists(job) => self.submitted_before(&job).await,
        }
    }

    async fn create_queued(&self, job: Job) -> Result<Created<Job>, StoreError> {
        let created = create(&self.jobs, &self.surroundings, job).await?;
        if let Created::New(job) = &created {
            self.processor.expect([&job.document]);
        }
        Ok(created)
    }

    /// What is there under the id of a submission that found it taken.
    async fn submitted_before(&self, ours: &Job) -> Result<Submitted, SubmitError> {
        let id = ours.job_id;
        let there = persevere("submit", |_| self.jobs.get(&ours.domain, id)).await?;
        submitted_again(ours, there.ok_or(SubmitError::Deleted(id))?)
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
        // No job is in a section that is none, and nobody has to look through all of them to say so.
        if filter.section.is_some_and(|section| section >= self.sections) {
            return Ok((Vec::new(), None));
        }
        self.jobs.list(domain, filter, limit, after).await
    }

    /// Time and chance, and who wants to know of spans.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// How many jobs this node runs now.
    pub fn running(&self) -> usize {
        self.processor.running()
    }
}

/// A submission that found its id taken, by itself or by another.
fn submitted_again(ours: &Job, there: Versioned<Job>) -> Result<Submitted, SubmitError> {
    if there.document.request_digest == ours.request_digest {
        Ok(Submitted::Again(there))
    } else {
        Err(SubmitError::KeyReused(ours.job_id))
    }
}

/// Stores a new job, and again under the same id while the answer is lost. Who finds its own create there has created it.
pub(crate) async fn create(
    jobs: &Jobs,
    surroundings: &Surroundings,
    job: Job,
) -> Result<Created<Job>, StoreError> {
    let made = create_in_form(jobs, surroundings, &job, || &job).await?;
    Ok(made.of(job))
}

/// What became of a create.
pub(crate) enum Made {
    New(Version),
    /// By a try of ours whose answer was lost.
    Found(Box<Versioned<Job>>),
    /// By another, or by a try of ours whose answer was lost.
    Taken {
        maybe_by_us: bool,
    },
}

impl Made {
    /// What became of this job.
    pub(crate) fn of(self, job: Job) -> Created<Job> {
        match self {
            Made::New(version) => {
                Created::New(Versioned { key: rota_store::jobs::key(&job), document: job, version })
            }
            Made::Found(there) => Created::New(*there),
            Made::Taken { .. } => Created::Exists(job),
        }
    }
}

/// The same, in the form that the job is to have at each try: one that is stored as claimed is not, once the claim would be
/// worth nothing.
pub(crate) async fn create_in_form<'a>(
    jobs: &Jobs,
    surroundings: &Surroundings,
    job: &Job,
    form: impl Fn() -> &'a Job,
) -> Result<Made, StoreError> {
    // Whoever chose the name may have used it before; an id that was just made up can only have been taken by us.
    let ours = job.idempotency_key.is_none() && job.unique.is_none();
    let flawed =
        || Job { job_id: JobId::rising(surroundings.now(), &surroundings.randomness()), ..job.clone() };
    let other = surroundings.has(Flaw::RepeatsUnderNewId).then(flawed);
    let mut repeated = false;
    let created = persevere("create a job", |maybe| {
        repeated |= maybe;
        jobs.create_as(other.as_ref().filter(|_| maybe).unwrap_or_else(|| form()))
    });
    match created.await {
        Err(StoreError::Unknown { .. }) if surroundings.has(Flaw::AcknowledgesUnknown) => {
            Ok(Made::New(Version(0)))
        }
        Err(error) => Err(error),
        Ok(Some(version)) if !repeated => Ok(Made::New(version)),
        Ok(created) if created.is_some() || ours => {
            let id = other.as_ref().map_or(job.job_id, |other| other.job_id);
            let there = persevere("read a job", |_| jobs.get_any(id)).await?;
            let taken = Made::Taken { maybe_by_us: true };
            Ok(there.map_or(taken, |there| Made::Found(Box::new(there))))
        }
        Ok(_) => Ok(Made::Taken { maybe_by_us: repeated }),
    }
}
