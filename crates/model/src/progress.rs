//! How far a timer has come (seed 000, `progress`): up to which instant its ledger is complete, and what is next.
//!
//! The recorder writes it, the scheduler reads it and fires only the `next_due` that stands here (rule 13): two
//! versions of zone data, or a change whose hint was lost, cannot fire one local time twice. Its id is the
//! [`crate::messaging_key::Key`] of the timer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::execution::Execution;

/// A stored progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    /// The ledger is complete up to this instant, and including it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_execution: Option<Timestamp>,
    /// How many instants of the schedule have fired.
    #[serde(default)]
    pub completed_executions: u32,

    /// The instant that is due next; none when the schedule has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub next_due: Option<Timestamp>,
    /// The zone data by which `next_due` was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_data_version: Option<String>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// What is next, and by which zone data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    pub due: Option<Timestamp>,
    pub zone_data_version: String,
}

impl Progress {
    /// Moves forward behind a recorded execution. Says whether anything changed: a record that is already behind, or
    /// one that a request caused, moves nothing. The number fired is taken from the record, never counted up, so that
    /// a repetition is harmless.
    pub fn advance(&mut self, execution: &Execution, next: Next) -> bool {
        let behind = self.last_execution.is_some_and(|last| execution.end() <= last);
        if behind || !execution.cause.is_schedule() {
            return false;
        }
        self.last_execution = Some(execution.end());
        self.completed_executions = execution.fired_so_far;
        self.next_due = next.due;
        self.zone_data_version = Some(next.zone_data_version);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Cause;
    use crate::ids::TimerId;

    fn at(minute: i8) -> Timestamp {
        format!("2026-01-01T00:{minute:02}:00Z").parse().unwrap()
    }

    fn next(minute: i8) -> Next {
        Next { due: Some(at(minute)), zone_data_version: "2026a".to_owned() }
    }

    #[test]
    fn a_record_moves_progress_once_and_a_request_never() {
        let timer = TimerId::derived(&["t"]);
        let first = Execution { fired_so_far: 1, ..Execution::new(timer, at(1), Cause::Schedule) };
        let mut progress = Progress::default();
        assert!(progress.advance(&first, next(2)));
        let moved = progress.clone();
        assert!(!progress.advance(&first, next(2)));
        let requested = Execution::new(timer, at(9), Cause::Request("r".to_owned()));
        assert!(!progress.advance(&requested, next(10)));
        assert_eq!(progress, moved);
        assert_eq!((progress.completed_executions, progress.next_due), (1, Some(at(2))));
    }

    #[test]
    fn a_run_of_instants_is_passed_as_a_whole() {
        let mut paused = Execution::new(TimerId::derived(&["t"]), at(1), Cause::Schedule);
        paused.until = Some(at(20));
        paused.count = Some(20);
        let mut progress = Progress::default();
        progress.advance(&paused, next(21));
        assert_eq!(progress.last_execution, Some(at(20)));
    }
}
