//! One run of backups or restores over many elements (seed 001, `backup-job-execution`).
//!
//! Rule 17 is kept here: nothing counts up. A [`Tally`] is taken of the elements, status and numbers follow from it,
//! and [`BackupJob::recount`] puts them into the document, whoever asks and however often. The numbers always add up:
//! succeeded, aborted, failed and unfinished elements are all there are.
//!
//! ```text
//!   none has begun                 PENDING
//!   some have, not all have ended  IN_PROGRESS
//!   all have ended:
//!     one was aborted              ABORTED
//!     all completed                SUCCEEDED
//!     none completed               FAILED
//!     otherwise                    PARTIAL
//! ```
//!
//! A run over no element at all is FAILED: a schedule whose model is misspelt must not look like a success. An abort
//! that came when every element was already under way stops nothing, and the run ends as its elements do.
//!
//! The status moves by one table all the same. A retry of an element is the only way out of a run that has ended, and
//! only out of FAILED and PARTIAL: SUCCEEDED and ABORTED are final.

use serde::{Deserialize, Serialize};

use super::MAX_USER_CHARS;
use super::element_execution::{ElementExecution, ElementStatus};
use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::domain::Domain;
use crate::ids::{BackupJobId, ScheduleId};
use crate::time::UnixMillis;
use crate::transition::{IllegalTransition, Table};
use crate::words::words;

words! {
    #[derive(Default)]
    BackupStatus {
        #[default]
        Pending = "PENDING",
        InProgress = "IN_PROGRESS",
        Succeeded = "SUCCEEDED",
        Aborted = "ABORTED",
        Failed = "FAILED",
        Partial = "PARTIAL",
    }
}

impl BackupStatus {
    pub fn has_ended(self) -> bool {
        !matches!(self, BackupStatus::Pending | BackupStatus::InProgress)
    }

    /// The event that leads to a status.
    fn event(self) -> BackupEvent {
        match self {
            BackupStatus::Pending | BackupStatus::InProgress => BackupEvent::Start,
            BackupStatus::Succeeded => BackupEvent::Succeed,
            BackupStatus::Aborted => BackupEvent::Abort,
            BackupStatus::Failed => BackupEvent::Fail,
            BackupStatus::Partial => BackupEvent::EndPartly,
        }
    }
}

words! {
    #[derive(Default)]
    BackupKind {
        #[default]
        Backup = "BACKUP",
        Restore = "RESTORE",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupEvent {
    /// The first element began.
    Start,
    Succeed,
    Fail,
    EndPartly,
    /// A person stopped it.
    Abort,
    /// A failed element is tried again: the only way out of a run that has ended.
    Retry,
}

pub const TRANSITIONS: Table<BackupStatus, BackupEvent> = Table::new(
    "backup job",
    &[
        (BackupStatus::Pending, BackupEvent::Start, BackupStatus::InProgress),
        (BackupStatus::Pending, BackupEvent::Abort, BackupStatus::Aborted),
        (BackupStatus::InProgress, BackupEvent::Succeed, BackupStatus::Succeeded),
        (BackupStatus::InProgress, BackupEvent::Fail, BackupStatus::Failed),
        (BackupStatus::InProgress, BackupEvent::EndPartly, BackupStatus::Partial),
        (BackupStatus::InProgress, BackupEvent::Abort, BackupStatus::Aborted),
        (BackupStatus::InProgress, BackupEvent::Retry, BackupStatus::InProgress),
        (BackupStatus::Failed, BackupEvent::Retry, BackupStatus::InProgress),
        (BackupStatus::Partial, BackupEvent::Retry, BackupStatus::InProgress),
    ],
);

/// How many elements of a run are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub idle: u32,
    pub ongoing: u32,
    pub completed: u32,
    pub failed: u32,
    pub aborted: u32,
    /// How many have ever begun, those that wait for a retry included.
    pub begun: u32,
}

impl Tally {
    pub fn of<'a>(elements: impl IntoIterator<Item = &'a ElementExecution>) -> Self {
        let mut tally = Self::default();
        for element in elements {
            let (counter, begun) = match element.status {
                ElementStatus::Idle => (&mut tally.idle, false),
                ElementStatus::Ongoing => (&mut tally.ongoing, true),
                ElementStatus::Completed => (&mut tally.completed, true),
                ElementStatus::Failed => (&mut tally.failed, true),
                ElementStatus::Aborted => (&mut tally.aborted, false),
            };
            *counter += 1;
            tally.begun += u32::from(begun || element.retry_attempt > 0);
        }
        tally
    }

    pub fn total(&self) -> u32 {
        self.unfinished() + self.completed + self.failed + self.aborted
    }

    pub fn unfinished(&self) -> u32 {
        self.idle + self.ongoing
    }

    /// The status of a run whose elements are these.
    pub fn status(&self) -> BackupStatus {
        if self.unfinished() > 0 {
            return if self.begun == 0 { BackupStatus::Pending } else { BackupStatus::InProgress };
        }
        match (self.aborted, self.completed, self.failed) {
            (1.., _, _) => BackupStatus::Aborted,
            (0, 0, _) => BackupStatus::Failed,
            (0, 1.., 0) => BackupStatus::Succeeded,
            (0, 1.., 1..) => BackupStatus::Partial,
        }
    }
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupJob {
    #[schema(value_type = String, format = "uuid")]
    pub job_id: BackupJobId,
    pub job_name: String,
    /// Left out for a run that a person started by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub schedule_id: Option<ScheduleId>,
    #[serde(default)]
    pub status: BackupStatus,
    #[serde(rename = "totalNEs", default)]
    pub total_nes: u32,
    #[serde(rename = "succeededNEs", default)]
    pub succeeded_nes: u32,
    #[serde(rename = "abortedNEs", default)]
    pub aborted_nes: u32,
    #[serde(rename = "failedNEs", default)]
    pub failed_nes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<UnixMillis>,
    pub job_created_time: UnixMillis,
    pub job_updated_time: UnixMillis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_by_user: Option<String>,

    #[serde(default)]
    pub kind: BackupKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl BackupJob {
    /// Brings status and numbers in line with the elements. Repeating it changes nothing. An error means that the
    /// elements contradict a run that is final, and leaves the run as it is.
    pub fn recount(&mut self, tally: &Tally, now: UnixMillis) -> Result<(), IllegalTransition> {
        let status = self.status_after(tally.status())?;
        let before = self.clone();
        self.status = status;
        self.total_nes = tally.total();
        self.succeeded_nes = tally.completed;
        self.aborted_nes = tally.aborted;
        self.failed_nes = tally.failed;
        if tally.begun > 0 {
            self.start_time = self.start_time.or(Some(now));
        }
        self.end_time = if status.has_ended() { self.end_time.or(Some(now)) } else { None };
        if *self != before {
            self.job_updated_time = now;
        }
        Ok(())
    }

    /// Walks the table to a derived status. Several elements may have moved since the last look, so the way may pass
    /// through IN_PROGRESS.
    fn status_after(&self, derived: BackupStatus) -> Result<BackupStatus, IllegalTransition> {
        if derived == self.status {
            return Ok(derived);
        }
        if let Ok(status) = TRANSITIONS.next(self.status, derived.event()) {
            return Ok(status);
        }
        let into_progress = match self.status {
            BackupStatus::Failed | BackupStatus::Partial => BackupEvent::Retry,
            _ => BackupEvent::Start,
        };
        let status = TRANSITIONS.next(self.status, into_progress)?;
        if status == derived { Ok(status) } else { TRANSITIONS.next(status, derived.event()) }
    }

    /// Notes who stops the run. Its elements that have not begun are then aborted, and the status follows from them.
    pub fn abort(&mut self, by: &str, now: UnixMillis) -> Result<(), IllegalTransition> {
        TRANSITIONS.next(self.status, BackupEvent::Abort)?;
        if self.aborted_by_user.is_none() {
            self.aborted_by_user = Some(by.to_owned());
            self.job_updated_time = now;
        }
        Ok(())
    }

    /// Whether failed elements may be tried again. Not in a run that a person stopped.
    pub fn may_retry(&self) -> bool {
        self.aborted_by_user.is_none() && TRANSITIONS.allows(self.status, BackupEvent::Retry)
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/jobName", &self.job_name, 1..=MAX_NAME_CHARS);
        check.optional_line("/abortedByUser", self.aborted_by_user.as_deref(), 1..=MAX_USER_CHARS);
        let ended =
            [self.succeeded_nes, self.aborted_nes, self.failed_nes].map(u64::from).iter().sum::<u64>();
        if ended > u64::from(self.total_nes) {
            check.refuse("/totalNEs", format!("must be at least the {ended} elements that have ended"));
        }
        check.extra("", &self.extra);
        check.finish()
    }
}
