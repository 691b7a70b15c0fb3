//! Old jobs go because their domain keeps them no longer, while somebody submits others: how long does that one wait?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rota_engine::desk::JobDesk;
use rota_model::domain::{Domain, DomainSettings};
use rota_model::job::JobStatus;
use rota_model::time::UnixMillis;
use rota_store_sqlite::durability::Durability;
use rota_testkit::surroundings::BEGINNING;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::latency::percentiles;
use super::noop;
use super::stage::{Stage, fill};
use crate::ground::On;
use crate::report::Measurement;

pub(super) const CASE: &str = "clearing";
/// What a wait is compared with.
const QUIET: Duration = Duration::from_secs(10);

pub(super) async fn run(on: On, count: usize) -> Vec<Measurement> {
    let stage = Stage::new(on, Durability::OnDisk, 0).await;
    let old: Domain = "old".parse().unwrap();
    eprintln!("clearing, {count} jobs that ended long ago");
    let long_ago = UnixMillis(BEGINNING.0 - 30 * 24 * 3_600_000);
    fill(&stage.jobs, &old, count, |place| {
        let mut job = noop().into_job(place, long_ago);
        (job.status, job.epoch, job.finished_at) = (JobStatus::Successful, 1, Some(long_ago));
        job
    })
    .await;
    let mut quiet = waits_while(&stage.desk, sleep(QUIET)).await;
    stage
        .make_domain(&old, DomainSettings { keep_jobs: Some("1d".parse().unwrap()), ..Default::default() })
        .await;
    let left = async || stage.jobs.totals(Some(&old)).await.unwrap().values().sum::<u64>();
    while left().await == count as u64 {
        sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    let mut waits = waits_while(&stage.desk, async {
        while left().await > 0 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let span = began.elapsed().as_secs_f64();
    let measured = |case: String, value, unit| Measurement {
        bench: "jobs",
        case,
        value,
        unit,
        against: None,
        ratio: None,
    };
    let longest = |waits: &[f64]| waits.iter().copied().fold(0.0, f64::max);
    let mut measurements = vec![
        measured(format!("{CASE}, {count} jobs hidden by retention"), span, "s"),
        measured(format!("{CASE}, longest wait of a submission meanwhile"), longest(&waits), "ms"),
        measured(format!("{CASE}, longest wait of a submission beside nothing"), longest(&quiet), "ms"),
    ];
    let plain = percentiles("", &mut quiet);
    for (mut case, plain) in
        percentiles(&format!("{CASE}, a submission meanwhile"), &mut waits).into_iter().zip(plain)
    {
        case.against = Some("nothing to be cleared".to_owned());
        case.ratio = Some(case.value / plain.value);
        measurements.push(case);
    }
    measurements
}

/// How long submissions take, one after the other, until the work is done.
async fn waits_while(desk: &Arc<JobDesk>, work: impl Future<Output = ()>) -> Vec<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let (desk, stopped) = (Arc::clone(desk), Arc::clone(&stop));
    let submitting: JoinHandle<Vec<f64>> = tokio::spawn(async move {
        let mut waits = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let began = Instant::now();
            desk.submit(&Domain::default(), noop()).await.unwrap();
            waits.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        waits
    });
    work.await;
    stop.store(true, Ordering::Relaxed);
    submitting.await.unwrap()
}
