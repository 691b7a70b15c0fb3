//! Several real nodes on a real PostgreSQL. One is killed, one is frozen for longer than its lease and woken, the store is
//! restarted underneath, a node is added and one drained, while jobs are submitted at any of them: nothing acknowledged is
//! lost, nothing is recorded twice, and nobody alive is condemned.
//!
//! `ROTA_CLUSTER_JOBS` makes more of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::node::NodeStatus;
use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::process::{Home, KEY, Rota};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(120);
/// What a node says that was taken for dead.
const CONDEMNED: &str = "others took this node for dead";

/// A node with a place of its own.
struct Member {
    home: Home,
    rota: Rota,
    client: Client,
    id: NodeId,
}

async fn join(store: &str, name: &str) -> Member {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let rota = home.serve(store, &["--name", name, "--capacity", "16"]);
    let client = Client::new(&rota.url, KEY).unwrap();
    let nodes = client.nodes().await.unwrap();
    let id = nodes.iter().find(|node| node.name == name).unwrap().id;
    Member { home, rota, client, id }
}

fn wait(name: &str, millis: u64) -> NewJob {
    NewJob::new(name, "wait", json!({"millis": millis}))
}

async fn job(client: &Client, id: JobId) -> Job {
    client.job(&Domain::default(), id).await.unwrap()
}

/// Until something holds.
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let held = async {
        while !holds().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("{what} does not happen"));
}

/// Jobs that a certain node runs: it was idle, and they were submitted there.
async fn run_at(member: &Member, name: &str, millis: u64, count: usize) -> Vec<JobId> {
    let mut held = Vec::new();
    for _ in 0..count {
        let made = member.client.submit_job(&Domain::default(), &wait(name, millis), None).await.unwrap();
        until("a beginning", || async { job(&member.client, made.job_id).await.status != JobStatus::Queued })
            .await;
        if job(&member.client, made.job_id).await.owner_node == Some(member.id) {
            held.push(made.job_id);
        }
    }
    assert!(!held.is_empty(), "none of them runs where it was submitted");
    held
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

/// Submits batch after batch to any node, each until it is acknowledged.
struct Load {
    clients: Mutex<Vec<Client>>,
    acknowledged: Mutex<BTreeSet<JobId>>,
    next: AtomicUsize,
}

impl Load {
    const BATCH: usize = 25;

    async fn run(self: Arc<Self>, count: usize) {
        loop {
            let first = self.next.fetch_add(Self::BATCH, Ordering::Relaxed);
            if first >= count {
                return;
            }
            let one = |nth: usize| {
                let mut job = wait(&format!("load {nth}"), 1 + u64::try_from(nth % 20).unwrap());
                job.idempotency_key = Some(format!("load {nth}"));
                job
            };
            let jobs: Vec<NewJob> = (first..first + Self::BATCH).map(one).collect();
            for turn in first.. {
                let client = {
                    let clients = self.clients.lock().unwrap();
                    clients.get(turn % clients.len()).unwrap().clone()
                };
                let answers = client.submit_jobs(&Domain::default(), &jobs).await.unwrap_or_default();
                let made: Vec<JobId> = answers.into_iter().flatten().map(|made| made.job_id).collect();
                if made.len() == jobs.len() {
                    self.acknowledged.lock().unwrap().extend(made);
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn so_far(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }
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
    let clients = [&one, &two, &three].map(|member| member.client.clone()).to_vec();
    let load = Arc::new(Load {
        clients: Mutex::new(clients),
        acknowledged: Mutex::default(),
        next: AtomicUsize::new(0),
    });
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(Arc::clone(&load).run(count))).collect();

    until("a fifth of the load", || async { load.so_far() >= count / 5 }).await;
    one.rota.kill();
    until("two fifths of the load", || async { load.so_far() >= count * 2 / 5 }).await;
    server.stop();
    sleep(Duration::from_millis(500)).await;
    server.resume();
    let four = join(&store, "four").await;
    load.clients.lock().unwrap().push(four.client.clone());
    until("three fifths of the load", || async { load.so_far() >= count * 3 / 5 }).await;
    three.client.drain_node(three.id).await.unwrap();
    for caller in callers {
        caller.await.unwrap();
    }

    let ended = "SELECT count(*) FROM jobs WHERE status NOT IN ('QUEUED', 'STARTED') AND document->>'jobName' LIKE 'load %'";
    until("that all of them end", || async { run_sql(&store, ended) == count.to_string() }).await;
    assert_eq!(load.so_far(), count);
    let stored = "SELECT count(*), count(DISTINCT document->>'jobName'), count(*) FILTER (WHERE status = 'SUCCESSFUL') \
                  FROM jobs WHERE document->>'jobName' LIKE 'load %'";
    assert_eq!(
        run_sql(&store, stored),
        format!("{count}|{count}|{count}"),
        "each is there once, and ended well"
    );
    let results = "SELECT count(*) FROM jobs WHERE document->>'jobName' LIKE 'load %' AND (document->>'attempt' <> '1' \
                   OR epoch <> 1 + jsonb_array_length(coalesce(document->'history', '[]')))";
    assert_eq!(run_sql(&store, results), "0", "every claim is accounted for, and none cost an attempt");
    for alive in [&two, &three, &four] {
        assert!(!alive.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", alive.home.log());
    }
}
