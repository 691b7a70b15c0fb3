//! What is known about a type of job (`job-types`): the schema its payloads are checked against, and the defaults of
//! its jobs.
//!
//! Seed 003 says that a payload "will be crosschecked against the expected payload for the type". This document is
//! that expectation. Whether the schema is a valid JSON Schema is for the one who compiles it to say; here it is an
//! object within bounds.
//!
//! - [`view`]: types as they are set and shown over HTTP

mod view;

pub use view::{JobTypeSettings, JobTypeView};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::backoff::Backoff;
use crate::check::{Checker, Invalid};
use crate::domain::Domain;
use crate::job::submission::MAX_KEY_CHARS;
use crate::limit::LimitName;

/// The length of the id of a document, in bytes: that of search engines.
const MAX_ID_BYTES: usize = 512;
/// The size of a schema as JSON text, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// How often the handler of a job may fail.
pub const MAX_ATTEMPTS: u32 = 1_000;
/// The longest time a job may run, in milliseconds: a week.
pub const MAX_TIMEOUT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How many jobs of a type may be allowed to run at once.
pub const MAX_CONCURRENCY: u32 = 100_000;
/// How many may be allowed to start per second.
pub const MIN_RATE: f64 = 0.001;
pub const MAX_RATE: f64 = 100_000.0;

/// A stored job type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobType {
    /// Left out for a type that is built in and belongs to the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 200, example = "send-invoice")]
    pub kind: String,
    /// The JSON Schema of the payload; any object if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
    /// How often its handler is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_key: Option<KeyLimits>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// How many jobs of one limit key run at once and start per second, over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 100_000)]
    pub starts_per_second: Option<f64>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// How many jobs may run at once and start per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    pub concurrency: Option<u32>,
    pub starts_per_second: Option<f64>,
}

impl Bounds {
    pub fn is_none(&self) -> bool {
        self.concurrency.is_none() && self.starts_per_second.is_none()
    }

    fn check(&self, check: &mut Checker, below: &str) {
        if let Some(concurrency) = self.concurrency {
            check.range(&format!("{below}/concurrency"), concurrency, 1..=MAX_CONCURRENCY);
        }
        if let Some(rate) = self.starts_per_second {
            check.range(&format!("{below}/startsPerSecond"), rate, MIN_RATE..=MAX_RATE);
        }
    }
}

/// What a type limits: all its jobs together, and those of each limit key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TypeLimits {
    pub whole: Bounds,
    pub per_key: Bounds,
}

impl TypeLimits {
    pub fn is_none(&self) -> bool {
        self.whole.is_none() && self.per_key.is_none()
    }

    /// The limits that a job of a type is under: that of the type, that of its key, both or none.
    pub fn of(
        &self,
        domain: &Domain,
        kind: &str,
        key: Option<&str>,
    ) -> impl Iterator<Item = (LimitName, Bounds)> {
        let name = |key: Option<&str>| LimitName {
            domain: domain.clone(),
            kind: kind.to_owned(),
            key: key.map(str::to_owned),
        };
        let whole = (!self.whole.is_none()).then(|| (name(None), self.whole));
        let of_key = key.filter(|_| !self.per_key.is_none()).map(|key| (name(Some(key)), self.per_key));
        whole.into_iter().chain(of_key)
    }

    /// What one of its limits lets through.
    pub fn bounds(&self, name: &LimitName) -> Bounds {
        if name.key.is_some() { self.per_key } else { self.whole }
    }

    /// Whether something limits a job, by whether it has a limit key.
    pub fn apply_to(&self, has_key: bool) -> bool {
        !self.whole.is_none() || has_key && !self.per_key.is_none()
    }
}

/// What a type says of its jobs where a submission says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDefaults {
    pub attempts: Option<u32>,
    pub backoff: Option<Backoff>,
    pub timeout_ms: Option<u64>,
}

impl JobType {
    pub fn defaults(&self) -> JobDefaults {
        JobDefaults { attempts: self.attempts, backoff: self.backoff.clone(), timeout_ms: self.timeout_ms }
    }

    pub fn limits(&self) -> TypeLimits {
        let whole = Bounds { concurrency: self.concurrency, starts_per_second: self.starts_per_second };
        let per_key = self.per_key.as_ref().map(|per_key| Bounds {
            concurrency: per_key.concurrency,
            starts_per_second: per_key.starts_per_second,
        });
        TypeLimits { whole, per_key: per_key.unwrap_or_default() }
    }

    /// `{domain}:{type}`, with nothing before the colon for what belongs to the installation. No domain contains a
    /// colon, so the first one divides.
    pub fn id(&self) -> String {
        let domain = self.domain.as_ref().map_or("", Domain::as_str);
        format!("{domain}:{}", self.kind)
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/type", &self.kind, 1..=MAX_KEY_CHARS);
        if [".", ".."].contains(&self.kind.as_str()) {
            check.refuse("/type", "must not be '.' or '..', which mean something else in an address");
        }
        if self.id().len() > MAX_ID_BYTES {
            check.refuse("/type", format!("must have, with its domain, at most {MAX_ID_BYTES} bytes"));
        }
        if let Some(schema) = &self.schema {
            check_schema(&mut check, schema);
        }
        check_tries(&mut check, self.attempts, self.backoff.as_ref(), self.timeout_ms);
        let TypeLimits { whole, per_key } = self.limits();
        whole.check(&mut check, "");
        per_key.check(&mut check, "/perKey");
        if let Some(per_key) = &self.per_key {
            check.extra("/perKey", &per_key.extra);
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

/// How often, how soon again and for how long a handler is tried: a type may say it, and a job.
pub(crate) fn check_tries(
    check: &mut Checker,
    attempts: Option<u32>,
    backoff: Option<&Backoff>,
    timeout_ms: Option<u64>,
) {
    if let Some(attempts) = attempts {
        check.range("/attempts", attempts, 1..=MAX_ATTEMPTS);
    }
    if let Some(backoff) = backoff {
        check.absorb(backoff.check("/backoff"));
    }
    if let Some(timeout_ms) = timeout_ms {
        check.range("/timeoutMs", timeout_ms, 1..=MAX_TIMEOUT_MS);
    }
}

fn check_schema(check: &mut Checker, schema: &Value) {
    if !schema.is_object() {
        check.refuse("/schema", "must be a JSON Schema object, such as {\"type\": \"object\"}");
        return;
    }
    check.json("/schema", schema);
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        check.refuse("/schema", format!("must have at most {MAX_SCHEMA_BYTES} bytes; it has {bytes}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_are_named() {
        let refused: JobType = serde_json::from_value(json!({
            "type": "", "schema": true, "attempts": 0, "timeoutMs": 0, "concurrency": 0,
            "backoff": {"delayMs": 1, "factor": 0}, "startsPerSecond": 0.0,
            "perKey": {"concurrency": 100_001, "startsPerSecond": 100_001}
        }))
        .unwrap();
        let Invalid(errors) = refused.check().unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/type",
                "/schema",
                "/attempts",
                "/backoff/factor",
                "/timeoutMs",
                "/concurrency",
                "/startsPerSecond",
                "/perKey/concurrency",
                "/perKey/startsPerSecond",
            ]
        );
        let large = JobType {
            kind: "t".to_owned(),
            schema: Some(json!({"description": "x".repeat(MAX_SCHEMA_BYTES)})),
            ..JobType::default()
        };
        assert!(large.check().unwrap_err().to_string().contains("at most 65536 bytes"));
    }

    #[test]
    fn what_is_limited_depends_on_the_key() {
        let limits = |settings: Value| {
            let settings: JobTypeSettings = serde_json::from_value(settings).unwrap();
            let limits = settings.into_type(Domain::default(), "t").unwrap().limits();
            let domain = Domain::default();
            assert_eq!(limits.of(&domain, "t", Some("k")).count() > 0, limits.apply_to(true));
            assert_eq!(limits.of(&domain, "t", None).count() > 0, limits.apply_to(false));
            (limits.apply_to(false), limits.apply_to(true))
        };
        assert_eq!(limits(json!({})), (false, false));
        assert_eq!(limits(json!({"concurrency": 1})), (true, true));
        assert_eq!(limits(json!({"startsPerSecond": 0.5})), (true, true));
        assert_eq!(limits(json!({"perKey": {}})), (false, false));
        assert_eq!(limits(json!({"perKey": {"concurrency": 1}})), (false, true));
    }

    #[test]
    fn built_in_types_belong_to_no_domain() {
        let mut job_type = JobType { kind: "a:b".to_owned(), ..JobType::default() };
        assert_eq!(job_type.id(), ":a:b");
        job_type.domain = Some(Domain::default());
        assert_eq!(job_type.id(), "default:a:b");
    }
}
