//! What people do to jobs that are there: cancel, requeue, delete.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::JobFilter;
use crate::{Client, Error};

/// How long a delete by filter may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What a delete by filter did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Deleted {
    pub deleted: u64,
    /// Whether it stopped at its limit: there may be more.
    #[serde(default)]
    pub more: bool,
}

impl Client {
    /// Ends a job that waits or runs; status 409 if it has ended before.
    pub async fn cancel_job(&self, domain: &Domain, id: JobId) -> Result<Job, Error> {
        self.post(&job_path(domain, &id.to_string(), "cancel")).document().await
    }

    /// Runs a job once more that has ended; status 409 if it has not.
    pub async fn requeue_job(&self, domain: &Domain, id: JobId) -> Result<Job, Error> {
        self.post(&job_path(domain, &id.to_string(), "requeue")).document().await
    }

    /// Deletes a job; status 409 while it runs.
    pub async fn delete_job(&self, domain: &Domain, id: JobId) -> Result<(), Error> {
        self.delete(&["api", "v1", "domains", domain.as_str(), "jobs", &id.to_string()]).nothing().await
    }

    /// Deletes what a filter shows and does not run, the newest first; no more than the filter's limit. A filter that
    /// narrows nothing is refused: [`Client::delete_all_jobs`] is what is meant then.
    pub async fn delete_jobs(&self, domain: &Domain, filter: &JobFilter) -> Result<Deleted, Error> {
        self.delete_by(domain, narrowed(filter)).await
    }

    /// Deletes every job of a domain that does not run, the newest first; no more than the limit.
    pub async fn delete_all_jobs(&self, domain: &Domain, limit: Option<u32>) -> Result<Deleted, Error> {
        let mut which = narrowed(&JobFilter { limit, ..JobFilter::default() });
        which.insert("all".to_owned(), json!(true));
        self.delete_by(domain, which).await
    }

    async fn delete_by(&self, domain: &Domain, which: Map<String, Value>) -> Result<Deleted, Error> {
        let call = self.post(&["api", "v1", "domains", domain.as_str(), "jobs", "delete"]);
        call.timeout(DELETE_TIMEOUT).body(&which).document().await
    }
}

fn job_path<'a>(domain: &'a Domain, id: &'a str, verb: &'a str) -> [&'a str; 7] {
    ["api", "v1", "domains", domain.as_str(), "jobs", id, verb]
}

/// What is set of a filter; a delete begins at the newest, wherever a list would go on.
fn narrowed(filter: &JobFilter) -> Map<String, Value> {
    let filter = JobFilter { cursor: None, ..filter.clone() };
    match serde_json::to_value(filter) {
        Ok(Value::Object(fields)) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::{id, job};
    use crate::responder::{Answer, answer};
    use rota_model::job::JobStatus;

    #[tokio::test]
    async fn a_job_is_changed_at_its_own_address() {
        let gone = Answer::Status(204, "text/plain", String::new());
        let (url, asked) = answer(vec![job("FAILED"), job("QUEUED"), gone]).await;
        let (client, domain) = (Client::new(&url, "rota_key").unwrap(), Domain::default());
        assert_eq!(client.cancel_job(&domain, id()).await.unwrap().status, JobStatus::Failed);
        assert_eq!(client.requeue_job(&domain, id()).await.unwrap().status, JobStatus::Queued);
        client.delete_job(&domain, id()).await.unwrap();
        let asked = asked.await.unwrap();
        let job = format!("/api/v1/domains/default/jobs/{}", id());
        for (nth, expected) in [
            format!("POST {job}/cancel HTTP"),
            format!("POST {job}/requeue HTTP"),
            format!("DELETE {job} HTTP"),
        ]
        .iter()
        .enumerate()
        {
            assert!(asked[nth].starts_with(expected), "{}", asked[nth]);
        }
    }

    #[tokio::test]
    async fn a_delete_sends_what_is_set_of_its_filter() {
        let answers = [r#"{"deleted": 2, "more": true}"#, r#"{"deleted": 1}"#];
        let (url, asked) = answer(answers.map(|body| Answer::json(200, body)).into()).await;
        let (client, domain) = (Client::new(&url, "rota_key").unwrap(), Domain::default());
        let filter = JobFilter {
            status: Some(JobStatus::Failed),
            kind: Some("http".to_owned()),
            limit: Some(2),
            cursor: Some("elsewhere".to_owned()),
            ..JobFilter::default()
        };
        let first = client.delete_jobs(&domain, &filter).await.unwrap();
        assert_eq!(first, Deleted { deleted: 2, more: true });
        assert!(!client.delete_all_jobs(&domain, None).await.unwrap().more);
        let asked = asked.await.unwrap();
        assert!(asked[0].starts_with("POST /api/v1/domains/default/jobs/delete HTTP"), "{}", asked[0]);
        assert!(asked[0].ends_with(r#"{"status":"FAILED","type":"http","limit":2}"#), "{}", asked[0]);
        assert!(asked[1].ends_with(r#"{"all":true}"#), "{}", asked[1]);
    }
}
