//! What a user may ask for when submitting a job, within which limits.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Extra;
use crate::backoff::Backoff;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::digest::hex_sha256;
use crate::domain::Domain;
use crate::ids::{JobId, NodeId};
use crate::job::{Job, JobInput, JobStatus, Lane, Reserved, Unique, section_of};
use crate::job_type::{JobDefaults, check_tries};
use crate::limit;
use crate::metadata::Metadata;
use crate::object_only::{object_only, optional_object};
use crate::time::UnixMillis;
use crate::trace::TraceParent;

pub const DEFAULT_PRIORITY: u8 = 5;
pub const MAX_PRIORITY: u8 = 9;
/// How often a handler is tried if nobody says otherwise.
pub const DEFAULT_ATTEMPTS: u32 = 5;
/// The length of a type's name and of the keys a user chooses, in characters.
pub const MAX_KEY_CHARS: usize = 200;

/// The body of `POST …/jobs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewJob {
    #[schema(min_length = 1, max_length = 200, example = "first job")]
    pub job_name: String,
    #[serde(deserialize_with = "object_only")]
    pub input: NewInput,
    /// 0 to 9, 9 the most urgent; 5 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "priority")]
    #[schema(minimum = 0, maximum = 9)]
    pub priority: Option<u8>,
    /// Unix milliseconds; at once if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 32_503_679_999_999_i64)]
    pub run_at: Option<UnixMillis>,
    /// How often its handler is tried; what the type says, otherwise 5, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub attempts: Option<u32>,
    /// How long to wait between two attempts; what the type says, otherwise a second, doubled each time up to an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long one attempt may take; what the type says, otherwise as long as it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 604_800_000)]
    pub timeout_ms: Option<u64>,
    /// Unix milliseconds: it ends as ERROR if no node has taken it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 32_503_679_999_999_i64)]
    pub expires_at: Option<UnixMillis>,
    /// Keeps others like it away: a twin is answered with the job that is there.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_object")]
    pub unique: Option<Unique>,
    /// Jobs of its type with the same key share a limit, if the type sets one for each key; and they take turns with those
    /// of other keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, example = "customer-7")]
    pub limit_key: Option<String>,
    /// Kept for a later version: refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Kept for a later version: refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// Kept for a later version: refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub waiting_for: Vec<JobId>,
    /// Kept for a later version: refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_key: Option<String>,
    /// W3C trace context of the submitter: where the job stands in a trace. What the header `traceparent` is for all jobs of a
    /// request, this is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        pattern = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
    )]
    pub traceparent: Option<String>,
    /// The caller's name for this submission: the same name with the same job finds the job that was made first. What
    /// the header `Idempotency-Key` is for a single submission, this is for each job of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub idempotency_key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInput {
    #[serde(rename = "type")]
    #[schema(example = "wait")]
    pub kind: String,
    /// An object that fits the schema of the type; empty if left out.
    #[serde(default = "empty_object")]
    #[schema(value_type = Object, example = json!({"millis": 200}))]
    pub payload: Value,
}

/// A priority may be any number on the way here: who sends 300 is told of 9, not of 255.
fn priority<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u8>, D::Error> {
    let given = Option::<i64>::deserialize(input)?;
    let refused = |given| D::Error::custom(format!("must be from 0 to {MAX_PRIORITY}; it is {given}"));
    given.map(|given| u8::try_from(given).map_err(|_| refused(given))).transpose()
}

/// The same object whatever the order in which its fields were written.
fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

impl NewJob {
    pub fn new(job_name: impl Into<String>, kind: impl Into<String>, payload: Value) -> Self {
        Self {
            job_name: job_name.into(),
            input: NewInput { kind: kind.into(), payload },
            priority: None,
            run_at: None,
            attempts: None,
            backoff: None,
            timeout_ms: None,
            expires_at: None,
            unique: None,
            limit_key: None,
            queue: None,
            group_id: None,
            waiting_for: Vec::new(),
            order_key: None,
            traceparent: None,
            idempotency_key: None,
        }
    }

    /// Everything that can be said of a submission without knowing its type.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/jobName", &self.job_name, 1..=MAX_NAME_CHARS);
        check.line("/input/type", &self.input.kind, 1..=MAX_KEY_CHARS);
        if self.input.payload.is_object() {
            check.json("/input/payload", &self.input.payload);
        } else {
            check.refuse("/input/payload", "must be a JSON object, such as {\"millis\": 200}");
        }
        if let Some(priority) = self.priority {
            check.range("/priority", priority, 0..=MAX_PRIORITY);
        }
        self.check_times(&mut check);
        if let Some(unique) = &self.unique {
            check.absorb(unique.check("/unique"));
        }
        if let Some(key) = &self.limit_key {
            limit::check_key(&mut check, "/limitKey", key);
        }
        for (pointer, is_given) in [
            ("/queue", self.queue.is_some()),
            ("/groupId", self.group_id.is_some()),
            ("/orderKey", self.order_key.is_some()),
            ("/waitingFor", !self.waiting_for.is_empty()),
        ] {
            if is_given {
                check.refuse(pointer, "is kept for a later version, and would do nothing: leave it out");
            }
        }
        check.optional_line("/idempotencyKey", self.idempotency_key.as_deref(), 1..=MAX_KEY_CHARS);
        if let Some(Err(fault)) = self.traceparent.as_ref().map(|text| text.parse::<TraceParent>()) {
            check.refuse("/traceparent", fault.to_string());
        }
        check.finish()
    }

    fn check_times(&self, check: &mut Checker) {
        for (pointer, at) in [("/runAt", self.run_at), ("/expiresAt", self.expires_at)] {
            if let Some(at) = at {
                check.instant(pointer, at);
            }
        }
        if let (Some(run_at), Some(expires_at)) = (self.run_at, self.expires_at)
            && expires_at <= run_at
        {
            check.refuse("/expiresAt", "must be later than runAt: the job would end before it may begin");
        }
        check_tries(check, self.attempts, self.backoff.as_ref(), self.timeout_ms);
    }

    /// A fingerprint of the submission. A repeat under the same idempotency key has the same one; another submission
    /// under that key is told apart by it. A repeat has a place of its own in its trace.
    pub fn digest(&self) -> String {
        let unnamed = Self { idempotency_key: None, traceparent: None, ..self.clone() };
        let text = serde_json::to_value(unnamed).map(sorted).unwrap_or_default().to_string();
        hex_sha256(&text)
    }

    /// The job as it is first stored, where its type says nothing.
    pub fn into_job(self, place: Place, now: UnixMillis) -> Job {
        self.into_job_of(&JobDefaults::default(), place, now)
    }

    /// The job as it is first stored. What its type says is no part of its fingerprint: a repeat is recognised whatever
    /// the type says by then.
    pub fn into_job_of(self, defaults: &JobDefaults, place: Place, now: UnixMillis) -> Job {
        let digest = self.idempotency_key.as_ref().map(|_| self.digest());
        let payload = match self.input.payload {
            Value::Object(payload) => payload,
            _ => Map::new(),
        };
        let priority = self.priority.unwrap_or(DEFAULT_PRIORITY);
        let lane = Lane { domain: place.domain, priority, kind: self.input.kind, key: self.limit_key };
        Job {
            lane: Some(lane.to_string()),
            job_name: self.job_name,
            job_id: place.job_id,
            job_number: place.job_number,
            status: JobStatus::Queued,
            input: JobInput { kind: lane.kind, payload, extra: Extra::new() },
            result: Map::new(),
            domain: lane.domain,
            section: section_of(place.job_number, place.sections),
            priority,
            run_at: self.run_at.unwrap_or(now),
            attempt: 1,
            attempts: self.attempts.or(defaults.attempts).unwrap_or(DEFAULT_ATTEMPTS),
            backoff: self.backoff.or_else(|| defaults.backoff.clone()),
            timeout_ms: self.timeout_ms.or(defaults.timeout_ms),
            expires_at: self.expires_at,
            lost: 0,
            epoch: 0,
            owner: None,
            owner_node: None,
            claim_token: None,
            started_at: None,
            finished_at: None,
            progress: None,
            history: Vec::new(),
            unique: self.unique,
            limit_key: lane.key,
            request_digest: digest,
            idempotency_key: self.idempotency_key,
            reserved: Reserved {
                queue: self.queue,
                group_id: self.group_id,
                waiting_for: self.waiting_for,
                order_key: self.order_key,
                traceparent: self.traceparent,
            },
            metadata: Metadata::new(now, place.accepted_by),
            extra: Extra::new(),
        }
    }
}

/// What the installation adds to a submission.
#[derive(Clone, Debug)]
pub struct Place {
    pub domain: Domain,
    pub job_id: JobId,
    pub job_number: u64,
    pub sections: u32,
    pub accepted_by: NodeId,
}
