//! Many submissions in one call. Each is taken or refused on its own, and answered in the order given.

use futures::StreamExt as _;
use futures::stream;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use rota_store::jobs::Jobs;
use rota_store::seam::Version;
use rota_store::{StoreError, Versioned};
use tokio::task::yield_now;

use super::{Checked, JobDesk, SubmitError, Submitted, submitted_again};
use crate::meter::{Count, Latency};
use crate::patience::persevere;
use crate::registry::TURN;

/// How many submissions one call takes.
pub const MAX_BATCH: usize = 10_000;
/// How many unique ones are looked after at a time.
const SIDE_BY_SIDE: usize = 64;

/// A submission that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub job_id: JobId,
    pub job_number: u64,
    /// Whether it was made just now; otherwise it was found, under its idempotency key or its unique key.
    pub is_new: bool,
}

impl Accepted {
    fn new(job: &Job) -> Self {
        Self { job_id: job.job_id, job_number: job.job_number, is_new: true }
    }

    fn of(submitted: &Submitted) -> Self {
        let is_new = matches!(submitted, Submitted::New(_));
        Self { is_new, ..Self::new(&submitted.job().document) }
    }
}

/// A submission that was checked, and its place in the batch.
struct Placed {
    nth: usize,
    checked: Checked,
    submission: NewJob,
}

type Answer = Result<Accepted, SubmitError>;

fn unanswered() -> Answer {
    Err(StoreError::unavailable("submit", "it was left out").into())
}

impl JobDesk {
    /// Takes many jobs, at most [`MAX_BATCH`]. On return those that are accepted are on disk.
    pub async fn submit_all(&self, domain: &Domain, submissions: Vec<NewJob>) -> Vec<Answer> {
        let meter = self.surroundings.meter();
        let began = meter.begin();
        let answers = self.take_all(domain, submissions).await;
        let is_new = |answer: &&Answer| answer.as_ref().is_ok_and(|accepted| accepted.is_new);
        meter.count(Count::JobsSubmitted, answers.iter().filter(is_new).count() as u64);
        if answers.iter().any(Result::is_ok) {
            meter.end(Latency::BatchRequest, began);
        }
        answers
    }

    async fn take_all(&self, domain: &Domain, submissions: Vec<NewJob>) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = Vec::with_capacity(submissions.len());
        let (mut plain, mut unique) = (Vec::new(), Vec::new());
        let mut spent = 0;
        for (nth, submission) in submissions.into_iter().enumerate() {
            let checked = self.checked(domain, &submission).await;
            spent += checked
                .as_ref()
                .map_or(1, |checked| self.registry.effort(&submission, checked.known.as_deref()));
            if spent > TURN {
                yield_now().await;
                spent = 0;
            }
            match checked {
                Err(error) => answers.push(Some(Err(error))),
                Ok(checked) => {
                    answers.push(None);
                    let room = if submission.unique.is_some() { &mut unique } else { &mut plain };
                    room.push(Placed { nth, checked, submission });
                }
            }
        }
        let plain = self.submit_plain(domain, plain).await;
        let unique = self.submit_each(domain, unique).await;
        for (nth, answer) in plain.into_iter().chain(unique) {
            if let Some(place) = answers.get_mut(nth) {
                *place = Some(answer);
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// Those without a unique key: one write for all of them.
    async fn submit_plain(&self, domain: &Domain, submissions: Vec<Placed>) -> Vec<(usize, Answer)> {
        let places: Vec<usize> = submissions.iter().map(|placed| placed.nth).collect();
        let all_failed =
            |error: StoreError| places.iter().map(|nth| (*nth, Err(error.clone().into()))).collect();
        let numbers = match self.numbers.take(submissions.len()).await {
            Ok(numbers) => numbers,
            Err(error) => return all_failed(error),
        };
        let numbered = submissions.into_iter().zip(numbers);
        let job = |(Placed { checked, submission, .. }, number)| {
            self.job(domain, submission, checked.known.as_deref(), checked.job_id, number)
        };
        let jobs: Vec<Job> = numbered.map(job).collect();
        let created = match self.create_all(&jobs).await {
            Err(StoreError::Refused { .. }) => self.create_all_but_refused(jobs).await,
            created => created,
        };
        match created {
            Ok(answers) => places.into_iter().zip(answers).collect(),
            Err(error) => all_failed(error),
        }
    }

    /// No store takes one of them, and nothing is written: those that are at fault are told so, and the others are created.
    async fn create_all_but_refused(&self, jobs: Vec<Job>) -> Result<Vec<Answer>, StoreError> {
        let faults: Vec<_> = jobs.iter().map(|job| Jobs::check_new(job).err()).collect();
        let faultless = jobs.into_iter().zip(&faults).filter(|(_, fault)| fault.is_none());
        let faultless: Vec<Job> = faultless.map(|(job, _)| job).collect();
        let mut created = self.create_all(&faultless).await?.into_iter();
        let answer = |fault: Option<StoreError>| match fault {
            Some(fault) => Err(fault.into()),
            None => created.next().unwrap_or_else(unanswered),
        };
        Ok(faults.into_iter().map(answer).collect())
    }

    async fn create_all(&self, jobs: &[Job]) -> Result<Vec<Answer>, StoreError> {
        let mut repeated = false;
        let created = persevere("create jobs", |maybe| {
            repeated |= maybe;
            self.jobs.create_all(jobs)
        });
        let created = created.await?;
        // An id that was just made up can only have been taken by us.
        let is_ours = |job: &Job, created: Option<Version>| {
            created.is_some() || (repeated && job.idempotency_key.is_none())
        };
        let ours: Vec<bool> = jobs.iter().zip(created).map(|(job, created)| is_ours(job, created)).collect();
        let others = jobs.iter().zip(&ours).filter(|(_, ours)| !**ours).map(|(job, _)| job);
        let mut found = self.found_before(others.collect()).await.into_iter();
        self.processor.expect(jobs);
        let answer = |(job, ours): (&Job, bool)| {
            if ours { Ok(Accepted::new(job)) } else { found.next().unwrap_or_else(unanswered) }
        };
        Ok(jobs.iter().zip(ours).map(answer).collect())
    }

    /// What is there under the ids that were taken: one read for all of them.
    async fn found_before(&self, taken: Vec<&Job>) -> Vec<Answer> {
        let ids: Vec<JobId> = taken.iter().map(|job| job.job_id).collect();
        let found = match persevere("submit", |_| self.jobs.get_each(&ids)).await {
            Ok(found) => found,
            Err(error) => return taken.iter().map(|_| Err(error.clone().into())).collect(),
        };
        let mut answers = Vec::with_capacity(taken.len());
        for (ours, there) in taken.into_iter().zip(found) {
            answers.push(self.found(ours, there).await);
        }
        answers
    }

    async fn found(&self, ours: &Job, there: Option<Versioned<Job>>) -> Answer {
        let found = match there.filter(|there| there.document.domain == ours.domain) {
            Some(there) => submitted_again(ours, there),
            // It was deleted, or cannot be understood: that is said by a look at it alone.
            None => self.submitted_before(ours).await,
        };
        found.map(|found| Accepted::of(&found))
    }

    async fn submit_each(&self, domain: &Domain, submissions: Vec<Placed>) -> Vec<(usize, Answer)> {
        let submit = |Placed { nth, checked, submission }| async move {
            let submitted = Box::pin(self.take_checked(domain, submission, checked)).await;
            (nth, submitted.map(|submitted| Accepted::of(&submitted)))
        };
        stream::iter(submissions).map(submit).buffered(SIDE_BY_SIDE).collect().await
    }
}
