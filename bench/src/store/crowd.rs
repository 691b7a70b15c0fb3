//! A store with a million finished jobs: what is due, a page deep in the list, and deleting what is old.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_model::time::UnixMillis;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Document, Write};
use rota_store::{Store, sweep};
use rota_store_sqlite::stats::{Stats, stats};
use serde_json::json;
use tokio::time::Instant;

use super::{BATCH, Options, beside, claim, creates, job, measured, median, open, stage};
use crate::ground::{Ground, On};
use crate::report::Measurement;

const PAGE: usize = 50;
const NEWEST: Order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let (empty, mut crowded) = (stage(options.on).await, stage(options.on).await);
    fill(&crowded.store, options.crowd).await;
    let mut measurements = Vec::new();
    if options.on == On::Sqlite {
        measurements.extend(sizes(&crowded, options.crowd).await);
        crowded = reopen(crowded, &mut measurements);
    }
    measurements.extend(claims(options, &empty.store, &crowded.store).await);
    measurements.extend(pages(options, &crowded.store).await);
    measurements.extend(deletes(options, &crowded.store).await);
    measurements
}

async fn fill(store: &Arc<dyn Store>, count: u64) {
    eprintln!("making {count} finished jobs");
    let finished = |write: Write| match write {
        Write::Create { key, mut body } => {
            body["status"] = json!("SUCCESSFUL");
            body["result"] = json!({"sent": true});
            body.insert("finishedAt".to_owned(), json!(1_800_000_100_005_i64));
            Write::Create { key, body }
        }
        other => other,
    };
    for start in (0..count).step_by(BATCH) {
        let batch = creates(start..(start + BATCH as u64).min(count));
        store.write(batch.into_iter().map(finished).collect()).await.unwrap();
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a bench")]
async fn sizes(stage: &Ground, count: u64) -> Vec<Measurement> {
    let (stats, lag) = indexed(stage).await;
    let jobs = stats.collections.iter().find(|collection| collection.name == "jobs").unwrap();
    let each = |bytes: u64| bytes as f64 / count as f64;
    let text: String = creates(0..1)
        .into_iter()
        .map(|write| match write {
            Write::Create { body, .. } => serde_json::Value::Object(body).to_string(),
            _ => String::new(),
        })
        .collect();
    let memory = resident_bytes();
    vec![
        measured("a job as JSON text", text.len() as f64, "bytes"),
        measured("on disk per finished job, the document", each(jobs.document_bytes), "bytes"),
        measured("on disk per finished job, its indexes", each(jobs.index_bytes), "bytes"),
        measured("on disk per finished job, its words", each(stats.text_bytes), "bytes"),
        measured("the text index is done after the last write by", lag, "s"),
        measured(format!("in memory per document, {count} of them"), memory as f64 / count as f64, "bytes"),
        measured("in memory in all", memory as f64 / 1_048_576.0, "MiB"),
    ]
}

/// The store once its text index has come to the end, and how long that took.
async fn indexed(stage: &Ground) -> (Stats, f64) {
    let began = Instant::now();
    let (key, mut body) = job(u64::MAX >> 20);
    body["jobName"] = json!("zanzibar");
    body["status"] = json!("SUCCESSFUL");
    stage.store.write(vec![Write::Create { key, body }]).await.unwrap();
    let by_word = || Query::new(&JOBS, Order::BY_ID).filter(Filter::Text("zanzibar".to_owned()));
    while stage.store.find(by_word()).await.unwrap().documents.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    (stats(stage.folder()).unwrap(), began.elapsed().as_secs_f64())
}

/// What this process occupies, caches included.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

fn reopen(stage: Ground, measurements: &mut Vec<Measurement>) -> Ground {
    let folder = stage.closed();
    let began = Instant::now();
    let store = Arc::new(open(folder.path()));
    let case = "opening the crowded store";
    measurements.push(measured(case, began.elapsed().as_secs_f64() * 1_000.0, "ms"));
    Ground::in_folder(store, folder)
}

/// A hundred due jobs are made and taken, again and again, on both stores in turn.
async fn claims(options: &Options, empty: &Arc<dyn Store>, crowded: &Arc<dyn Store>) -> Vec<Measurement> {
    let (mut alone, mut beside_many) = (Vec::new(), Vec::new());
    for round in 0..options.runs as u64 * 20 {
        for (store, samples) in [(empty, &mut alone), (crowded, &mut beside_many)] {
            let first = (1 << 41) + round * 100;
            store.write(creates(first..first + 100)).await.unwrap();
            let began = Instant::now();
            let taken = store.claim(claim(100)).await.unwrap();
            samples.push(began.elapsed().as_secs_f64() * 1_000.0);
            assert_eq!(taken.len(), 100);
            store.write(taken.iter().map(super::settle).collect()).await.unwrap();
        }
    }
    let alone = median(alone);
    vec![
        measured("claim of 100 due jobs, an empty store", alone, "ms"),
        beside(
            measured("claim of 100 due jobs, the crowded store", median(beside_many), "ms"),
            "empty",
            alone,
        ),
    ]
}

async fn pages(options: &Options, store: &Arc<dyn Store>) -> Vec<Measurement> {
    let query = || Query::new(&JOBS, NEWEST).filter(Filter::Is("domain", json!("default"))).limit(PAGE);
    // The cursor of a page in the middle, made as the list itself would make it.
    let (key, body) = job(options.crowd / 2);
    let middle = Document { key, version: rota_store::seam::Version(1), body };
    let deep = rota_store::cursor::Cursor::behind(&middle, &query());
    let (mut first_page, mut deep_page) = (Vec::new(), Vec::new());
    for _ in 0..options.runs * 50 {
        for (after, samples) in [(None, &mut first_page), (Some(deep.clone()), &mut deep_page)] {
            let began = Instant::now();
            let page = store.find(query().after(after)).await.unwrap();
            samples.push(began.elapsed().as_secs_f64() * 1_000_000.0);
            assert_eq!(page.documents.len(), PAGE);
        }
    }
    let first = median(first_page);
    let waiting = rare_page(options, store).await;
    let began = Instant::now();
    let totals = store.count(query(), Some("status")).await.unwrap();
    let counted = began.elapsed().as_secs_f64() * 1_000_000.0;
    assert!(!totals.is_empty());
    vec![
        measured(format!("the first page of {PAGE}"), first, "us"),
        beside(
            measured(format!("a page of {PAGE} in the middle"), median(deep_page), "us"),
            "the first",
            first,
        ),
        beside(measured("the jobs that wait, ten of the oldest", waiting, "us"), "the first", first),
        measured("totals by status", counted, "us"),
    ]
}

/// Ten jobs that wait, older than all that have ended.
async fn rare_page(options: &Options, store: &Arc<dyn Store>) -> f64 {
    let old = |nth: u64| {
        let (key, mut body) = job((1 << 44) + nth);
        body["metadata"]["createdAt"] = json!(nth);
        Write::Create { key, body }
    };
    store.write((0..10).map(old).collect()).await.unwrap();
    let waiting = || {
        let mine = Query::new(&JOBS, NEWEST).filter(Filter::Is("domain", json!("default")));
        mine.filter(Filter::Is("status", json!("QUEUED"))).limit(PAGE)
    };
    let mut samples = Vec::new();
    for _ in 0..options.runs * 20 {
        let began = Instant::now();
        let page = store.find(waiting()).await.unwrap();
        samples.push(began.elapsed().as_secs_f64() * 1_000_000.0);
        assert_eq!(page.documents.len(), 10);
    }
    median(samples)
}

/// Old jobs leave in slices while somebody else writes: how long does the other wait?
async fn deletes(options: &Options, store: &Arc<dyn Store>) -> Vec<Measurement> {
    let count = options.crowd / 10;
    eprintln!("deleting {count} old jobs");
    let quiet = waits_while(store, 1 << 42, tokio::time::sleep(std::time::Duration::from_secs(2))).await;
    let began = Instant::now();
    let mut spans = (0.0, 0.0);
    let waits = waits_while(store, 1 << 43, async {
        spans.0 = in_slices(count, || hide(store)).await;
        spans.1 =
            in_slices(count, || sweep::purge_hidden(store.as_ref(), &JOBS, UnixMillis(i64::MAX), BATCH))
                .await;
    })
    .await;
    let all = began.elapsed().as_secs_f64();
    vec![
        measured(format!("{count} jobs deleted in slices of {BATCH}: hidden, then purged"), all, "s"),
        measured("of that, hiding", spans.0, "s"),
        measured("of that, purging", spans.1, "s"),
        measured("longest wait of a single write meanwhile", waits, "ms"),
        measured("longest wait of a single write beside nothing", quiet, "ms"),
    ]
}

async fn in_slices<F: Future<Output = Result<u64, rota_store::StoreError>>>(
    count: u64,
    slice: impl Fn() -> F,
) -> f64 {
    let began = Instant::now();
    let mut done = 0;
    while done < count {
        done += slice().await.unwrap();
    }
    began.elapsed().as_secs_f64()
}

/// One slice of the oldest.
async fn hide(store: &Arc<dyn Store>) -> Result<u64, rota_store::StoreError> {
    let oldest = Query::new(&JOBS, Order { fields: &["metadata.createdAt", "jobNumber"], descending: false })
        .filter(Filter::Is("domain", json!("default")))
        .keys_only()
        .limit(BATCH);
    let page = store.find(oldest).await?;
    let delete =
        |found: Document| Write::Delete { key: found.key, version: found.version, at: UnixMillis(1) };
    let written = store.write(page.documents.into_iter().map(delete).collect()).await?;
    Ok(written.len() as u64)
}

async fn waits_while(store: &Arc<dyn Store>, first: u64, work: impl Future<Output = ()>) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let (writing, stopped) = (Arc::clone(store), Arc::clone(&stop));
    let writer = tokio::spawn(async move {
        let mut longest = 0.0_f64;
        for number in first.. {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let (key, body) = job(number);
            let began = Instant::now();
            writing.write(vec![Write::Create { key, body }]).await.unwrap();
            longest = longest.max(began.elapsed().as_secs_f64() * 1_000.0);
        }
        longest
    });
    work.await;
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap()
}
