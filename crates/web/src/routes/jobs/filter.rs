//! What jobs are narrowed to: the query of a list, and the body of a delete.

use rota_model::check::{Checker, Invalid};
use rota_model::job::JobStatus;
use rota_model::time::UnixMillis;
use rota_store::jobs::JobFilter;
use serde::Deserialize;

use crate::routes::list::searched;

/// What a list of jobs is narrowed to.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    #[param(inline)]
    status: Option<JobStatus>,
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    #[param(value_type = Option<u64>, maximum = 4_294_967_295_u32)]
    section: Option<u32>,
    /// Words that stand in the job's name or error, all of them, in any case; `word*` is a beginning. A job may be
    /// found by its words about a second later than it changed.
    #[param(example = "disk full")]
    text: Option<String>,
    /// Unix milliseconds; later than this.
    created_after: Option<i64>,
    /// Unix milliseconds; earlier than this.
    created_before: Option<i64>,
    /// How many, 50 if left out.
    #[param(minimum = 1, maximum = 1000)]
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<String>,
}

impl JobsQuery {
    pub(super) fn into_filter(self) -> Result<JobFilter, Invalid> {
        Ok(JobFilter {
            status: self.status,
            kind: self.kind,
            name: self.name,
            section: self.section,
            text: self.text.map(searched).transpose()?,
            created_after: self.created_after.map(UnixMillis),
            created_before: self.created_before.map(UnixMillis),
        })
    }
}

/// Which jobs to delete: those that a list with the same filter shows, but for what is running.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobsToDelete {
    status: Option<JobStatus>,
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    #[schema(value_type = Option<u64>, maximum = 4_294_967_295_u32)]
    section: Option<u32>,
    /// Words that stand in the job's name or error, all of them, in any case; `word*` is a beginning. A job may be
    /// found by its words about a second later than it changed.
    text: Option<String>,
    /// Unix milliseconds; later than this.
    created_after: Option<i64>,
    /// Unix milliseconds; earlier than this.
    created_before: Option<i64>,
    /// Must be true where no filter is given: nobody deletes everything by leaving something out.
    #[serde(default)]
    all: bool,
    /// Stop after so many, the newest first.
    #[schema(minimum = 1)]
    pub(super) limit: Option<u64>,
}

impl JobsToDelete {
    /// The filter; empty only for who says that all is meant.
    pub(super) fn into_filter(self) -> Result<JobFilter, Invalid> {
        let mut check = Checker::new();
        if self.limit == Some(0) {
            check.refuse("/limit", "must be 1 or more; leave it out to delete all that match");
        }
        let filter = JobFilter {
            status: self.status,
            kind: self.kind,
            name: self.name,
            section: self.section,
            text: self.text.map(searched).transpose()?,
            created_after: self.created_after.map(UnixMillis),
            created_before: self.created_before.map(UnixMillis),
        };
        if filter.status == Some(JobStatus::Started) {
            check.refuse("/status", "must not be STARTED: what is running is never deleted; cancel it first");
        }
        match (filter == JobFilter::default(), self.all) {
            (true, false) => {
                check.refuse("", "names no filter: send one, or \"all\": true if every job is to go");
            }
            (false, true) => {
                check.refuse("/all", "cannot stand beside a filter: leave out one of the two");
            }
            _ => {}
        }
        check.finish().map(|()| filter)
    }
}
