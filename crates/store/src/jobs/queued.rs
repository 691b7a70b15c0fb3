//! What waits of one type in one domain, for those who are about to change the type.

use rota_model::domain::Domain;
use rota_model::job::{Job, Lane};
use rota_model::time::UnixMillis;
use serde_json::json;

use super::{Jobs, Share, due};
use crate::StoreError;
use crate::cursor::Cursor;
use crate::query::Filter;

impl Jobs {
    /// A page of the jobs of a type that wait in a domain at one priority, whenever they are due; without a priority, of those
    /// that have no lane. By priority, since what waits is found by the lanes that claims use.
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
        let types = vec![kind.clone()];
        let lane = priority.map(|priority| Lane { domain, priority, kind }.to_string());
        let query = due(&Share { lane, types, limit }, UnixMillis(i64::MAX));
        let (jobs, next) = self.jobs.find(query.filter(of_domain).after(after)).await?;
        Ok((jobs.into_iter().map(|job| job.document).collect(), next))
    }
}
