//! A job of seed 003: the unit of work in the queue, from its submission to its result.
//!
//! This file says what a job holds; [`submission`] what a user may ask for, [`lifecycle`] how a job may change, [`mod@unique`]
//! how long it keeps others like it away, [`lane`] whom it takes turns with, [`waiting`] why it does not run, [`counts`] how
//! many there are. The fields of the seed come first; those that Rota adds are optional for a reader of the seed, and a document with the
//! seed's fields alone is read with their defaults.

pub mod counts;
pub mod lane;
pub mod lifecycle;
pub mod submission;
pub mod unique;
pub mod waiting;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Extra;
use crate::backoff::Backoff;
use crate::domain::Domain;
use crate::ids::{ClaimToken, Incarnation, JobId, NodeId};
use crate::metadata::Metadata;
use crate::time::UnixMillis;

pub use counts::JobCounts;
pub use lane::Lane;
pub use lifecycle::{Holder, JobEvent, Refusal, Retry};
pub use submission::NewJob;
pub use unique::{Scope, Unique};
pub use waiting::{Waiting, WaitingReason};

/// The five statuses of the seed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// Waits for its time and for a node; also between two attempts.
    Queued,
    /// A node runs it.
    Started,
    Successful,
    /// The handler said no and no attempt is left, or a person cancelled it.
    Failed,
    /// It never got a fair run: its nodes died too often, it expired, or it could not be decoded.
    Error,
}

impl JobStatus {
    pub const ALL: [JobStatus; 5] =
        [JobStatus::Queued, JobStatus::Started, JobStatus::Successful, JobStatus::Failed, JobStatus::Error];

    /// Whether the job has ended; only a requeue leads out of it.
    pub fn is_terminal(self) -> bool {
        matches!(self, JobStatus::Successful | JobStatus::Failed | JobStatus::Error)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Queued => "QUEUED",
            JobStatus::Started => "STARTED",
            JobStatus::Successful => "SUCCESSFUL",
            JobStatus::Failed => "FAILED",
            JobStatus::Error => "ERROR",
        }
    }
}

/// What the user gave: the type that says what to do, and its payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobInput {
    #[serde(rename = "type")]
    #[schema(example = "wait")]
    pub kind: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// How far a running job is, as its handler says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    pub percent: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// One thing that happened to a job before its present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HistoryEntry {
    pub at: UnixMillis,
    pub event: JobEvent,
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub node: Option<NodeId>,
    /// The result that was current until then.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub result: Map<String, Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A stored job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub job_name: String,
    #[schema(value_type = String, format = "uuid")]
    pub job_id: JobId,
    pub job_number: u64,
    pub status: JobStatus,
    pub input: JobInput,
    #[schema(value_type = Object)]
    pub result: Map<String, Value>,

    #[serde(default = "Domain::default")]
    pub domain: Domain,
    /// `jobNumber` modulo the number of sections.
    #[serde(default)]
    pub section: u32,
    /// 9 is the most urgent.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// Whom it takes turns with; see [`Lane`]. Left out of jobs that older versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Not before this instant; always set, so that due work is found by it.
    #[serde(default)]
    pub run_at: UnixMillis,
    /// Which attempt is next or under way. Only a handler's failure moves it on.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// How many attempts there are.
    #[serde(default = "first_attempt")]
    pub attempts: u32,
    /// How long to wait between two attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// It ends as ERROR if no node has begun with it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// How many times a node died with it.
    #[serde(default)]
    pub lost: u32,
    /// Rises with every claim; whoever holds an older one is refused.
    #[serde(default)]
    pub epoch: u64,
    /// The life of the node that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub owner: Option<Incarnation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub owner_node: Option<NodeId>,
    /// By what the claimer finds its claim if the answer was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub claim_token: Option<ClaimToken>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_key: Option<String>,
    /// The caller's name for this submission: the same name finds the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// What was submitted under that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_digest: Option<String>,
    #[serde(flatten)]
    pub reserved: Reserved,

    pub metadata: Metadata,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// Fields with a meaning to come. They are carried and shown already, so that documents written today need no change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub waiting_for: Vec<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_key: Option<String>,
    /// W3C trace context of the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

fn default_priority() -> u8 {
    submission::DEFAULT_PRIORITY
}

fn first_attempt() -> u32 {
    1
}

/// The part of the queue a job belongs to.
pub fn section_of(job_number: u64, sections: u32) -> u32 {
    u32::try_from(job_number % u64::from(sections.max(1))).unwrap_or(0)
}
