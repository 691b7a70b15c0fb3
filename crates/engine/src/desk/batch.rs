//! Many submissions in one call. Each is taken or refused on its own, and answered in the order given.

use futures::StreamExt as _;
use futures::stream;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use rota_store::StoreError;

use super::{JobDesk, SubmitError};
use crate::patience::persevere;

/// How many submissions one call takes.
pub const MAX_BATCH: usize = 10_000;
/// How many unique ones are looked after at a time.
const SIDE_BY_SIDE: usize = 64;

/// A submission that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub job_id: JobId,
    pub job_number: u64,
}

impl Accepted {
    fn of(job: &Job) -> Self {
        Self { job_id: job.job_id, job_number: job.job_number }
    }
}

type Answer = Result<Accepted, SubmitError>;

impl JobDesk {
    /// Takes many jobs, at most [`MAX_BATCH`]. On return those that are accepted are on disk.
    pub async fn submit_all(&self, domain: &Domain, submissions: Vec<NewJob>) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = Vec::with_capacity(submissions.len());
        let (mut plain, mut unique) = (Vec::new(), Vec::new());
        for (nth, submission) in submissions.into_iter().enumerate() {
            let checked = self.checked(domain, &submission);
            answers.push(checked.as_ref().err().map(|invalid| Err(invalid.clone().into())));
            if let Ok(id) = checked {
                let room = if submission.unique.is_some() { &mut unique } else { &mut plain };
                room.push((nth, id, submission));
            }
        }
        let plain = self.submit_plain(domain, plain).await;
        let unique = self.submit_each(domain, unique).await;
        for (nth, answer) in plain.into_iter().chain(unique) {
            if let Some(place) = answers.get_mut(nth) {
                *place = Some(answer);
            }
        }
        let unanswered = || Err(StoreError::unavailable("submit", "it was left out").into());
        answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// Those without a unique key: one write for all of them.
    async fn submit_plain(
        &self,
        domain: &Domain,
        submissions: Vec<(usize, JobId, NewJob)>,
    ) -> Vec<(usize, Answer)> {
        let places: Vec<usize> = submissions.iter().map(|(nth, ..)| *nth).collect();
        let all_failed =
            |error: StoreError| places.iter().map(|nth| (*nth, Err(error.clone().into()))).collect();
        let numbers = match self.numbers.take(submissions.len()).await {
            Ok(numbers) => numbers,
            Err(error) => return all_failed(error),
        };
        let numbered = submissions.into_iter().zip(numbers);
        let jobs: Vec<Job> =
            numbered.map(|((_, id, submission), number)| self.job(domain, submission, id, number)).collect();
        match self.create_all(jobs).await {
            Ok(answers) => places.into_iter().zip(answers).collect(),
            Err(error) => all_failed(error),
        }
    }

    async fn create_all(&self, jobs: Vec<Job>) -> Result<Vec<Answer>, StoreError> {
        let mut repeated = false;
        let created = persevere("create jobs", |maybe| {
            repeated |= maybe;
            self.jobs.create_all(&jobs)
        });
        let created = created.await?;
        let mut answers = Vec::with_capacity(created.len());
        for (job, created) in jobs.iter().zip(created) {
            // An id that was just made up can only have been taken by us.
            let ours = created.is_some() || (repeated && job.idempotency_key.is_none());
            answers.push(if ours {
                Ok(Accepted::of(job))
            } else {
                self.submitted_before(job).await.map(|found| Accepted::of(&found.job().document))
            });
        }
        self.processor.expect(&jobs);
        Ok(answers)
    }

    async fn submit_each(
        &self,
        domain: &Domain,
        submissions: Vec<(usize, JobId, NewJob)>,
    ) -> Vec<(usize, Answer)> {
        let submit = |(nth, _, submission)| async move {
            let submitted = Box::pin(self.submit(domain, submission)).await;
            (nth, submitted.map(|submitted| Accepted::of(&submitted.job().document)))
        };
        stream::iter(submissions).map(submit).buffered(SIDE_BY_SIDE).collect().await
    }
}
