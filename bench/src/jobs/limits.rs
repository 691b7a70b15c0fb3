//! What limits cost those they are not for: a single job of another key beside a great many of one that is saturated, and a
//! queue of another type.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_model::job_type::{JobType, KeyLimits};
use rota_store_sqlite::durability::Durability;
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::latency::{millis, percentiles};
use super::stage::{Stage, fill};
use super::{Options, rate};
use crate::ground::On;
use crate::report::Measurement;

pub(super) const CASE: &str = "limits, a single job beside many of a saturated key";

pub(super) const DRAIN: &str = "limits, a prepared queue drained beside a limited type";

/// A queue of a type that nothing limits, where another one is limited and has work; in turns with where none is.
pub(super) async fn drains(options: &Options) -> Vec<Measurement> {
    let (plain, limited) = (stage(options.on).await, stage(options.on).await);
    limit(&limited, "wait").await;
    let long = || NewJob {
        limit_key: Some("saturated".to_owned()),
        ..NewJob::new("bench", "wait", json!({"millis": 3_600_000}))
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // As much is taken on the other stage by something that nothing limits.
    limited.desk.submit(&Domain::default(), long()).await.unwrap();
    plain.desk.submit(&Domain::default(), NewJob { limit_key: None, ..long() }).await.unwrap();
    limited.desk.submit(&Domain::default(), long()).await.unwrap();
    for run in 0..options.runs {
        eprintln!("{DRAIN}, run {}", run + 1);
        without.push(plain.drain(options.jobs).await);
        with.push(limited.drain(options.jobs).await);
    }
    let (mut case, plain) = (rate(DRAIN.to_owned(), &mut with), rate(String::new(), &mut without));
    case.against = Some("no type limited, in turns".to_owned());
    case.ratio = Some(case.value / plain.value);
    vec![case]
}

async fn stage(on: On) -> Stage {
    Stage::new(on, Durability::OnDisk, 0).await
}

async fn limit(stage: &Stage, kind: &str) {
    let job_type = JobType {
        domain: Some(Domain::default()),
        kind: kind.to_owned(),
        per_key: Some(KeyLimits { concurrency: Some(1), ..KeyLimits::default() }),
        ..JobType::default()
    };
    stage.desk.types().put(&Domain::default(), job_type, None, false).await.unwrap();
}

/// From its submission to the start of its handler: beside nothing, and beside all those that wait for one slot.
pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let (on, waiting, samples) = (options.on, options.crowd, options.samples);
    let mut alone = starts(on, 0, samples).await;
    let mut beside = starts(on, waiting, samples).await;
    let mut measured = percentiles(&format!("{CASE}: submit to handler start"), &mut beside);
    for (case, plain) in measured.iter_mut().zip(percentiles("", &mut alone)) {
        case.against = Some("an empty queue".to_owned());
        case.ratio = Some(case.value / plain.value);
    }
    measured
}

async fn starts(on: On, waiting: usize, samples: usize) -> Vec<f64> {
    eprintln!("{CASE}: {samples} starts beside {waiting} jobs");
    let stage = stage(on).await;
    limit(&stage, "wait").await;
    limit(&stage, "stamp").await;
    let saturated = || NewJob {
        limit_key: Some("saturated".to_owned()),
        ..NewJob::new("bench", "wait", json!({"millis": 60_000}))
    };
    fill(&stage.jobs, &Domain::default(), waiting, |place| saturated().into_job(place, BEGINNING)).await;
    sleep(Duration::from_secs(2)).await;
    let mut started = stage.started.lock().await;
    let mut spans = Vec::new();
    for nth in 0..samples {
        let job =
            NewJob { limit_key: Some(format!("key {nth}")), ..NewJob::new("bench", "stamp", json!({})) };
        let began = Instant::now();
        stage.desk.submit(&Domain::default(), job).await.unwrap();
        spans.push(millis(began, started.recv().await.unwrap()));
        sleep(Duration::from_millis(3)).await;
    }
    spans
}
