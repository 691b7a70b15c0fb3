//! What listeners cost that only listen: memory of the real program, and the speed of submissions beside them.
//!
//! They listen to the domain that the jobs are submitted to, so that each of them is told of what happens; nobody could be
//! more in the way without asking for anything.

use std::time::Duration;

use rota_testkit::process::{Home, KEY};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::http::{PATH, program, up};
use super::{Options, per_second};
use crate::connection::Connection;
use crate::ground::On;
use crate::report::{Measurement, percentile};

pub(super) const CASE: &str = "listeners";

const CONNECTIONS: usize = 8;

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let count = options.listeners;
    let (mut alone, mut beside, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..options.runs {
        eprintln!("{count} listeners, run {}", run + 1);
        alone.push(measure(options.on, options.jobs, 0).await.0);
        let (rate, bytes) = measure(options.on, options.jobs, count).await;
        beside.push(rate);
        memory.push(bytes);
    }
    let (alone, beside) = (percentile(&mut alone, 0.5), percentile(&mut beside, 0.5));
    let measurement = |case: String, value, unit, ratio: Option<f64>| Measurement {
        bench: "jobs",
        case,
        value,
        unit,
        against: ratio.map(|_| "nobody listening".to_owned()),
        ratio,
    };
    let mega = percentile(&mut memory, 0.5) / 1e6;
    vec![
        measurement(
            "over HTTP, singly over 8 connections, nobody listening".to_owned(),
            alone,
            "jobs/s",
            None,
        ),
        measurement(
            format!("over HTTP, singly over 8 connections, beside {count} listeners"),
            beside,
            "jobs/s",
            Some(beside / alone),
        ),
        measurement(format!("memory of {count} listeners"), mega, "MB", None),
    ]
}

/// Jobs per second that are accepted, and what the listeners cost in memory before that.
async fn measure(on: On, jobs: usize, count: usize) -> (f64, f64) {
    let home = Home::new(program());
    let rota = up(&home, on);
    let address = rota.url.trim_start_matches("http://").to_owned();
    // Warm: what the first requests need is not what listeners cost.
    submit(&address, 2_000).await;
    sleep(Duration::from_secs(1)).await;
    let before = resident_bytes(rota.id());
    let mut listeners = JoinSet::new();
    for _ in 0..count {
        let stream = listen(&address).await;
        listeners.spawn(hear(stream));
    }
    sleep(Duration::from_secs(2)).await;
    let cost = resident_bytes(rota.id()) - before;
    let began = Instant::now();
    submit(&address, jobs).await;
    let rate = per_second(jobs / CONNECTIONS * CONNECTIONS, began.elapsed());
    assert_eq!(listeners.len(), count, "all of them still listen");
    (rate, cost)
}

async fn submit(address: &str, jobs: usize) {
    // Due at the end of the year 2099: what is measured is the submission.
    let body =
        json!({"jobName": "bench", "input": {"type": "noop", "payload": {}}, "runAt": 4_102_444_799_000_i64});
    let body = body.to_string();
    let mut callers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, body) = (address.to_owned(), body.clone());
        callers.spawn(async move {
            let mut connection = Connection::open(&address, KEY, PATH, &body).await;
            for _ in 0..jobs / CONNECTIONS {
                connection.call().await;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}

async fn listen(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /api/v1/domains/default/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    stream
}

/// Reads on, as a browser would, with as little memory as possible.
async fn hear(mut stream: TcpStream) {
    let mut piece = [0; 1_024];
    while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
}

fn resident_bytes(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1_024.0
}
