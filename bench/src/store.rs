//! Stores, beside the plain engine in an expert's hands and beside themselves under other conditions, in one run. Every write
//! is on disk when it is acknowledged.
//!
//! - [`by_hand`], [`by_hand_in_postgres`]: the same tables, written by a loop without the seam
//! - [`claimers`]: several who claim at once
//! - [`crowd`]: a store with a million finished jobs in it

mod by_hand;
mod by_hand_in_postgres;
mod claimers;
mod crowd;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, JobId, NodeId};
use rota_model::job::submission::{NewJob, Place};
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Document, Key, Write};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::Holder;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ground::{Ground, On};
use crate::report::{Measurement, percentile};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds per case of single writes and of reads
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Runs of each case; the median is reported
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Finished jobs in the crowded store
    #[arg(long, default_value_t = 1_000_000)]
    crowd: u64,
    /// Documents written in batches, and jobs that are drained
    #[arg(long, default_value_t = 100_000)]
    documents: u64,
    /// One group of cases alone
    #[arg(long, value_enum)]
    only: Option<Case>,
    /// The store that is measured
    #[arg(long, value_enum, default_value_t)]
    on: On,
}

const BATCH: usize = 1_000;

pub(crate) async fn run(options: &Options) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for case in options.only.map_or(Case::USUAL.to_vec(), |case| vec![case]) {
        measurements.extend(match case {
            Case::Batches => batches(options).await,
            Case::Lives => lives(options).await,
            Case::Singles => singles(options).await,
            Case::Reads => reads(options).await,
            Case::Claimers => claimers::run(options).await,
            Case::Crowd => crowd::run(options).await,
            Case::Variants => by_hand::variants(options),
        });
    }
    measurements
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Case {
    Batches,
    Lives,
    Singles,
    Reads,
    /// Several who claim at once
    Claimers,
    Crowd,
    /// Pages, columns and indexes, on plain SQLite
    Variants,
}

impl Case {
    const USUAL: [Case; 6] =
        [Case::Batches, Case::Lives, Case::Singles, Case::Reads, Case::Claimers, Case::Crowd];
}

/// A store of its own.
async fn stage(on: On) -> Ground {
    Ground::new(on, Durability::OnDisk).await
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Holder::take(folder, "a bench").unwrap()).unwrap()
}

/// A job as people submit it.
static TEMPLATE: LazyLock<Body> = LazyLock::new(|| {
    let payload = json!({"customer": 977, "address": "https://example.org/orders", "retries": [1, 5, 25]});
    let place = Place {
        domain: Domain::default(),
        job_id: JobId::derived(&["bench"]),
        job_number: 0,
        sections: 64,
        accepted_by: NodeId::derived(&["bench"]),
    };
    let job = NewJob::new("send the invoice", "noop", payload).into_job(place, START);
    let Value::Object(body) = serde_json::to_value(&job).unwrap() else { unreachable!() };
    body
});

const START: UnixMillis = UnixMillis(1_800_000_000_000);

/// A job under a number, an id and an instant of its own.
fn job(number: u64) -> (Key, Body) {
    let mut randomness = [0; 10];
    randomness[2..].copy_from_slice(&number.to_be_bytes());
    let now = UnixMillis(START.0 + number.cast_signed() / 50);
    let id = JobId::rising(now, &randomness).to_string();
    let mut body = TEMPLATE.clone();
    body["jobId"] = json!(id);
    body["jobNumber"] = json!(number);
    body["section"] = json!(number % 64);
    body["runAt"] = json!(now);
    body["metadata"]["createdAt"] = json!(now);
    body["metadata"]["updatedAt"] = json!(now);
    (Key::new(&JOBS, id), body)
}

fn creates(numbers: std::ops::Range<u64>) -> Vec<Write> {
    numbers.map(job).map(|(key, body)| Write::Create { key, body }).collect()
}

fn claim(max: usize) -> Claim {
    let due = Query::new(&JOBS, Order { fields: &["runAt", "jobNumber"], descending: false })
        .filter(Filter::Is("status", json!("QUEUED")))
        .filter(Filter::Is("lane", TEMPLATE["lane"].clone()))
        .filter(Filter::AtMost("runAt", i64::MAX))
        .filter(Filter::In("input.type", vec![json!("noop"), json!("wait")]))
        .limit(max);
    Claim {
        collection: &JOBS,
        from: vec![due],
        max,
        set: vec![
            ("status", json!("STARTED")),
            ("owner", json!("0198f2c0-5d5e-7000-8000-000000000001")),
            ("ownerNode", json!("0198f2c0-5d5e-7000-8000-000000000002")),
            ("startedAt", json!(1_800_000_100_000_i64)),
            ("metadata.updatedAt", json!(1_800_000_100_000_i64)),
        ],
        add_one: Some("epoch"),
        token: ("claimToken", ClaimToken::rising(UnixMillis(1), &[1; 10])),
    }
}

/// What ends a job.
fn settle(document: &Document) -> Write {
    let fields = vec![
        ("status", json!("SUCCESSFUL")),
        ("result", json!({"sent": true})),
        ("owner", Value::Null),
        ("claimToken", Value::Null),
        ("finishedAt", json!(1_800_000_100_005_i64)),
        ("metadata.updatedAt", json!(1_800_000_100_005_i64)),
    ];
    Write::Change { key: document.key.clone(), version: document.version, fields }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench")]
fn per_second(count: u64, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

fn measured(case: impl Into<String>, value: f64, unit: &'static str) -> Measurement {
    Measurement { bench: "store", case: case.into(), value, unit, against: None, ratio: None }
}

fn beside(mut measurement: Measurement, against: &str, other: f64) -> Measurement {
    measurement.ratio = Some(measurement.value / other);
    measurement.against = Some(against.to_owned());
    measurement
}

fn median(mut runs: Vec<f64>) -> f64 {
    percentile(&mut runs, 0.5)
}

/// Batches of a thousand, by one caller through the seam and by a loop without it, turn by turn; then by eight callers.
async fn batches(options: &Options) -> Vec<Measurement> {
    let (mut seam, mut hand, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..options.runs {
        eprintln!("batches of {BATCH}, run {}", run + 1);
        seam.push(batches_through_the_seam(options, 1).await);
        hand.push(match options.on {
            On::Sqlite => by_hand::batches(options.documents),
            On::Postgres => by_hand_in_postgres::batches(options.documents).await,
        });
        eight.push(batches_through_the_seam(options, 8).await);
    }
    let hand = median(hand);
    let case = format!("written in batches of {BATCH}");
    vec![
        measured(format!("{case} by hand, on the same tables"), hand, "documents/s"),
        beside(measured(case.clone(), median(seam), "documents/s"), "by hand", hand),
        beside(measured(format!("{case}, 8 callers"), median(eight), "documents/s"), "by hand", hand),
    ]
}

async fn batches_through_the_seam(options: &Options, callers: u64) -> f64 {
    let documents = options.documents;
    let stage = stage(options.on).await;
    let share = documents / callers;
    let mut ready: Vec<Vec<Vec<Write>>> = Vec::new();
    for caller in 0..callers {
        let first = caller * share;
        let starts = (first..first + share).step_by(BATCH);
        ready.push(starts.map(|start| creates(start..start + BATCH as u64)).collect());
    }
    let began = Instant::now();
    let callers = ready.into_iter().map(|batches| {
        let store = Arc::clone(&stage.store);
        tokio::spawn(async move {
            for batch in batches {
                store.write(batch).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    per_second(documents, began)
}

/// Jobs that wait are taken and ended, a thousand at a time; and whole lives, submitted too.
async fn lives(options: &Options) -> Vec<Measurement> {
    let (mut drained, mut lived) = (Vec::new(), Vec::new());
    for run in 0..options.runs {
        eprintln!("lives, run {}", run + 1);
        let stage = stage(options.on).await;
        let starts = (0..options.documents).step_by(BATCH);
        let batches: Vec<Vec<Write>> = starts.map(|start| creates(start..start + BATCH as u64)).collect();
        let began = Instant::now();
        for batch in batches {
            stage.store.write(batch).await.unwrap();
        }
        let filled = began.elapsed();
        let began = Instant::now();
        let drainers: Vec<_> = (0..2).map(|_| tokio::spawn(drain(Arc::clone(&stage.store)))).collect();
        let mut count = 0;
        for drainer in drainers {
            count += drainer.await.unwrap();
        }
        assert_eq!(count, options.documents);
        let drain = began.elapsed();
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench")]
        let count = options.documents as f64;
        drained.push(count / drain.as_secs_f64());
        lived.push(count / (filled + drain).as_secs_f64());
    }
    vec![
        measured(format!("jobs drained: claimed and ended, {BATCH} at a time"), median(drained), "jobs/s"),
        measured(format!("whole lives: made, claimed, ended, {BATCH} at a time"), median(lived), "jobs/s"),
    ]
}

/// Takes jobs and ends them until there are none: the results of one portion and the claim of the next share a commit.
async fn drain(store: Arc<dyn Store>) -> u64 {
    let (mut settled, mut count) = (Vec::new(), 0);
    loop {
        let (_, taken) = tokio::join!(store.write(std::mem::take(&mut settled)), store.claim(claim(BATCH)));
        let taken = taken.unwrap();
        if taken.is_empty() {
            return count;
        }
        count += taken.len() as u64;
        settled = taken.iter().map(settle).collect();
    }
}

/// One document per call, by one caller and by many.
async fn singles(options: &Options) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    let mut alone = None;
    for callers in [1, 8, 64] {
        let mut rates = Vec::new();
        for run in 0..options.runs {
            eprintln!("{callers} writers of single documents, run {}", run + 1);
            rates.push(single_writers(options.on, callers, Duration::from_secs(options.seconds)).await);
        }
        let rate = median(rates);
        let measurement = measured(format!("single documents, {callers} writers"), rate, "documents/s");
        measurements.push(match alone {
            Some(alone) => beside(measurement, "1 writer", alone),
            None => measurement,
        });
        alone.get_or_insert(rate);
    }
    measurements
}

async fn single_writers(on: On, callers: u64, span: Duration) -> f64 {
    let stage = stage(on).await;
    let numbers = Arc::new(AtomicU64::new(0));
    let (began, end) = (Instant::now(), Instant::now() + span);
    let writers = (0..callers).map(|_| {
        let (store, numbers) = (Arc::clone(&stage.store), Arc::clone(&numbers));
        tokio::spawn(async move {
            while Instant::now() < end {
                let (key, body) = job(numbers.fetch_add(1, Ordering::Relaxed));
                store.write(vec![Write::Create { key, body }]).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    per_second(numbers.load(Ordering::Relaxed), began)
}

/// Reading by id, on a store that is idle and beside one busy writer.
async fn reads(options: &Options) -> Vec<Measurement> {
    let stage = stage(options.on).await;
    let count = options.documents.min(50_000);
    for start in (0..count).step_by(BATCH) {
        stage.store.write(creates(start..start + BATCH as u64)).await.unwrap();
    }
    let keys: Vec<Key> = (0..count).map(|number| job(number).0).collect();
    let span = Duration::from_secs(options.seconds);
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for run in 0..options.runs {
        eprintln!("reads, run {}", run + 1);
        idle.push(read_for(&stage.store, &keys, span).await);
        let stop = Arc::new(AtomicBool::new(false));
        let writer =
            tokio::spawn(keep_writing(Arc::clone(&stage.store), (run as u64 + 1) << 40, Arc::clone(&stop)));
        busy.push(read_for(&stage.store, &keys, span).await);
        stop.store(true, Ordering::Relaxed);
        writer.await.unwrap();
    }
    let idle = median(idle);
    vec![
        measured("read by id, the store idle", idle, "documents/s"),
        beside(measured("read by id, a writer busy", median(busy), "documents/s"), "idle", idle),
    ]
}

async fn read_for(store: &Arc<dyn Store>, keys: &[Key], span: Duration) -> f64 {
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < span {
        let nth = usize::try_from(count * 7_919 % keys.len() as u64).unwrap();
        let found = store.read(vec![keys[nth].clone()]).await.unwrap();
        assert!(found[0].is_some());
        count += 1;
    }
    per_second(count, began)
}

/// One document after the other, as fast as they are acknowledged.
async fn keep_writing(store: Arc<dyn Store>, first: u64, stop: Arc<AtomicBool>) {
    for number in first.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (key, body) = job(number);
        store.write(vec![Write::Create { key, body }]).await.unwrap();
    }
}
