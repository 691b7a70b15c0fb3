//! What a list of jobs is narrowed to, and the query that says so.

use rota_model::domain::Domain;
use rota_model::job::JobStatus;
use rota_model::time::UnixMillis;
use serde_json::json;

use crate::collection::JOBS;
use crate::query::{Filter, Order, Query};

const NEWEST_FIRST: Order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };

/// What a list of jobs is narrowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFilter {
    pub status: Option<JobStatus>,
    pub kind: Option<String>,
    pub name: Option<String>,
    pub section: Option<u32>,
    /// Words in the name or in the error that ended it.
    pub text: Option<String>,
    pub created_after: Option<UnixMillis>,
    pub created_before: Option<UnixMillis>,
}

impl JobFilter {
    /// Those jobs of a domain, newest first.
    pub(super) fn query(&self, domain: &Domain) -> Query {
        let mut query = Query::new(&JOBS, NEWEST_FIRST).filter(Filter::Is("domain", json!(domain)));
        query.filters.extend(self.status.map(|status| Filter::Is("status", json!(status))));
        query.filters.extend(self.kind.as_ref().map(|kind| Filter::Is("input.type", json!(kind))));
        query.filters.extend(self.name.as_ref().map(|name| Filter::Is("jobName", json!(name))));
        query.filters.extend(self.section.map(|section| Filter::Is("section", json!(section))));
        query.filters.extend(self.text.clone().map(Filter::Text));
        let (after, before) = (self.created_after, self.created_before);
        query.filters.extend(after.map(|at| Filter::AtLeast("metadata.createdAt", at.0.saturating_add(1))));
        query.filters.extend(before.map(|at| Filter::AtMost("metadata.createdAt", at.0.saturating_sub(1))));
        query
    }
}
