//! Jobs from their submission to their end, every one on disk when it is acknowledged.
//!
//! - [`stage`]: a node on the embedded store, in this process
//! - [`http`]: the real program in a process of its own, the clients beside it on the same machine
//! - [`latency`]: the time from submit to handler start, measured where both ends read one clock
//! - [`observed`]: what it costs that logs and metrics are kept
//! - [`lists`]: a page of a list by each filter, among a great many
//! - [`sharing`]: a single job beside a great many of another domain
//! - [`clearing`]: how long submissions wait while old jobs go
//! - [`listeners`]: what those cost who only listen
//! - [`limits`]: what limits cost those they are not for
//! - [`idle`]: what a node costs that has nothing to do

mod clearing;
mod http;
mod idle;
mod latency;
mod limits;
mod listeners;
mod lists;
mod observed;
mod sharing;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use rota_engine::desk::JobDesk;
use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_store_sqlite::durability::Durability;
use serde_json::json;
use tokio::time::Instant;

use crate::ground::On;
use crate::report::{Measurement, percentile};
use stage::Stage;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Jobs of a run
    #[arg(long, default_value_t = 60_000)]
    jobs: usize,
    /// Runs of each case; the median is reported
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Jobs whose time from submit to handler start is measured
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// Finished jobs in the store for the cases beside a crowd; 0 leaves them out
    #[arg(long, default_value_t = 1_000_000)]
    crowd: usize,
    /// Streams of events that are open beside submissions; 0 leaves the case out
    #[arg(long, default_value_t = 2_000)]
    listeners: usize,
    /// Only cases whose name holds this
    #[arg(long, default_value = "")]
    only: String,
    /// The store that it all stands on
    #[arg(long, value_enum, default_value_t)]
    on: On,
}

impl Options {
    fn wants(&self, case: &str) -> bool {
        case.contains(&self.only)
    }
}

/// A sync every so often, for those who want it.
const SOON: Durability = Durability::Within(Duration::from_millis(50));

pub(crate) async fn run(options: &Options) -> Vec<Measurement> {
    let alone = in_process(options, Durability::OnDisk, 0, "").await;
    let mut measurements = match options.on {
        On::Sqlite => {
            beside(in_process(options, SOON, 0, ", synced every 50 ms").await, &alone, "on disk at once")
        }
        On::Postgres => Vec::new(),
    };
    if options.crowd > 0 {
        let name = format!(", beside {} finished jobs", options.crowd);
        let crowd = in_process(options, Durability::OnDisk, options.crowd, &name).await;
        measurements.extend(beside(crowd, &alone, "an empty store"));
    }
    measurements.splice(0..0, alone);
    measurements.extend(observed::run(options).await);
    measurements.extend(http::run(options).await);
    if options.crowd > 0 && options.wants(sharing::CASE) {
        measurements.extend(sharing::run(options).await);
    }
    if options.crowd > 0 && options.wants(clearing::CASE) {
        measurements.extend(clearing::run(options.on, options.crowd / 10).await);
    }
    if options.listeners > 0 && options.wants(listeners::CASE) {
        measurements.extend(listeners::run(options).await);
    }
    if options.crowd > 0 && options.wants(lists::CASE) {
        measurements.extend(lists::run(options).await);
    }
    if options.wants(limits::DRAIN) {
        measurements.extend(limits::drains(options).await);
    }
    if options.crowd > 0 && options.wants(limits::CASE) {
        measurements.extend(limits::run(options).await);
    }
    if options.wants("idle") {
        measurements.extend(idle::run(options.on).await);
    }
    measurements
}

/// The same cases, told as ratios to those of another stage.
fn beside(mut cases: Vec<Measurement>, plain: &[Measurement], against: &str) -> Vec<Measurement> {
    for (case, plain) in cases.iter_mut().zip(plain).filter(|(case, _)| case.ratio.is_none()) {
        case.against = Some(against.to_owned());
        case.ratio = Some(case.value / plain.value);
    }
    cases
}

async fn in_process(options: &Options, durability: Durability, crowd: usize, note: &str) -> Vec<Measurement> {
    let wanted = |case: &str| options.wants(&format!("in process, {case}{note}"));
    let drain = "a prepared queue drained";
    let start = "submit to handler start";
    if !CASES.iter().map(|(case, ..)| *case).chain([BULK, drain, start]).any(wanted) {
        return Vec::new();
    }
    let mut measurements = Vec::new();
    if wanted(BULK) {
        measurements.push(bulk(options, durability, crowd, note).await);
    }
    let stage = Stage::new(options.on, durability, crowd).await;
    for (case, producers, batch) in CASES.into_iter().filter(|(case, ..)| wanted(case)) {
        let (mut accepted, mut ended) = (Vec::new(), Vec::new());
        for run in 0..options.runs {
            eprintln!("in process, {case}{note}, run {}", run + 1);
            let (accept, end) = lives(&stage, options.jobs, producers, batch).await;
            accepted.push(accept);
            ended.push(end);
        }
        measurements.push(rate(format!("in process, {case}: accepted{note}"), &mut accepted));
        measurements.push(rate(format!("in process, {case}: from submit to end{note}"), &mut ended));
    }
    idle::at_rest().await;
    if wanted(drain) {
        let mut drained = Vec::new();
        for run in 0..options.runs {
            eprintln!("in process, {drain}{note}, run {}", run + 1);
            drained.push(stage.drain(options.jobs).await);
        }
        measurements.push(rate(format!("in process, {drain}{note}"), &mut drained));
    }
    idle::at_rest().await;
    if wanted(start) && crowd > 0 {
        let plain = Stage::new(options.on, durability, 0).await;
        idle::at_rest().await;
        measurements.extend(latency::in_turns(&stage, &plain, options.samples, note, "an empty store").await);
    } else if wanted(start) {
        measurements.extend(latency::in_process(&stage, options.samples, note).await);
    }
    if options.wants("over HTTP, submit to handler start") && note.is_empty() {
        measurements.extend(latency::over_http(&stage, options.samples).await);
    }
    measurements
}

const CASES: [(&str, usize, usize); 3] =
    [("singly from 8", 8, 1), ("singly from 64", 64, 1), ("in batches of 1,000 from 8", 8, 1_000)];

fn rate(case: String, rates: &mut [f64]) -> Measurement {
    let value = percentile(rates, 0.5);
    Measurement { bench: "jobs", case, value, unit: "jobs/s", against: None, ratio: None }
}

fn noop() -> NewJob {
    NewJob::new("bench", "noop", json!({}))
}

const BULK: &str = "in batches of 1,000 from 8, none due";

/// What libraries measure that only put jobs into a table: nothing is to be done but that.
async fn bulk(options: &Options, durability: Durability, crowd: usize, note: &str) -> Measurement {
    let stage = Stage::new(options.on, durability, crowd).await;
    let job = NewJob { run_at: Some(http::LATER), ..noop() };
    let mut accepted = Vec::new();
    for run in 0..options.runs {
        eprintln!("in process, {BULK}{note}, run {}", run + 1);
        let began = Instant::now();
        accepted.push(per_second(submitted(&stage, &job, options.jobs, 8, 1_000).await, began.elapsed()));
    }
    rate(format!("in process, {BULK}: accepted{note}"), &mut accepted)
}

/// How many jobs per second were accepted, and how many went from submit to their end.
async fn lives(stage: &Stage, jobs: usize, producers: usize, batch: usize) -> (f64, f64) {
    let before = stage.ended().await;
    let began = Instant::now();
    let jobs = submitted(stage, &noop(), jobs, producers, batch).await;
    let accepted = began.elapsed();
    stage.until_ended(before + jobs as u64).await;
    (per_second(jobs, accepted), per_second(jobs, began.elapsed()))
}

/// Has several submit the same job over and over. Says how often they did.
async fn submitted(stage: &Stage, job: &NewJob, jobs: usize, producers: usize, batch: usize) -> usize {
    let each = jobs / producers;
    let call = |_| tokio::spawn(produce(Arc::clone(&stage.desk), job.clone(), each, batch));
    let calls: Vec<_> = (0..producers).map(call).collect();
    for call in calls {
        call.await.unwrap();
    }
    each * producers
}

async fn produce(desk: Arc<JobDesk>, job: NewJob, jobs: usize, batch: usize) {
    let domain = Domain::default();
    if batch == 1 {
        for _ in 0..jobs {
            desk.submit(&domain, job.clone()).await.unwrap();
        }
        return;
    }
    let mut left = jobs;
    while left > 0 {
        let size = left.min(batch);
        let answers = desk.submit_all(&domain, vec![job.clone(); size]).await;
        assert!(answers.iter().all(Result::is_ok));
        left -= size;
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 jobs")]
fn per_second(jobs: usize, span: Duration) -> f64 {
    jobs as f64 / span.as_secs_f64()
}
