//! The ledger: one record per instant, whoever writes it; read by domain, or record by record.

use std::collections::BTreeMap;

use rota_model::execution::{Cause, Execution, Outcome};
use rota_model::ids::JobId;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::access::{Recorder, Scheduler, WebService};
use rota_store::executions::{ExecutionFilter, ExecutionsOfDomain};
use rota_store::repository::{Created, Saved};
use rota_store::timers::TimerKey;

use super::{Arc, domain, instant, new, store, timer};

fn minute(minute: u32) -> jiff::Timestamp {
    instant(&format!("2026-03-01T12:{minute:02}:00Z"))
}

fn record(timer: &TimerKey, at: u32, outcome: Option<Outcome>) -> Execution {
    Execution { outcome, ..Execution::new(timer.uuid, minute(at), Cause::Schedule) }
}

async fn ledger(store: &Arc<dyn Store>) -> (TimerKey, TimerKey) {
    let executions = Recorder::new(Arc::clone(store)).executions();
    let (one, two) = (timer("red", "one"), timer("red", "two"));
    for (timer, at, outcome) in [
        (&one, 2, Some(Outcome::Late)),
        (&one, 1, Some(Outcome::Fired)),
        (&two, 3, Some(Outcome::Fired)),
        (&one, 10, None),
        (&one, 4, Some(Outcome::Fired)),
        (&timer("blue", "one"), 5, Some(Outcome::Missed)),
    ] {
        new(executions.record(&timer.domain, record(timer, at, outcome)).await.unwrap());
    }
    (one, two)
}

/// The minutes of what is listed, two to a page.
async fn minutes(executions: &ExecutionsOfDomain, filter: ExecutionFilter) -> Vec<i64> {
    let mut minutes = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = executions.list(&filter, 2, cursor).await.unwrap();
        let passed = |execution: &Execution| (execution.due.as_second() - minute(0).as_second()) / 60;
        minutes.extend(page.iter().map(passed));
        cursor = next;
        if cursor.is_none() {
            return minutes;
        }
    }
}

#[tokio::test]
async fn an_instant_is_recorded_once_and_whoever_meets_the_record_can_finish_it() {
    let store = store();
    let writer = Recorder::new(Arc::clone(&store)).executions();
    let reader = Scheduler::new(store).executions();
    let key = timer("red", "one");
    let first = record(&key, 1, Some(Outcome::Fired));
    new(writer.record(&key.domain, first.clone()).await.unwrap());
    let second = record(&key, 1, Some(Outcome::Skipped));
    assert_eq!(writer.record(&key.domain, second.clone()).await.unwrap(), Created::Exists(second));
    let met = reader.get(&key, minute(1), &Cause::Schedule).await.unwrap().unwrap();
    assert_eq!(met.document, first);

    let mut finished = met.document.clone();
    finished.finish(minute(2), "{}".to_owned()).unwrap();
    assert!(matches!(writer.save(&met, &finished).await.unwrap(), Saved::Applied(_)));
    assert_eq!(writer.save(&met, &finished).await.unwrap(), Saved::Overtaken);
    let met = reader.get(&key, minute(1), &Cause::Schedule).await.unwrap().unwrap();
    assert_eq!(met.document, finished);
}

#[tokio::test]
async fn another_cause_domain_or_instant_is_another_record() {
    let store = store();
    let writer = Recorder::new(Arc::clone(&store)).executions();
    let reader = Scheduler::new(store).executions();
    let key = timer("red", "one");
    new(writer.record(&key.domain, record(&key, 1, None)).await.unwrap());
    let requested = Cause::Request("r-1".to_owned());
    assert_eq!(reader.get(&key, minute(1), &requested).await.unwrap(), None);
    assert_eq!(reader.get(&key, minute(2), &Cause::Schedule).await.unwrap(), None);
    assert_eq!(reader.get(&timer("blue", "one"), minute(1), &Cause::Schedule).await.unwrap(), None);
    new(writer.record(&key.domain, Execution::new(key.uuid, minute(1), requested.clone())).await.unwrap());
    assert!(reader.get(&key, minute(1), &requested).await.unwrap().is_some());
}

#[tokio::test]
async fn a_deleted_record_still_takes_its_instant() {
    let store = store();
    let writer = Recorder::new(Arc::clone(&store)).executions();
    let reader = Scheduler::new(store).executions();
    let key = timer("red", "one");
    let kept = new(writer.record(&key.domain, record(&key, 1, None)).await.unwrap());
    assert!(matches!(writer.delete(&kept, UnixMillis(1)).await.unwrap(), Saved::Applied(_)));
    let again = writer.record(&key.domain, record(&key, 1, None)).await.unwrap();
    assert!(matches!(again, Created::Exists(_)), "it would fire again");
    assert_eq!(reader.get(&key, minute(1), &Cause::Schedule).await.unwrap(), None);
}

#[tokio::test]
async fn a_ledger_is_listed_newest_first_and_narrowed() {
    let store = store();
    let (one, two) = ledger(&store).await;
    let red = WebService::new(store).executions(&domain("red"));
    assert_eq!(minutes(&red, ExecutionFilter::default()).await, [10, 4, 3, 2, 1]);
    let of_one = ExecutionFilter { timer: Some(one.uuid), ..ExecutionFilter::default() };
    assert_eq!(minutes(&red, of_one.clone()).await, [10, 4, 2, 1]);
    let fired = ExecutionFilter { outcome: Some(Outcome::Fired), ..ExecutionFilter::default() };
    assert_eq!(minutes(&red, fired.clone()).await, [4, 3, 1]);
    assert_eq!(minutes(&red, ExecutionFilter { timer: Some(two.uuid), ..fired }).await, [3]);
    let (after, before) = (Some(minute(1).into()), Some(minute(4).into()));
    let between = ExecutionFilter { due_after: after, due_before: before, ..of_one };
    assert_eq!(minutes(&red, between).await, [2]);
    let id = record(&one, 4, None).id();
    assert_eq!(red.get(id).await.unwrap().unwrap().document, record(&one, 4, Some(Outcome::Fired)));
}

#[tokio::test]
async fn outcomes_are_counted_and_what_waits_is_among_them() {
    let store = store();
    let (one, two) = ledger(&store).await;
    let red = WebService::new(store).executions(&domain("red"));
    let all = BTreeMap::from([(None, 1), (Some(Outcome::Fired), 3), (Some(Outcome::Late), 1)]);
    assert_eq!(red.totals(None).await.unwrap(), all);
    let of_one = BTreeMap::from([(None, 1), (Some(Outcome::Fired), 2), (Some(Outcome::Late), 1)]);
    assert_eq!(red.totals(Some(one.uuid)).await.unwrap(), of_one);
    assert_eq!(red.totals(Some(two.uuid)).await.unwrap(), BTreeMap::from([(Some(Outcome::Fired), 1)]));
}

#[tokio::test]
async fn the_execution_of_a_job_is_found_in_its_domain() {
    let store = store();
    let key = timer("red", "one");
    let job = JobId::derived(&["job"]);
    let made = Execution { job_id: Some(job), ..record(&key, 2, Some(Outcome::Fired)) };
    let writer = Recorder::new(Arc::clone(&store)).executions();
    for execution in [record(&key, 1, Some(Outcome::Fired)), made.clone()] {
        new(writer.record(&key.domain, execution).await.unwrap());
    }
    let reader = Scheduler::new(store).executions();
    assert_eq!(reader.of_job(&key.domain, job).await.unwrap().unwrap().document, made);
    assert_eq!(reader.of_job(&domain("blue"), job).await.unwrap(), None);
    assert_eq!(reader.of_job(&key.domain, JobId::derived(&["other"])).await.unwrap(), None);
}
