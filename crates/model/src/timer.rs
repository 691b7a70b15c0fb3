//! A timer of seed 000: a task, and the schedule by which it is due.
//!
//! This file keeps the user's side of promise 5 (local time means local time): every policy that decides what happens
//! around a change of clocks, a misfire or an overlap is a field with a value that is written down, so that a later
//! version with other defaults does not change timers that exist. What is next stands in [`crate::progress`], and the
//! document changes only when its user changes it; the one exception is the end of the schedule, after which nothing
//! follows it any more. A document with the seed's fields alone is read with the defaults of Debian's cron.
//!
//! Whether an expression means anything, and when, is for the calendar to say; here it is only kept within bounds.

pub mod preview;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::job::submission::MAX_KEY_CHARS;
use crate::transition::{IllegalTransition, Table};
use crate::words::words;

/// The length of a cron expression, in characters.
pub const MAX_CRON_CHARS: usize = 200;
/// The seed's mapping is `integer`: 32 bits with a sign.
pub const MAX_EXECUTIONS: u32 = i32::MAX.unsigned_abs();
/// The longest delay by which instants may be spread, in milliseconds: an hour.
pub const MAX_JITTER_MS: u32 = 60 * 60 * 1_000;

words! {
    #[derive(Default)]
    TimerStatus {
        /// Fires when it is due.
        #[default]
        Active = "ACTIVE",
        /// Its instants are recorded as skipped.
        Paused = "PAUSED",
        /// Its window is over or its number of executions reached: nothing is due any more.
        Completed = "COMPLETED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerEvent {
    Pause,
    Resume,
    /// No instant is left.
    Complete,
    /// The user gave it another schedule: the only way out of COMPLETED.
    Reschedule,
}

/// Repeating what already holds is allowed, since the answer to the first request may have been lost.
pub const TRANSITIONS: Table<TimerStatus, TimerEvent> = Table::new(
    "timer",
    &[
        (TimerStatus::Active, TimerEvent::Pause, TimerStatus::Paused),
        (TimerStatus::Active, TimerEvent::Resume, TimerStatus::Active),
        (TimerStatus::Active, TimerEvent::Complete, TimerStatus::Completed),
        (TimerStatus::Active, TimerEvent::Reschedule, TimerStatus::Active),
        (TimerStatus::Paused, TimerEvent::Pause, TimerStatus::Paused),
        (TimerStatus::Paused, TimerEvent::Resume, TimerStatus::Active),
        (TimerStatus::Paused, TimerEvent::Complete, TimerStatus::Completed),
        (TimerStatus::Paused, TimerEvent::Reschedule, TimerStatus::Paused),
        (TimerStatus::Completed, TimerEvent::Complete, TimerStatus::Completed),
        (TimerStatus::Completed, TimerEvent::Reschedule, TimerStatus::Active),
    ],
);

words! {
    /// What becomes of a local time that the clocks jump over.
    #[derive(Default)]
    DstGap {
        /// It fires at the first instant after the gap.
        #[default]
        Next = "next",
        Skip = "skip",
    }
}

words! {
    /// What becomes of a local time that the clocks show twice.
    #[derive(Default)]
    DstOverlap {
        #[default]
        First = "first",
        Second = "second",
        Both = "both",
    }
}

words! {
    /// What becomes of instants at which nobody was there to fire.
    #[derive(Default)]
    Misfire {
        /// The newest fires late, the others are missed.
        #[default]
        FireOnce = "fire_once",
        FireEach = "fire_each",
        Skip = "skip",
    }
}

words! {
    /// What becomes of an instant while the job of the one before still runs.
    #[derive(Default)]
    Overlap {
        #[default]
        Allow = "allow",
        Skip = "skip",
        Wait = "wait",
        /// The job that runs is cancelled.
        Cancel = "cancel",
    }
}

/// A stored timer; its id is its UUID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Timer {
    pub task: Task,
    pub schedule: Schedule,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, example = "nightly report")]
    pub name: Option<String>,
    #[serde(default)]
    pub status: TimerStatus,
    /// Which schedulers look after it first: a hash of its id, set by Rota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<u32>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// What is done when the timer is due. The seed leaves its shape open: whatever else stands in it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Task {
    /// The type of the job that is made.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "http")]
    pub kind: Option<String>,
    /// The payload of that job, an object; empty if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// When the timer is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Schedule {
    #[schema(min_length = 1, max_length = 200, example = "30 2 * * *")]
    pub cron: String,
    /// Nothing is due before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub start_time: Option<Timestamp>,
    /// Nothing is due at this instant or after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub stop_time: Option<Timestamp>,
    /// How many instants may fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    pub max_executions: Option<u32>,

    /// The zone whose local time the expression means.
    #[serde(default = "utc")]
    #[schema(example = "Europe/Berlin")]
    pub time_zone: String,
    #[serde(default)]
    pub dst_gap: DstGap,
    #[serde(default)]
    pub dst_overlap: DstOverlap,
    #[serde(default)]
    pub misfire: Misfire,
    #[serde(default)]
    pub overlap: Overlap,
    /// Each instant is moved later by up to this much, by the same amount whenever it is asked.
    #[serde(default)]
    #[schema(maximum = 3_600_000)]
    pub jitter_ms: u32,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

fn utc() -> String {
    "UTC".to_owned()
}

impl Timer {
    /// Changes the status by the table, or says why not.
    pub fn apply(&mut self, event: TimerEvent) -> Result<(), IllegalTransition> {
        self.status = TRANSITIONS.next(self.status, event)?;
        Ok(())
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.optional_line("/name", self.name.as_deref(), 1..=MAX_NAME_CHARS);
        check.absorb(self.task.check());
        check.absorb(self.schedule.check());
        check.extra("", &self.extra);
        check.finish()
    }
}

impl Task {
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        match &self.kind {
            Some(kind) => check.line("/task/type", kind, 1..=MAX_KEY_CHARS),
            None => check.refuse("/task/type", "must name the type of job to run, such as http"),
        }
        match &self.payload {
            None => {}
            Some(payload @ Value::Object(_)) => check.json("/task/payload", payload),
            Some(_) => check.refuse("/task/payload", "must be a JSON object, such as {\"millis\": 200}"),
        }
        check.extra("/task", &self.extra);
        check.finish()
    }
}

impl Schedule {
    /// The fields that this version knows.
    pub const FIELDS: [&str; 10] = [
        "cron",
        "start_time",
        "stop_time",
        "max_executions",
        "time_zone",
        "dst_gap",
        "dst_overlap",
        "misfire",
        "overlap",
        "jitter_ms",
    ];

    /// A schedule with nothing but its expression and the default of every policy.
    pub fn new(cron: impl Into<String>) -> Self {
        Self {
            cron: cron.into(),
            start_time: None,
            stop_time: None,
            max_executions: None,
            time_zone: utc(),
            dst_gap: DstGap::default(),
            dst_overlap: DstOverlap::default(),
            misfire: Misfire::default(),
            overlap: Overlap::default(),
            jitter_ms: 0,
            extra: Extra::new(),
        }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.lines("/schedule/cron", &self.cron, 1..=MAX_CRON_CHARS);
        check.time_zone("/schedule/time_zone", &self.time_zone);
        for (pointer, date) in
            [("/schedule/start_time", self.start_time), ("/schedule/stop_time", self.stop_time)]
        {
            if let Some(date) = date {
                check.date(pointer, date);
            }
        }
        if let (Some(start), Some(stop)) = (self.start_time, self.stop_time)
            && stop <= start
        {
            check.refuse("/schedule/stop_time", "must lie after start_time");
        }
        if let Some(most) = self.max_executions {
            check.range("/schedule/max_executions", most, 1..=MAX_EXECUTIONS);
        }
        check.range("/schedule/jitter_ms", self.jitter_ms, 0..=MAX_JITTER_MS);
        check.extra("/schedule", &self.extra);
        check.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seed_only() -> Value {
        json!({
            "task": {"anything": [1, 2]},
            "schedule": {
                "cron": "*/5 * * * *", "start_time": "2026-01-01T00:00:00Z",
                "stop_time": "2027-01-01T00:00:00Z", "max_executions": 3
            }
        })
    }

    #[test]
    fn a_document_of_the_seed_is_read_with_the_defaults_of_cron() {
        let timer: Timer = serde_json::from_value(seed_only()).unwrap();
        assert_eq!(timer.status, TimerStatus::Active);
        assert_eq!(timer.schedule.time_zone, "UTC");
        assert_eq!((timer.schedule.dst_gap, timer.schedule.dst_overlap), (DstGap::Next, DstOverlap::First));
        let written = serde_json::to_value(&timer).unwrap();
        assert_eq!(written["task"], seed_only()["task"]);
        for field in ["cron", "start_time", "stop_time", "max_executions"] {
            assert_eq!(written["schedule"][field], seed_only()["schedule"][field], "{field}");
        }
    }

    #[test]
    fn the_fields_of_a_schedule_are_those_it_is_written_with() {
        let mut schedule = Schedule::new("@daily");
        (schedule.start_time, schedule.stop_time) =
            (Some(Timestamp::UNIX_EPOCH), Some(Timestamp::UNIX_EPOCH));
        schedule.max_executions = Some(1);
        let written = serde_json::to_value(&schedule).unwrap();
        let mut names: Vec<_> = written.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = Schedule::FIELDS.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn every_fault_is_named() {
        let timer: Timer = serde_json::from_value(json!({
            "name": "",
            "task": {"payload": 3},
            "schedule": {
                "cron": "* * * * *\u{7}", "time_zone": "Europe Berlin", "max_executions": 0, "jitter_ms": 3_600_001,
                "start_time": "2026-01-01T00:00:00Z", "stop_time": "2026-01-01T00:00:00Z"
            }
        }))
        .unwrap();
        let Invalid(errors) = timer.check().unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/name",
                "/task/type",
                "/task/payload",
                "/schedule/cron",
                "/schedule/time_zone",
                "/schedule/stop_time",
                "/schedule/max_executions",
                "/schedule/jitter_ms",
            ]
        );
        let timer = Timer {
            task: Task { kind: Some("http".to_owned()), ..Task::default() },
            schedule: Schedule::new("@daily"),
            name: None,
            status: TimerStatus::Active,
            section: None,
            extra: Extra::new(),
        };
        assert_eq!(timer.check(), Ok(()));
    }
}
