//! Types that domains define: what they take and leave to submissions, what is in the way of a change, and what a node
//! that has not heard of it does.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rota_engine::desk::{SubmitError, Submitted};
use rota_engine::registry::{Put, TypeError};
use rota_model::Extra;
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, TimerId};
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::job_type::{JobType, JobTypeSettings};
use rota_model::timer::{Schedule, Task, Timer, TimerStatus};
use rota_store::access::Recorder;
use rota_store::collection::JOB_TYPES;
use rota_store::hints::Hint;
use rota_store::memory::MemoryStore;
use rota_store::seam::Key;
use rota_store::timers::TimerKey;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::{Value, json};
use stage::{Running, Stage, act};
use tokio::time::sleep;

fn settings(schema: Value) -> JobTypeSettings {
    JobTypeSettings { schema: Some(schema), ..JobTypeSettings::default() }
}

fn job_type(kind: &str, settings: JobTypeSettings) -> JobType {
    settings.into_type(Domain::default(), kind).unwrap()
}

async fn put(node: &Running, kind: &str, settings: JobTypeSettings) -> Result<Put, TypeError> {
    node.desk.types().put(&Domain::default(), job_type(kind, settings), None, false).await
}

async fn submit(node: &Running, kind: &str, payload: Value) -> Result<Job, SubmitError> {
    let submitted = node.desk.submit(&Domain::default(), NewJob::new("a job", kind, payload)).await;
    submitted.map(|submitted| submitted.job().document.clone())
}

/// The place of the first fault.
async fn fault(node: &Running, kind: &str, payload: Value) -> String {
    match submit(node, kind, payload).await {
        Err(SubmitError::Invalid(invalid)) => invalid.0.first().unwrap().pointer.clone(),
        other => panic!("{other:?}"),
    }
}

fn needs(field: &str) -> Value {
    json!({"type": "object", "required": [field]})
}

#[tokio::test(start_paused = true)]
async fn a_new_type_is_taken_and_waits_for_who_runs_it() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    assert_eq!(fault(&node, "invoice", json!({})).await, "/input/type");
    assert!(put(&node, "invoice", settings(needs("number"))).await.unwrap().is_new);
    assert_eq!(fault(&node, "invoice", json!({})).await, "/input/payload", "at once, on the same node");
    let job = submit(&node, "invoice", json!({"number": 7})).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(stage.job(job.job_id).await.document.status, JobStatus::Queued);
    let seen = node.desk.types().get(&Domain::default(), "invoice").await.unwrap().unwrap();
    assert_eq!((seen.view.built_in, seen.view.run_by), (false, Vec::new()));
    let elsewhere = node.desk.submit(&"other".parse().unwrap(), NewJob::new("a", "invoice", json!({}))).await;
    assert!(matches!(elsewhere, Err(SubmitError::Invalid(_))), "types belong to a domain");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_domain_narrows_what_is_built_in_and_the_handler_keeps_its_own() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let short = json!({"properties": {"millis": {"maximum": 10}}});
    put(&node, "wait", settings(short)).await.unwrap();
    assert_eq!(fault(&node, "wait", json!({"millis": 11})).await, "/input/payload/millis");
    assert_eq!(fault(&node, "wait", json!({})).await, "/input/payload", "the handler needs its own");
    let seen = node.desk.types().get(&Domain::default(), "wait").await.unwrap().unwrap();
    assert!(!seen.view.built_in && seen.view.handler_schema.is_some());
    assert_eq!(seen.view.run_by, ["one"]);
    node.desk.types().delete(&Domain::default(), "wait", seen.version, false).await.unwrap();
    submit(&node, "wait", json!({"millis": 11})).await.unwrap();
    let again = node.desk.types().delete(&Domain::default(), "wait", None, false).await;
    assert!(matches!(again, Err(TypeError::BuiltIn)), "{again:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defaults_hold_where_a_submission_says_nothing() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let backoff = Backoff { delay_ms: 7, ..Backoff::default() };
    let says = |attempts| JobTypeSettings {
        attempts: Some(attempts),
        backoff: Some(backoff.clone()),
        timeout_ms: Some(9_000),
        ..JobTypeSettings::default()
    };
    put(&node, "elsewhere", says(2)).await.unwrap();
    let silent = submit(&node, "elsewhere", json!({})).await.unwrap();
    assert_eq!((silent.attempts, silent.timeout_ms), (2, Some(9_000)));
    assert_eq!(silent.backoff, Some(backoff.clone()));
    let keyed = NewJob { idempotency_key: Some("k".to_owned()), ..NewJob::new("a", "elsewhere", json!({})) };
    let first = node.desk.submit(&Domain::default(), keyed.clone()).await.unwrap();
    put(&node, "elsewhere", says(3)).await.unwrap();
    let again = node.desk.submit(&Domain::default(), keyed).await.unwrap();
    assert!(matches!(&again, Submitted::Again(job) if job == first.job()), "{again:?}");
    let loud = NewJob { attempts: Some(9), ..NewJob::new("a", "elsewhere", json!({})) };
    let batch = vec![loud, NewJob::new("b", "elsewhere", json!({}))];
    let mut attempts = Vec::new();
    for accepted in node.desk.submit_all(&Domain::default(), batch).await {
        attempts.push(stage.job(accepted.unwrap().job_id).await.document.attempts);
    }
    assert_eq!(attempts, [9, 3]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_would_refuse_what_waits_is_refused_and_names_it() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let is_misfit = |nth: usize| nth.is_multiple_of(26);
    let job = |nth: usize| {
        let payload = if is_misfit(nth) { json!({}) } else { json!({"number": nth}) };
        NewJob { priority: Some(u8::from(nth > 100)), ..NewJob::new("a", "elsewhere", payload) }
    };
    let accepted = node.desk.submit_all(&Domain::default(), (0..1_300).map(job).collect()).await;
    let ids = accepted.into_iter().enumerate().filter(|(nth, _)| is_misfit(*nth));
    let misfits: Vec<JobId> = ids.map(|(_, accepted)| accepted.unwrap().job_id).collect();
    let refused = put(&node, "elsewhere", settings(needs("number"))).await;
    let Err(TypeError::Misfits(found)) = refused else { panic!("{refused:?}") };
    let found = found.jobs;
    assert_eq!((found.count, found.ids.len()), (50, 20));
    assert!(found.ids.iter().all(|id| misfits.contains(id)));
    submit(&node, "elsewhere", json!({})).await.unwrap();
    let forced = job_type("elsewhere", settings(needs("number")));
    let types = node.desk.types();
    let first = types.put(&Domain::default(), forced.clone(), None, true).await.unwrap();
    assert_eq!(fault(&node, "elsewhere", json!({})).await, "/input/payload");
    let again = types.put(&Domain::default(), forced, None, false).await.unwrap();
    assert_eq!((again.is_new, again.job_type.version), (false, first.job_type.version), "nothing to write");
    let same_schema = JobTypeSettings { attempts: Some(3), ..settings(needs("number")) };
    put(&node, "elsewhere", same_schema).await.unwrap();
    node.stop().await;
}

/// Stores a timer as the recorder does.
async fn timer(stage: &Stage, kind: &str, payload: Option<Value>, status: TimerStatus) -> TimerId {
    let key = TimerKey {
        domain: Domain::default(),
        uuid: TimerId::derived(&[&format!("{kind} {payload:?} {status}")]),
    };
    let task = Task { kind: Some(kind.to_owned()), payload, ..Task::default() };
    let schedule = Schedule::new("30 2 * * *");
    let timer = Timer { task, schedule, name: None, status, section: None, extra: Extra::new() };
    Recorder::new(Arc::clone(&stage.store)).timers().create(&key, timer).await.unwrap();
    key.uuid
}

#[tokio::test(start_paused = true)]
async fn a_change_that_would_refuse_what_a_timer_makes_is_refused_and_names_it() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    timer(&stage, "elsewhere", Some(json!({"number": 1})), TimerStatus::Active).await;
    timer(&stage, "elsewhere", Some(json!({"other": 1})), TimerStatus::Completed).await;
    timer(&stage, "noop", None, TimerStatus::Active).await;
    put(&node, "elsewhere", settings(needs("number"))).await.unwrap();
    let mut misfits = vec![
        timer(&stage, "elsewhere", None, TimerStatus::Active).await,
        timer(&stage, "elsewhere", Some(json!({"other": 2})), TimerStatus::Paused).await,
    ];
    misfits.sort();
    let changed = settings(json!({"type": "object", "required": ["number"], "properties": {"other": false}}));
    let refused = put(&node, "elsewhere", changed.clone()).await;
    let Err(TypeError::Misfits(found)) = refused else { panic!("{refused:?}") };
    assert_eq!((found.jobs.count, found.timers.count, &found.timers.ids), (0, 2, &misfits));
    let stored = node.desk.types().own(&Domain::default(), "elsewhere").await.unwrap().unwrap();
    assert_eq!(stored.document.schema, Some(needs("number")), "nothing is changed");
    node.desk.types().put(&Domain::default(), job_type("elsewhere", changed), None, true).await.unwrap();
    put(&node, "nobody-runs", settings(json!({}))).await.unwrap();
    let makes = timer(&stage, "nobody-runs", None, TimerStatus::Active).await;
    let refused = node.desk.types().delete(&Domain::default(), "nobody-runs", None, false).await;
    assert!(matches!(&refused, Err(TypeError::Waiting(way)) if way.timers.ids == [makes]), "{refused:?}");
    node.desk.types().delete(&Domain::default(), "nobody-runs", None, true).await.unwrap();
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_type_of_jobs_that_nobody_runs_is_not_deleted_unseen() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let types = node.desk.types();
    put(&node, "invoice", settings(json!({}))).await.unwrap();
    let waits = submit(&node, "invoice", json!({})).await.unwrap();
    let refused = types.delete(&Domain::default(), "invoice", None, false).await;
    assert!(
        matches!(&refused, Err(TypeError::Waiting(way)) if way.jobs.ids == [waits.job_id]),
        "{refused:?}"
    );
    types.delete(&Domain::default(), "invoice", None, true).await.unwrap();
    assert_eq!(fault(&node, "invoice", json!({})).await, "/input/type");
    assert_eq!(stage.job(waits.job_id).await.document.status, JobStatus::Queued, "it waits on");
    let gone = types.delete(&Domain::default(), "invoice", None, true).await;
    assert!(matches!(gone, Err(TypeError::Missing)), "{gone:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_decided_on_another_version_changes_nothing() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let types = node.desk.types();
    let first = put(&node, "invoice", settings(json!({}))).await.unwrap().job_type.version;
    let second = job_type("invoice", settings(needs("a")));
    types.put(&Domain::default(), second, Some(first), false).await.unwrap();
    let third = job_type("invoice", settings(needs("b")));
    let late = types.put(&Domain::default(), third.clone(), Some(first), false).await;
    assert!(matches!(late, Err(TypeError::Changed)), "{late:?}");
    let late = types.delete(&Domain::default(), "invoice", Some(first), false).await;
    assert!(matches!(late, Err(TypeError::Changed)), "{late:?}");
    let nothing =
        types.put(&Domain::default(), JobType { kind: "new".to_owned(), ..third }, Some(first), false).await;
    assert!(matches!(nothing, Err(TypeError::Changed)), "{nothing:?}");
    node.stop().await;
}

/// Hints come, or are lost: another node hears of a change within seconds.
#[tokio::test(start_paused = true)]
async fn other_nodes_hear_of_a_change_with_or_without_a_hint() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let one = stage.up("one").await;
    let two = stage.up_on(Arc::new(FaultyStore::new(&truth, Arc::new(NoHints))), Stage::options("two")).await;
    submit(&two, "elsewhere", json!({})).await.unwrap();
    let forced = job_type("elsewhere", settings(needs("number")));
    one.desk.types().put(&Domain::default(), forced, None, true).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    assert_eq!(fault(&two, "elsewhere", json!({})).await, "/input/payload");
    one.stop().await;
    two.stop().await;
}

/// No hint arrives.
struct NoHints;

impl Fate for NoHints {
    fn of(&self, _: &Call<'_>) -> Lot {
        Lot::CALM
    }

    fn of_hint(&self, _: &Hint) -> Vec<Duration> {
        Vec::new()
    }
}

/// Counts reads of types, and loses the answers of writes while it is told to.
#[derive(Default)]
struct Counting {
    reads: AtomicU64,
    loses: AtomicBool,
}

impl Fate for Counting {
    fn of(&self, call: &Call<'_>) -> Lot {
        let is_type = |key: &Key| key.collection == &JOB_TYPES;
        match call {
            Call::Read(keys) if keys.iter().any(is_type) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
            Call::Write(batch)
                if batch.iter().any(|write| is_type(write.key()))
                    && self.loses.swap(false, Ordering::Relaxed) =>
            {
                return Lot { effect: Effect::Unanswered, ..Lot::CALM };
            }
            _ => {}
        }
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn submissions_do_not_ask_the_store_each_time() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let fate = Arc::new(Counting::default());
    let store = Arc::new(FaultyStore::new(&truth, Arc::clone(&fate) as Arc<dyn Fate>));
    let node = stage.up_on(store, Stage::options("one")).await;
    for _ in 0..200 {
        node.submit(act(json!({}))).await;
    }
    assert!(fate.reads.load(Ordering::Relaxed) <= 2, "{:?}", fate.reads);
    fate.loses.store(true, Ordering::Relaxed);
    put(&node, "act", settings(needs("steps"))).await.unwrap();
    assert_eq!(fault(&node, "act", json!({})).await, "/input/payload", "a lost answer is no lost change");
    node.stop().await;
}
