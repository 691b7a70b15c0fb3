//! Limits of types and of keys: how many run at once and start per second, however many nodes run them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rota_engine::desk::HeldUp;
use rota_engine::node::NodeOptions;
use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::job_type::JobTypeSettings;
use rota_model::limit::{Limit, LimitName};
use rota_model::time::UnixMillis;
use rota_store::job_limits::JobLimits;
use rota_store::memory::MemoryStore;
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use rota_testkit::surroundings::BEGINNING;
use serde_json::{Value, json};
use stage::{Running, Stage, act};
use tokio::time::{Instant, sleep};

async fn limit(node: &Running, kind: &str, settings: Value) {
    let settings: JobTypeSettings = serde_json::from_value(settings).unwrap();
    let job_type = settings.into_type(Domain::default(), kind).unwrap();
    node.desk.types().put(&Domain::default(), job_type, None, false).await.unwrap();
}

async fn submit(node: &Running, jobs: Vec<NewJob>) -> Vec<JobId> {
    let answers = node.desk.submit_all(&Domain::default(), jobs).await;
    answers.into_iter().map(|answer| answer.unwrap().job_id).collect()
}

/// A tenth of a second of work.
fn work() -> NewJob {
    act(json!({"steps": 1}))
}

fn keyed(key: &str) -> NewJob {
    NewJob { limit_key: Some(key.to_owned()), ..work() }
}

async fn all_ended(stage: &Stage, node: &Running, ids: &[JobId]) -> Vec<Job> {
    for id in ids {
        node.ended(*id).await;
    }
    let mut jobs = Vec::new();
    for id in ids {
        jobs.push(stage.job(*id).await.document);
    }
    jobs
}

/// How many of the jobs ran at the same time at most.
fn most_at_once(jobs: &[Job]) -> usize {
    let running = |at: UnixMillis| {
        let runs = |job: &&Job| job.started_at.unwrap() <= at && at < job.finished_at.unwrap();
        jobs.iter().filter(runs).count()
    };
    jobs.iter().map(|job| running(job.started_at.unwrap())).max().unwrap_or(0)
}

async fn document(stage: &Stage, key: Option<&str>) -> Option<Limit> {
    let name = LimitName { domain: Domain::default(), kind: "act".to_owned(), key: key.map(str::to_owned) };
    let limits = JobLimits::new(Arc::clone(&stage.store));
    limits.get_each(&[name]).await.unwrap().remove(0).map(|limit| limit.document)
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_may_on_however_many_nodes() {
    let stage = Stage::new();
    let nodes = [stage.up("one").await, stage.up("two").await, stage.up("three").await];
    limit(&nodes[0], "act", json!({"concurrency": 5})).await;
    let ids = submit(&nodes[0], vec![work(); 120]).await;
    let began = stage.surroundings.now();
    let jobs = all_ended(&stage, &nodes[1], &ids).await;
    assert_eq!(most_at_once(&jobs), 5);
    let last = jobs.iter().map(|job| job.finished_at.unwrap()).max().unwrap();
    let took = last.since(began);
    assert!(took < Duration::from_millis(120 * 100 / 5 * 2), "{took:?}: slots were left unused");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(document(&stage, None).await.unwrap().holders, [], "who needs none holds none");
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_saturated_key_holds_nobody_up_and_each_key_has_its_own_limit() {
    let stage = Stage::new();
    let node = stage.up_with(NodeOptions { capacity: 4, ..Stage::options("one") }).await;
    limit(&node, "act", json!({"perKey": {"concurrency": 1}})).await;
    let crowd = submit(&node, vec![keyed("a"); 60]).await;
    sleep(Duration::from_millis(500)).await;
    let single = submit(&node, vec![keyed("b"), work()]).await;
    for id in &single {
        let job = node.ended(*id).await;
        let waited = job.started_at.unwrap().since(job.metadata.created_at);
        assert!(waited < Duration::from_millis(100), "it waited {waited:?}");
    }
    let done = stage.jobs().totals(Some(&Domain::default())).await.unwrap()[&JobStatus::Queued];
    assert!(done > 40, "most of the others still wait: {done}");
    let jobs = all_ended(&stage, &node, &crowd).await;
    assert_eq!(most_at_once(&jobs), 1);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_type_and_of_its_keys_hold_together() {
    let stage = Stage::new();
    let nodes = [stage.up("one").await, stage.up("two").await];
    limit(&nodes[0], "act", json!({"concurrency": 3, "perKey": {"concurrency": 2}})).await;
    let keys = ["a", "b", "c"];
    let ids = submit(&nodes[1], keys.iter().flat_map(|key| vec![keyed(key); 15]).collect()).await;
    let jobs = all_ended(&stage, &nodes[0], &ids).await;
    assert_eq!(most_at_once(&jobs), 3);
    let mut by_key: BTreeMap<Option<String>, Vec<Job>> = BTreeMap::new();
    for job in jobs {
        by_key.entry(job.limit_key.clone()).or_default().push(job);
    }
    for (key, jobs) in by_key {
        assert!((1..=2).contains(&most_at_once(&jobs)), "{key:?}");
    }
    for node in nodes {
        node.stop().await;
    }
}

/// A single job runs on whichever node has the slot; it goes round where others wait.
#[tokio::test(start_paused = true)]
async fn one_slot_is_shared_by_nodes_that_both_have_work() {
    let stage = Stage::new();
    let nodes = [stage.up("one").await, stage.up("two").await];
    limit(&nodes[0], "act", json!({"concurrency": 1})).await;
    let ids = submit(&nodes[0], vec![work(); 60]).await;
    let jobs = all_ended(&stage, &nodes[0], &ids).await;
    assert_eq!(most_at_once(&jobs), 1);
    let by = |node: &Running| jobs.iter().filter(|job| job.owner_node == Some(node.id)).count();
    let shares = [by(&nodes[0]), by(&nodes[1])];
    assert!(shares.iter().all(|share| *share >= 10), "{shares:?}");
    for node in nodes {
        node.stop().await;
    }
}

async fn start_for_a_minute(stage: &Stage, nodes: &[Running], rate: u32) -> f64 {
    // In halves, so that it need not be a whole number.
    limit(&nodes[0], "act", json!({"startsPerSecond": f64::from(rate) / 2.0})).await;
    started_in_a_minute(stage, nodes, rate, &act(json!({}))).await
}

async fn started_in_a_minute(stage: &Stage, nodes: &[Running], rate: u32, job: &NewJob) -> f64 {
    let count = usize::try_from(rate * 75 / 2).unwrap();
    submit(&nodes[0], vec![job.clone(); count]).await;
    let from = stage.surroundings.now().plus(Duration::from_secs(5));
    sleep(Duration::from_secs(66)).await;
    let mut started = 0;
    let mut after = None;
    loop {
        let filter = rota_store::jobs::JobFilter::default();
        let (jobs, next) = nodes[0].desk.list(&Domain::default(), &filter, 1_000, after).await.unwrap();
        let in_time = |at: UnixMillis| at >= from && at < from.plus(Duration::from_secs(60));
        started += jobs.iter().filter(|job| job.started_at.is_some_and(in_time)).count();
        match next {
            Some(next) => after = Some(next),
            None => return started as f64,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_within_five_percent_over_a_minute() {
    for (rate, nodes) in [(12, 1), (12, 3), (3, 2)] {
        let stage = Stage::new();
        let mut up = Vec::new();
        for name in ["one", "two", "three"].into_iter().take(nodes) {
            up.push(stage.up(name).await);
        }
        let started = start_for_a_minute(&stage, &up, rate).await;
        let expected = f64::from(rate) * 30.0;
        assert!(
            (started - expected).abs() <= (expected * 0.05).max(1.5),
            "{rate} on {nodes} nodes: {started}"
        );
        for node in up {
            node.stop().await;
        }
    }
}

/// A clock that is off, by as much as a test says.
struct Off {
    began: Instant,
    by_ms: Arc<AtomicI64>,
}

impl Clock for Off {
    fn now(&self) -> UnixMillis {
        UnixMillis(BEGINNING.plus(self.began.elapsed()).0 + self.by_ms.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Slots that are free for as long as starts are lacking cost no time of their own.
#[tokio::test(start_paused = true)]
async fn a_rate_holds_beside_a_limit_of_what_runs_at_once() {
    for (concurrency, rate, steps) in [(2, 6, 4), (1, 6, 0)] {
        let stage = Stage::new();
        let up = [stage.up_with(NodeOptions { capacity: 32, ..Stage::options("one") }).await];
        let both = json!({"concurrency": concurrency, "startsPerSecond": f64::from(rate) / 2.0});
        limit(&up[0], "act", both).await;
        let started = started_in_a_minute(&stage, &up, rate, &act(json!({"steps": steps}))).await;
        let expected = f64::from(rate) * 30.0;
        assert!((started - expected).abs() <= expected * 0.05, "{concurrency} and {rate}: {started}");
        let [node] = up;
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_and_jump_neither_stop_a_rate_nor_let_more_through() {
    let began = Instant::now();
    let mut stage = Stage::new();
    let by_ms = Arc::new(AtomicI64::new(700));
    let right = stage.surroundings.clone();
    stage.surroundings = Surroundings::new(Arc::new(Off { began, by_ms: Arc::clone(&by_ms) }), [3; 32]);
    let off = stage.up("off").await;
    stage.surroundings = right;
    let nodes = [stage.up("one").await, off];
    let jumps = async {
        for ms in [7_200_000, -7_200_000, 0] {
            sleep(Duration::from_secs(20)).await;
            by_ms.store(ms, Ordering::Relaxed);
        }
    };
    let (started, ()) = tokio::join!(start_for_a_minute(&stage, &nodes, 12), jumps);
    // What the node that is off claims is written with its time: only what the other one claims is counted for certain.
    assert!(started <= 378.0, "{started}");
    let left = stage.jobs().totals(None).await.unwrap().get(&JobStatus::Queued).copied().unwrap_or(0);
    assert!((9..=54).contains(&left), "{left} of 450 are left after 71 seconds");
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_or_falls_while_jobs_run_stops_none_and_lets_none_begin() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let long = || act(json!({"steps": 40}));
    let first = submit(&node, vec![long(); 4]).await;
    sleep(Duration::from_millis(500)).await;
    limit(&node, "act", json!({"concurrency": 2})).await;
    let later = submit(&node, vec![work(); 4]).await;
    sleep(Duration::from_secs(2)).await;
    for id in &later {
        assert_eq!(stage.job(*id).await.document.status, JobStatus::Queued, "four run, and two may");
    }
    let queued = stage.job(later[0]).await.document;
    let why = node.desk.held_up(&queued).await.unwrap();
    assert_eq!(why, Some(HeldUp::Concurrency { key: None, most: 2 }));
    let first = all_ended(&stage, &node, &first).await;
    assert!(first.iter().all(|job| job.status == JobStatus::Successful && job.epoch == 1));
    let later = all_ended(&stage, &node, &later).await;
    assert_eq!(most_at_once(&later), 2);
    limit(&node, "act", json!({})).await;
    sleep(Duration::from_secs(2)).await;
    let free = submit(&node, vec![work(); 6]).await;
    assert_eq!(most_at_once(&all_ended(&stage, &node, &free).await), 6, "nothing limits it any more");
    node.stop().await;
}

/// How many of the jobs ran when one of them began, at most; of those that began after this instant.
fn most_when_one_began_after(jobs: &[Job], after: UnixMillis) -> usize {
    let runs_at = |at: UnixMillis| {
        let runs = |job: &&Job| job.started_at.unwrap() <= at && at < job.finished_at.unwrap();
        jobs.iter().filter(runs).count()
    };
    let began = jobs.iter().map(|job| job.started_at.unwrap()).filter(|at| *at > after);
    began.map(runs_at).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_falls_holds_on_all_nodes_once_enough_has_ended() {
    let stage = Stage::new();
    let nodes = [stage.up("one").await, stage.up("two").await];
    limit(&nodes[0], "act", json!({"concurrency": 4})).await;
    let ids = submit(&nodes[0], vec![act(json!({"steps": 7})); 60]).await;
    sleep(Duration::from_secs(3)).await;
    let mut holders = document(&stage, None).await.unwrap().holders;
    holders.sort_by_key(|holding| holding.node);
    assert_eq!(holders.iter().map(|holding| holding.slots).collect::<Vec<_>>(), [2, 2]);
    limit(&nodes[0], "act", json!({"concurrency": 2})).await;
    // What runs ends within that time, and nothing takes its place.
    let lowered = stage.surroundings.now().plus(Duration::from_secs(1));
    let jobs = all_ended(&stage, &nodes[1], &ids).await;
    assert_eq!(most_when_one_began_after(&jobs, lowered), 2);
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_while_several_nodes_run_jobs_holds_once_enough_has_ended() {
    let stage = Stage::new();
    let options = |name| NodeOptions { capacity: 2, ..Stage::options(name) };
    let nodes = [stage.up_with(options("one")).await, stage.up_with(options("two")).await];
    let ids = submit(&nodes[0], vec![act(json!({"steps": 7})); 60]).await;
    sleep(Duration::from_secs(3)).await;
    limit(&nodes[0], "act", json!({"concurrency": 2})).await;
    let came = stage.surroundings.now().plus(Duration::from_secs(3));
    let jobs = all_ended(&stage, &nodes[1], &ids).await;
    assert_eq!(most_at_once(&jobs), 4);
    assert_eq!(most_when_one_began_after(&jobs, came), 2);
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_keys_that_joins_another_counts_what_runs() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    limit(&node, "act", json!({"concurrency": 20})).await;
    let long = NewJob { limit_key: Some("a".to_owned()), ..act(json!({"steps": 40})) };
    let first = submit(&node, vec![long; 5]).await;
    sleep(Duration::from_secs(1)).await;
    limit(&node, "act", json!({"concurrency": 20, "perKey": {"concurrency": 1}})).await;
    let later = submit(&node, vec![keyed("a"); 3]).await;
    sleep(Duration::from_secs(1)).await;
    for id in &later {
        assert_eq!(stage.job(*id).await.document.status, JobStatus::Queued, "five run, and one may");
    }
    all_ended(&stage, &node, &first).await;
    assert_eq!(most_at_once(&all_ended(&stage, &node, &later).await), 1);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_runs_a_type_of_which_nothing_waits_hears_of_its_limit() {
    let stage = Stage::new();
    let (one, two) = (stage.up("one").await, stage.up("two").await);
    let first = submit(&one, vec![act(json!({"steps": 80}))]).await;
    sleep(Duration::from_secs(3)).await;
    limit(&two, "act", json!({"concurrency": 1})).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(document(&stage, None).await.unwrap().holders.len(), 1, "what runs holds a slot");
    let later = submit(&two, vec![work()]).await;
    let jobs = all_ended(&stage, &two, &[first, later].concat()).await;
    assert_eq!(most_at_once(&jobs), 1);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_the_dead_come_back() {
    let stage = Stage::new();
    let (one, two) = (stage.up("one").await, stage.up("two").await);
    limit(&one, "act", json!({"concurrency": 1})).await;
    let held = submit(&one, vec![act(json!({"steps": 600}))]).await[0];
    sleep(Duration::from_secs(1)).await;
    let holder = stage.job(held).await.document.owner_node.unwrap();
    let (dies, lives) = if holder == one.id { (one, two) } else { (two, one) };
    dies.die();
    let died = stage.surroundings.now();
    let next = submit(&lives, vec![work()]).await[0];
    lives.desk.cancel(&Domain::default(), held, None).await.unwrap();
    let job = lives.ended(next).await;
    let waited = job.started_at.unwrap().since(died);
    assert!(waited < Duration::from_secs(15), "it waited {waited:?}");
    lives.stop().await;
}

#[tokio::test(start_paused = true)]
async fn why_a_job_waits_is_told() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    limit(&node, "act", json!({"startsPerSecond": 0.1, "perKey": {"concurrency": 1}})).await;
    let ids = submit(&node, vec![keyed("a"), keyed("a")]).await;
    sleep(Duration::from_secs(1)).await;
    let waiting = stage.job(ids[1]).await.document;
    let why = node.desk.held_up(&waiting).await.unwrap();
    assert_eq!(why, Some(HeldUp::Rate { key: None, per_second: 0.1 }));
    let free =
        stage.job(submit(&node, vec![NewJob::new("w", "wait", json!({"millis": 9_000}))]).await[0]).await;
    assert_eq!(node.desk.held_up(&free.document).await.unwrap(), None);
    limit(&node, "act", json!({"perKey": {"concurrency": 1}})).await;
    sleep(Duration::from_secs(5)).await;
    let long = NewJob { limit_key: Some("b".to_owned()), ..act(json!({"steps": 50})) };
    let ids = submit(&node, vec![long.clone(), long]).await;
    sleep(Duration::from_secs(1)).await;
    let mut jobs = [stage.job(ids[0]).await.document, stage.job(ids[1]).await.document];
    jobs.sort_by_key(|job| job.status);
    let why = node.desk.held_up(&jobs[0]).await.unwrap();
    assert_eq!(why, Some(HeldUp::Concurrency { key: Some("b".to_owned()), most: 1 }));
    assert_eq!(node.desk.held_up(&jobs[1]).await.unwrap(), None, "it runs");
    node.stop().await;
}

/// More keys than are known at a time, each with a limit, and one that has no part in it.
#[tokio::test(start_paused = true)]
async fn a_great_many_keys_all_have_their_turn() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    limit(&node, "act", json!({"perKey": {"concurrency": 1}})).await;
    let jobs: Vec<NewJob> =
        (0..300).map(|nth| NewJob { limit_key: Some(format!("key {nth}")), ..act(json!({})) }).collect();
    let ids = submit(&node, jobs).await;
    all_ended(&stage, &node, &ids).await;
    assert!(document(&stage, Some("key 7")).await.is_some());
    // Long after, the documents are gone.
    sleep(Duration::from_secs(62 * 60)).await;
    assert_eq!(document(&stage, Some("key 7")).await, None);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_full_or_paused_hears_of_a_limit_too() {
    let stage = Stage::new();
    let full = stage.up_with(NodeOptions { capacity: 2, ..Stage::options("one") }).await;
    let long = [full.submit(act(json!({"steps": 100}))).await, full.submit(act(json!({"steps": 100}))).await];
    let paused = stage.up_with(NodeOptions { capacity: 2, ..Stage::options("two") }).await;
    let more = paused.submit(act(json!({"steps": 100}))).await;
    paused.fleet.pause(paused.id).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    let other = stage.up("three").await;
    limit(&other, "act", json!({"concurrency": 3})).await;
    sleep(Duration::from_secs(1)).await;
    let held: u32 = document(&stage, None).await.unwrap().holders.iter().map(|holding| holding.slots).sum();
    assert_eq!(held, 3, "what they run counts: {:?}", document(&stage, None).await);
    let came = stage.surroundings.now();
    let ids = [long.to_vec(), vec![more], submit(&other, vec![work(); 4]).await].concat();
    let jobs = all_ended(&stage, &other, &ids).await;
    assert_eq!(most_when_one_began_after(&jobs, came), 3);
    for node in [full, paused, other] {
        node.stop().await;
    }
}

/// Counts how often job types are read, and how often listed.
#[derive(Default)]
struct Asked {
    reads: AtomicI64,
    finds: AtomicI64,
}

impl Fate for Asked {
    fn of(&self, call: &Call<'_>) -> Lot {
        match call {
            Call::Read(keys) if keys.iter().any(|key| key.collection.name == "job-types") => {
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
            Call::Find(query) if query.collection.name == "job-types" => {
                self.finds.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_that_limit_nothing_are_not_asked_again_and_again() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let asked = Arc::new(Asked::default());
    let store = Arc::new(FaultyStore::new(&truth, Arc::<Asked>::clone(&asked) as _));
    let node = stage.up_on(store, NodeOptions { capacity: 1, ..Stage::options("one") }).await;
    for nth in 0..40 {
        let domain: Domain = format!("tenant-{nth}").parse().unwrap();
        node.desk.submit_all(&domain, vec![act(json!({"steps": 10})); 3]).await;
    }
    sleep(Duration::from_secs(2)).await;
    let before = asked.reads.swap(0, Ordering::Relaxed);
    assert!(before > 0);
    asked.finds.store(0, Ordering::Relaxed);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(asked.reads.load(Ordering::Relaxed), 0, "all is known");
    assert!((9..=11).contains(&asked.finds.load(Ordering::Relaxed)), "one list every three seconds");
    node.stop().await;
}
