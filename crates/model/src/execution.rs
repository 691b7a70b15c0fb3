//! One line of a timer's ledger (seed 000, `executions-{domain}`): which instant, and what became of it.
//!
//! Promise 1 rests on two things that live here. The id of a record is derived from the timer, the due instant and the
//! cause, so that whoever records the same instant again meets the first record instead of making a second. And what a
//! record says is said once: [`Execution::conclude`] and [`Execution::finish`] accept a repetition of the same and
//! refuse anything else.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid, MAX_BODY_BYTES};
use crate::ids::{ExecutionId, JobId, TimerId};
use crate::time::UnixMillis;
use crate::words::words;

/// The length of the id of a request that causes executions, in characters.
pub const MAX_REQUEST_CHARS: usize = 200;
/// The length of the reason of an outcome, in characters.
pub const MAX_REASON_CHARS: usize = 500;
/// The size of the result that a record keeps, in bytes.
pub const MAX_DATA_BYTES: usize = MAX_BODY_BYTES;

words! {
    /// What became of a due instant.
    Outcome {
        /// A job was made in time.
        Fired = "fired",
        /// A job was made after its time.
        Late = "late",
        /// No job was made, by a rule that the user chose.
        Skipped = "skipped",
        /// No job was made, because nobody was there.
        Missed = "missed",
    }
}

impl Outcome {
    /// Whether a job was made.
    pub fn makes_a_job(self) -> bool {
        matches!(self, Outcome::Fired | Outcome::Late)
    }
}

/// Why there is an execution: its schedule, or a request (run-now, backfill) by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Cause {
    #[default]
    Schedule,
    Request(String),
}

impl Cause {
    /// Empty for the schedule.
    pub fn as_str(&self) -> &str {
        match self {
            Cause::Schedule => "",
            Cause::Request(id) => id,
        }
    }

    pub fn is_schedule(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl From<String> for Cause {
    fn from(id: String) -> Self {
        if id.is_empty() { Cause::Schedule } else { Cause::Request(id) }
    }
}

impl From<Cause> for String {
    fn from(cause: Cause) -> Self {
        cause.as_str().to_owned()
    }
}

impl ExecutionId {
    /// The id of the record of an instant. Instants are told apart by the millisecond, which every store keeps.
    pub fn of(timer: TimerId, due: Timestamp, cause: &Cause) -> Self {
        let due = UnixMillis::from(due).0;
        Self::derived(&[&timer.to_string(), &due.to_string(), cause.as_str()])
    }
}

/// A stored execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Execution {
    #[schema(value_type = String, format = "uuid")]
    pub timer_uuid: TimerId,
    /// The result, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,

    /// The instant, or the first of a run of instants with the same outcome.
    #[schema(value_type = String, format = "date-time")]
    pub due: Timestamp,
    /// The last instant of such a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub until: Option<Timestamp>,
    /// How many instants such a run has; one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The request that caused it; left out for the schedule.
    #[serde(default, skip_serializing_if = "Cause::is_schedule")]
    #[schema(value_type = Option<String>)]
    pub cause: Cause,
    /// When its job began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub started: Option<Timestamp>,
    /// When its job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub finished: Option<Timestamp>,
    /// Missing only while the instant waits for the end of the one before (overlap `wait`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many instants of the schedule have fired, this one included. Decides `max_executions`.
    #[serde(default)]
    pub fired_so_far: u32,
    /// The version of the timer that was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<JobId>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// Something that a record says already, and says differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionRefusal {
    #[error("execution: the outcome is recorded once, and it is {0}")]
    OutcomeRecorded(Outcome),
    #[error("execution: the result is recorded once, and it is there")]
    ResultRecorded,
    #[error("execution: there is no result without a job")]
    NoJob,
}

impl Execution {
    /// A record of one instant, before anything is known but that it was due.
    pub fn new(timer_uuid: TimerId, due: Timestamp, cause: Cause) -> Self {
        Self {
            timer_uuid,
            data: None,
            due,
            until: None,
            count: None,
            cause,
            started: None,
            finished: None,
            outcome: None,
            reason: None,
            fired_so_far: 0,
            timer_version: None,
            job_id: None,
            extra: Extra::new(),
        }
    }

    pub fn id(&self) -> ExecutionId {
        ExecutionId::of(self.timer_uuid, self.due, &self.cause)
    }

    /// The last instant this record covers.
    pub fn end(&self) -> Timestamp {
        self.until.unwrap_or(self.due)
    }

    /// Records the outcome, once. The same again changes nothing.
    pub fn conclude(&mut self, outcome: Outcome, reason: Option<String>) -> Result<(), ExecutionRefusal> {
        match self.outcome {
            None => {
                self.outcome = Some(outcome);
                self.reason = reason;
                Ok(())
            }
            Some(recorded) if recorded == outcome && self.reason == reason => Ok(()),
            Some(recorded) => Err(ExecutionRefusal::OutcomeRecorded(recorded)),
        }
    }

    /// Records the end of the job and its result, once. The same again changes nothing.
    pub fn finish(&mut self, at: Timestamp, data: String) -> Result<(), ExecutionRefusal> {
        if !self.outcome.is_some_and(Outcome::makes_a_job) {
            return Err(ExecutionRefusal::NoJob);
        }
        match self.finished {
            None => {
                self.finished = Some(at);
                self.data = Some(data);
                Ok(())
            }
            Some(_) if self.data.as_deref() == Some(&data) => Ok(()),
            Some(_) => Err(ExecutionRefusal::ResultRecorded),
        }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/cause", self.cause.as_str(), 0..=MAX_REQUEST_CHARS);
        check.optional_line("/reason", self.reason.as_deref(), 1..=MAX_REASON_CHARS);
        check.date("/due", self.due);
        if self.until.is_some_and(|until| until < self.due) {
            check.refuse("/until", "must not lie before due");
        }
        if self.count.is_some_and(|count| count == 0) {
            check.refuse("/count", "must be at least 1");
        }
        if let Some(data) = &self.data {
            check_data(&mut check, data);
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

fn check_data(check: &mut Checker, data: &str) {
    if data.len() > MAX_DATA_BYTES {
        let length = data.len();
        check.refuse("/data", format!("must have at most {MAX_DATA_BYTES} bytes; it has {length}"));
        return;
    }
    match crate::json_text::parse(data.as_bytes()) {
        Ok(value) => check.json("/data", &value),
        Err(fault) => check.refuse("/data", format!("must be JSON text: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer() -> TimerId {
        TimerId::derived(&["timer"])
    }

    fn noon() -> Timestamp {
        "2026-03-29T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn an_instant_has_one_id_per_cause() {
        let scheduled = ExecutionId::of(timer(), noon(), &Cause::Schedule);
        assert_eq!(scheduled, ExecutionId::of(timer(), noon(), &Cause::from(String::new())));
        let requested = ExecutionId::of(timer(), noon(), &Cause::Request("r1".to_owned()));
        let later = ExecutionId::of(timer(), noon() + jiff::Span::new().milliseconds(1), &Cause::Schedule);
        assert!(scheduled != requested && scheduled != later);
        // Ids are stored: this one must never change.
        assert_eq!(scheduled.to_string(), "7f3818f9-32bc-5b9c-bcca-999a3be825fb");
    }

    #[test]
    fn an_outcome_is_recorded_once() {
        let mut line = Execution::new(timer(), noon(), Cause::Schedule);
        assert_eq!(line.finish(noon(), "{}".to_owned()), Err(ExecutionRefusal::NoJob));
        line.conclude(Outcome::Fired, None).unwrap();
        line.conclude(Outcome::Fired, None).unwrap();
        let other = line.conclude(Outcome::Missed, Some("nobody was there".to_owned()));
        assert_eq!(other, Err(ExecutionRefusal::OutcomeRecorded(Outcome::Fired)));
        line.finish(noon(), "{}".to_owned()).unwrap();
        line.finish(noon(), "{}".to_owned()).unwrap();
        assert_eq!(line.finish(noon(), "[]".to_owned()), Err(ExecutionRefusal::ResultRecorded));
        assert_eq!(line.check(), Ok(()));
    }

    #[test]
    fn data_is_json_text() {
        let mut line = Execution::new(timer(), noon(), Cause::Schedule);
        line.data = Some("{\"a\": 1e400}".to_owned());
        let refused = line.check().unwrap_err().to_string();
        assert!(refused.starts_with("/data: must be JSON text: line 1, column 7"), "{refused}");
    }
}
