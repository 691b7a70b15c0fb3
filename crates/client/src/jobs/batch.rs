//! Many jobs in one call: each is taken or refused on its own.

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, Problem};

/// How many jobs one call takes.
pub const MAX_BATCH: usize = 10_000;
/// How many bytes they may have together.
pub const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// A job that is on disk: made just now, or found under its idempotency key or its unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub job_id: JobId,
    pub job_number: u64,
    /// Whether it was there before.
    #[serde(default)]
    pub existing: bool,
}

#[derive(Deserialize)]
struct Answer {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Accepted(Accepted),
    Refused { problem: Problem },
}

impl Client {
    /// Submits up to [`MAX_BATCH`] jobs, and says of each, in the order given, what became of it. The jobs are
    /// [`NewJob`](rota_model::job::NewJob)s, or any other JSON of their shape.
    ///
    /// Nothing is sent twice. Who gives each job an idempotency key may send a batch again whose answer was lost.
    pub async fn submit_jobs<J: Serialize>(
        &self,
        domain: &Domain,
        jobs: &[J],
    ) -> Result<Vec<Result<Accepted, Problem>>, Error> {
        #[derive(Serialize)]
        struct Batch<'a, J> {
            jobs: &'a [J],
        }
        let call = self.post(&["api", "v1", "domains", domain.as_str(), "jobs", "batch"]);
        let answer: Answer = call.body(&Batch { jobs }).document().await?;
        if answer.items.len() != jobs.len() {
            let why = format!("{} jobs were sent and {} answered", jobs.len(), answer.items.len());
            return Err(Error::Unreadable { url: self.url(), why });
        }
        let told = answer.items.into_iter().map(|item| match item {
            Item::Accepted(job) => Ok(job),
            Item::Refused { problem } => Err(problem),
        });
        Ok(told.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use rota_model::job::NewJob;
    use serde_json::json;

    const TWO: &str = r#"{"items": [
        {"jobId": "018f0000-0000-7000-8000-000000000001", "jobNumber": 7},
        {"problem": {"type": "urn:rota:problem:invalid", "title": "Refused", "status": 422, "detail": "no",
            "errors": [{"pointer": "/input/type", "detail": "no such type"}]}}]}"#;

    #[tokio::test]
    async fn each_job_of_a_batch_has_its_answer() {
        let (url, asked) = answer(vec![Answer::json(200, TWO)]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let jobs = [NewJob::new("a", "noop", json!({})), NewJob::new("b", "unheard-of", json!({}))];
        let told = client.submit_jobs(&Domain::default(), &jobs).await.unwrap();
        assert_eq!(told[0].as_ref().unwrap().job_number, 7);
        assert_eq!(told[1].as_ref().unwrap_err().errors[0].pointer, "/input/type");
        let asked = &asked.await.unwrap()[0];
        assert!(asked.starts_with("POST /api/v1/domains/default/jobs/batch HTTP"), "{asked}");
        assert!(
            asked.contains(r#"{"jobs":[{"jobName":"a","input":{"type":"noop","payload":{}}},"#),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn an_answer_that_leaves_jobs_out_is_no_answer() {
        let (url, _) = answer(vec![Answer::json(200, TWO)]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let error = client.submit_jobs(&Domain::default(), &[json!({})]).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
}
