//! What goes by itself, and when: ids of deleted jobs, nodes that ended long ago, and what is kept no longer.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_engine::desk::{SubmitError, Submitted};
use rota_engine::meter::Meter;
use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::Extra;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::ids::{JobId, LogId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{JobStatus, NewJob};
use rota_model::limit::{Limit, LimitName};
use rota_model::log::{Level, Log};
use rota_model::metadata::Metadata;
use rota_model::metric::{Sample, Samples};
use rota_model::node::NodeStatus;
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::collection::{JOBS, LIMITS, LOGS, METRICS, UNIQUE_KEYS};
use rota_store::domains::Domains;
use rota_store::job_limits::JobLimits;
use rota_store::logs::{LogFilter, Logs};
use rota_store::memory::MemoryStore;
use rota_store::metrics::Metrics;
use rota_store::nodes::Nodes;
use rota_store::repository::Created;
use rota_store::seam::Write;
use rota_store::unique_keys::UniqueKeys;
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

const HOUR: Duration = Duration::from_secs(3_600);

/// A clock that people set.
struct Set {
    began: Instant,
    ahead_ms: AtomicU64,
}

impl Clock for Set {
    fn now(&self) -> UnixMillis {
        let ahead = Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed));
        BEGINNING.plus(self.began.elapsed() + ahead)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_stays_taken_for_an_hour_whatever_the_clock_is_set_to() {
    let clock = Arc::new(Set { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
    let mut stage = Stage::new();
    stage.surroundings = Surroundings::new(Arc::<Set>::clone(&clock), [7; 32]);
    let node = stage.up("one").await;
    let domain = Domain::default();
    let submit = || {
        let job = NewJob { idempotency_key: Some("once".to_owned()), ..act(json!({})) };
        node.desk.submit(&domain, job)
    };
    let id = submit().await.unwrap().job().document.job_id;
    node.ended(id).await;
    node.desk.delete(&domain, id, None).await.unwrap();
    clock.ahead_ms.store(u64::try_from((2 * HOUR).as_millis()).unwrap(), Ordering::Relaxed);
    sleep(Duration::from_secs(180)).await;
    assert!(matches!(submit().await, Err(SubmitError::Deleted(gone)) if gone == id));
    sleep(HOUR).await;
    assert!(matches!(submit().await, Ok(Submitted::New(_))), "by now nothing of it can be under way");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_expires_because_a_clock_was_put_forward() {
    let clock = Arc::new(Set { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
    let mut stage = Stage::new();
    stage.surroundings = Surroundings::new(Arc::<Set>::clone(&clock), [7; 32]);
    let node = stage.up("one").await;
    let expires_at = Some(stage.surroundings.now().plus(HOUR));
    let id = node.submit(NewJob { expires_at, ..NewJob::new("a job", "elsewhere", json!({})) }).await;
    let unique = json!({"key": "daily", "while": "unfinished", "forMs": 5_400_000});
    let daily = NewJob { unique: serde_json::from_value(unique).unwrap(), ..act(json!({})) };
    let of_key = node.submit(daily).await;
    node.ended(of_key).await;
    let keys = UniqueKeys::new(Arc::clone(&stage.store));
    clock.ahead_ms.store(u64::try_from((24 * HOUR).as_millis()).unwrap(), Ordering::Relaxed);
    sleep(Duration::from_secs(180)).await;
    assert_eq!(stage.job(id).await.document.status, JobStatus::Queued);
    assert!(keys.get(&Domain::default(), "daily").await.unwrap().is_some());
    sleep(2 * HOUR).await;
    assert_eq!(stage.job(id).await.document.status, JobStatus::Error, "by now its time is over");
    assert!(keys.get(&Domain::default(), "daily").await.unwrap().is_none());
    node.stop().await;
}

fn place(job_number: u64) -> Place {
    Place {
        domain: Domain::default(),
        job_id: JobId::derived(&[&job_number.to_string()]),
        job_number,
        sections: 64,
        accepted_by: NodeId::derived(&[]),
    }
}

#[tokio::test(start_paused = true)]
async fn however_many_expire_together_they_end_soon() {
    let stage = Stage::new();
    let job = |job_number: u64| {
        let expires_at = Some(BEGINNING.plus(Duration::from_secs(1)));
        let job = NewJob { expires_at, ..NewJob::new("a job", "elsewhere", json!({})) };
        job.into_job(place(job_number), BEGINNING)
    };
    stage.jobs().create_all(&(0..2_000).map(job).collect::<Vec<_>>()).await.unwrap();
    let node = stage.up("one").await;
    sleep(Duration::from_secs(3)).await;
    let totals = stage.jobs().totals(None).await.unwrap();
    assert_eq!(totals.into_iter().collect::<Vec<_>>(), [(JobStatus::Error, 2_000)]);
    node.stop().await;
}

/// Counts what is asked of the store about unique keys and single jobs.
#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    deletes: AtomicU64,
}

impl Fate for Counts {
    fn of(&self, call: &Call<'_>) -> Lot {
        match call {
            Call::Read(keys) if keys.iter().any(|key| key.collection == &JOBS) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
            Call::Write(batch) if batch.iter().any(|write| matches!(write, Write::Delete { .. })) => {
                self.deletes.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_cleared_out_many_at_a_time() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let (stage, counts) = (Stage::on(Arc::clone(truth.store())), Arc::new(Counts::default()));
    let long_ago = UnixMillis(BEGINNING.0 - 2 * 3_600_000);
    let keys = UniqueKeys::new(Arc::clone(&stage.store));
    let mut jobs = Vec::new();
    for nth in 0..500 {
        let name = format!("key {nth}");
        let unique = json!({"key": name, "while": "unfinished"});
        let job = NewJob { unique: serde_json::from_value(unique).unwrap(), ..act(json!({})) };
        let mut job = job.into_job(place(nth), long_ago);
        // The last one still waits, and so keeps twins away.
        (job.status, job.run_at) = match nth {
            499 => (JobStatus::Queued, BEGINNING.plus(HOUR)),
            _ => (JobStatus::Successful, long_ago),
        };
        keys.create(UniqueKey {
            domain: Domain::default(),
            key: name,
            job_id: job.job_id,
            requeue: None,
            metadata: Metadata::new(long_ago, NodeId::derived(&[])),
            extra: Extra::new(),
        })
        .await
        .unwrap();
        jobs.push(job);
    }
    stage.jobs().create_all(&jobs).await.unwrap();
    let store = FaultyStore::new(&truth, Arc::clone(&counts) as Arc<dyn Fate>);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    sleep(ROUND).await;
    assert_eq!(stage.count(&UNIQUE_KEYS).await, 1);
    assert!(keys.get(&Domain::default(), "key 499").await.unwrap().is_some());
    let (reads, deletes) = (counts.reads.load(Ordering::Relaxed), counts.deletes.load(Ordering::Relaxed));
    assert!(reads <= 10 && deletes <= 10, "{reads} reads, {deletes} writes");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_ended_long_ago_are_forgotten() {
    let stage = Stage::new();
    let nodes = Nodes::new(Arc::clone(&stage.store));
    stage.up("one").await.stop().await;
    let model = stage.state(NodeId::derived(&["one"])).await;
    for (name, days, status) in
        [("lately", 6, NodeStatus::Terminated), ("long ago", 8, NodeStatus::Terminated)]
    {
        let mut state = model.clone();
        let id = NodeId::derived(&[name]);
        (state.id, state.status) = (id, status);
        state.last_seen_at = UnixMillis(BEGINNING.0 - days * 24 * 3_600_000);
        nodes.create(state).await.unwrap();
    }
    let node = stage.up("one").await;
    sleep(Duration::from_secs(120)).await;
    let left: Vec<_> = nodes.all().await.unwrap().into_iter().map(|state| state.document.id).collect();
    assert_eq!(left.len(), 2);
    assert!(left.contains(&node.id) && left.contains(&NodeId::derived(&["lately"])));
    node.stop().await;
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Makes a domain, or changes one that is there.
async fn domain(stage: &Stage, name: &str, settings: DomainSettings) -> Domain {
    let domains = Domains::new(Arc::clone(&stage.store));
    let name: Domain = name.parse().unwrap();
    let document = DomainDocument::new(name.clone(), stage.surroundings.now().to_date(), settings.clone());
    if let Created::Exists(_) = domains.create(document).await.unwrap() {
        let before = domains.get(&name).await.unwrap().unwrap();
        domains.save(&before, &before.document.clone().with(settings)).await.unwrap();
    }
    name
}

fn keeping_jobs(span: &str) -> DomainSettings {
    DomainSettings { keep_jobs: Some(span.parse().unwrap()), ..DomainSettings::default() }
}

async fn left(stage: &Stage, domain: &Domain) -> u64 {
    stage.jobs().totals(Some(domain)).await.unwrap().values().sum()
}

/// Stores jobs that somebody made so long ago, past the desk.
async fn store_jobs(stage: &Stage, domain: &Domain, count: u64, made: Duration, ended: Option<Duration>) {
    let ago = |span: Duration| UnixMillis(BEGINNING.0 - i64::try_from(span.as_millis()).unwrap());
    let numbers = stage.jobs().numbers(count).await.unwrap();
    let job = |job_number: u64| {
        let job_id = JobId::derived(&[domain.as_str(), &job_number.to_string()]);
        let place = Place {
            domain: domain.clone(),
            job_id,
            job_number,
            sections: 64,
            accepted_by: NodeId::derived(&[]),
        };
        let mut job = act(json!({})).into_job(place, ago(made));
        match ended {
            Some(ended) => {
                (job.status, job.epoch, job.finished_at) = (JobStatus::Successful, 1, Some(ago(ended)));
            }
            None => job.run_at = BEGINNING.plus(300 * DAY),
        }
        job
    };
    stage.jobs().create_all(&numbers.map(job).collect::<Vec<_>>()).await.unwrap();
}

/// Long enough for a round.
const ROUND: Duration = Duration::from_secs(130);

#[tokio::test(start_paused = true)]
async fn jobs_go_when_they_ended_long_ago_where_their_domain_says_so() {
    let stage = Stage::new();
    let short = domain(&stage, "short", keeping_jobs("2d")).await;
    let long = domain(&stage, "long", DomainSettings::default()).await;
    // More than fit into one slice, of those that go and of those that stay.
    store_jobs(&stage, &short, 250, 4 * DAY, Some(3 * DAY)).await;
    store_jobs(&stage, &short, 210, 4 * DAY, None).await;
    store_jobs(&stage, &short, 5, 3 * DAY, Some(2 * DAY - HOUR / 2)).await;
    store_jobs(&stage, &short, 20, 3 * DAY, Some(3 * DAY)).await;
    store_jobs(&stage, &short, 20, DAY, Some(DAY)).await;
    store_jobs(&stage, &long, 10, 4 * DAY, None).await;
    store_jobs(&stage, &long, 20, 4 * DAY, Some(3 * DAY)).await;
    let node = stage.up("one").await;
    sleep(ROUND).await;
    assert_eq!(left(&stage, &short).await, 210 + 5 + 20, "by when they ended, not by when they were made");
    assert_eq!(left(&stage, &long).await, 30, "for ever, unless somebody says otherwise");
    domain(&stage, "long", keeping_jobs("12h")).await;
    sleep(ROUND).await;
    assert_eq!(left(&stage, &long).await, 10, "what waits stays, however old it is");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_were_not_over_when_they_were_looked_at_go_later() {
    let stage = Stage::new();
    let short = domain(&stage, "short", keeping_jobs("2d")).await;
    store_jobs(&stage, &short, 5, 3 * DAY, Some(2 * DAY - HOUR / 2)).await;
    store_jobs(&stage, &short, 5, 3 * DAY, Some(3 * DAY)).await;
    let node = stage.up("one").await;
    sleep(ROUND).await;
    assert_eq!(left(&stage, &short).await, 5, "not yet");
    sleep(HOUR + ROUND).await;
    assert_eq!(left(&stage, &short).await, 0);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_went_is_hidden_for_an_hour_before_its_id_is_free() {
    let stage = Stage::new();
    let short = domain(&stage, "short", keeping_jobs("1h")).await;
    let node = stage.up("one").await;
    let once = || NewJob { idempotency_key: Some("once".to_owned()), ..act(json!({})) };
    let id = node.desk.submit(&short, once()).await.unwrap().job().document.job_id;
    while node.desk.get(&short, id).await.unwrap().is_some() {
        sleep(Duration::from_secs(30)).await;
    }
    assert!(matches!(node.desk.submit(&short, once()).await, Err(SubmitError::Deleted(gone)) if gone == id));
    sleep(HOUR + ROUND).await;
    assert!(matches!(node.desk.submit(&short, once()).await, Ok(Submitted::New(_))));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_keeps_others_like_it_away_stays_until_it_no_longer_does() {
    let stage = Stage::new();
    let short = domain(&stage, "short", keeping_jobs("1h")).await;
    let node = stage.up("one").await;
    let unique = json!({"key": "daily", "while": "unfinished", "forMs": 6 * 3_600_000});
    let daily = || NewJob { unique: serde_json::from_value(unique.clone()).unwrap(), ..act(json!({})) };
    let id = node.desk.submit(&short, daily()).await.unwrap().job().document.job_id;
    sleep(4 * HOUR).await;
    let twin = node.desk.submit(&short, daily()).await.unwrap();
    assert!(matches!(&twin, Submitted::Twin(job) if job.document.job_id == id));
    sleep(4 * HOUR).await;
    assert!(node.desk.get(&short, id).await.unwrap().is_none());
    assert!(matches!(node.desk.submit(&short, daily()).await, Ok(Submitted::New(_))));
    node.stop().await;
}

/// Stores lines and buckets that are so old.
async fn store_traces(stage: &Stage, domain: Option<&Domain>, count: u32, age: Duration) {
    let at = UnixMillis(BEGINNING.0 - i64::try_from(age.as_millis()).unwrap());
    let node = NodeId::derived(&["long ago"]);
    let line = |nth: u32| {
        let id = LogId::derived(&[&format!("{domain:?} {age:?} {nth}")]);
        (id, Log { domain: domain.cloned(), ..Log::new(Level::Info, "once upon a time", node, at) })
    };
    Logs::new(Arc::clone(&stage.store)).append((0..count).map(line).collect()).await.unwrap();
    let samples = Samples::from([("jobs".to_owned(), Sample::new(1, "jobs"))]);
    for nth in 0..count {
        let at = at.plus(Duration::from_secs(5 * u64::from(nth)));
        Metrics::new(Arc::clone(&stage.store)).merge(node, &samples, at).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_does_not_go_because_a_clock_was_put_forward() {
    let clock = Arc::new(Set { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
    let mut stage = Stage::new();
    stage.surroundings = Surroundings::new(Arc::<Set>::clone(&clock), [7; 32]).measured_by(Meter::new());
    let stage = stage.heard();
    let short = domain(&stage, "short", keeping_jobs("2d")).await;
    let node = stage.up("one").await;
    store_jobs(&stage, &short, 10, DAY, Some(DAY)).await;
    store_traces(&stage, Some(&short), 10, DAY).await;
    clock.ahead_ms.store(u64::try_from((365 * DAY).as_millis()).unwrap(), Ordering::Relaxed);
    sleep(3 * ROUND).await;
    assert_eq!(left(&stage, &short).await, 10);
    assert!(stage.count(&LOGS).await >= 10 && stage.count(&METRICS).await >= 10);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lines_go_by_their_domain_and_metrics_by_the_installation() {
    let mut stage = Stage::new().heard();
    stage.surroundings = stage.surroundings.measured_by(Meter::keeping("2d".parse().unwrap()));
    let logs = |span: &str| DomainSettings { keep_logs: Some(span.parse().unwrap()), ..Default::default() };
    let short = domain(&stage, "short", logs("1d")).await;
    let ever = domain(&stage, "ever", logs("forever")).await;
    let usual = domain(&stage, "usual", DomainSettings::default()).await;
    for whose in [Some(&short), Some(&ever), Some(&usual), None] {
        store_traces(&stage, whose, 210, 40 * DAY).await;
        store_traces(&stage, whose, 20, 5 * DAY).await;
    }
    let node = stage.up("one").await;
    sleep(ROUND).await;
    let lines = async |domain: &Domain| {
        let filter = LogFilter { domain: Some(domain.clone()), ..LogFilter::default() };
        Logs::new(Arc::clone(&stage.store)).search(&filter, 1_000, None).await.unwrap().0.len()
    };
    assert_eq!((lines(&short).await, lines(&ever).await, lines(&usual).await), (0, 230, 20));
    let all = stage.count(&LOGS).await;
    assert!((270 + 1..300).contains(&all), "those of the installation go after 30 days: {all}");
    let oldest =
        Metrics::new(Arc::clone(&stage.store)).between(UnixMillis(0), UnixMillis::MAX, 1, None).await;
    let oldest = oldest.unwrap().0.first().unwrap().bucket_start.0;
    assert!(oldest >= BEGINNING, "all that was older than two days went: {oldest}");
    node.stop().await;
}

/// Counts the writes that delete limits.
#[derive(Default)]
struct Forgets(AtomicU64);

impl Fate for Forgets {
    fn of(&self, call: &Call<'_>) -> Lot {
        let is_delete =
            |write: &Write| matches!(write, Write::Delete { key, .. } if key.collection.name == "limits");
        if matches!(call, Call::Write(batch) if batch.iter().any(is_delete)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Lot::CALM
    }
}

#[tokio::test(start_paused = true)]
async fn limits_that_nobody_uses_go_many_at_a_time() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let old = UnixMillis(BEGINNING.0 - 2 * 3_600_000);
    let limit = |nth: u32| {
        let key = Some(format!("key {nth}"));
        let name = LimitName { domain: Domain::default(), kind: "act".to_owned(), key };
        Limit::new(name, old, NodeId::derived(&["one"]))
    };
    let limits: Vec<Limit> = (0..2_400).map(limit).collect();
    JobLimits::new(Arc::clone(&stage.store)).create_all(&limits).await.unwrap();
    let forgets = Arc::new(Forgets::default());
    let store = Arc::new(FaultyStore::new(&truth, Arc::<Forgets>::clone(&forgets) as _));
    let node = stage.up_on(store, Stage::options("one")).await;
    sleep(Duration::from_secs(65)).await;
    assert_eq!(stage.count(&LIMITS).await, 0, "all in one tick");
    assert_eq!(forgets.0.load(Ordering::Relaxed), 12, "200 at a time");
    node.stop().await;
}
