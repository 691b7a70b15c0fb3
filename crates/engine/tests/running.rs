//! What becomes of a job that runs: results, retries, time limits, expiry, cancelling, progress.

mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rota_engine::desk::ChangeError;
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::job::{JobEvent, JobStatus, NewJob};
use rota_store::collection::JOBS;
use rota_store::memory::MemoryStore;
use rota_store::query::Filter;
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_after_the_backoff_until_no_attempt_is_left() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let backoff = Backoff { delay_ms: 1_000, factor: 2, max_delay_ms: 60_000, ..Backoff::default() };
    let job = NewJob { attempts: Some(3), backoff: Some(backoff), ..act(json!({"failures": 9})) };
    let before = Instant::now();
    let id = node.submit(job.clone()).await;
    let ended = node.ended(id).await;
    assert_eq!((ended.status, ended.attempt, ended.lost), (JobStatus::Failed, 3, 0));
    assert_eq!(ended.result.get("error"), Some(&json!("no luck at attempt 3")));
    let waited = before.elapsed();
    let spread = Duration::from_millis(2_250)..Duration::from_millis(3_500);
    assert!(spread.contains(&waited), "1 s and 2 s, each shortened by up to a quarter: {waited:?}");
    let events: Vec<_> = ended.history.iter().map(|entry| entry.event).collect();
    assert_eq!(events, [JobEvent::Retry, JobEvent::Retry]);

    let recovers = NewJob { input: act(json!({"failures": 2})).input, ..job };
    let ended = node.ended(node.submit(recovers).await).await;
    assert_eq!((ended.status, ended.attempt, ended.epoch), (JobStatus::Successful, 3, 3));
    assert_eq!(ended.result.get("epoch"), Some(&json!(3)));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_fail_together_do_not_all_come_back_together() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let backoff = Backoff { delay_ms: 60_000, factor: 2, max_delay_ms: 60_000, ..Backoff::default() };
    let job = NewJob { attempts: Some(2), backoff: Some(backoff), ..act(json!({"failures": 1})) };
    let answers = node.desk.submit_all(&Domain::default(), vec![job; 8]).await;
    sleep(Duration::from_secs(5)).await;
    let mut waits = BTreeSet::new();
    for answer in answers {
        let job = stage.job(answer.unwrap().job_id).await.document;
        assert_eq!((job.status, job.attempt), (JobStatus::Queued, 2));
        waits.insert(job.run_at.since(job.history[0].at));
    }
    let whole = Duration::from_secs(60);
    assert!(waits.iter().all(|wait| (whole * 3 / 4..=whole).contains(wait)), "{waits:?}");
    assert!(waits.len() > 4, "each has a wait of its own: {waits:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_say_never_again_and_when() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let ended = node.ended(node.submit(act(json!({"fatal": true}))).await).await;
    assert_eq!((ended.status, ended.attempt), (JobStatus::Failed, 1));
    assert_eq!(ended.result.get("error"), Some(&json!("it will never work")));

    let at = stage.surroundings.now().plus(Duration::from_secs(300));
    let ended = node.ended(node.submit(act(json!({"retryAt": at.0}))).await).await;
    assert_eq!((ended.status, ended.attempt), (JobStatus::Successful, 2));
    let late = ended.started_at.unwrap().since(at);
    assert!(late < Duration::from_millis(1_100), "{late:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_an_attempt_and_the_node_lives() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = node.submit(NewJob { attempts: Some(1), ..act(json!({"panic": true})) }).await;
    let ended = node.ended(id).await;
    let said = ended.result.get("error").unwrap().as_str().unwrap();
    assert!(said.starts_with("the handler panicked: on purpose"), "{said}");
    assert_eq!(node.ended(node.submit(act(json!({}))).await).await.status, JobStatus::Successful);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_is_stopped_and_ends_as_an_error() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    for stubborn in [json!({"steps": 900}), json!({"steps": 900, "stubborn": true})] {
        let job = NewJob { timeout_ms: Some(1_000), attempts: Some(2), ..act(stubborn) };
        let id = node.submit(job).await;
        let ended = node.ended(id).await;
        assert_eq!((ended.status, ended.attempt), (JobStatus::Error, 2));
        assert_eq!(ended.result.get("error"), Some(&json!("it took longer than its 1000 ms")));
        assert_eq!(ended.history.first().unwrap().event, JobEvent::Retry);
        let begun = stage.record().iter().filter(|(word, job, _)| *word == "begun" && *job == id).count();
        assert_eq!(begun, 2);
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_begins_with_in_time_expires() {
    let stage = Stage::new();
    let node = stage.up_with(rota_engine::node::NodeOptions { capacity: 1, ..Stage::options("one") }).await;
    let long = node.submit(act(json!({"steps": 100}))).await;
    let soon = Some(stage.surroundings.now().plus(Duration::from_secs(3)));
    let waits = node.submit(NewJob { expires_at: soon, ..act(json!({})) }).await;
    let foreign =
        node.submit(NewJob { expires_at: soon, ..NewJob::new("a job", "elsewhere", json!({})) }).await;
    for id in [waits, foreign] {
        let ended = node.ended(id).await;
        assert_eq!((ended.status, ended.epoch), (JobStatus::Error, 0));
        assert!(ended.result.get("error").unwrap().as_str().unwrap().contains("expired"));
    }
    assert_eq!(stage.job(long).await.document.status, JobStatus::Started, "the slot was never free");
    assert_eq!(node.ended(long).await.status, JobStatus::Successful);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_what_waits_and_stops_what_runs() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(600)));
    let waits = node.submit(NewJob { run_at: later, ..act(json!({})) }).await;
    let runs = node.submit(act(json!({"steps": 600}))).await;
    let stubborn = node.submit(act(json!({"steps": 600, "stubborn": true}))).await;
    sleep(Duration::from_secs(1)).await;
    for id in [waits, runs, stubborn] {
        let cancelled = node.desk.cancel(&domain, id, None).await.unwrap().document;
        assert_eq!(cancelled.status, JobStatus::Failed);
        assert_eq!(cancelled.result.get("cancelled"), Some(&json!("by a person")));
        let again = node.desk.cancel(&domain, id, None).await;
        assert!(matches!(again, Err(ChangeError::Refused(_))), "{again:?}");
    }
    sleep(Duration::from_secs(1)).await;
    assert!(stage.record().contains(&("stopped", runs, 1)));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.state(node.id).await.running, Some(0), "the stubborn one was dropped");
    for id in [waits, runs, stubborn] {
        let job = stage.job(id).await.document;
        assert_eq!((job.status, job.result.contains_key("cancelled")), (JobStatus::Failed, true));
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn progress_is_written_under_the_epoch_and_does_not_disturb_the_result() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = node.submit(act(json!({"steps": 50}))).await;
    sleep(Duration::from_millis(2_500)).await;
    let progress = stage.job(id).await.document.progress.unwrap();
    assert!(progress.percent > 20.0 && progress.message.unwrap().starts_with("step"));
    let ended = node.ended(id).await;
    assert_eq!((ended.status, ended.epoch), (JobStatus::Successful, 1));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requeue_runs_it_again_and_keeps_the_old_result() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let id = node.submit(act(json!({}))).await;
    node.ended(id).await;
    let queued = node.desk.requeue(&domain, id, None).await.unwrap().document;
    assert_eq!((queued.status, queued.epoch, queued.attempt), (JobStatus::Queued, 2, 1));
    let ended = node.ended(id).await;
    assert_eq!((ended.status, ended.epoch), (JobStatus::Successful, 3));
    let old = ended.history.iter().find(|entry| entry.event == JobEvent::Requeue).unwrap();
    assert_eq!(old.result.get("epoch"), Some(&json!(1)));
    let runs = node.submit(act(json!({"steps": 100}))).await;
    let refused = node.desk.requeue(&domain, runs, None).await;
    assert!(matches!(refused, Err(ChangeError::Refused(_))), "only what has ended: {refused:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_not_deleted_and_what_is_deleted_is_gone() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let runs = node.submit(act(json!({"steps": 100}))).await;
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(node.desk.delete(&domain, runs, None).await, Err(ChangeError::Running)));
    let done = node.submit(act(json!({}))).await;
    let version = {
        node.ended(done).await;
        stage.job(done).await.version
    };
    let other = stage.job(runs).await.version;
    assert!(matches!(node.desk.delete(&domain, done, Some(other)).await, Err(ChangeError::Changed)));
    node.desk.delete(&domain, done, Some(version)).await.unwrap();
    assert!(node.desk.get(&domain, done).await.unwrap().is_none());
    assert!(matches!(node.desk.delete(&domain, done, None).await, Err(ChangeError::Missing)));
    let elsewhere = node.desk.cancel(&"other".parse().unwrap(), runs, None).await;
    assert!(matches!(elsewhere, Err(ChangeError::Missing)), "another tenant's job is not there");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleting_by_filter_leaves_alone_what_runs_and_stops_at_its_limit() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let domain = Domain::default();
    let later = Some(stage.surroundings.now().plus(Duration::from_secs(6_000)));
    let jobs = vec![NewJob { run_at: later, ..act(json!({})) }; 1_200];
    let accepted = node.desk.submit_all(&domain, jobs).await;
    assert!(accepted.iter().all(Result::is_ok));
    let runs = node.submit(act(json!({"steps": 100}))).await;
    sleep(Duration::from_secs(1)).await;
    let all = rota_store::jobs::JobFilter::default();
    let some = node.desk.delete_matching(&domain, &all, Some(700)).await.unwrap();
    assert_eq!((some.deleted, some.more), (700, true));
    let rest = node.desk.delete_matching(&domain, &all, None).await.unwrap();
    assert_eq!((rest.deleted, rest.more), (500, false));
    let (left, _) = node.desk.list(&domain, &all, 10, None).await.unwrap();
    assert_eq!(left.iter().map(|job| job.job_id).collect::<Vec<_>>(), [runs]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_a_handler_says_its_job_can_be_read_and_ends() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = node.submit(act(json!({"absurd": true}))).await;
    sleep(Duration::from_secs(2)).await;
    let progress = stage.job(id).await.document.progress.unwrap();
    let said = progress.message.unwrap();
    assert_eq!(progress.percent, 0.0);
    assert!(said.starts_with("a NUL: \u{fffd}, and more: xxx") && said.len() < 5_000, "{}", said.len());
    assert_eq!(node.ended(id).await.status, JobStatus::Successful);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_is_at_most_as_large_as_a_payload() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let fits = node.ended(node.submit(act(json!({"large": 1_000_000}))).await).await;
    assert_eq!(fits.status, JobStatus::Successful);
    let job = NewJob { attempts: Some(1), ..act(json!({"large": 1_100_000})) };
    let ended = node.ended(node.submit(job).await).await;
    assert_eq!(ended.status, JobStatus::Failed);
    let said = ended.result.get("error").unwrap().as_str().unwrap();
    assert!(said.contains("its result cannot be stored") && said.contains("1048576 bytes"), "{said}");
    // However often it is requeued, it does not outgrow its store.
    for _ in 0..20 {
        node.desk.requeue(&Domain::default(), fits.job_id, None).await.unwrap();
        node.ended(fits.job_id).await;
    }
    let last = stage.job(fits.job_id).await.document;
    assert_eq!(last.history.len(), 20);
    assert!(serde_json::to_vec(&last).unwrap().len() < 3_000_000);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_knows_how_long_it_may_still_take() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let job = NewJob { timeout_ms: Some(5_000), ..act(json!({"steps": 10})) };
    let ended = node.ended(node.submit(job).await).await;
    assert_eq!(ended.result.get("leftMs"), Some(&json!(4_000)));
    node.stop().await;
}

/// Counts the jobs whose bodies somebody asks for.
#[derive(Default)]
struct Bodies(AtomicUsize);

impl Fate for Bodies {
    fn of(&self, call: &Call<'_>) -> Lot {
        let asked = match call {
            Call::Read(keys) => keys.iter().filter(|key| key.collection == &JOBS).count(),
            Call::Find(query) if query.collection == &JOBS && !query.keys_only && !query.firsts => {
                usize::from(query.filters.iter().any(|filter| matches!(filter, Filter::Is("owner", _))))
            }
            _ => 0,
        };
        self.0.fetch_add(asked, Ordering::Relaxed);
        Lot::CALM
    }
}

/// What is ours is looked at every second, and read only when it has changed.
#[tokio::test(start_paused = true)]
async fn what_runs_for_long_is_not_read_over_and_over() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let (stage, bodies) = (Stage::on(Arc::clone(truth.store())), Arc::new(Bodies::default()));
    let store = FaultyStore::new(&truth, Arc::clone(&bodies) as Arc<dyn Fate>);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(node.submit(NewJob::new("a job", "wait", json!({"millis": 60_000}))).await);
    }
    sleep(Duration::from_secs(5)).await;
    let before = bodies.0.load(Ordering::Relaxed);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(bodies.0.load(Ordering::Relaxed) - before, 0);
    node.desk.cancel(&Domain::default(), ids[0], None).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.state(node.id).await.running, Some(7), "a change is noticed");
    for id in ids {
        node.ended(id).await;
    }
    node.stop().await;
}
