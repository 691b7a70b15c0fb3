//! Job types as they are set and shown over HTTP: the same types for whoever answers and whoever asks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::backoff::Backoff;
use crate::check::{Checker, Invalid, escape};
use crate::domain::Domain;
use crate::job_type::{JobType, KeyLimits};
use crate::object_only::optional_object;

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
    /// How many of its jobs run at once, over all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub concurrency: Option<u32>,
    /// How many of its jobs start per second, over all nodes; less than one for one every so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 100_000)]
    pub starts_per_second: Option<f64>,
    /// The same for the jobs of each limit key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_object")]
    pub per_key: Option<KeyLimits>,
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
            starts_per_second: self.starts_per_second,
            per_key: self.per_key,
            extra: Extra::new(),
        };
        let mut check = Checker::new();
        check.absorb(job_type.check());
        // A limit that is accepted and ignored is worse than none.
        for unknown in job_type.per_key.iter().flat_map(|per_key| per_key.extra.keys()) {
            let detail = "is not known; known are concurrency and startsPerSecond";
            check.refuse(format!("/perKey/{}", escape(unknown)), detail);
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
