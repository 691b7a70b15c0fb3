//! The time from submit to handler start, on a node that is idle.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_testkit::process::KEY;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::http::PATH;
use super::stage::Stage;
use crate::connection::Connection;
use crate::report::{Measurement, percentile};

/// Between two jobs, so that the node is idle when the next one comes.
const IDLE: Duration = Duration::from_millis(3);

pub(super) async fn in_process(stage: &Stage, samples: usize, note: &str) -> Vec<Measurement> {
    eprintln!("submit to handler start, {samples} jobs in process{note}");
    let mut spans = Vec::new();
    for _ in 0..samples {
        spans.push(span(stage).await);
    }
    percentiles(&format!("in process, submit to handler start{note}"), &mut spans)
}

/// On two nodes in turns, so that whatever else the machine does happens to both.
pub(super) async fn in_turns(
    stage: &Stage,
    plain: &Stage,
    samples: usize,
    note: &str,
    against: &str,
) -> Vec<Measurement> {
    eprintln!("submit to handler start, {samples} jobs in process{note}, in turns with {against}");
    let (mut spans, mut plain_spans) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        spans.push(span(stage).await);
        plain_spans.push(span(plain).await);
    }
    let mut measured = percentiles(&format!("in process, submit to handler start{note}"), &mut spans);
    for (case, plain) in measured.iter_mut().zip(percentiles("", &mut plain_spans)) {
        case.against = Some(format!("{against}, in turns"));
        case.ratio = Some(case.value / plain.value);
    }
    measured
}

async fn span(stage: &Stage) -> f64 {
    let mut started = stage.started.lock().await;
    let began = Instant::now();
    stage.desk.submit(&Domain::default(), NewJob::new("bench", "stamp", json!({}))).await.unwrap();
    let span = millis(began, started.recv().await.unwrap());
    sleep(IDLE).await;
    span
}

pub(super) async fn over_http(stage: &Stage, samples: usize) -> Vec<Measurement> {
    eprintln!("submit to handler start, {samples} jobs over HTTP");
    let mut started = stage.started.lock().await;
    let body = json!({"jobName": "bench", "input": {"type": "stamp", "payload": {}}}).to_string();
    let mut connection = Connection::open(&stage.address, KEY, PATH, &body).await;
    let mut spans = Vec::new();
    for _ in 0..samples {
        let began = Instant::now();
        connection.call().await;
        spans.push(millis(began, started.recv().await.unwrap()));
        sleep(IDLE).await;
    }
    percentiles("over HTTP, submit to handler start", &mut spans)
}

pub(super) fn millis(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_secs_f64() * 1_000.0
}

pub(super) fn percentiles(case: &str, samples: &mut [f64]) -> Vec<Measurement> {
    let shares = [("p50", 0.5), ("p99", 0.99)];
    let measure = |(name, share): (&str, f64)| Measurement {
        bench: "jobs",
        case: format!("{case}, {name}"),
        value: percentile(samples, share),
        unit: "ms",
        against: None,
        ratio: None,
    };
    shares.map(measure).into()
}
