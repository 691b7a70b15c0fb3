//! What nodes measure: it stands in the buckets of all nodes, whole and once, and no work waits for it.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use rota_engine::meter::{Count, Latency, Level, Meter};
use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::domain::Domain;
use rota_model::job::{JobStatus, NewJob};
use rota_model::metric::{MetricsBucket, Sample};
use rota_model::time::UnixMillis;
use rota_store::memory::MemoryStore;
use rota_store::metrics::Metrics;
use rota_store::seam::Write;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

/// A bucket is stored within this, once it is over.
const STORED: Duration = Duration::from_secs(7);

/// As if another process began: what it measures begins at nothing.
fn measured(stage: &mut Stage) -> Meter {
    let meter = Meter::new();
    stage.surroundings = stage.surroundings.clone().measured_by(meter.clone());
    meter
}

async fn buckets(stage: &Stage) -> Vec<MetricsBucket> {
    let metrics = Metrics::new(Arc::clone(&stage.store));
    let (buckets, next) = metrics.between(UnixMillis(0), UnixMillis::MAX, 1_000, None).await.unwrap();
    assert!(next.is_none());
    for bucket in &buckets {
        assert_eq!(bucket.check(), Ok(()));
    }
    buckets
}

/// All entries of a metric, of whichever node.
fn entries<'a>(buckets: &'a [MetricsBucket], name: &str) -> Vec<&'a Sample> {
    buckets
        .iter()
        .filter_map(|bucket| bucket.metrics.get(name))
        .flat_map(|by_node| by_node.values())
        .collect()
}

fn total(buckets: &[MetricsBucket], name: &str) -> i64 {
    entries(buckets, name).iter().map(|sample| sample.value).sum()
}

/// How many latencies there were.
fn timed(buckets: &[MetricsBucket], name: &str) -> i64 {
    entries(buckets, name).iter().map(|sample| sample.count.unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn what_a_node_does_stands_in_the_buckets() {
    let mut stage = Stage::new().heard();
    let meter = measured(&mut stage);
    let node = stage.up("one").await;
    for _ in 0..3 {
        let id = node.submit(act(json!({"steps": 2}))).await;
        node.ended(id).await;
    }
    let failing = NewJob { attempts: Some(2), ..act(json!({"failures": 9})) };
    let id = node.submit(failing).await;
    assert_eq!(node.ended(id).await.status, JobStatus::Failed);
    let later =
        NewJob { run_at: Some(stage.surroundings.now().plus(Duration::from_secs(1))), ..act(json!({})) };
    let batch = node.desk.submit_all(&Domain::default(), vec![later; 5]).await;
    for accepted in batch {
        node.ended(accepted.unwrap().job_id).await;
    }
    meter.count(Count::ObserverMessages, 1);
    meter.observer_received(Duration::from_millis(3));
    sleep(STORED).await;
    let buckets = buckets(&stage).await;
    let expected = [
        ("jobsProcessed", 9),
        ("jobsSuccessful", 8),
        ("jobsFailed", 1),
        ("jobsRetried", 1),
        ("jobsSubmitted", 9),
        ("observerMessages", 1),
    ];
    for (name, value) in expected {
        assert_eq!(total(&buckets, name), value, "{name}");
    }
    assert!(total(&buckets, "jobsClaimed") >= 5 && total(&buckets, "claims") >= 1);
    for (name, count) in [
        ("jobRequestLatency", 4),
        ("batchRequestLatency", 1),
        ("queueWait", 10),
        ("runTime", 10),
        ("observerLatency", 1),
    ] {
        assert_eq!(timed(&buckets, name), count, "{name}");
    }
    let run_time = entries(&buckets, "runTime").into_iter().filter_map(|sample| sample.max).max();
    assert_eq!(run_time, Some(200_000), "two steps of a tenth of a second, in microseconds");
    for name in
        ["heartbeatLag", "storeWriteLatency", "storeReadLatency", "storeFindLatency", "storeClaimLatency"]
    {
        assert!(timed(&buckets, name) > 0, "{name}");
    }
    let whole = buckets.iter().find(|bucket| bucket.metrics.contains_key("sections")).unwrap();
    for (name, value) in [("sections", 64), ("capacity", 8)] {
        assert_eq!(whole.metrics[name][&node.id].value, value);
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_is_told_what_was_measured_until_now() {
    let mut stage = Stage::new();
    let meter = measured(&mut stage);
    let node = stage.up("one").await;
    let id = node.submit(act(json!({"steps": 3}))).await;
    sleep(Duration::from_secs(3)).await;
    node.ended(id).await;
    let reading = meter.reading().unwrap();
    assert_eq!((reading.count(Count::JobsSuccessful), reading.jobs_processed()), (1, 1));
    assert_eq!(reading.latency(Latency::RunTime).sum(), Duration::from_millis(300));
    assert_eq!((reading.level(Level::Capacity), reading.level(Level::Sections)), (8, 64));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_share_a_bucket_and_each_has_its_own_entries() {
    let mut stage = Stage::new();
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        measured(&mut stage);
        nodes.push(stage.up(name).await);
    }
    sleep(Duration::from_secs(20)).await;
    let buckets = buckets(&stage).await;
    let full = buckets.iter().filter(|bucket| bucket.metrics["jobsProcessed"].len() == 3).count();
    assert!(full >= 3, "{} of {}", full, buckets.len());
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_again_within_a_bucket_neither_loses_nor_doubles_what_was_before() {
    let mut stage = Stage::new();
    for life in 1..=4 {
        measured(&mut stage);
        let node = stage.up("one").await;
        for _ in 0..life {
            let id = node.submit(act(json!({}))).await;
            node.ended(id).await;
        }
        node.stop().await;
    }
    let buckets = buckets(&stage).await;
    assert!(buckets.len() < 4, "several lives had one bucket");
    assert_eq!(total(&buckets, "jobsProcessed"), 1 + 2 + 3 + 4);
    assert_eq!(timed(&buckets, "runTime"), 1 + 2 + 3 + 4);
    let parts: usize = entries(&buckets, "jobsProcessed").iter().map(|sample| sample.parts.len()).sum();
    assert!(parts >= 2, "what each life measured is told apart");
}

/// What becomes of writes to the metrics alone.
#[derive(Default)]
struct Trouble {
    away: AtomicBool,
    /// So many happen and are not answered.
    unanswered: AtomicU32,
}

impl Fate for Trouble {
    fn of(&self, call: &Call<'_>) -> Lot {
        let Call::Write(batch) = call else { return Lot::CALM };
        if !batch.iter().all(|write: &Write| write.key().collection.name == "metrics") {
            return Lot::CALM;
        }
        if self.away.load(Ordering::Relaxed) {
            return Lot { after: Duration::from_secs(1), effect: Effect::Fails, ..Lot::CALM };
        }
        let left = self.unanswered.load(Ordering::Relaxed);
        self.unanswered.store(left.saturating_sub(1), Ordering::Relaxed);
        Lot { effect: if left > 0 { Effect::Unanswered } else { Effect::Done }, ..Lot::CALM }
    }
}

fn in_trouble() -> (Stage, Arc<Trouble>, Arc<FaultyStore>) {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let trouble = Arc::new(Trouble::default());
    let store = FaultyStore::new(&truth, Arc::clone(&trouble) as Arc<dyn Fate>);
    (Stage::on(Arc::clone(truth.store())), trouble, Arc::new(store))
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_double_nothing() {
    let (mut stage, trouble, store) = in_trouble();
    measured(&mut stage);
    let node = stage.up_on(store, Stage::options("one")).await;
    for _ in 0..20 {
        trouble.unanswered.store(3, Ordering::Relaxed);
        let id = node.submit(act(json!({}))).await;
        node.ended(id).await;
        sleep(Duration::from_secs(4)).await;
    }
    sleep(Duration::from_secs(60)).await;
    let buckets = buckets(&stage).await;
    assert_eq!((total(&buckets, "jobsProcessed"), timed(&buckets, "runTime")), (20, 20));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_buckets_wait_and_work_does_not() {
    let (mut stage, trouble, store) = in_trouble();
    measured(&mut stage);
    let node = stage.up_on(store, Stage::options("one")).await;
    trouble.away.store(true, Ordering::Relaxed);
    for _ in 0..10 {
        let began = Instant::now();
        let id = node.submit(act(json!({}))).await;
        node.ended(id).await;
        assert!(began.elapsed() < Duration::from_millis(100));
        sleep(Duration::from_secs(30)).await;
    }
    let stored = buckets(&stage).await.len();
    assert!(stored <= 1, "nothing could be stored");
    trouble.away.store(false, Ordering::Relaxed);
    sleep(STORED).await;
    let buckets = buckets(&stage).await;
    assert!(buckets.len() >= 60, "each had its own: {}", buckets.len());
    assert_eq!((total(&buckets, "jobsProcessed"), total(&buckets, "bucketsDropped")), (10, 0));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_too_long_is_dropped_and_counted() {
    let (mut stage, trouble, store) = in_trouble();
    let meter = measured(&mut stage);
    let node = stage.up_on(store, Stage::options("one")).await;
    trouble.away.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(3_600)).await;
    let dropped = meter.reading().unwrap().count(Count::BucketsDropped);
    assert!((595..=605).contains(&dropped), "an hour has 720, and 120 wait: {dropped}");
    trouble.away.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(20)).await;
    let buckets = buckets(&stage).await;
    let said = total(&buckets, "bucketsDropped");
    let last = i64::try_from(meter.reading().unwrap().count(Count::BucketsDropped)).unwrap();
    // Those that were counted in a bucket which was dropped itself are in nobody's.
    assert!(said > 0 && said <= last, "{said} of {last}");
    node.stop().await;
}

/// A clock that people set.
struct Set {
    began: Instant,
    ahead_ms: AtomicI64,
}

impl Clock for Set {
    fn now(&self) -> UnixMillis {
        let now = BEGINNING.plus(self.began.elapsed());
        UnixMillis(now.0 + self.ahead_ms.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_put_back_into_stored_buckets_adds_to_them() {
    let clock = Arc::new(Set { began: Instant::now(), ahead_ms: AtomicI64::new(0) });
    let mut stage = Stage::new();
    stage.surroundings = Surroundings::new(Arc::<Set>::clone(&clock), [7; 32]);
    measured(&mut stage);
    let node = stage.up("one").await;
    for round in 0..6 {
        for _ in 0..3 {
            let id = node.submit(act(json!({}))).await;
            node.ended(id).await;
            sleep(Duration::from_secs(4)).await;
        }
        // Twice back by twelve seconds, then ahead by a minute.
        clock.ahead_ms.fetch_add(if round % 3 == 2 { 60_000 } else { -12_000 }, Ordering::Relaxed);
    }
    sleep(STORED).await;
    assert_eq!(total(&buckets(&stage).await, "jobsProcessed"), 18);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_that_came_second_are_counted() {
    let mut stage = Stage::new();
    let meter = measured(&mut stage);
    let node = stage.up("one").await;
    let before = meter.reading().unwrap().count(Count::Conflicts);
    let id = node.submit(act(json!({"steps": 30}))).await;
    sleep(Duration::from_millis(500)).await;
    // Somebody cancels it while its handler goes on: what that says of its progress comes second.
    node.desk.cancel(&Domain::default(), id, None).await.unwrap();
    // Heartbeats meet the wish that was written to the document of the node.
    node.fleet.pause(node.id).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert!(meter.reading().unwrap().count(Count::Conflicts) > before);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_meter_stores_nothing() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let id = node.submit(act(json!({}))).await;
    node.ended(id).await;
    sleep(Duration::from_secs(30)).await;
    node.stop().await;
    assert_eq!(buckets(&stage).await, []);
}

/// A store at which whoever asks for metrics comes to grief.
struct Grief;

impl Fate for Grief {
    fn of(&self, call: &Call<'_>) -> Lot {
        let is_metrics =
            matches!(call, Call::Read(keys) if keys.iter().any(|key| key.collection.name == "metrics"));
        assert!(!is_metrics, "on purpose");
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_metrics_nobody_stores_any_more_stops() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let mut stage = Stage::on(Arc::clone(truth.store()));
    measured(&mut stage);
    let store = Arc::new(FaultyStore::new(&truth, Arc::new(Grief)));
    let node = stage.up_on(store, Stage::options("one")).await;
    assert!(!node.has_stopped());
    sleep(2 * STORED).await;
    assert!(node.has_stopped(), "it must not go on as if all were well");
}
