//! What people ask about a queue beside its documents: how many jobs there are, and why one of them waits.

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobCounts, Waiting};

use crate::{Client, Error};

impl Client {
    /// How many jobs a domain has, by status and type.
    pub async fn job_counts(&self, domain: &Domain) -> Result<JobCounts, Error> {
        self.get(&["api", "v1", "domains", domain.as_str(), "jobs", "counts"]).document().await
    }

    /// Why a job is not running.
    pub async fn why_job_waits(&self, domain: &Domain, id: JobId) -> Result<Waiting, Error> {
        let id = id.to_string();
        self.get(&["api", "v1", "domains", domain.as_str(), "jobs", &id, "waiting"]).document().await
    }
}

#[cfg(test)]
mod tests {
    use rota_model::job::{JobStatus, WaitingReason};

    use super::*;
    use crate::jobs::tests::id;
    use crate::responder::{Answer, answer};

    #[tokio::test]
    async fn counts_and_reasons_are_asked_for_by_their_paths() {
        let counts = r#"{"total": 3, "byStatus": {"QUEUED": 3}, "byType": {"wait": {"QUEUED": 3}}}"#;
        let why = r#"{"reason": "NO_NODE", "detail": "No node that lives runs wait: start one that does."}"#;
        let (url, asked) = answer(vec![Answer::json(200, counts), Answer::json(200, why)]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let counts = client.job_counts(&Domain::default()).await.unwrap();
        assert_eq!(counts.of("wait", JobStatus::Queued), 3);
        let why = client.why_job_waits(&Domain::default(), id()).await.unwrap();
        assert_eq!(why.reason, WaitingReason::NoNode);
        let asked = asked.await.unwrap();
        assert!(asked[0].starts_with("GET /api/v1/domains/default/jobs/counts HTTP"), "{}", asked[0]);
        assert!(asked[1].contains("/jobs/018f0000-0000-7000-8000-000000000001/waiting HTTP"), "{}", asked[1]);
    }
}
