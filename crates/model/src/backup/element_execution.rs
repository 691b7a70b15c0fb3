//! What became of one element in a run (seed 001, `backup-job-ne-executions`).
//!
//! ```text
//!          start              complete
//!   IDLE ─────────▶ ONGOING ───────────▶ COMPLETED
//!    │ ▲               └──── fail ─────▶ FAILED
//!    │ └───────────── retry ───────────────┘
//!    └── abort ──▶ ABORTED
//! ```
//!
//! A retry is the only way out of a state that has ended, and only FAILED has one: if the failure may be repeated
//! (`retryEligible`) and at most [`MAX_RETRY_ATTEMPTS`] times. It leads back to IDLE, since the element waits for a node
//! again. COMPLETED and ABORTED are final. An element that runs cannot be aborted: a device is not left in the middle of
//! a transfer.
//!
//! Results are accepted under the epoch of the last start alone, so that a node that was taken for dead cannot
//! overwrite what its successor recorded.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};
use crate::domain::Domain;
use crate::ids::BackupJobId;
use crate::time::UnixMillis;
use crate::transition::{IllegalTransition, Table};
use crate::words::words;

use super::network_element::check_ne_id;

/// How often an element may be tried again in one run.
pub const MAX_RETRY_ATTEMPTS: u32 = 10;
/// The length of an error message, in characters.
pub const MAX_ERROR_CHARS: usize = 2_000;
/// The length of the path of a stored file, in characters.
pub const MAX_PATH_CHARS: usize = 2_000;
/// The length of a SHA-256 in hexadecimal, in characters.
pub const HASH_CHARS: usize = 64;

words! {
    #[derive(Default)]
    ElementStatus {
        /// Waits for a node.
        #[default]
        Idle = "IDLE",
        Ongoing = "ONGOING",
        Completed = "COMPLETED",
        Failed = "FAILED",
        /// A person stopped the run before it began.
        Aborted = "ABORTED",
    }
}

impl ElementStatus {
    /// Whether the run does not wait for this element.
    pub fn has_ended(self) -> bool {
        matches!(self, ElementStatus::Completed | ElementStatus::Failed | ElementStatus::Aborted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementEvent {
    Start,
    Complete,
    Fail,
    Abort,
    /// The only way out of a state that has ended.
    Retry,
}

/// A start of what is under way is a take-over from a node that died.
pub const TRANSITIONS: Table<ElementStatus, ElementEvent> = Table::new(
    "element",
    &[
        (ElementStatus::Idle, ElementEvent::Start, ElementStatus::Ongoing),
        (ElementStatus::Idle, ElementEvent::Abort, ElementStatus::Aborted),
        (ElementStatus::Ongoing, ElementEvent::Start, ElementStatus::Ongoing),
        (ElementStatus::Ongoing, ElementEvent::Complete, ElementStatus::Completed),
        (ElementStatus::Ongoing, ElementEvent::Fail, ElementStatus::Failed),
        (ElementStatus::Failed, ElementEvent::Retry, ElementStatus::Idle),
    ],
);

/// A stored execution of one element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElementExecution {
    #[schema(value_type = String, format = "uuid")]
    pub job_id: BackupJobId,
    pub ne_id: String,
    #[serde(default)]
    pub status: ElementStatus,
    /// How many times it was tried again.
    #[serde(default)]
    pub retry_attempt: u32,
    /// Whether its failure may be repeated with hope of success.
    #[serde(default)]
    pub retry_eligible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_file_stored_path: Option<String>,

    /// SHA-256 of the configuration, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The epoch of the job that runs it, or ran it last.
    #[serde(default)]
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A configuration that was fetched. Without a path, it had not changed and was not uploaded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub path: Option<String>,
    pub content_hash: String,
    pub size_bytes: u64,
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementRefusal {
    #[error("element: epoch {held} is over, it runs under epoch {current}")]
    Stale { held: u64, current: u64 },
    #[error("element: its failure is not one that may be repeated")]
    NotEligible,
    #[error("element: it was tried again {MAX_RETRY_ATTEMPTS} times, and no more are allowed")]
    RetriesExhausted,
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
}

impl ElementExecution {
    pub fn new(job_id: BackupJobId, ne_id: impl Into<String>, domain: Option<Domain>) -> Self {
        Self {
            job_id,
            ne_id: ne_id.into(),
            status: ElementStatus::Idle,
            retry_attempt: 0,
            retry_eligible: false,
            start_time: None,
            end_time: None,
            error_message: None,
            backup_file_stored_path: None,
            content_hash: None,
            size_bytes: None,
            epoch: 0,
            domain,
            extra: Extra::new(),
        }
    }

    /// `{jobId}:{neId}`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.job_id, self.ne_id)
    }

    /// A node begins, or takes over from one that died. The same epoch again is the same start.
    pub fn start(&mut self, epoch: u64, now: UnixMillis) -> Result<(), ElementRefusal> {
        let under_way = self.status == ElementStatus::Ongoing;
        if under_way && epoch < self.epoch {
            return Err(ElementRefusal::Stale { held: epoch, current: self.epoch });
        }
        let repeated = under_way && epoch == self.epoch;
        self.status = TRANSITIONS.next(self.status, ElementEvent::Start)?;
        if !repeated {
            self.epoch = epoch;
            self.start_time = Some(now);
        }
        Ok(())
    }

    pub fn complete(&mut self, epoch: u64, stored: Stored, now: UnixMillis) -> Result<(), ElementRefusal> {
        self.end(epoch, ElementEvent::Complete, now)?;
        self.backup_file_stored_path = stored.path;
        self.content_hash = Some(stored.content_hash);
        self.size_bytes = Some(stored.size_bytes);
        self.error_message = None;
        self.retry_eligible = false;
        Ok(())
    }

    /// It did not work, for a reason that may pass (`again`) or not.
    pub fn fail(
        &mut self,
        epoch: u64,
        error: &str,
        again: bool,
        now: UnixMillis,
    ) -> Result<(), ElementRefusal> {
        self.end(epoch, ElementEvent::Fail, now)?;
        self.error_message = Some(error.chars().take(MAX_ERROR_CHARS).collect());
        self.retry_eligible = again;
        Ok(())
    }

    pub fn abort(&mut self, now: UnixMillis) -> Result<(), ElementRefusal> {
        self.status = TRANSITIONS.next(self.status, ElementEvent::Abort)?;
        self.end_time = Some(now);
        Ok(())
    }

    /// Lets a failed element wait for a node again.
    pub fn retry(&mut self) -> Result<(), ElementRefusal> {
        let next = TRANSITIONS.next(self.status, ElementEvent::Retry)?;
        if !self.retry_eligible {
            return Err(ElementRefusal::NotEligible);
        }
        if self.retry_attempt >= MAX_RETRY_ATTEMPTS {
            return Err(ElementRefusal::RetriesExhausted);
        }
        self.status = next;
        self.retry_attempt += 1;
        self.retry_eligible = false;
        self.end_time = None;
        self.error_message = None;
        Ok(())
    }

    fn end(&mut self, epoch: u64, event: ElementEvent, now: UnixMillis) -> Result<(), ElementRefusal> {
        let next = TRANSITIONS.next(self.status, event)?;
        if epoch != self.epoch {
            return Err(ElementRefusal::Stale { held: epoch, current: self.epoch });
        }
        self.status = next;
        self.end_time = Some(now);
        Ok(())
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check_ne_id(&mut check, &self.ne_id);
        check.range("/retryAttempt", self.retry_attempt, 0..=MAX_RETRY_ATTEMPTS);
        if let Some(error) = &self.error_message {
            check.lines("/errorMessage", error, 0..=MAX_ERROR_CHARS);
        }
        check.optional_line(
            "/backupFileStoredPath",
            self.backup_file_stored_path.as_deref(),
            1..=MAX_PATH_CHARS,
        );
        if let Some(hash) = &self.content_hash {
            check.line("/contentHash", hash, HASH_CHARS..=HASH_CHARS);
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000);

    fn element() -> ElementExecution {
        ElementExecution::new(BackupJobId::derived(&["run"]), "router-1", None)
    }

    fn stored() -> Stored {
        Stored { path: Some("/b/router-1".to_owned()), content_hash: "0".repeat(HASH_CHARS), size_bytes: 9 }
    }

    #[test]
    fn a_result_counts_only_under_the_epoch_of_the_last_start() {
        let mut element = element();
        element.start(1, NOW).unwrap();
        element.start(2, NOW).unwrap();
        let late = element.complete(1, stored(), NOW);
        assert_eq!(late, Err(ElementRefusal::Stale { held: 1, current: 2 }));
        assert!(matches!(element.start(1, NOW), Err(ElementRefusal::Stale { .. })));
        element.complete(2, stored(), NOW).unwrap();
        assert_eq!((element.status, element.check()), (ElementStatus::Completed, Ok(())));
    }

    #[test]
    fn a_failed_element_is_retried_if_it_may_be_and_not_for_ever() {
        let mut element = element();
        element.start(1, NOW).unwrap();
        element.fail(1, "wrong password", false, NOW).unwrap();
        assert_eq!(element.retry(), Err(ElementRefusal::NotEligible));
        element.retry_eligible = true;
        for attempt in 1..=MAX_RETRY_ATTEMPTS {
            element.retry().unwrap();
            assert_eq!((element.status, element.retry_attempt), (ElementStatus::Idle, attempt));
            element.start(1, NOW).unwrap();
            element.fail(1, "no answer", true, NOW).unwrap();
        }
        assert_eq!(element.retry(), Err(ElementRefusal::RetriesExhausted));
    }

    #[test]
    fn what_runs_is_not_aborted() {
        let mut element = element();
        element.start(1, NOW).unwrap();
        let refused = element.abort(NOW).unwrap_err();
        assert_eq!(refused.to_string(), "element: no ABORT from ONGOING");
    }
}
