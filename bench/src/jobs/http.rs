//! Over HTTP, on the real program in a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::job::JobStatus;
use rota_model::time::UnixMillis;
use rota_testkit::process::{Home, KEY, Rota};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Options, per_second, rate};
use crate::connection::Connection;
use crate::ground::{On, fresh};
use crate::report::Measurement;

pub(super) const PATH: &str = "/api/v1/domains/default/jobs";

/// The end of the year 2099: jobs that wait for it are submitted, and that is all there is to do.
pub(super) const LATER: UnixMillis = UnixMillis(4_102_444_799_000);

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for (case, connections, batch) in [
        ("singly over 1 connection", 1, 1),
        ("singly over 8 connections", 8, 1),
        ("singly over 64 connections", 64, 1),
        ("in batches of 1,000 over 8 connections", 8, 1_000),
    ] {
        if !options.wants(&format!("over HTTP, {case}")) {
            continue;
        }
        let jobs = if connections == 1 { options.jobs / 6 } else { options.jobs };
        let (mut waiting, mut accepted, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..options.runs {
            eprintln!("over HTTP, {case}, run {}", run + 1);
            waiting.push(submit(options.on, jobs, connections, batch, false).await.0);
            let (accept, end) = submit(options.on, jobs, connections, batch, true).await;
            accepted.push(accept);
            ended.push(end);
        }
        measurements.push(rate(format!("over HTTP, {case}: accepted, none due"), &mut waiting));
        measurements.push(rate(format!("over HTTP, {case}: accepted, run meanwhile"), &mut accepted));
        measurements.push(rate(format!("over HTTP, {case}: from submit to end"), &mut ended));
    }
    measurements
}

/// A fresh installation each time, so that every run does the same work. Jobs per second, accepted and ended.
async fn submit(on: On, jobs: usize, connections: usize, batch: usize, due: bool) -> (f64, f64) {
    let home = Home::new(program());
    let rota = up(&home, on);
    let address = rota.url.trim_start_matches("http://").to_owned();
    let run_at = if due { 0 } else { LATER.0 };
    let job = json!({"jobName": "bench", "input": {"type": "noop", "payload": {}}, "runAt": run_at});
    let (path, body) = if batch == 1 {
        (PATH.to_owned(), job.to_string())
    } else {
        (format!("{PATH}/batch"), json!({"jobs": vec![job; batch]}).to_string())
    };
    let calls = jobs / connections / batch;
    let began = Instant::now();
    let callers: Vec<_> = (0..connections)
        .map(|_| {
            let (address, path, body) = (address.clone(), path.clone(), body.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(&address, KEY, &path, &body).await;
                for _ in 0..calls {
                    connection.call().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let accepted = per_second(calls * connections * batch, began.elapsed());
    if due {
        until_all_ended(&rota.url, calls * connections * batch).await;
    }
    (accepted, per_second(calls * connections * batch, began.elapsed()))
}

/// Asks for the totals, which are kept: a list of what waits would be looked for among all that has ended.
async fn until_all_ended(url: &str, jobs: usize) {
    let client = Client::new(url, KEY).unwrap();
    let ended = [JobStatus::Successful, JobStatus::Failed, JobStatus::Error];
    loop {
        let counts = client.job_counts(&Domain::default()).await.unwrap();
        if ended.iter().map(|status| counts.of("noop", *status)).sum::<u64>() >= jobs as u64 {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Starts it on a store of its own.
pub(super) fn up(home: &Home, on: On) -> Rota {
    match on {
        On::Sqlite => home.up(),
        On::Postgres => home.serve(&fresh(), &[]),
    }
}

/// The program that was built beside this one.
pub(super) fn program() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("rota")
}
