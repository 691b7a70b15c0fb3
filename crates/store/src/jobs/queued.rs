//! What waits of one type in one domain, for those who are about to change the type.

use rota_model::domain::Domain;
use rota_model::job::Job;
use rota_model::time::UnixMillis;
use serde_json::json;

use super::{Jobs, due};
use crate::StoreError;
use crate::cursor::Cursor;
use crate::query::Filter;

impl Jobs {
    /// A page of the jobs of a type that wait in a domain at one priority, whenever they are due. By priority, since what
    /// waits is found by the index that claims use.
    pub async fn queued(
        &self,
        domain: &Domain,
        kind: &str,
        priority: u8,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Job>, Option<Cursor>), StoreError> {
        let query = due(priority, UnixMillis(i64::MAX), &[kind.to_owned()], limit);
        let (jobs, next) =
            self.jobs.find(query.filter(Filter::Is("domain", json!(domain))).after(after)).await?;
        Ok((jobs.into_iter().map(|job| job.document).collect(), next))
    }
}
