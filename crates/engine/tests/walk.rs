//! Jobs from submission to result, on the in-memory store, with time that the test moves.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::desk::{SubmitError, Submitted};
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::node::{Node, NodeOptions};
use rota_engine::surroundings::Surroundings;
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::{Holder, Job, JobEvent, JobStatus, NewJob};
use rota_model::node::{NodeRole, NodeStatus};
use rota_store::jobs::{Jobs, Share};
use rota_store::memory::MemoryStore;
use rota_store::nodes::Nodes;
use rota_store::repository::Saved;
use rota_store::{Store, Versioned, settings};
use rota_testkit::surroundings::surroundings;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

struct Stage {
    store: Arc<dyn Store>,
    surroundings: Surroundings,
}

fn share(kind: &str, limit: usize) -> Share {
    Share { lane: Some(format!("default|5|{kind}")), types: vec![kind.to_owned()], limit }
}

impl Stage {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), surroundings: surroundings() }
    }

    async fn node(&self, name: &str, capacity: u32) -> Node {
        let settings =
            settings::open(Arc::clone(&self.store), self.surroundings.now().to_date()).await.unwrap();
        let options = NodeOptions {
            id: NodeId::derived(&[name]),
            name: name.to_owned(),
            version: "test".to_owned(),
            capacity,
            roles: vec![NodeRole::Web, NodeRole::Processor],
            controllable: true,
            grace: Duration::from_millis(300),
            registry: true,
        };
        let mut types = JobTypes::built_in().unwrap();
        types.add("panic", &json!({}), Arc::new(Panics)).unwrap();
        let types = Arc::new(types);
        Node::join(Arc::clone(&self.store), &settings, options, types, self.surroundings.clone())
            .await
            .unwrap()
    }

    fn jobs(&self) -> Jobs {
        Jobs::new(Arc::clone(&self.store))
    }

    /// Claims like a node that then dies.
    async fn claim_and_die(&self) -> Vec<Versioned<Job>> {
        let holder =
            Holder { node: NodeId::derived(&["dead"]), incarnation: Incarnation::derived(&["dead"]) };
        let token = ClaimToken::derived(&["dead"]);
        let from = ["wait", "noop"].map(|kind| share(kind, 10));
        self.jobs().claim_due(self.surroundings.now(), holder, &from, None, token, 10).await.unwrap()
    }
}

struct Panics;

#[async_trait]
impl Handler for Panics {
    async fn run(&self, _: Context) -> Result<Map<String, Value>, HandlerError> {
        panic!("on purpose")
    }
}

fn wait(millis: u64) -> NewJob {
    NewJob::new("a job", "wait", json!({"millis": millis}))
}

async fn submit(node: &Node, job: NewJob) -> JobId {
    node.desk.submit(&Domain::default(), job).await.unwrap().job().document.job_id
}

/// Runs a node and returns the job once it has ended.
async fn ended(node: Node, id: JobId) -> (Job, CancellationToken, tokio::task::JoinHandle<()>) {
    let (desk, stop) = (Arc::clone(&node.desk), CancellationToken::new());
    let running = tokio::spawn(node.run(stop.clone()));
    let job = desk.wait(&Domain::default(), id, Duration::from_secs(60)).await.unwrap().unwrap();
    (job.document, stop, running)
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_result() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(5_000)).await;
    let (job, stop, running) = ended(node, id).await;
    assert_eq!(job.status, JobStatus::Successful);
    assert_eq!(job.result.get("waitedMillis"), Some(&json!(5_000)));
    assert_eq!((job.epoch, job.attempt, job.lost), (1, 1, 0));
    assert_eq!(job.section, u32::try_from(job.job_number % 64).unwrap());
    let took = job.finished_at.unwrap().since(job.started_at.unwrap());
    assert!(took >= Duration::from_secs(5), "{took:?}");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_for_its_run_at_and_urgent_ones_go_first() {
    let stage = Stage::new();
    let node = stage.node("one", 1).await;
    let later = stage.surroundings.now().plus(Duration::from_secs(90));
    let timed = submit(&node, NewJob { run_at: Some(later), priority: Some(9), ..wait(0) }).await;
    let calm = submit(&node, NewJob { priority: Some(1), ..wait(1_000) }).await;
    let urgent = submit(&node, NewJob { priority: Some(8), ..wait(1_000) }).await;
    let desk = Arc::clone(&node.desk);
    let (calm, stop, running) = ended(node, calm).await;
    let urgent = desk.get(&Domain::default(), urgent).await.unwrap().unwrap().document;
    assert!(urgent.started_at < calm.started_at, "one slot: the urgent one had it first");
    assert_eq!(
        desk.get(&Domain::default(), timed).await.unwrap().unwrap().document.status,
        JobStatus::Queued
    );
    tokio::time::sleep(Duration::from_secs(91)).await;
    let timed = desk.wait(&Domain::default(), timed, Duration::from_secs(9)).await.unwrap().unwrap().document;
    assert_eq!(timed.status, JobStatus::Successful);
    assert!(timed.started_at.unwrap() >= later);
    assert!(timed.started_at.unwrap().since(later) < Duration::from_millis(100), "it started on time");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dead_nodes_job_runs_again_and_costs_no_attempt() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(10)).await;
    drop(node);
    let claimed = stage.claim_and_die().await;
    assert_eq!(claimed.first().unwrap().document.job_id, id);

    let (job, ..) = ended(stage.node("two", 4).await, id).await;
    assert_eq!(job.status, JobStatus::Successful);
    assert_eq!((job.epoch, job.attempt, job.lost), (2, 1, 1));
    let events: Vec<_> = job.history.iter().map(|entry| (entry.event, entry.epoch)).collect();
    assert_eq!(events, [(JobEvent::Lose, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_refused() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(10)).await;
    let zombie = stage.claim_and_die().await.remove(0);
    let (job, ..) = ended(node, id).await;
    assert_eq!((job.status, job.epoch), (JobStatus::Successful, 2));

    let now = stage.surroundings.now();
    let mut current = stage.jobs().get_any(id).await.unwrap().unwrap().document;
    let refused =
        current.succeed(zombie.document.epoch, Map::new(), now, NodeId::derived(&["dead"])).unwrap_err();
    assert_eq!(refused.to_string(), "epoch 1 is over: the job is SUCCESSFUL at epoch 2");
    // And what the zombie computed from its own copy finds another version.
    let mut late = zombie.document.clone();
    late.succeed(1, Map::new(), now, NodeId::derived(&["dead"])).unwrap();
    assert_eq!(stage.jobs().save(&zombie, &late).await.unwrap(), Saved::Overtaken);
    assert_eq!(stage.jobs().get_any(id).await.unwrap().unwrap().document, job);
}

/// A node that was taken for dead while its handler ran: its answer changes nothing.
#[tokio::test(start_paused = true)]
async fn a_handler_that_outlived_its_claim_is_refused() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(3_000)).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(node.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let held = stage.jobs().get_any(id).await.unwrap().unwrap();
    assert_eq!((held.document.status, held.document.epoch), (JobStatus::Started, 1));
    let mut lost = held.document.clone();
    lost.lose(1, 0.0, stage.surroundings.now(), NodeId::derived(&["two"])).unwrap();
    // Nobody but the other node may take it meanwhile.
    lost.run_at = stage.surroundings.now().plus(Duration::from_secs(600));
    stage.jobs().save(&held, &lost).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = stage.jobs().get_any(id).await.unwrap().unwrap().document;
    assert_eq!((after.status, after.result.len(), after.lost), (JobStatus::Queued, 0, 1));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_given_back() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(10)).await;
    let state = Nodes::new(Arc::clone(&stage.store)).get(NodeId::derived(&["one"])).await.unwrap().unwrap();
    let me = Holder { node: state.document.id, incarnation: state.document.incarnation.unwrap() };
    let from = [share("wait", 1)];
    let token = ClaimToken::derived(&["lost"]);
    let lost = stage.jobs().claim_due(stage.surroundings.now(), me, &from, None, token, 1).await.unwrap();
    assert_eq!(lost.len(), 1);

    let (job, ..) = ended(node, id).await;
    assert_eq!((job.status, job.epoch, job.lost), (JobStatus::Successful, 2, 0));
    assert_eq!(job.history.first().unwrap().event, JobEvent::Release);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_no_beginning() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let expires_at = Some(stage.surroundings.now().plus(Duration::from_secs(1)));
    let id = submit(&node, NewJob { expires_at, ..wait(10) }).await;
    let state = Nodes::new(Arc::clone(&stage.store)).get(NodeId::derived(&["one"])).await.unwrap().unwrap();
    let me = Holder { node: state.document.id, incarnation: state.document.incarnation.unwrap() };
    let token = ClaimToken::derived(&["lost"]);
    let now = stage.surroundings.now();
    assert_eq!(stage.jobs().claim_due(now, me, &[share("wait", 1)], None, token, 1).await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;

    let (job, ..) = ended(node, id).await;
    assert_eq!((job.status, job.attempt, job.lost), (JobStatus::Error, 1, 0));
}

/// A payload that JSON Schema takes for an integer is one.
#[tokio::test(start_paused = true)]
async fn a_whole_number_may_be_spelled_as_a_float() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let zero = submit(&node, NewJob::new("a job", "wait", json!({"millis": -0.0}))).await;
    let id = submit(&node, NewJob::new("a job", "wait", json!({"millis": 1e2}))).await;
    let (job, ..) = ended(node, id).await;
    assert_eq!(stage.jobs().get_any(zero).await.unwrap().unwrap().document.status, JobStatus::Successful);
    assert_eq!((job.status, job.result.get("waitedMillis")), (JobStatus::Successful, Some(&json!(100))));
}

/// One document that cannot be understood ends as ERROR and holds nobody up.
#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_decoded_is_set_aside() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let bad = json!({"jobName": "", "jobNumber": 1, "domain": "default", "status": "QUEUED", "priority": 9, "runAt": 0,
        "input": {"type": "noop", "payload": "no object"}, "result": {}, "metadata": {"createdAt": 0}});
    let key = rota_store::seam::Key::new(&rota_store::collection::JOBS, "bad");
    let body = bad.as_object().unwrap().clone();
    stage.store.write(vec![rota_store::seam::Write::Create { key: key.clone(), body }]).await.unwrap();
    // And one that a node had in hand when it died.
    let mut held = bad.as_object().unwrap().clone();
    held.extend([
        ("status".to_owned(), json!("STARTED")),
        ("owner".to_owned(), json!(Incarnation::derived(&["dead"]))),
    ]);
    let held_key = rota_store::seam::Key::new(&rota_store::collection::JOBS, "held");
    stage
        .store
        .write(vec![rota_store::seam::Write::Create { key: held_key.clone(), body: held }])
        .await
        .unwrap();
    let id = submit(&node, wait(1)).await;
    let (job, ..) = ended(node, id).await;
    assert_eq!(job.status, JobStatus::Successful);
    tokio::time::sleep(Duration::from_secs(3)).await;
    for key in [key, held_key] {
        let set_aside =
            Value::Object(stage.store.read(vec![key.clone()]).await.unwrap().remove(0).unwrap().body);
        assert_eq!((&set_aside["status"], set_aside.get("owner")), (&json!("ERROR"), None));
        let error = set_aside["result"]["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("read jobs/{}:", key.id)), "{set_aside}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_with_its_message() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, NewJob::new("bad", "panic", json!({}))).await;
    let (job, ..) = ended(node, id).await;
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.result.get("error"), Some(&json!("the handler panicked: on purpose")));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_gives_back_what_it_runs() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let id = submit(&node, wait(3_600_000)).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(node.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stage.jobs().get_any(id).await.unwrap().unwrap().document.status, JobStatus::Started);
    stop.cancel();
    running.await.unwrap();
    let job = stage.jobs().get_any(id).await.unwrap().unwrap().document;
    assert_eq!((job.status, job.lost, job.owner), (JobStatus::Queued, 0, None));
    let state = Nodes::new(Arc::clone(&stage.store)).get(NodeId::derived(&["one"])).await.unwrap().unwrap();
    assert_eq!(state.document.status, NodeStatus::Terminated);
}

#[tokio::test(start_paused = true)]
async fn a_node_joins_under_a_new_incarnation_and_beats() {
    let stage = Stage::new();
    let nodes = Nodes::new(Arc::clone(&stage.store));
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let node = stage.node("one", 4).await;
        let stop = CancellationToken::new();
        let running = tokio::spawn(node.run(stop.clone()));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = nodes.get(NodeId::derived(&["one"])).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = nodes.get(NodeId::derived(&["one"])).await.unwrap().unwrap();
        assert!(after.document.last_seen_at.since(before.document.last_seen_at) >= Duration::from_secs(4));
        assert_eq!((after.document.status, after.document.sections.len()), (NodeStatus::Active, 64));
        seen.insert(after.document.incarnation.unwrap());
        stop.cancel();
        running.await.unwrap();
    }
    assert_eq!(seen.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_gives_the_same_job_and_another_submission_under_it_is_refused() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let (desk, domain) = (&node.desk, Domain::default());
    let keyed = |millis| NewJob { idempotency_key: Some("order 17".to_owned()), ..wait(millis) };
    let Submitted::New(first) = desk.submit(&domain, keyed(1)).await.unwrap() else { panic!("new") };
    let Submitted::Again(again) = desk.submit(&domain, keyed(1)).await.unwrap() else { panic!("again") };
    assert_eq!(first.document.job_id, again.document.job_id);
    let other = desk.submit(&domain, keyed(2)).await;
    assert!(matches!(other, Err(SubmitError::KeyReused(id)) if id == first.document.job_id));
    let elsewhere = desk.submit(&"other".parse().unwrap(), keyed(2)).await.unwrap();
    assert!(matches!(elsewhere, Submitted::New(job) if job.document.job_id != first.document.job_id));
}

#[tokio::test(start_paused = true)]
async fn bad_submissions_are_refused_with_the_field_and_nothing_is_stored() {
    let stage = Stage::new();
    let node = stage.node("one", 4).await;
    let cases = [
        (NewJob::new("a", "unheard-of", json!({})), "/input/type"),
        (NewJob::new("a", "wait", json!("text")), "/input/payload"),
        (NewJob::new("a", "wait", json!({"millis": "many"})), "/input/payload/millis"),
        (NewJob::new("a", "wait", json!({})), "/input/payload"),
        (NewJob::new("", "wait", json!({"millis": 1})), "/jobName"),
        (NewJob { priority: Some(10), ..wait(1) }, "/priority"),
        (NewJob { run_at: Some(rota_model::time::UnixMillis(i64::MAX)), ..wait(1) }, "/runAt"),
    ];
    for (job, pointer) in cases {
        match node.desk.submit(&Domain::default(), job).await {
            Err(SubmitError::Invalid(invalid)) => assert_eq!(invalid.0.first().unwrap().pointer, pointer),
            other => panic!("{pointer}: {other:?}"),
        }
    }
    let (stored, _) =
        node.desk.list(&Domain::default(), &rota_store::jobs::JobFilter::default(), 10, None).await.unwrap();
    assert!(stored.is_empty());
}
