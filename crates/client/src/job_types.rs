//! The types of jobs that a domain may submit, and what the domain says of them.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job_type::{JobTypeSettings, JobTypeView};

use crate::call::Call;
use crate::{Client, Error};

/// How long a change may take: a long queue is gone through first.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

impl Client {
    /// Every type of which a domain may submit jobs, by name.
    pub async fn job_types(&self, domain: &Domain) -> Result<Vec<JobTypeView>, Error> {
        self.all(&["api", "v1", "domains", domain.as_str(), "job-types"]).await
    }

    pub async fn job_type(&self, domain: &Domain, kind: &str) -> Result<JobTypeView, Error> {
        self.get(&["api", "v1", "domains", domain.as_str(), "job-types", kind]).document().await
    }

    /// Defines a type, or replaces everything that the domain said of it. Status 409 if jobs that wait, or what timers make,
    /// would be refused, unless it is forced.
    pub async fn set_job_type(
        &self,
        domain: &Domain,
        kind: &str,
        settings: &JobTypeSettings,
        force: bool,
    ) -> Result<JobTypeView, Error> {
        let call = self.put(&["api", "v1", "domains", domain.as_str(), "job-types", kind]).body(settings);
        changing(call, force).document().await
    }

    /// Deletes what a domain said of a type. Status 409 if jobs wait that nobody runs, unless it is forced.
    pub async fn delete_job_type(&self, domain: &Domain, kind: &str, force: bool) -> Result<(), Error> {
        let call = self.delete(&["api", "v1", "domains", domain.as_str(), "job-types", kind]);
        changing(call, force).nothing().await
    }
}

fn changing(call: Call<'_>, force: bool) -> Call<'_> {
    let call = if force { call.query(&[("force", true)]) } else { call };
    call.timeout(CHANGE_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use serde_json::json;

    #[tokio::test]
    async fn names_are_escaped_and_force_is_said_only_where_it_is_meant() {
        let body = json!({"domain": "default", "type": "a/b", "builtIn": false, "runBy": ["n"]}).to_string();
        let (url, asked) =
            answer(vec![Answer::json(200, body), Answer::Status(204, "x", String::new())]).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let settings = JobTypeSettings { attempts: Some(3), ..JobTypeSettings::default() };
        let view = client.set_job_type(&Domain::default(), "a/b", &settings, false).await.unwrap();
        assert_eq!((view.job_type.kind.as_str(), view.run_by.len()), ("a/b", 1));
        client.delete_job_type(&Domain::default(), "a/b", true).await.unwrap();
        let asked = asked.await.unwrap();
        for name in [".", ".."] {
            let refused = client.delete_job_type(&Domain::default(), name, false).await.unwrap_err();
            assert_eq!(refused.status(), Some(404), "{refused}");
        }
        assert!(asked[0].starts_with("PUT /api/v1/domains/default/job-types/a%2Fb HTTP"), "{}", asked[0]);
        assert!(asked[0].ends_with(r#"{"attempts":3}"#), "{}", asked[0]);
        assert!(
            asked[1].starts_with("DELETE /api/v1/domains/default/job-types/a%2Fb?force=true "),
            "{}",
            asked[1]
        );
    }
}
