//! Job types as they are set and shown over HTTP: the same types for whoever answers and whoever asks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::backoff::Backoff;
use crate::check::{Checker, Invalid};
use crate::domain::Domain;
use crate::job_type::JobType;

/// The body of `PUT …/job-types/{type}`: everything that a domain may say of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobTypeSettings {
    /// The JSON Schema of the payload; any object if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
    /// How often the handler of a job is tried whose submission does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub attempts: Option<u32>,
    /// How long to wait between two attempts, where a submission does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long one attempt may take, where a submission does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 604_800_000)]
    pub timeout_ms: Option<u64>,
    /// Kept for a later version: refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub concurrency: Option<u32>,
}

impl JobTypeSettings {
    /// The type as it is to be stored, if all of it may be.
    pub fn into_type(self, domain: Domain, kind: impl Into<String>) -> Result<JobType, Invalid> {
        let job_type = JobType {
            domain: Some(domain),
            kind: kind.into(),
            schema: self.schema,
            attempts: self.attempts,
            backoff: self.backoff,
            timeout_ms: self.timeout_ms,
            concurrency: self.concurrency,
            extra: Extra::new(),
        };
        let mut check = Checker::new();
        check.absorb(job_type.check());
        // Nothing heeds it yet, and a limit that is accepted and ignored is worse than none.
        if job_type.concurrency.is_some() {
            check.refuse("/concurrency", "is kept for a later version, and would do nothing: leave it out");
        }
        check.finish().map(|()| job_type)
    }
}

/// A job type as a domain sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobTypeView {
    /// What is stored, or what is built in where nothing is.
    #[serde(flatten)]
    pub job_type: JobType,
    /// Whether it belongs to the installation: the domain has not defined it.
    pub built_in: bool,
    /// What the handler asks of a payload besides `schema`, where a domain defined a type that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub handler_schema: Option<Value>,
    /// The names of the live nodes that run it. While there are none, its jobs wait.
    #[serde(default)]
    pub run_by: Vec<String>,
}
