//! Jobs of which there is to be only one at a time.
//!
//! A unique key keeps twins away for as long as its job is in scope. A scope only ever ends: once a job was seen outside
//! of it, only a requeue brings it back, and that asks the key first. So whoever sees a job outside its scope may hand its
//! key on, however long ago it looked.

use serde::{Deserialize, Serialize};

use crate::check::{Checker, Invalid};
use crate::job::submission::MAX_KEY_CHARS;
use crate::job::{Job, JobStatus};
use crate::time::UnixMillis;

/// The longest a key may be kept after its job was submitted, in milliseconds: a year.
pub const MAX_FOR_MS: u64 = 365 * 24 * 60 * 60 * 1_000;

/// What keeps twins away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unique {
    /// Jobs of one domain with the same key are twins.
    #[schema(min_length = 1, max_length = 200, example = "invoice-4711")]
    pub key: String,
    #[serde(rename = "while", default)]
    pub scope: Scope,
    /// Twins are kept away for this long after the job was submitted, whatever became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000_000_u64)]
    pub for_ms: Option<u64>,
}

/// How long twins are kept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Until a node begins with it.
    Queued,
    /// Until its first attempt is over.
    Running,
    /// Until it has ended, all its attempts among it.
    #[default]
    Unfinished,
}

impl Unique {
    pub fn check(&self, pointer: &str) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line(&format!("{pointer}/key"), &self.key, 1..=MAX_KEY_CHARS);
        if let Some(for_ms) = self.for_ms {
            check.range(&format!("{pointer}/forMs"), for_ms, 1..=MAX_FOR_MS);
        }
        check.finish()
    }
}

impl Job {
    /// Whether it keeps its twins away.
    pub fn is_in_scope(&self, now: UnixMillis) -> bool {
        let Some(unique) = &self.unique else { return false };
        let unfinished = !self.status.is_terminal();
        let within = match unique.scope {
            Scope::Queued => self.status == JobStatus::Queued && self.epoch == 0,
            Scope::Running => unfinished && self.attempt == 1,
            Scope::Unfinished => unfinished,
        };
        let until = |for_ms| self.metadata.created_at.plus(std::time::Duration::from_millis(for_ms));
        within || unique.for_ms.is_some_and(|for_ms| now < until(for_ms))
    }
}
