//! Several real nodes on a real PostgreSQL. One is killed, one is frozen for longer than its lease and woken, the store is
//! restarted underneath, a node is added and one drained, while jobs are submitted at any of them: nothing acknowledged is
//! lost, nothing is recorded twice, and nobody alive is condemned.
//!
//! - [`members`]: nodes, each with a place of its own; [`load`]: what is asked of them meanwhile
//! - [`severed`]: a node is cut off from the store, or all of them are
//! - [`rolling`]: one after the other is restarted, or replaced by a newer one
//!
//! `ROTA_CLUSTER_JOBS` makes more of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod load;
mod members;
mod rolling;
mod severed;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{Job, JobStatus};
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
async fn run_at(member: &Member, name: &str, millis: u64, count: usize) -> Vec<JobId> {
    let mut held = Vec::new();
    for _ in 0..30 {
        let made = member.client.submit_job(&Domain::default(), &wait(name, millis), None).await.unwrap();
        until("a beginning", || async { job(&member.client, made.job_id).await.status != JobStatus::Queued })
            .await;
        if job(&member.client, made.job_id).await.owner_node == Some(member.id) {
            held.push(made.job_id);
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

/// How long it takes until others run all of these.
async fn taken_over(jobs: &[JobId], from: NodeId, by: &Client, since: Instant) -> Duration {
    for id in jobs {
        until("a take-over", || async {
            let job = job(by, *id).await;
            job.status.is_terminal() || job.owner_node.is_some_and(|owner| owner != from)
        })
        .await;
    }
    since.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_is_taken_over_and_a_frozen_one_refused() {
    let server = Server::start(true);
    let store = server.fresh();
    let (one, two, three) =
        (join(&store, "one").await, join(&store, "two").await, join(&store, "three").await);

    let held = run_at(&one, "outlives its node", 12_000, 4).await;
    let (gone, began) = (one.id, Instant::now());
    one.rota.kill();
    let took = taken_over(&held, gone, &two.client, began).await;
    println!("killed: {} jobs were taken over after {:.1} s", held.len(), took.as_secs_f64());
    assert!(took < Duration::from_secs(10), "{took:?}");

    let held = run_at(&two, "outlives the freeze", 11_000, 3).await;
    let (frozen, began) = (two.id, Instant::now());
    two.rota.freeze();
    let took = taken_over(&held, frozen, &three.client, began).await;
    println!("frozen: {} jobs were taken over after {:.1} s", held.len(), took.as_secs_f64());
    assert!(took < Duration::from_secs(10), "{took:?}");
    two.rota.wake();
    for id in held {
        let ended = three.client.wait_for_job(&Domain::default(), id, PATIENCE).await.unwrap();
        assert_eq!((ended.status, ended.attempt, ended.lost, ended.epoch), (JobStatus::Successful, 1, 1, 2));
    }
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

    until("a fifth of the load", || async { load.so_far() >= count / 5 }).await;
    one.rota.kill();
    until("two fifths of the load", || async { load.so_far() >= count * 2 / 5 }).await;
    server.stop();
    sleep(Duration::from_millis(500)).await;
    server.resume();
    let four = join(&store, "four").await;
    load.also_on(&four);
    until("three fifths of the load", || async { load.so_far() >= count * 3 / 5 }).await;
    two.rota.freeze();
    until("that others notice", || async {
        let nodes = four.client.nodes().await.unwrap();
        nodes.iter().any(|node| node.id == two.id && node.status == NodeStatus::Terminated)
    })
    .await;
    two.rota.wake();
    until("four fifths of the load", || async { load.so_far() >= count * 4 / 5 }).await;
    let drained = drain(&three, &four.client).await;
    for caller in callers {
        caller.await.unwrap();
    }

    load.all_ended_once(&store, count).await;
    let later = format!(
        "SELECT count(*) FROM jobs WHERE \"ownerNode\" = '{}' AND \"startedAt\" > {}",
        three.id, drained.0
    );
    assert_eq!(run_sql(&store, &later), "0", "a node that was drained begins with nothing");
    until("that the zombie says so", || async { two.home.log().contains(CONDEMNED) }).await;
    for alive in [&three, &four] {
        assert!(!alive.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", alive.home.log());
    }
}
