//! A page of 50 of the list of jobs, by each filter, among a great many of several domains, types and names: values that
//! everybody has, that few have and are old, and that nobody has. Over HTTP, on one connection.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::submission::Place;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::time::UnixMillis;
use rota_store_sqlite::durability::Durability;
use rota_testkit::process::KEY;
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Options;
use super::latency::millis;
use super::stage::{Stage, fill};
use crate::connection::Connection;
use crate::report::{Measurement, percentile};

pub(super) const CASE: &str = "lists, a page of 50";
const JOBS: &str = "/api/v1/domains/default/jobs";
/// Between two jobs, in milliseconds.
const APART: i64 = 10;
/// Those that are special are the oldest: whoever walks from the newest meets them last.
const FEW: u64 = 40;
const RUNNING: usize = 20;

/// What is asked for, and whether anything is found.
fn questions(count: usize) -> Vec<(&'static str, String, bool)> {
    let newest = BEGINNING.0 + i64::try_from(count).unwrap() * APART;
    let question = |name, query: &str, finds| (name, format!("{JOBS}?{query}"), finds);
    vec![
        question("all", "", true),
        question("status that most have", "status=SUCCESSFUL", true),
        question("status FAILED, 40 old ones", "status=FAILED", true),
        question("status QUEUED, 40 old ones", "status=QUEUED", true),
        question("status STARTED, 20", "status=STARTED", true),
        question("status ERROR, none", "status=ERROR", false),
        question("type that half have", "type=noop", true),
        question("type that 1 old one has", "type=rare", true),
        question("type that nobody has", "type=absent", false),
        question("type that only another domain has", "type=elsewhere", false),
        question("name that a hundredth has", "name=report%20of%20team%207", true),
        question("name that 1 old one has", "name=the%20only%20one", true),
        question("name that nobody has", "name=nobody", false),
        question("section of 64", "section=7", true),
        question("section that is none", "section=64", false),
        question("created after, the newest", &format!("createdAfter={}", newest - 60_000), true),
        question("created after, nothing yet", &format!("createdAfter={}", newest + 600_000_000), false),
        question("created before, the oldest", &format!("createdBefore={}", BEGINNING.0 + 60_000), true),
        question("word that everybody has", "text=report", true),
        question("word that a hundredth has", "text=7", true),
        question("word that 1 old one has", "text=only", true),
        question("word that nobody has", "text=nobody", false),
        question("two words, of which one is common", "text=report%20only", false),
    ]
}

/// Every third job is another domain's. Half have one type, half another.
fn job(mut place: Place) -> Job {
    let number = place.job_number;
    let special = number <= 3 * FEW;
    let ours = !number.is_multiple_of(3);
    place.domain = if ours { Domain::default() } else { "other".parse().unwrap() };
    let kind = match (ours, number) {
        (true, 1) => "rare",
        (true, _) if number.is_multiple_of(2) => "noop",
        (true, _) => "wait",
        (false, _) => "elsewhere",
    };
    let name =
        if number == 1 { "the only one".to_owned() } else { format!("report of team {}", number % 100) };
    let created = UnixMillis(BEGINNING.0 + i64::try_from(number).unwrap() * APART);
    let mut job = NewJob::new(name, kind, json!({"millis": 1})).into_job(place, created);
    (job.status, job.epoch, job.started_at) = (JobStatus::Successful, 1, Some(created));
    job.finished_at = Some(created);
    if special && number % 3 == 1 {
        (job.status, job.result) = (JobStatus::Failed, json!({"error": "no"}).as_object().unwrap().clone());
    } else if special && number % 3 == 2 {
        (job.status, job.epoch, job.started_at, job.finished_at) = (JobStatus::Queued, 0, None, None);
        job.run_at = UnixMillis::MAX;
    }
    job
}

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let (count, samples) = (options.crowd, options.samples);
    eprintln!("{CASE}: making {count} jobs");
    let stage = Stage::new(options.on, Durability::OnDisk, 0).await;
    fill(&stage.jobs, &Domain::default(), count, job).await;
    for _ in 0..RUNNING {
        let long = NewJob::new("long", "wait", json!({"millis": 3_600_000}));
        stage.desk.submit(&Domain::default(), long).await.unwrap();
    }
    until_words_are_found(&stage, count).await;
    let mut measurements = Vec::new();
    for (name, path, finds) in questions(count) {
        let (mut times, found) = ask(&stage, &path, samples).await;
        assert_eq!(found > 0, finds, "{name}: {found} found");
        let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        eprintln!("{CASE}, {name}: {found} found, p50 {p50:.2} ms, p99 {p99:.2} ms");
        measurements.push(told(format!("{CASE}, {name}: p50"), p50));
        measurements.push(told(format!("{CASE}, {name}: p99"), p99));
    }
    measurements.extend(counts(&stage, samples).await);
    measurements
}

async fn ask(stage: &Stage, path: &str, samples: usize) -> (Vec<f64>, usize) {
    let mut connection = Connection::asking(&stage.address, KEY, path).await;
    connection.call().await;
    let found = connection.count("\"jobId\"");
    let mut times = Vec::new();
    // A filter that walks through everything is known for that after a few.
    let end = Instant::now() + Duration::from_secs(10);
    while times.len() < samples && (times.len() < 20 || Instant::now() < end) {
        let began = Instant::now();
        connection.call().await;
        times.push(millis(began, Instant::now()));
    }
    (times, found)
}

/// Totals by status and by type, as the page shows them.
async fn counts(stage: &Stage, samples: usize) -> Vec<Measurement> {
    let (mut by_status, mut by_type) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let began = Instant::now();
        stage.jobs.totals(Some(&Domain::default())).await.unwrap();
        by_status.push(millis(began, Instant::now()));
        let began = Instant::now();
        stage.jobs.waiting().await.unwrap();
        by_type.push(millis(began, Instant::now()));
    }
    let case = |name: &str| format!("lists, counts by {name}: p99");
    vec![
        told(case("status in a domain"), percentile(&mut by_status, 0.99)),
        told(case("type of what waits"), percentile(&mut by_type, 0.99)),
    ]
}

/// The text index reads behind; the last job's number stands in nobody's name, so the newest of a team is looked for.
async fn until_words_are_found(stage: &Stage, count: usize) {
    let newest = (1..=count as u64).rev().find(|number| !number.is_multiple_of(3)).unwrap();
    let path = format!(
        "{JOBS}?limit=1&text=team%20{}&createdAfter={}",
        newest % 100,
        BEGINNING.0 + i64::try_from(newest).unwrap() * APART - 1
    );
    let mut connection = Connection::asking(&stage.address, KEY, &path).await;
    loop {
        connection.call().await;
        if connection.count("\"jobId\"") > 0 {
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

fn told(case: String, value: f64) -> Measurement {
    Measurement { bench: "jobs", case, value, unit: "ms", against: None, ratio: None }
}
