//! Jobs that are claimed before there is a slot for them.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rota_engine::node::NodeOptions;
use rota_model::domain::Domain;
use rota_model::job::{Job, JobEvent, JobStatus, NewJob};
use rota_store::jobs::JobFilter;
use rota_store::memory::MemoryStore;
use rota_store::seam::Write;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Running, Stage, act};
use tokio::time::sleep;

/// A store that takes its time.
struct Slow;

impl Fate for Slow {
    fn of(&self, _: &Call<'_>) -> Lot {
        Lot { before: Duration::from_millis(2), after: Duration::from_millis(2), ..Lot::CALM }
    }
}

/// One that does not take everything, and refuses what came together with it too.
struct Choosy;

impl Fate for Choosy {
    fn of(&self, call: &Call<'_>) -> Lot {
        let refuses = |write: &Write| match write {
            Write::Change { fields, .. } => fields.iter().any(|(_, value)| value.get("large").is_some()),
            _ => false,
        };
        match call {
            Call::Write(batch) if batch.iter().any(refuses) => {
                Lot { effect: Effect::Refused, ..Slow.of(call) }
            }
            _ => Slow.of(call),
        }
    }
}

async fn count(node: &Running, status: JobStatus) -> usize {
    let filter = JobFilter { status: Some(status), ..JobFilter::default() };
    node.desk.list(&Domain::default(), &filter, 1_000, None).await.unwrap().0.len()
}

#[tokio::test(start_paused = true)]
async fn what_was_claimed_ahead_and_finds_no_slot_is_given_back() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let options = NodeOptions { capacity: 2, ..Stage::options("one") };
    let node = stage.up_on(Arc::new(FaultyStore::new(&truth, Arc::new(Slow))), options).await;
    let due = stage.surroundings.now().plus(Duration::from_secs(2));
    let quick = NewJob { run_at: Some(due), priority: Some(9), ..act(json!({})) };
    let slow = NewJob { priority: Some(1), ..act(json!({"steps": 40})) };
    let slow = NewJob { run_at: Some(due), ..slow };
    let jobs = [vec![quick; 200], vec![slow; 20]].concat();
    node.desk.submit_all(&Domain::default(), jobs).await;
    while count(&node, JobStatus::Successful).await < 200 {
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(500)).await;
    assert_eq!(count(&node, JobStatus::Started).await, 2, "no more than there are slots");
    let filter = JobFilter { status: Some(JobStatus::Queued), ..JobFilter::default() };
    let (waiting, _) = node.desk.list(&Domain::default(), &filter, 1_000, None).await.unwrap();
    assert_eq!(waiting.len(), 18);
    let given_back: Vec<_> = waiting.iter().filter(|job| job.epoch > 0).collect();
    assert!(!given_back.is_empty(), "something was claimed ahead");
    let begun: BTreeSet<_> = stage.record().into_iter().map(|(_, id, _)| id).collect();
    for job in given_back {
        assert!(!begun.contains(&job.job_id));
        assert_eq!((job.attempt, job.lost, job.history[0].event), (1, 0, JobEvent::Release));
    }
    while count(&node, JobStatus::Successful).await < 220 {
        sleep(Duration::from_millis(500)).await;
        assert!(count(&node, JobStatus::Started).await <= 3);
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_no_store_takes_costs_nobody_else_anything() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let node = stage.up_on(Arc::new(FaultyStore::new(&truth, Arc::new(Choosy))), Stage::options("one")).await;
    let due = stage.surroundings.now().plus(Duration::from_secs(1));
    let job = |payload| NewJob { run_at: Some(due), ..act(payload) };
    let jobs = (0..8).map(|nth| job(if nth == 3 { json!({"large": 5}) } else { json!({}) }));
    let submitted = node.desk.submit_all(&Domain::default(), jobs.collect()).await;
    let mut ended = Vec::new();
    for job in submitted {
        ended.push(node.ended(job.unwrap().job_id).await);
    }
    let mut refused = ended.iter().filter(|job| job.status != JobStatus::Successful);
    let one = refused.next().unwrap();
    assert_eq!((one.status, refused.next()), (JobStatus::Failed, None));
    assert!(one.result["error"].as_str().unwrap().contains("its result cannot be stored"), "{one:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_claimed_ahead_and_given_back_expires_all_the_same() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let options = NodeOptions { capacity: 2, ..Stage::options("one") };
    let node = stage.up_on(Arc::new(FaultyStore::new(&truth, Arc::new(Slow))), options).await;
    let due = stage.surroundings.now().plus(Duration::from_secs(2));
    let quick = NewJob { run_at: Some(due), priority: Some(9), ..act(json!({})) };
    let slow = NewJob {
        priority: Some(1),
        expires_at: Some(due.plus(Duration::from_secs(6))),
        ..act(json!({"steps": 100}))
    };
    let slow = NewJob { run_at: Some(due), ..slow };
    let jobs = [vec![quick; 200], vec![slow; 20]].concat();
    let answers = node.desk.submit_all(&Domain::default(), jobs).await;
    let mut ended = Vec::new();
    for answer in answers.into_iter().skip(200) {
        ended.push(node.ended(answer.unwrap().job_id).await);
    }
    let begun: BTreeSet<_> = stage.record().into_iter().map(|(_, id, _)| id).collect();
    let expired = |job: &&Job| job.status == JobStatus::Error;
    assert!(ended.iter().any(|job| job.epoch > 0 && job.status == JobStatus::Error), "one was given back");
    assert_eq!(ended.iter().filter(expired).count(), 18, "two had slots");
    assert!(ended.iter().filter(expired).all(|job| !begun.contains(&job.job_id)));
    node.stop().await;
}
