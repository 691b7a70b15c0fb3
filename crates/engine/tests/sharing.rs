//! Sharing fairly: who is next when a slot frees.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rota_engine::node::NodeOptions;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use rota_store::domains::Domains;
use serde_json::json;
use stage::{Running, Stage, act};
use tokio::time::sleep;

fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

/// A tenth of a second of work.
fn work() -> NewJob {
    act(json!({"steps": 1}))
}

async fn submit(node: &Running, domain: &Domain, jobs: Vec<NewJob>) -> Vec<JobId> {
    let answers = node.desk.submit_all(domain, jobs).await;
    answers.into_iter().map(|answer| answer.unwrap().job_id).collect()
}

async fn one_slot(stage: &Stage) -> Running {
    stage.up_with(NodeOptions { capacity: 1, ..Stage::options("one") }).await
}

/// The jobs in the order in which their handlers began.
fn begun(stage: &Stage) -> Vec<JobId> {
    stage.record().into_iter().filter(|(word, ..)| *word == "begun").map(|(_, id, _)| id).collect()
}

async fn until_begun(stage: &Stage, count: usize) -> Vec<JobId> {
    for _ in 0..5_000 {
        if begun(stage).len() >= count {
            return begun(stage);
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("only {} of {count} are begun", begun(stage).len())
}

/// How many of each domain are among the jobs.
async fn by_domain(stage: &Stage, jobs: &[JobId]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for id in jobs {
        *counts.entry(stage.job(*id).await.document.domain.to_string()).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_single_job_is_next_whatever_waits_in_another_domain() {
    let stage = Stage::new();
    let node = one_slot(&stage).await;
    submit(&node, &domain("red"), vec![work(); 1_000]).await;
    for (round, name) in ["blue", "aquamarine", "violet", "blue"].into_iter().enumerate() {
        let before = until_begun(&stage, 10 * (round + 1)).await.len();
        let single = submit(&node, &domain(name), vec![work()]).await;
        let begun = until_begun(&stage, before + 3).await;
        let place = begun.iter().position(|id| *id == single[0]).map(|place| place - before);
        assert!(place.is_some_and(|place| place <= 1), "{name} is begun as number {place:?} from then on");
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn domains_have_their_shares_by_weight() {
    let stage = Stage::new();
    let domains = Domains::new(Arc::clone(&stage.store));
    for (name, weight) in [("red", None), ("blue", Some(3)), ("green", Some(2))] {
        let created = stage.surroundings.now().to_date();
        let settings = DomainSettings { weight, ..DomainSettings::default() };
        let document = DomainDocument::new(domain(name), created, settings);
        domains.create(document).await.unwrap();
    }
    let node = stage.up_with(NodeOptions { capacity: 4, ..Stage::options("one") }).await;
    for name in ["red", "blue", "green"] {
        submit(&node, &domain(name), vec![work(); 400]).await;
    }
    let begun = until_begun(&stage, 300).await;
    let counts = by_domain(&stage, &begun[..300]).await;
    for (name, expected) in [("red", 50_usize), ("blue", 150), ("green", 100)] {
        assert!(counts[name].abs_diff(expected) <= 10, "{counts:?}");
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn within_a_domain_types_take_turns_and_of_a_type_the_most_urgent_come_first() {
    let stage = Stage::new();
    let node = one_slot(&stage).await;
    let red = domain("red");
    let first = submit(&node, &red, vec![work()]).await[0];
    until_begun(&stage, 1).await;
    submit(&node, &red, vec![work(); 50]).await;
    let urgent = submit(&node, &red, vec![NewJob { priority: Some(9), ..work() }; 3]).await;
    let other = submit(&node, &red, vec![NewJob::new("a wait", "wait", json!({"millis": 10}))]).await[0];
    let begun = until_begun(&stage, 6).await;
    assert_eq!(begun[0], first);
    let places: Vec<_> =
        urgent.iter().map(|id| begun.iter().position(|begun| begun == id).unwrap()).collect();
    assert!(places.iter().all(|place| *place <= 4), "the urgent are begun as {places:?}");
    let waited = stage.job(other).await.document;
    let sixth = stage.job(begun[5]).await.document;
    assert!(waited.started_at.is_some_and(|at| at < sixth.started_at.unwrap()), "the other type had no turn");
    node.stop().await;
}

/// What nobody runs here, and what waits for its time, is in nobody's way.
#[tokio::test(start_paused = true)]
async fn what_cannot_run_holds_nobody_up() {
    let stage = Stage::new();
    let node = one_slot(&stage).await;
    submit(&node, &domain("red"), vec![NewJob::new("not here", "elsewhere", json!({})); 300]).await;
    let later = stage.surroundings.now().plus(Duration::from_millis(2_500));
    let timed = submit(&node, &domain("red"), vec![NewJob { run_at: Some(later), ..work() }]).await[0];
    sleep(Duration::from_secs(2)).await;
    let submitted = stage.surroundings.now();
    let id = node.submit(work()).await;
    until_begun(&stage, 1).await;
    let job = stage.job(id).await.document;
    assert!(job.started_at.unwrap().since(submitted) < Duration::from_millis(5), "{job:?}");
    assert_eq!(until_begun(&stage, 2).await, [id, timed]);
    let delay = stage.job(timed).await.document.started_at.unwrap().since(later);
    assert!(delay < Duration::from_millis(50), "begun {delay:?} after its time");
    node.stop().await;
}

/// A job that waits for its time is not forgotten for one that was due before it.
#[tokio::test(start_paused = true)]
async fn who_waits_behind_another_of_its_lane_begins_in_time() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let later = stage.surroundings.now().plus(Duration::from_millis(600));
    let timed = submit(&node, &domain("red"), vec![NewJob { run_at: Some(later), ..work() }]).await[0];
    sleep(Duration::from_millis(100)).await;
    let first = submit(&node, &domain("red"), vec![work()]).await[0];
    assert_eq!(until_begun(&stage, 2).await, [first, timed]);
    let delay = stage.job(timed).await.document.started_at.unwrap().since(later);
    assert!(delay < Duration::from_millis(50), "begun {delay:?} after its time");
    node.stop().await;
}

/// Older versions stored jobs without a lane.
#[tokio::test(start_paused = true)]
async fn jobs_without_a_lane_have_their_turn_too() {
    let stage = Stage::new();
    let node = one_slot(&stage).await;
    let red = domain("red");
    let made = submit(&node, &red, vec![NewJob { run_at: Some(far(&stage)), ..work() }; 2]).await;
    submit(&node, &red, vec![work(); 100]).await;
    for (id, lane) in made.iter().zip([None, Some("no lane at all".to_owned())]) {
        let job = stage.job(*id).await;
        let old = Job {
            lane,
            run_at: stage.surroundings.now(),
            job_id: JobId::derived(&[&id.to_string()]),
            ..job.document
        };
        stage.jobs().create(old).await.unwrap();
    }
    let place = |begun: &[JobId], id: &JobId| {
        begun.iter().position(|begun| *begun == JobId::derived(&[&id.to_string()]))
    };
    let begun = until_begun(&stage, 40).await;
    for id in &made {
        assert!(place(&begun, id).is_some(), "not among the first forty");
    }
    node.stop().await;
}

fn far(stage: &Stage) -> rota_model::time::UnixMillis {
    stage.surroundings.now().plus(Duration::from_secs(1_000_000))
}

/// More lanes than one claim asks.
#[tokio::test(start_paused = true)]
async fn a_job_in_each_of_many_lanes_is_run() {
    let stage = Stage::new();
    let node = stage.up_with(NodeOptions { capacity: 512, ..Stage::options("one") }).await;
    let due = stage.surroundings.now().plus(Duration::from_secs(10));
    let quick = |priority| NewJob { priority: Some(priority), run_at: Some(due), ..act(json!({})) };
    for nth in 0..30 {
        submit(&node, &domain(&format!("d{nth}")), (0..10).map(quick).collect()).await;
    }
    until_begun(&stage, 300).await;
    let took = stage.surroundings.now().since(due);
    assert!(took < Duration::from_millis(500), "{took:?}");
    node.stop().await;
}
