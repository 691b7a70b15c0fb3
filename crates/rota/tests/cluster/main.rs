//! Several real nodes on a real PostgreSQL. One is killed, one is frozen for longer than its lease and woken, the store is
//! restarted underneath, a node is added and one drained, while jobs are submitted at any of them: nothing acknowledged is
//! lost, nothing is recorded twice, and nobody alive is condemned.
//!
//! - [`members`]: nodes, each with a place of its own; [`load`]: what is asked of them meanwhile
//! - [`killed`]: the only node is killed, or one that requests are under way to
//! - [`severed`]: a node is cut off from the store, or all of them are
//! - [`rolling`]: one after the other is restarted, or replaced by a newer one
//!
//! `ROTA_CLUSTER_JOBS` makes more of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod killed;
mod load;
mod members;
mod rolling;
mod severed;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{Job, JobEvent, JobStatus};
use rota_model::node::NodeStatus;
use rota_model::time::UnixMillis;
use rota_testkit::postgres::{Server, run_sql};
use tokio::time::{Instant, sleep};

use load::{Load, wait};
use members::{CONDEMNED, Member, PATIENCE, join, until};

async fn job(client: &Client, id: JobId) -> Job {
    client.job(&Domain::default(), id).await.unwrap()
}

/// Jobs that a certain node runs. Others may be quicker to claim what is submitted there: then more are.
async fn run_at(member: &Member, name: &str, millis: u64, count: usize) -> BTreeSet<JobId> {
    let mut held = BTreeSet::new();
    for _ in 0..30 {
        let made = member.client.submit_job(&Domain::default(), &wait(name, millis), None).await.unwrap();
        until("a beginning", || async { job(&member.client, made.job_id).await.status != JobStatus::Queued })
            .await;
        if job(&member.client, made.job_id).await.owner_node == Some(member.id) {
            held.insert(made.job_id);
        }
        if held.len() == count {
            return held;
        }
    }
    panic!("of 30 only {} run where they were submitted", held.len());
}

/// Drains a node. Says by when it has heard of it, and has nothing left: a beat later.
async fn drain(member: &Member, by: &Client) -> UnixMillis {
    let told = by.drain_node(member.id).await.unwrap().last_seen_at;
    let heard = told.plus(Duration::from_secs(3));
    let drained = Mutex::new(told);
    until("a node without jobs", || async {
        let nodes = by.nodes().await.unwrap();
        let node = nodes.into_iter().find(|node| node.id == member.id).unwrap();
        *drained.lock().unwrap() = node.last_seen_at;
        node.last_seen_at > heard && node.running == Some(0)
    })
    .await;
    drained.into_inner().unwrap()
}

/// What a node holds that stands still, or was killed a moment ago. What it is just about to record is left out: the store may
/// still be at it.
fn held_by(store: &str, node: NodeId) -> BTreeSet<JobId> {
    let held = format!(
        "SELECT id FROM jobs WHERE status = 'STARTED' AND \"ownerNode\" = '{node}' FOR UPDATE SKIP LOCKED"
    );
    run_sql(store, &held).lines().map(|id| id.parse().unwrap()).collect()
}

/// How long it takes until others run all of these, or have run them.
async fn taken_over(jobs: &BTreeSet<JobId>, from: NodeId, by: &Client, since: Instant) -> Duration {
    for id in jobs {
        until("a take-over", || async { job(by, *id).await.owner_node.is_some_and(|owner| owner != from) })
            .await;
    }
    since.elapsed()
}

/// Each of them ends well: it was lost once, with this node, and claimed once more, and that cost no attempt. Says who ran them to
/// their end.
async fn end_after_one_loss(jobs: &BTreeSet<JobId>, lost_with: NodeId, by: &Client) -> BTreeSet<NodeId> {
    let mut ran = BTreeSet::new();
    for id in jobs {
        let ended = by.wait_for_job(&Domain::default(), *id, PATIENCE).await.unwrap();
        assert_eq!((ended.status, ended.attempt, ended.lost, ended.epoch), (JobStatus::Successful, 1, 1, 2));
        let past: Vec<_> = ended.history.iter().map(|entry| (entry.event, entry.node)).collect();
        assert_eq!(past, [(JobEvent::Lose, Some(lost_with))]);
        ran.extend(ended.owner_node);
    }
    ran
}

/// How many times a job was lost with a node.
fn losses_of(store: &str, node: NodeId) -> usize {
    let losses = format!(
        "SELECT count(*) FROM jobs, jsonb_array_elements(document->'history') AS past (entry) \
         WHERE entry->>'event' = 'LOSE' AND entry->>'node' = '{node}'"
    );
    run_sql(store, &losses).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_is_taken_over_and_a_frozen_one_refused() {
    let server = Server::start(true);
    let store = server.fresh();
    let (one, two, three) =
        (join(&store, "one").await, join(&store, "two").await, join(&store, "three").await);

    let held = run_at(&one, "outlives its node", 8_000, 4).await;
    let (gone, began) = (one.id, Instant::now());
    one.rota.kill();
    assert!(held.is_subset(&held_by(&store, gone)), "it held them when it was killed");
    let took = taken_over(&held, gone, &two.client, began).await;
    println!("killed: {} jobs were taken over after {:.1} s", held.len(), took.as_secs_f64());
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(!end_after_one_loss(&held, gone, &two.client).await.contains(&gone), "others ran them");

    let held = run_at(&two, "outlives the freeze", 11_000, 3).await;
    let (frozen, began) = (two.id, Instant::now());
    two.rota.freeze();
    let took = taken_over(&held, frozen, &three.client, began).await;
    println!("frozen: {} jobs were taken over after {:.1} s", held.len(), took.as_secs_f64());
    assert!(took < Duration::from_secs(10), "{took:?}");
    two.rota.wake();
    assert!(!end_after_one_loss(&held, frozen, &three.client).await.contains(&frozen), "another ran them");
    until("that the zombie says so", || async { two.home.log().contains(CONDEMNED) }).await;
    until("that it works again", || async {
        let nodes = three.client.nodes().await.unwrap();
        nodes.iter().any(|node| node.id == frozen && node.status == NodeStatus::Active)
    })
    .await;
    assert!(!three.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", three.home.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_while_nodes_and_store_come_and_go() {
    let count = std::env::var("ROTA_CLUSTER_JOBS").map_or(5_000, |jobs| jobs.parse().unwrap());
    let mut server = Server::start(true);
    let store = server.fresh();
    let (one, two, three) =
        (join(&store, "one").await, join(&store, "two").await, join(&store, "three").await);
    let load = Load::on(&[&one, &two, &three]);
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(Arc::clone(&load).run(count))).collect();

    load.reaches(count / 5).await;
    one.freeze_when("a moment with jobs in hand", || !held_by(&store, one.id).is_empty()).await;
    one.rota.kill();
    load.reaches(count * 2 / 5).await;
    server.stop();
    sleep(Duration::from_millis(500)).await;
    server.resume();
    let four = join(&store, "four").await;
    load.also_on(&four);
    load.reaches(count * 3 / 5).await;
    freeze_until_taken_over(&two, &four.client, &store, &load).await;
    load.reaches(count * 4 / 5).await;
    let drained = drain(&three, &four.client).await;
    load.goes_on_by(200).await;
    load.end(callers).await;

    assert!(load.so_far() >= count);
    load.all_ended_once(&store).await;
    others_ran_what_was_lost(&store, one.id);
    others_began_since(&store, three.id, drained);
    until("that the zombie says so", || async { two.home.log().contains(CONDEMNED) }).await;
    for alive in [&three, &four] {
        assert!(!alive.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", alive.home.log());
    }
    let losses = [one.id, two.id].map(|node| losses_of(&store, node));
    println!("{} jobs; taken over from the killed and the frozen node: {losses:?}", load.so_far());
}

/// Stops a node with jobs in hand until others have taken some of them over, while more is asked of these.
async fn freeze_until_taken_over(member: &Member, by: &Client, store: &str, load: &Load) {
    member.freeze_when("a moment with jobs in hand", || !held_by(store, member.id).is_empty()).await;
    let before = load.so_far();
    until("that others notice", || async {
        let nodes = by.nodes().await.unwrap();
        nodes.iter().any(|node| node.id == member.id && node.status == NodeStatus::Terminated)
    })
    .await;
    assert!(load.so_far() > before, "others are asked meanwhile");
    until("a take-over", || async { losses_of(store, member.id) > 0 }).await;
    member.rota.wake();
}

/// Of a node that was killed with jobs in hand, and did not come back.
fn others_ran_what_was_lost(store: &str, killed: NodeId) {
    assert!(losses_of(store, killed) > 0, "something was taken over");
    let again = format!("SELECT count(*) FROM jobs WHERE lost > 0 AND \"ownerNode\" = '{killed}'");
    assert_eq!(run_sql(store, &again), "0", "who is killed runs nothing any more");
}

/// Of a node that was drained by then, while jobs were submitted there and elsewhere.
fn others_began_since(store: &str, drained: NodeId, since: UnixMillis) {
    let began = |at: &str| {
        let at = format!("\"ownerNode\" {at} '{drained}' AND \"startedAt\" > {}", since.0);
        run_sql(store, &format!("SELECT count(*) FROM jobs WHERE {at}"))
    };
    assert_eq!(began("="), "0", "a node that was drained begins with nothing");
    assert_ne!(began("<>"), "0", "the others begin with what is submitted");
}
