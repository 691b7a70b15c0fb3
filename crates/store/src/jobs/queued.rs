//! What waits of one type in one domain, for those who are about to change the type.

use rota_model::domain::Domain;
use rota_model::job::{Job, JobStatus, Lane};
use rota_model::time::UnixMillis;
use serde_json::json;

use super::{BY_LANE, Jobs, Share, due};
use crate::StoreError;
use crate::cursor::Cursor;
use crate::query::{Filter, Query};

impl Jobs {
    /// A page of the jobs of a type that wait in a domain at one priority, whenever they are due and whatever their limit
    /// key; without a priority, of those that have no lane. By priority, since what waits is found by the lanes that claims
    /// use.
    pub async fn queued(
        &self,
        domain: &Domain,
        kind: &str,
        priority: Option<u8>,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Job>, Option<Cursor>), StoreError> {
        let (domain, kind) = (domain.clone(), kind.to_owned());
        let of_domain = Filter::Is("domain", json!(domain));
        let Some(priority) = priority else {
            let query = due(&Share { lane: None, types: vec![kind], limit }, UnixMillis(i64::MAX));
            let (jobs, next) = self.jobs.find(query.filter(of_domain).after(after)).await?;
            return Ok((jobs.into_iter().map(|job| job.document).collect(), next));
        };
        let lane = Lane { domain, priority, kind, key: None }.to_string();
        let query = Query::new(&super::JOBS, BY_LANE)
            .filter(Filter::Is("status", json!(JobStatus::Queued)))
            .limit(limit);
        let begin =
            Cursor::behind_key(vec![json!(lane), json!(i64::MIN), json!(i64::MIN), json!("")], &query);
        let (jobs, next) = self.jobs.find(query.after(Some(after.unwrap_or(begin)))).await?;
        let is_ours = |job: &Job| job.lane.as_deref().is_some_and(|other| Lane::is_of(other, &lane));
        let found = jobs.len();
        let jobs: Vec<Job> = jobs.into_iter().map(|job| job.document).take_while(is_ours).collect();
        let next = next.filter(|_| jobs.len() == found);
        Ok((jobs, next))
    }
}
