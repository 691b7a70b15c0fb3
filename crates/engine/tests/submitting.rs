//! How jobs come in: unique ones, repeated ones, many at once, and what is refused.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rota_engine::desk::{ChangeError, SubmitError, Submitted};
use rota_model::Extra;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{JobStatus, NewJob, Scope, Unique};
use rota_model::metadata::Metadata;
use rota_model::unique_key::UniqueKey;
use rota_store::StoreError;
use rota_store::collection::JOBS;
use rota_store::jobs::JobFilter;
use rota_store::memory::MemoryStore;
use rota_store::seam::Write;
use rota_store::unique_keys::UniqueKeys;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Running, Stage, act};
use tokio::time::{Instant, sleep};

fn unique(scope: Scope, payload: serde_json::Value) -> NewJob {
    let unique = Unique { key: "the one".to_owned(), scope, for_ms: None };
    NewJob { unique: Some(unique), ..act(payload) }
}

async fn submit(node: &Running, job: NewJob) -> (bool, JobId) {
    match node.desk.submit(&Domain::default(), job).await.unwrap() {
        Submitted::New(job) => (true, job.document.job_id),
        Submitted::Twin(job) => (false, job.document.job_id),
        Submitted::Again(job) => panic!("not repeated: {job:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_twin_is_answered_with_the_job_that_is_there() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let (new, first) = submit(&node, unique(Scope::Unfinished, json!({"steps": 20}))).await;
    assert!(new);
    assert_eq!(submit(&node, unique(Scope::Unfinished, json!({}))).await, (false, first));
    let elsewhere = node.desk.submit(&"other".parse().unwrap(), unique(Scope::Queued, json!({}))).await;
    assert!(matches!(elsewhere, Ok(Submitted::New(_))), "keys belong to a domain");
    node.ended(first).await;
    let (new, second) = submit(&node, unique(Scope::Unfinished, json!({}))).await;
    assert!(new && second != first);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_scope_ends_where_it_says() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(5)));
    let waits = |scope| NewJob { run_at: later, ..unique(scope, json!({"steps": 30, "failures": 1})) };
    let mut seen = Vec::new();
    for (nth, scope) in [Scope::Queued, Scope::Running, Scope::Unfinished].into_iter().enumerate() {
        let mut job = waits(scope);
        job.unique.as_mut().unwrap().key = format!("key {nth}");
        let (_, id) = submit(&node, job.clone()).await;
        seen.push((job, id, scope));
    }
    let twins = |word: &'static str, expected: [bool; 3]| {
        let (node, seen) = (&node, &seen);
        async move {
            for ((job, id, scope), expected) in seen.iter().zip(expected) {
                let there = stage_scope(node, *id).await;
                assert_eq!(there, expected, "{word}: {scope:?} of {}", job.unique.as_ref().unwrap().key);
            }
        }
    };
    twins("waiting", [true, true, true]).await;
    sleep(Duration::from_secs(6)).await;
    twins("running", [false, true, true]).await;
    sleep(Duration::from_secs(3)).await;
    twins("between two attempts or in the second", [false, false, true]).await;
    sleep(Duration::from_secs(10)).await;
    twins("ended", [false, false, false]).await;
    node.stop().await;
}

/// Whether a job keeps its twins away now.
async fn stage_scope(node: &Running, id: JobId) -> bool {
    let job = node.desk.get(&Domain::default(), id).await.unwrap().unwrap().document;
    job.is_in_scope(rota_testkit::surroundings::BEGINNING)
}

#[tokio::test(start_paused = true)]
async fn a_key_may_be_kept_for_a_while_after_the_end() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let mut job = unique(Scope::Queued, json!({}));
    job.unique.as_mut().unwrap().for_ms = Some(60_000);
    let (_, first) = submit(&node, job.clone()).await;
    node.ended(first).await;
    assert_eq!(submit(&node, job.clone()).await, (false, first));
    sleep(Duration::from_secs(61)).await;
    assert!(submit(&node, job).await.0);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_many_at_once_one_is_made() {
    let stage = Stage::new();
    let (one, two) = (stage.up("one").await, stage.up("two").await);
    let calls = (0..40).map(|nth| {
        submit(if nth % 2 == 0 { &one } else { &two }, unique(Scope::Unfinished, json!({"steps": 5})))
    });
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|(new, _)| *new).count(), 1);
    assert_eq!(answers.iter().map(|(_, id)| id).collect::<BTreeSet<_>>().len(), 1);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requeue_asks_for_the_key() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let (_, first) = submit(&node, unique(Scope::Unfinished, json!({}))).await;
    node.ended(first).await;
    // While its key is its own, it may run again, and keeps twins away once more.
    node.desk.requeue(&domain, first, None).await.unwrap();
    assert_eq!(submit(&node, unique(Scope::Unfinished, json!({}))).await, (false, first));
    node.ended(first).await;
    let (new, second) = submit(&node, unique(Scope::Unfinished, json!({"steps": 50}))).await;
    assert!(new);
    let refused = node.desk.requeue(&domain, first, None).await;
    assert!(matches!(refused, Err(ChangeError::KeyMoved(id)) if id == second), "{refused:?}");
    assert_eq!(stage.job(first).await.document.status, JobStatus::Successful);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_gives_its_key_back() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(600)));
    let job = NewJob { run_at: later, ..unique(Scope::Unfinished, json!({})) };
    let (_, first) = submit(&node, job.clone()).await;
    node.desk.delete(&Domain::default(), first, None).await.unwrap();
    let (new, second) = submit(&node, job).await;
    assert!(new && second != first);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_that_keep_nobody_away_are_cleared_out() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let (_, first) = submit(&node, unique(Scope::Unfinished, json!({}))).await;
    node.ended(first).await;
    let keys = UniqueKeys::new(Arc::clone(&stage.store));
    assert!(keys.get(&Domain::default(), "the one").await.unwrap().is_some());
    sleep(Duration::from_secs(2 * 60 * 60)).await;
    assert!(keys.get(&Domain::default(), "the one").await.unwrap().is_none());
    node.desk.requeue(&Domain::default(), first, None).await.unwrap();
    assert!(keys.get(&Domain::default(), "the one").await.unwrap().is_some(), "a requeue wants it again");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_one_by_one_in_order() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let keyed = |payload| NewJob { idempotency_key: Some("k".to_owned()), ..act(payload) };
    let batch = vec![
        act(json!({})),
        NewJob::new("a job", "no such type", json!({})),
        keyed(json!({})),
        keyed(json!({})),
        keyed(json!({"other": 1})),
        unique(Scope::Unfinished, json!({"steps": 50})),
        unique(Scope::Unfinished, json!({})),
        NewJob { job_name: "line\nbreak".to_owned(), ..act(json!({})) },
    ];
    let answers = node.desk.submit_all(&domain, batch).await;
    let ids: Vec<_> = answers.iter().map(|answer| answer.as_ref().map(|accepted| accepted.job_id)).collect();
    assert!(ids[0].is_ok());
    assert!(matches!(ids[1], Err(SubmitError::Invalid(_))));
    assert_eq!(ids[2].as_ref().unwrap(), ids[3].as_ref().unwrap());
    assert!(matches!(ids[4], Err(SubmitError::KeyReused(_))));
    assert_eq!(ids[5].as_ref().unwrap(), ids[6].as_ref().unwrap());
    assert!(matches!(ids[7], Err(SubmitError::Invalid(_))));
    let (listed, _) = node.desk.list(&domain, &JobFilter::default(), 100, None).await.unwrap();
    assert_eq!(listed.len(), 3);
    for id in ids.into_iter().flatten() {
        assert_eq!(node.ended(id).await.status, JobStatus::Successful);
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_store_takes_is_refused_alone() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let huge = act(json!({"text": "x".repeat(rota_store::limits::MAX_BODY_BYTES)}));
    let batch = vec![act(json!({})), huge, act(json!({}))];
    let answers = node.desk.submit_all(&Domain::default(), batch).await;
    assert!(matches!(&answers[1], Err(SubmitError::Store(StoreError::Refused { .. }))), "{answers:?}");
    for answer in [&answers[0], &answers[2]] {
        assert_eq!(node.ended(answer.as_ref().unwrap().job_id).await.status, JobStatus::Successful);
    }
    node.stop().await;
}

/// Counts reads.
#[derive(Default)]
struct Reads(AtomicUsize);

impl Fate for Reads {
    fn of(&self, call: &Call<'_>) -> Lot {
        self.0.fetch_add(usize::from(matches!(call, Call::Read(_))), Ordering::Relaxed);
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_repeated_finds_what_it_made_in_one_read() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let (stage, reads) = (Stage::on(Arc::clone(truth.store())), Arc::new(Reads::default()));
    let store = FaultyStore::new(&truth, Arc::clone(&reads) as Arc<dyn Fate>);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let domain = Domain::default();
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(60_000)));
    let job = |nth: u32| NewJob { run_at: later, idempotency_key: Some(nth.to_string()), ..act(json!({})) };
    let first = node.desk.submit_all(&domain, (0..300).map(job).collect()).await;
    let ids: Vec<JobId> = first.iter().map(|answer| answer.as_ref().unwrap().job_id).collect();
    node.desk.delete(&domain, ids[7], None).await.unwrap();
    let mut again: Vec<NewJob> = (0..300).map(job).collect();
    again[5].job_name = "another".to_owned();
    let before = reads.0.load(Ordering::Relaxed);
    let second = node.desk.submit_all(&domain, again).await;
    let read = reads.0.load(Ordering::Relaxed) - before;
    assert!(read < 10, "{read} reads");
    for (nth, answer) in second.iter().enumerate() {
        match nth {
            5 => assert!(matches!(answer, Err(SubmitError::KeyReused(id)) if *id == ids[5])),
            7 => assert!(matches!(answer, Err(SubmitError::Deleted(id)) if *id == ids[7])),
            _ => assert!(matches!(answer, Ok(there) if there.job_id == ids[nth] && !there.is_new)),
        }
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_come_in_one_call_with_numbers_that_rise() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(60_000)));
    let jobs = vec![NewJob { run_at: later, ..act(json!({})) }; rota_engine::desk::MAX_BATCH];
    let answers = node.desk.submit_all(&Domain::default(), jobs).await;
    let numbers: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap().job_number).collect();
    assert_eq!(numbers.len(), 10_000);
    assert!(numbers.is_sorted_by(|a, b| a < b));
    node.stop().await;
}

/// A payload is checked by the draft that its schema names, and each fault by its path.
#[tokio::test(start_paused = true)]
async fn both_drafts_of_json_schema_are_understood() {
    use rota_engine::types::JobTypes;
    let mut types = JobTypes::default();
    let handler = || Arc::new(rota_engine::handlers::Noop);
    let tuple = json!({"type": "array", "items": [{"type": "string"}], "additionalItems": false});
    let seventh =
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"list": tuple}});
    let tuple = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false});
    let newest =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"list": tuple}});
    types.add("seventh", &seventh, handler()).unwrap();
    types.add("newest", &newest, handler()).unwrap();
    for kind in ["seventh", "newest"] {
        let check = |list: serde_json::Value| types.check(&NewJob::new("a", kind, json!({"list": list})));
        assert!(check(json!(["a"])).is_ok(), "{kind}");
        for wrong in [json!([1]), json!(["a", "b"])] {
            let refused = check(wrong.clone()).unwrap_err();
            assert!(refused.0[0].pointer.starts_with("/input/payload/list"), "{kind} {wrong}: {refused}");
        }
    }
}

/// A submission that wrote its key and got no further.
async fn half_done(stage: &Stage, name: &str) -> JobId {
    let id = JobId::derived(&["idempotency", Domain::default().as_str(), name]);
    let key = UniqueKey {
        domain: Domain::default(),
        key: "the one".to_owned(),
        job_id: id,
        requeue: None,
        metadata: Metadata::new(stage.surroundings.now(), NodeId::derived(&["gone"])),
        extra: Extra::new(),
    };
    let keys = UniqueKeys::new(Arc::clone(&stage.store));
    assert!(keys.create(key).await.unwrap().into_new().is_some());
    id
}

fn named(name: &str, payload: serde_json::Value) -> NewJob {
    NewJob { idempotency_key: Some(name.to_owned()), ..unique(Scope::Unfinished, payload) }
}

#[tokio::test(start_paused = true)]
async fn nobody_elses_job_stands_where_a_named_one_would_have() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = half_done(&stage, "first").await;
    let (new, second) = submit(&node, unique(Scope::Unfinished, json!({"steps": 5}))).await;
    assert!(new && second != id, "it stands in nobody's place");
    let twin = node.desk.submit(&Domain::default(), named("first", json!({}))).await.unwrap();
    assert!(matches!(&twin, Submitted::Twin(job) if job.document.job_id == second), "{twin:?}");
    node.ended(second).await;
    let late = node.desk.submit(&Domain::default(), named("first", json!({}))).await;
    assert!(
        matches!(late, Err(SubmitError::Deleted(gone)) if gone == id),
        "a new name is asked for: {late:?}"
    );
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_about_to_create_its_job_is_left_alone() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = half_done(&stage, "first").await;
    let domain = Domain::default();
    let first = async {
        sleep(Duration::from_millis(700)).await;
        node.desk.submit(&domain, named("first", json!({"steps": 50}))).await.unwrap()
    };
    let (second, first) = tokio::join!(node.desk.submit(&domain, named("second", json!({}))), first);
    assert!(matches!(&first, Submitted::New(job) if job.document.job_id == id), "{first:?}");
    assert!(matches!(&second, Ok(Submitted::Twin(job)) if job.document.job_id == id), "{second:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_wrote_its_key_long_ago_is_waited_for_no_longer() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    half_done(&stage, "first").await;
    sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    let (new, _) = submit(&node, unique(Scope::Unfinished, json!({}))).await;
    assert!(new && began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    node.stop().await;
}

/// Creates take their time: whoever found the key of another would be there first.
#[derive(Default)]
struct SlowCreates;

impl Fate for SlowCreates {
    fn of(&self, call: &Call<'_>) -> Lot {
        let creates = |write: &Write| matches!(write, Write::Create { key, .. } if key.collection == &JOBS);
        let is_slow = matches!(call, Call::Write(batch) if batch.iter().any(creates));
        Lot { before: Duration::from_millis(if is_slow { 100 } else { 0 }), ..Lot::CALM }
    }
}

#[tokio::test(start_paused = true)]
async fn named_twins_that_come_at_once_are_all_answered() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let store = FaultyStore::new(&truth, Arc::new(SlowCreates));
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let twins = (0..20).map(|nth| named(&nth.to_string(), json!({}))).collect();
    let answers = node.desk.submit_all(&Domain::default(), twins).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    node.stop().await;
}

/// The first of them died; of those that waited for it one goes on, and the others wait for that one.
#[tokio::test(start_paused = true)]
async fn named_twins_of_one_that_died_are_all_answered() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let store = FaultyStore::new(&truth, Arc::new(SlowCreates));
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    half_done(&stage, "dead").await;
    let twins = (0..20).map(|nth| named(&nth.to_string(), json!({"steps": 100}))).collect();
    let answers = node.desk.submit_all(&Domain::default(), twins).await;
    let made = answers.iter().map(|answer| answer.as_ref().unwrap().job_id);
    assert_eq!(
        made.collect::<BTreeSet<_>>().len(),
        1,
        "one is made, and the others are told of it: {answers:?}"
    );
    node.stop().await;
}

/// Nothing can be deleted.
#[derive(Default)]
struct NoDeletes(AtomicBool);

impl Fate for NoDeletes {
    fn of(&self, call: &Call<'_>) -> Lot {
        let deletes = matches!(call, Call::Write(batch) if batch.iter().any(|write| matches!(write, Write::Delete { .. })));
        let fails = deletes && !self.0.load(Ordering::Relaxed);
        Lot { effect: if fails { Effect::Fails } else { Effect::Done }, ..Lot::CALM }
    }
}

#[tokio::test(start_paused = true)]
async fn who_died_while_it_barred_an_id_is_in_nobodys_way() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let fate = Arc::new(NoDeletes::default());
    let store = FaultyStore::new(&truth, Arc::clone(&fate) as Arc<dyn Fate>);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let id = half_done(&stage, "first").await;
    // The bar is written, and nobody lives to lift it.
    node.desk.submit(&Domain::default(), named("second", json!({}))).await.unwrap_err();
    assert_eq!(stage.job(id).await.document.status, JobStatus::Failed);
    fate.0.store(true, Ordering::Relaxed);
    let first = node.desk.submit(&Domain::default(), named("first", json!({}))).await;
    assert!(matches!(first, Err(SubmitError::Deleted(gone)) if gone == id), "{first:?}");
    let second = node.desk.submit(&Domain::default(), named("second", json!({}))).await;
    assert!(matches!(second, Ok(Submitted::New(_))), "{second:?}");
    assert!(stage.jobs().get_any(id).await.unwrap().is_none(), "the bar is lifted");
    node.stop().await;
}

/// The first job that is created is stored, and nobody is told; a while passes until that is noticed.
#[derive(Default)]
struct FirstUnanswered(AtomicBool);

impl Fate for FirstUnanswered {
    fn of(&self, call: &Call<'_>) -> Lot {
        let creates = |write: &Write| matches!(write, Write::Create { key, .. } if key.collection == &JOBS);
        let is_first = matches!(call, Call::Write(batch) if batch.iter().any(creates))
            && !self.0.swap(true, Ordering::Relaxed);
        if !is_first {
            return Lot::CALM;
        }
        Lot { effect: Effect::Unanswered, after: Duration::from_secs(1), ..Lot::CALM }
    }
}

/// Whoever deletes a job before its submitter knows of it has deleted what was submitted: nobody makes it anew, least of all
/// under the id of another who is about to create its own.
#[tokio::test(start_paused = true)]
async fn what_was_deleted_before_it_was_answered_is_not_made_again() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let store = FaultyStore::new(&truth, Arc::new(FirstUnanswered::default()));
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(600)));
    let job = NewJob { run_at: later, ..unique(Scope::Unfinished, json!({})) };
    let domain = Domain::default();
    let meddle = async {
        sleep(Duration::from_millis(500)).await;
        let keys = UniqueKeys::new(Arc::clone(&stage.store));
        let key = keys.get(&domain, "the one").await.unwrap().unwrap();
        let made = stage.job(key.document.job_id).await;
        stage.jobs().delete(&made, stage.surroundings.now()).await.unwrap();
        let job_id = JobId::rising(stage.surroundings.now(), &[7; 10]);
        keys.save(&key, &UniqueKey { job_id, ..key.document.clone() }).await.unwrap();
    };
    let (submitted, ()) = tokio::join!(node.desk.submit(&domain, job), meddle);
    assert!(matches!(submitted, Err(SubmitError::Store(StoreError::Unknown { .. }))), "{submitted:?}");
    assert_eq!(stage.count(&JOBS).await, 0);
    node.stop().await;
}
