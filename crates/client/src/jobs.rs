//! Jobs of a domain: submit one, look at one, wait for its end, list them.
//!
//! - [`batch`]: many at once
//! - [`changes`]: cancel, requeue, delete
//! - [`looks`]: how many there are, and why one waits

pub mod batch;
pub mod changes;
pub mod looks;

use std::time::Duration;

use reqwest::header::HeaderValue;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::time::UnixMillis;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::call::Call;
use crate::{Client, Error, Page};

/// How long Rota lets one call wait.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// What an answer may take longer than the wait that was asked for.
const WAIT_MARGIN: Duration = Duration::from_secs(10);
/// How long Rota may be out of reach while a job is waited for: long enough for a restart.
const MAX_ABSENCE: Duration = Duration::from_secs(10);
/// Between two tries, so that no fault turns into a flood of calls.
const PAUSE: Duration = Duration::from_millis(250);

/// Which jobs a list shows; every field that is set narrows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobFilter {
    pub status: Option<JobStatus>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub name: Option<String>,
    pub section: Option<u32>,
    /// Words that stand in the job's name or error; `word*` is a beginning. What changed within the last second may not
    /// be found yet.
    pub text: Option<String>,
    pub created_after: Option<UnixMillis>,
    pub created_before: Option<UnixMillis>,
    /// How many a page holds: 50 if not set, at most 1,000.
    pub limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    pub cursor: Option<String>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    pub job: Job,
    /// Whether the job is another one, which holds the unique key; nothing was made then.
    pub is_twin: bool,
}

impl Client {
    /// Submits a job, and gives it, or the one that holds its unique key. Under the same idempotency key the same job is
    /// found again instead of made twice; so with a key, and only then, the submission is repeated once if the connection
    /// breaks or the store does not answer.
    pub async fn submit_job(
        &self,
        domain: &Domain,
        job: &NewJob,
        idempotency_key: Option<&str>,
    ) -> Result<Job, Error> {
        self.submit_job_or_find_twin(domain, job, idempotency_key).await.map(|submitted| submitted.job)
    }

    /// The same, for those who want to know which of the two it is.
    pub async fn submit_job_or_find_twin(
        &self,
        domain: &Domain,
        job: &NewJob,
        idempotency_key: Option<&str>,
    ) -> Result<Submitted, Error> {
        let call = || self.post(&["api", "v1", "domains", domain.as_str(), "jobs"]).body(job);
        let (job, is_new) = match idempotency_key {
            None => call().made().await?,
            Some(key) => {
                let key = HeaderValue::from_str(key)
                    .map_err(|_| Error::Unsendable { what: "the idempotency key" })?;
                let keyed = || call().header("Idempotency-Key", &key).made();
                match keyed().await {
                    Err(error) if error.is_passing() => {
                        sleep(PAUSE).await;
                        keyed().await?
                    }
                    answered => answered?,
                }
            }
        };
        Ok(Submitted { job, is_twin: !is_new })
    }

    /// A job as it is now.
    pub async fn job(&self, domain: &Domain, id: JobId) -> Result<Job, Error> {
        self.job_call(domain, id).document().await
    }

    /// A job once it has ended, or as it is when `patience` is over. Goes on through a restart of Rota.
    pub async fn wait_for_job(&self, domain: &Domain, id: JobId, patience: Duration) -> Result<Job, Error> {
        let start = Instant::now();
        let mut absent_since = None;
        let mut was_there = false;
        loop {
            let left = patience.saturating_sub(start.elapsed());
            match self.job_within(domain, id, left.min(MAX_WAIT)).await {
                Ok(job) if job.status.is_terminal() || left.is_zero() => return Ok(job),
                Ok(_) => (was_there, absent_since) = (true, None),
                Err(Error::Unreachable { .. }) if was_there && !has_given_up(absent_since) => {
                    absent_since = absent_since.or(Some(Instant::now()));
                }
                Err(error) => return Err(error),
            }
            sleep(PAUSE.min(left)).await;
        }
    }

    /// One page of jobs, the newest first.
    pub async fn jobs(&self, domain: &Domain, filter: &JobFilter) -> Result<Page<Job>, Error> {
        self.get(&["api", "v1", "domains", domain.as_str(), "jobs"]).query(filter).document().await
    }

    async fn job_within(&self, domain: &Domain, id: JobId, wait: Duration) -> Result<Job, Error> {
        if wait.is_zero() {
            return self.job(domain, id).await;
        }
        let call = self.job_call(domain, id).query(&[("wait", format!("{}ms", wait.as_millis()))]);
        call.timeout(wait + WAIT_MARGIN).document().await
    }

    fn job_call(&self, domain: &Domain, id: JobId) -> Call<'_> {
        self.get(&["api", "v1", "domains", domain.as_str(), "jobs", &id.to_string()])
    }
}

fn has_given_up(absent_since: Option<Instant>) -> bool {
    absent_since.is_some_and(|since| since.elapsed() > MAX_ABSENCE)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use serde_json::json;

    pub(crate) fn job(status: &str) -> Answer {
        let body = json!({
            "jobName": "first", "jobId": "018f0000-0000-7000-8000-000000000001", "jobNumber": 1, "status": status,
            "input": {"type": "wait", "payload": {}}, "result": {}, "later": "kept",
            "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": "018f0000-0000-7000-8000-000000000002"},
        });
        Answer::json(200, body.to_string())
    }

    pub(crate) fn id() -> JobId {
        "018f0000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn new_job() -> NewJob {
        NewJob::new("first", "wait", json!({}))
    }

    #[tokio::test]
    async fn with_a_key_a_submission_survives_a_broken_connection() {
        let (url, asked) = answer(vec![Answer::HangUp, job("QUEUED")]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let job = client.submit_job(&Domain::default(), &new_job(), Some("k-1")).await.unwrap();
        assert_eq!((job.job_number, &job.extra["later"]), (1, &json!("kept")));
        for request in asked.await.unwrap() {
            assert!(request.starts_with("POST /api/v1/domains/default/jobs HTTP"), "{request}");
            assert!(request.contains("idempotency-key: k-1\r\n"), "{request}");
        }
    }

    #[tokio::test]
    async fn a_twin_is_told_apart() {
        let Answer::Status(_, kind, body) = job("QUEUED") else { panic!("a job has a status") };
        let (url, _) = answer(vec![job("QUEUED"), Answer::Status(201, kind, body)]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let mut twins = Vec::new();
        for _ in 0..2 {
            let submitted =
                client.submit_job_or_find_twin(&Domain::default(), &new_job(), None).await.unwrap();
            twins.push(submitted.is_twin);
        }
        assert_eq!(twins, [true, false]);
    }

    #[tokio::test]
    async fn without_a_key_nothing_is_sent_twice() {
        let (url, _) = answer(vec![Answer::HangUp, job("QUEUED")]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let error = client.submit_job(&Domain::default(), &new_job(), None).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    }

    #[tokio::test]
    async fn waiting_goes_on_until_the_end_and_through_a_restart() {
        let (url, asked) = answer(vec![job("QUEUED"), Answer::HangUp, job("SUCCESSFUL")]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let patience = Duration::from_secs(90);
        let job = client.wait_for_job(&Domain::default(), id(), patience).await.unwrap();
        assert_eq!(job.status, JobStatus::Successful);
        let first = &asked.await.unwrap()[0];
        assert!(first.contains("/jobs/018f0000-0000-7000-8000-000000000001?wait=60000ms HTTP"), "{first}");
    }

    #[tokio::test]
    async fn when_patience_is_over_the_job_is_told_as_it_is() {
        let (url, asked) = answer(vec![job("STARTED"), job("STARTED")]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let patience = Duration::from_millis(100);
        let job = client.wait_for_job(&Domain::default(), id(), patience).await.unwrap();
        assert_eq!(job.status, JobStatus::Started);
        let asked = asked.await.unwrap();
        assert!(asked[0].contains("?wait=") && !asked[1].contains("wait="), "{asked:?}");
    }

    #[tokio::test]
    async fn a_refusal_is_told_apart_from_nobody_being_there() {
        let body = r#"{"title": "Not found", "status": 404, "detail": "There is no such job."}"#;
        let refusal = Answer::Status(404, "application/problem+json", body.to_owned());
        let (url, asked) = answer(vec![refusal]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        assert_eq!(client.job(&Domain::default(), id()).await.unwrap_err().status(), Some(404));
        asked.await.unwrap();
        let gone = client.job(&Domain::default(), id()).await.unwrap_err();
        assert!(matches!(gone, Error::Unreachable { .. }), "{gone}");
        assert!(gone.to_string().contains("refused"), "{gone}");
    }

    #[tokio::test]
    async fn a_filter_becomes_the_query() {
        let (url, asked) = answer(vec![Answer::json(200, r#"{"items": []}"#)]).await;
        let filter = JobFilter {
            status: Some(JobStatus::Failed),
            kind: Some("http".to_owned()),
            text: Some("disk fu*".to_owned()),
            created_after: Some(UnixMillis(5)),
            ..JobFilter::default()
        };
        let page = Client::new(&url, "rota_key").unwrap().jobs(&Domain::default(), &filter).await.unwrap();
        assert_eq!(page, Page { items: Vec::new(), next: None });
        let asked = asked.await.unwrap();
        assert!(
            asked[0].contains("/jobs?status=FAILED&type=http&text=disk+fu*&createdAfter=5 HTTP"),
            "{}",
            asked[0]
        );
    }
}
