//! When backups run (seed 001, `backup-schedules`): the user's intent, in local time.
//!
//! The truth is the local time and the zone. `cronExpression` is in UTC and derived from them: it is the one in force
//! until the next run, and changes with the clocks. No elements are stored: those of a run are the ones that match
//! vendor and model when it starts.

use serde::{Deserialize, Serialize};

use super::{MAX_LABEL_CHARS, MAX_USER_CHARS};
use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::domain::Domain;
use crate::ids::ScheduleId;
use crate::time::UnixMillis;
use crate::transition::{IllegalTransition, Table};
use crate::words::words;

/// The days a month may have.
pub const MAX_DAY_OF_MONTH: u8 = 31;

words! {
    Frequency {
        Once = "ONCE",
        Weekly = "WEEKLY",
        Daily = "DAILY",
        Monthly = "MONTHLY",
    }
}

words! {
    DayOfWeek {
        Monday = "MONDAY",
        Tuesday = "TUESDAY",
        Wednesday = "WEDNESDAY",
        Thursday = "THURSDAY",
        Friday = "FRIDAY",
        Saturday = "SATURDAY",
        Sunday = "SUNDAY",
    }
}

words! {
    #[derive(Default)]
    ScheduleStatus {
        #[default]
        Scheduled = "SCHEDULED",
        Paused = "PAUSED",
        /// It was to run once, and did.
        Completed = "COMPLETED",
        /// A person ended it, for good.
        Cancelled = "CANCELLED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleEvent {
    Pause,
    Resume,
    /// No run is left.
    Complete,
    /// A person ends it.
    Cancel,
    /// A person gives it another time: the only way out of COMPLETED. Nothing leads out of CANCELLED.
    Reschedule,
}

/// Repeating what already holds is allowed, since the answer to the first request may have been lost.
pub const TRANSITIONS: Table<ScheduleStatus, ScheduleEvent> = Table::new(
    "backup schedule",
    &[
        (ScheduleStatus::Scheduled, ScheduleEvent::Pause, ScheduleStatus::Paused),
        (ScheduleStatus::Scheduled, ScheduleEvent::Resume, ScheduleStatus::Scheduled),
        (ScheduleStatus::Scheduled, ScheduleEvent::Complete, ScheduleStatus::Completed),
        (ScheduleStatus::Scheduled, ScheduleEvent::Cancel, ScheduleStatus::Cancelled),
        (ScheduleStatus::Scheduled, ScheduleEvent::Reschedule, ScheduleStatus::Scheduled),
        (ScheduleStatus::Paused, ScheduleEvent::Pause, ScheduleStatus::Paused),
        (ScheduleStatus::Paused, ScheduleEvent::Resume, ScheduleStatus::Scheduled),
        (ScheduleStatus::Paused, ScheduleEvent::Complete, ScheduleStatus::Completed),
        (ScheduleStatus::Paused, ScheduleEvent::Cancel, ScheduleStatus::Cancelled),
        (ScheduleStatus::Paused, ScheduleEvent::Reschedule, ScheduleStatus::Paused),
        (ScheduleStatus::Completed, ScheduleEvent::Complete, ScheduleStatus::Completed),
        (ScheduleStatus::Completed, ScheduleEvent::Reschedule, ScheduleStatus::Scheduled),
        (ScheduleStatus::Cancelled, ScheduleEvent::Cancel, ScheduleStatus::Cancelled),
    ],
);

/// A stored schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSchedule {
    #[schema(value_type = String, format = "uuid")]
    pub schedule_id: ScheduleId,
    pub schedule_name: String,
    /// The name of the server in `server-configuration`.
    pub server_name: String,
    /// Any vendor if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Any model if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub frequency: Frequency,
    /// In UTC; derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
    /// For ONCE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_once_at: Option<UnixMillis>,
    /// Local time as `HH:MM`, for DAILY, WEEKLY and MONTHLY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "02:00")]
    pub run_at_time: Option<String>,
    /// For WEEKLY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_of_week: Option<DayOfWeek>,
    /// For MONTHLY; the last day of a month that is shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_of_month: Option<u8>,
    #[serde(default)]
    pub status: ScheduleStatus,
    pub created_time: UnixMillis,
    pub last_modified_time: UnixMillis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified_by_user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_time: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_time: Option<UnixMillis>,
    #[serde(default = "utc")]
    pub time_zone: String,
    /// Upload a configuration even if it has not changed.
    #[serde(default)]
    pub force_upload: bool,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

fn utc() -> String {
    "UTC".to_owned()
}

impl BackupSchedule {
    /// Changes the status by the table, or says why not.
    pub fn apply(&mut self, event: ScheduleEvent) -> Result<(), IllegalTransition> {
        self.status = TRANSITIONS.next(self.status, event)?;
        Ok(())
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/scheduleName", &self.schedule_name, 1..=MAX_NAME_CHARS);
        check.line("/serverName", &self.server_name, 1..=MAX_NAME_CHARS);
        check.optional_line("/vendor", self.vendor.as_deref(), 1..=MAX_LABEL_CHARS);
        check.optional_line("/model", self.model.as_deref(), 1..=MAX_LABEL_CHARS);
        check.optional_line("/createdByUser", self.created_by_user.as_deref(), 1..=MAX_USER_CHARS);
        check.optional_line("/lastModifiedByUser", self.last_modified_by_user.as_deref(), 1..=MAX_USER_CHARS);
        check.time_zone("/timeZone", &self.time_zone);
        if let Some(at) = self.run_once_at {
            check.instant("/runOnceAt", at);
        }
        if let Some(day) = self.day_of_month {
            check.range("/dayOfMonth", day, 1..=MAX_DAY_OF_MONTH);
        }
        if self.run_at_time.as_deref().is_some_and(|time| !is_time_of_day(time)) {
            check.refuse("/runAtTime", "must be a time from 00:00 to 23:59, such as 02:00");
        }
        self.check_frequency(&mut check);
        check.extra("", &self.extra);
        check.finish()
    }

    /// Each frequency wants its own fields and no others.
    fn check_frequency(&self, check: &mut Checker) {
        let frequency = self.frequency;
        let repeats = frequency != Frequency::Once;
        for (pointer, given, wanted) in [
            ("/runOnceAt", self.run_once_at.is_some(), !repeats),
            ("/runAtTime", self.run_at_time.is_some(), repeats),
            ("/dayOfWeek", self.day_of_week.is_some(), frequency == Frequency::Weekly),
            ("/dayOfMonth", self.day_of_month.is_some(), frequency == Frequency::Monthly),
        ] {
            if given != wanted {
                let rule = if wanted { "must be given" } else { "must be left out" };
                check.refuse(pointer, format!("{rule} when frequency is {frequency}"));
            }
        }
    }
}

fn is_time_of_day(text: &str) -> bool {
    let number = |part: &str| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| digits)
    };
    let parts = text.split_once(':').and_then(|(hour, minute)| Some((number(hour)?, number(minute)?)));
    parts.is_some_and(|(hour, minute)| hour < 24 && minute < 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn schedule(fields: &Value) -> BackupSchedule {
        let mut document = json!({
            "scheduleId": ScheduleId::derived(&["s"]), "scheduleName": "nightly", "serverName": "files",
            "createdTime": 1, "lastModifiedTime": 1
        });
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn each_frequency_wants_its_own_fields() {
        for good in [
            json!({"frequency": "ONCE", "runOnceAt": 5}),
            json!({"frequency": "DAILY", "runAtTime": "23:59"}),
            json!({"frequency": "WEEKLY", "runAtTime": "00:30", "dayOfWeek": "MONDAY"}),
            json!({"frequency": "MONTHLY", "runAtTime": "02:00", "dayOfMonth": 31}),
        ] {
            assert_eq!(schedule(&good).check(), Ok(()), "{good}");
        }
        for (bad, pointer) in [
            (json!({"frequency": "ONCE"}), "/runOnceAt"),
            (json!({"frequency": "DAILY", "runAtTime": "02:00", "dayOfMonth": 1}), "/dayOfMonth"),
            (json!({"frequency": "DAILY", "runAtTime": "24:00"}), "/runAtTime"),
            (json!({"frequency": "DAILY", "runAtTime": "+2:00"}), "/runAtTime"),
            (json!({"frequency": "WEEKLY", "runAtTime": "02:00"}), "/dayOfWeek"),
            (json!({"frequency": "MONTHLY", "runAtTime": "02:00", "dayOfMonth": 32}), "/dayOfMonth"),
        ] {
            let Invalid(errors) = schedule(&bad).check().unwrap_err();
            assert_eq!(errors.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(), [pointer], "{bad}");
        }
    }
}
