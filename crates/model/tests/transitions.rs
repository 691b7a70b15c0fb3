//! Every table of transitions under random events: a state that has ended is left only by the event that its table
//! names, and the numbers of a backup run add up whatever happens to its elements.

#![expect(clippy::unwrap_used, reason = "a change that is refused where it must not be fails its test")]

use std::fmt::Debug;

use proptest::prelude::*;
use rota_model::backup::element_execution::{self, ElementEvent, ElementExecution, ElementStatus, Stored};
use rota_model::backup::job::{self, BackupEvent, BackupJob, BackupStatus, Tally};
use rota_model::backup::schedule::{self, ScheduleEvent, ScheduleStatus};
use rota_model::ids::BackupJobId;
use rota_model::job::{JobEvent, JobStatus, lifecycle};
use rota_model::node::{self, NodeEvent, NodeStatus};
use rota_model::time::UnixMillis;
use rota_model::timer::{self, TimerEvent, TimerStatus};
use rota_model::transition::Table;

/// Follows random events and says which states were left, by which event.
fn moves<S, E>(table: &Table<S, E>, start: S, picks: &[usize], events: &[E]) -> Vec<(S, E, S)>
where
    S: Copy + PartialEq + Debug,
    E: Copy + PartialEq + Debug,
{
    let mut status = start;
    let mut moves = Vec::new();
    for pick in picks {
        let event = *events.get(pick % events.len()).unwrap();
        match table.next(status, event) {
            Ok(next) => {
                if next != status {
                    moves.push((status, event, next));
                }
                status = next;
            }
            Err(refused) => assert!(!table.allows(status, event), "{refused}"),
        }
    }
    moves
}

/// No row is contradicted by another.
fn assert_deterministic<S: Copy + PartialEq + Debug, E: Copy + PartialEq + Debug>(table: &Table<S, E>) {
    for (nth, (from, event, _)) in table.rows.iter().enumerate() {
        let again = table.rows.iter().skip(nth + 1).any(|(f, e, _)| f == from && e == event);
        assert!(!again, "{}: {event:?} from {from:?} stands twice", table.what);
    }
}

#[test]
fn a_table_has_one_answer() {
    assert_deterministic(&timer::TRANSITIONS);
    assert_deterministic(&schedule::TRANSITIONS);
    assert_deterministic(&job::TRANSITIONS);
    assert_deterministic(&element_execution::TRANSITIONS);
    assert_deterministic(&lifecycle::TRANSITIONS);
    assert_deterministic(&node::TRANSITIONS);
}

#[test]
fn what_is_final_is_final() {
    assert!(schedule::TRANSITIONS.is_final(ScheduleStatus::Cancelled));
    for status in [BackupStatus::Succeeded, BackupStatus::Aborted] {
        assert!(job::TRANSITIONS.is_final(status), "{status}");
    }
    for status in [ElementStatus::Completed, ElementStatus::Aborted] {
        assert!(element_execution::TRANSITIONS.is_final(status), "{status}");
    }
}

const TIMER_EVENTS: [TimerEvent; 4] =
    [TimerEvent::Pause, TimerEvent::Resume, TimerEvent::Complete, TimerEvent::Reschedule];
const SCHEDULE_EVENTS: [ScheduleEvent; 5] = [
    ScheduleEvent::Pause,
    ScheduleEvent::Resume,
    ScheduleEvent::Complete,
    ScheduleEvent::Cancel,
    ScheduleEvent::Reschedule,
];
const BACKUP_EVENTS: [BackupEvent; 6] = [
    BackupEvent::Start,
    BackupEvent::Succeed,
    BackupEvent::Fail,
    BackupEvent::EndPartly,
    BackupEvent::Abort,
    BackupEvent::Retry,
];
const ELEMENT_EVENTS: [ElementEvent; 5] = [
    ElementEvent::Start,
    ElementEvent::Complete,
    ElementEvent::Fail,
    ElementEvent::Abort,
    ElementEvent::Retry,
];
const JOB_EVENTS: [JobEvent; 8] = [
    JobEvent::Claim,
    JobEvent::Succeed,
    JobEvent::Retry,
    JobEvent::Fail,
    JobEvent::Lose,
    JobEvent::GiveUp,
    JobEvent::Cancel,
    JobEvent::Requeue,
];
const NODE_EVENTS: [NodeEvent; 4] = [NodeEvent::Fill, NodeEvent::Free, NodeEvent::Terminate, NodeEvent::Join];

proptest! {
    #[test]
    fn a_state_that_has_ended_is_left_only_by_the_event_of_its_table(
        picks in prop::collection::vec(any::<usize>(), 0..60),
    ) {
        for (from, event, _) in moves(&timer::TRANSITIONS, TimerStatus::Active, &picks, &TIMER_EVENTS) {
            prop_assert!(from != TimerStatus::Completed || event == TimerEvent::Reschedule);
        }
        for (from, event, _) in moves(&schedule::TRANSITIONS, ScheduleStatus::Scheduled, &picks, &SCHEDULE_EVENTS) {
            prop_assert!(from != ScheduleStatus::Completed || event == ScheduleEvent::Reschedule);
            prop_assert!(from != ScheduleStatus::Cancelled);
        }
        for (from, event, _) in moves(&job::TRANSITIONS, BackupStatus::Pending, &picks, &BACKUP_EVENTS) {
            prop_assert!(!from.has_ended() || event == BackupEvent::Retry);
        }
        for (from, event, _) in
            moves(&element_execution::TRANSITIONS, ElementStatus::Idle, &picks, &ELEMENT_EVENTS)
        {
            prop_assert!(!from.has_ended() || event == ElementEvent::Retry);
        }
        for (from, event, _) in moves(&lifecycle::TRANSITIONS, JobStatus::Queued, &picks, &JOB_EVENTS) {
            prop_assert!(!from.is_terminal() || event == JobEvent::Requeue);
        }
        for (from, event, _) in moves(&node::TRANSITIONS, NodeStatus::Active, &picks, &NODE_EVENTS) {
            prop_assert!(from != NodeStatus::Terminated || event == NodeEvent::Join);
        }
    }
}

/// What may happen during a run, to an element or to the whole.
#[derive(Clone, Debug)]
enum Happening {
    Start(usize),
    Complete(usize),
    Fail(usize, bool),
    Retry(usize),
    Abort,
    Recount,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => any::<usize>().prop_map(Happening::Start),
        3 => any::<usize>().prop_map(Happening::Complete),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(nth, again)| Happening::Fail(nth, again)),
        2 => any::<usize>().prop_map(Happening::Retry),
        1 => Just(Happening::Abort),
        3 => Just(Happening::Recount),
    ];
    prop::collection::vec(one, 0..80)
}

struct Run {
    job: BackupJob,
    elements: Vec<ElementExecution>,
    now: UnixMillis,
}

impl Run {
    fn new(elements: usize) -> Self {
        let job_id = BackupJobId::derived(&["run"]);
        let document = serde_json::json!({
            "jobId": job_id, "jobName": "run", "jobCreatedTime": 0, "jobUpdatedTime": 0, "totalNEs": elements,
        });
        let elements = (0..elements).map(|nth| ElementExecution::new(job_id, format!("ne-{nth}"), None));
        Self {
            job: serde_json::from_value(document).unwrap(),
            elements: elements.collect(),
            now: UnixMillis(0),
        }
    }

    fn happen(&mut self, happening: &Happening) {
        self.now = UnixMillis(self.now.0 + 1);
        let count = self.elements.len().max(1);
        match happening {
            Happening::Abort => self.abort(),
            Happening::Recount => self.recount(),
            Happening::Start(nth)
            | Happening::Complete(nth)
            | Happening::Fail(nth, _)
            | Happening::Retry(nth) => {
                let may_retry = self.job.may_retry();
                if let Some(element) = self.elements.get_mut(nth % count) {
                    touch(element, happening, may_retry, self.now);
                }
            }
        }
    }

    fn abort(&mut self) {
        if self.job.abort("local:alice", self.now).is_ok() {
            for element in &mut self.elements {
                let waits = element.status == ElementStatus::Idle;
                assert_eq!(element.abort(self.now).is_ok(), waits);
            }
        }
    }

    fn recount(&mut self) {
        let tally = Tally::of(&self.elements);
        let before = self.job.status;
        self.job.recount(&tally, self.now).unwrap();
        self.assert_adds_up(&tally);
        let left = before != self.job.status && before.has_ended();
        assert!(!left || matches!(before, BackupStatus::Failed | BackupStatus::Partial), "left {before}");
        let once = self.job.clone();
        self.job.recount(&tally, UnixMillis(self.now.0 + 1_000)).unwrap();
        assert_eq!(self.job, once, "a repeated count changes something");
    }

    fn assert_adds_up(&self, tally: &Tally) {
        let job = &self.job;
        let ended = job.succeeded_nes + job.aborted_nes + job.failed_nes;
        assert_eq!(ended + tally.unfinished(), job.total_nes);
        assert_eq!(job.total_nes as usize, self.elements.len());
        assert_eq!(job.status.has_ended(), tally.unfinished() == 0);
        assert_eq!(job.end_time.is_some(), job.status.has_ended());
        assert_eq!(job.check(), Ok(()));
    }
}

fn touch(element: &mut ElementExecution, happening: &Happening, may_retry: bool, now: UnixMillis) {
    let before = element.status;
    let epoch = element.epoch;
    let stored = Stored { path: None, content_hash: "0".repeat(64), size_bytes: 1 };
    let _refused_or_not = match happening {
        Happening::Start(_) => element.start(epoch + 1, now),
        Happening::Complete(_) => element.complete(epoch, stored, now),
        Happening::Fail(_, again) => element.fail(epoch, "no answer", *again, now),
        Happening::Retry(_) if may_retry => element.retry(),
        Happening::Retry(_) | Happening::Abort | Happening::Recount => Ok(()),
    };
    let left_its_end = before.has_ended() && element.status != before;
    assert!(!left_its_end || matches!(happening, Happening::Retry(_)), "{happening:?} led out of {before}");
    assert_eq!(element.check(), Ok(()));
}

proptest! {
    #[test]
    fn the_numbers_of_a_run_add_up_whatever_happens(elements in 0_usize..6, happenings in happenings()) {
        let mut run = Run::new(elements);
        for happening in &happenings {
            run.happen(happening);
        }
        run.recount();
        let all = |status| run.elements.iter().all(|element| element.status == status);
        match run.job.status {
            BackupStatus::Pending => prop_assert!(elements > 0 && run.job.start_time.is_none()),
            BackupStatus::Succeeded => prop_assert!(elements > 0 && all(ElementStatus::Completed)),
            BackupStatus::Failed => prop_assert!(all(ElementStatus::Failed)),
            BackupStatus::Aborted => prop_assert!(run.job.aborted_nes > 0 && run.job.aborted_by_user.is_some()),
            BackupStatus::Partial => prop_assert!(run.job.succeeded_nes > 0 && run.job.failed_nes > 0),
            BackupStatus::InProgress => prop_assert!(run.job.start_time.is_some()),
        }
    }
}

#[test]
fn a_run_over_nothing_is_no_success() {
    assert_eq!(Tally::default().status(), BackupStatus::Failed);
}

#[test]
fn elements_cannot_reopen_a_run_that_is_final() {
    let mut run = Run::new(1);
    run.job.status = BackupStatus::Aborted;
    let refused =
        run.job.recount(&Tally { idle: 1, begun: 1, ..Tally::default() }, UnixMillis(1)).unwrap_err();
    assert_eq!(refused.to_string(), "backup job: no START from ABORTED");
}
