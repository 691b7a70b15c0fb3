//! A single job of one domain, beside a great many of another.

use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::{Holder, NewJob};
use rota_store::jobs::{Jobs, Share};
use rota_store_sqlite::durability::Durability;
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::latency::{millis, percentiles};
use super::stage::{Stage, fill};
use super::{Options, noop};
use crate::ground::{Ground, On};
use crate::report::Measurement;

pub(super) const CASE: &str = "sharing, a single job beside many of another domain";

/// What another domain does: it keeps all slots busy, and frees one every third of a millisecond.
const BUSY: Duration = Duration::from_millis(20);

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let (on, waiting, samples) = (options.on, options.crowd, options.samples);
    let mut measurements = claims(on, waiting, samples).await;
    measurements.extend(starts(on, waiting, samples).await);
    measurements
}

fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

struct Queue {
    jobs: Jobs,
    _ground: Ground,
}

async fn queue(on: On, waiting: usize) -> Queue {
    let ground = Ground::new(on, Durability::OnDisk).await;
    let jobs = Jobs::new(Arc::clone(&ground.store));
    fill(&jobs, &domain("many"), waiting, |place| noop().into_job(place, BEGINNING)).await;
    Queue { jobs, _ground: ground }
}

/// What it costs the store to find and claim it, in turns with an empty queue.
async fn claims(on: On, waiting: usize, samples: usize) -> Vec<Measurement> {
    eprintln!("{CASE}: {samples} claims beside {waiting} jobs");
    let queues = [queue(on, 0).await, queue(on, waiting).await];
    let (mut looks, mut claims) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for sample in 0..samples {
        for (nth, queue) in queues.iter().enumerate() {
            let (look, claim) = claim(&queue.jobs, sample).await;
            looks[nth].push(look);
            claims[nth].push(claim);
        }
    }
    let told = |what: &str, [empty, crowded]: &mut [Vec<f64>; 2]| {
        let mut measured = percentiles(&format!("{CASE}: {what}"), crowded);
        for (case, plain) in measured.iter_mut().zip(percentiles("", empty)) {
            case.against = Some("an empty queue, in turns".to_owned());
            case.ratio = Some(case.value / plain.value);
        }
        measured
    };
    let mut measurements = told("a look at what waits", &mut looks);
    measurements.extend(told("the claim", &mut claims));
    measurements
}

async fn claim(jobs: &Jobs, sample: usize) -> (f64, f64) {
    let holder = Holder { node: NodeId::derived(&["bench"]), incarnation: Incarnation::derived(&["bench"]) };
    let place = rota_model::job::submission::Place {
        domain: domain("few"),
        job_id: JobId::derived(&["few", &sample.to_string()]),
        job_number: 10_000_000 + sample as u64,
        sections: 64,
        accepted_by: holder.node,
    };
    jobs.create(noop().into_job(place, BEGINNING)).await.unwrap();
    let began = Instant::now();
    let lanes = jobs.lanes(None, 256).await.unwrap().lanes;
    let looked = Instant::now();
    let lane = lanes.into_iter().filter_map(|(lane, _)| lane).find(|lane| lane.starts_with("few|"));
    let from = [Share { lane, types: vec!["noop".to_owned()], limit: 1 }];
    let token = ClaimToken::derived(&[&sample.to_string()]);
    let claimed = jobs.claim_due(BEGINNING, holder, &from, None, token, 1).await.unwrap();
    assert_eq!(claimed.len(), 1);
    (millis(began, looked), millis(looked, Instant::now()))
}

/// From its submission to the start of its handler, while a node works through all the others.
async fn starts(on: On, waiting: usize, samples: usize) -> Vec<Measurement> {
    eprintln!("{CASE}: {samples} starts beside {waiting} jobs");
    let stage = Stage::new(on, Durability::OnDisk, 0).await;
    let work = || NewJob::new("bench", "wait", json!({"millis": BUSY.as_millis()}));
    fill(&stage.jobs, &domain("many"), waiting, |place| work().into_job(place, BEGINNING)).await;
    sleep(Duration::from_secs(2)).await;
    let mut started = stage.started.lock().await;
    let mut spans = Vec::new();
    for _ in 0..samples {
        let began = Instant::now();
        stage.desk.submit(&domain("few"), NewJob::new("bench", "stamp", json!({}))).await.unwrap();
        spans.push(millis(began, started.recv().await.unwrap()));
        sleep(Duration::from_millis(3)).await;
    }
    percentiles(&format!("{CASE}: submit to handler start, all slots taken"), &mut spans)
}
