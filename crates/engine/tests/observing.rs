//! What the observer tells those who listen, and what that costs the store.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod stage;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::observer::{Listener, Moment, Topic};
use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_store::collection::Collection;
use rota_store::hints::{Changes, HintSender};
use rota_store::memory::MemoryStore;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Tally, Write, Written};
use rota_store::{Store, StoreError};
use serde_json::{Value, json};
use stage::Stage;
use tokio::time::{Instant, sleep};

/// A store that counts what is read of jobs, and may tell nobody what changed.
struct Watched {
    store: MemoryStore,
    /// Read by id, and counted.
    reads: AtomicU64,
    counts: AtomicU64,
    is_silent: AtomicBool,
    nobody: HintSender,
}

impl Watched {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new(),
            reads: AtomicU64::new(0),
            counts: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
            nobody: HintSender::default(),
        })
    }
}

#[async_trait]
impl Store for Watched {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        self.store.write(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let jobs = keys.iter().any(|key| key.collection.name == "jobs");
        self.reads.fetch_add(u64::from(jobs), Ordering::Relaxed);
        self.store.read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.store.find(query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        let one_domain = query.filters.iter().any(|filter| filter.path() == Some("domain"));
        self.counts.fetch_add(u64::from(one_domain), Ordering::Relaxed);
        self.store.count(query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        self.store.claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.store.sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        let silent = self.is_silent.load(Ordering::Relaxed);
        if silent { self.nobody.listen(collection) } else { self.store.changes(collection) }
    }
}

fn queue() -> Vec<Topic> {
    vec![Topic::Queue(Domain::default())]
}

fn later() -> NewJob {
    NewJob {
        run_at: Some(rota_model::time::UnixMillis(4_102_444_799_000)),
        ..NewJob::new("later", "noop", json!({}))
    }
}

fn said(moment: &Moment, kind: &str) -> Vec<Value> {
    moment
        .said()
        .filter(|said| said.kind == kind)
        .map(|said| serde_json::from_str(&said.json).unwrap())
        .collect()
}

/// The next moment that satisfies.
async fn until(listener: &mut Listener, satisfies: impl Fn(&Moment) -> bool) -> Arc<Moment> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let heard = listener.next(Duration::from_secs(5)).await.unwrap();
        if let Some(found) = heard.into_iter().find(|moment| satisfies(moment)) {
            return found;
        }
    }
    panic!("it was not told");
}

fn total(moment: &Moment) -> Option<u64> {
    said(moment, "counts").first().and_then(|counts| counts["total"].as_u64())
}

#[tokio::test(start_paused = true)]
async fn many_listeners_cost_one_read_and_none_cost_nothing() {
    let store = Watched::new();
    let stage = Stage::on(Arc::<Watched>::clone(&store));
    let node = stage.up("a").await;
    let reads = || (store.reads.load(Ordering::Relaxed), store.counts.load(Ordering::Relaxed));
    let before = reads();
    node.submit(later()).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(reads(), before, "nobody listens");

    let mut listeners: Vec<_> = (0..200).map(|_| node.observer.listen(queue())).collect();
    for listener in &mut listeners {
        until(listener, |moment| total(moment) == Some(1)).await;
    }
    assert_eq!(node.observer.listeners(), 200);
    let before = reads();
    let id = node.submit(later()).await;
    for listener in &mut listeners {
        let moment = until(listener, |moment| total(moment) == Some(2)).await;
        assert_eq!(said(&moment, "job")[0]["jobId"], json!(id));
    }
    let (jobs, counts) = reads();
    assert_eq!(jobs - before.0, 1, "one read for all of them");
    assert!(counts - before.1 <= 3 * 5, "{}", counts - before.1);

    drop(listeners);
    assert_eq!(node.observer.listeners(), 0);
    sleep(Duration::from_secs(10)).await;
    let before = reads();
    node.submit(later()).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(reads(), before, "nobody listens any more");
    node.stop().await;
}

/// No hint reaches the observer: it reads for itself every few seconds, and tells that there is more to see.
#[tokio::test(start_paused = true)]
async fn what_nobody_tells_is_found_by_reading() {
    let store = Watched::new();
    let stage = Stage::on(Arc::<Watched>::clone(&store));
    let node = stage.up("a").await;
    store.is_silent.store(true, Ordering::Relaxed);
    let mut listener = node.observer.listen([queue(), vec![Topic::Nodes]].concat());
    until(&mut listener, |moment| total(moment) == Some(0)).await;
    node.submit(later()).await;
    let moment = until(&mut listener, |moment| total(moment) == Some(1)).await;
    assert!(moment.is_incomplete(), "the job itself must be read");
    let seen = |moment: &Moment| said(moment, "node").first().and_then(|node| node["lastSeenAt"].as_i64());
    let first = until(&mut listener, |moment| seen(moment).is_some()).await;
    let next = until(&mut listener, |moment| seen(moment).is_some()).await;
    assert!(seen(&next) > seen(&first), "heartbeats are found, too");
    node.stop().await;
}

/// A flood is told as what it is: numbers, and that there is more to read, once a second.
#[tokio::test(start_paused = true)]
async fn a_flood_is_told_in_numbers() {
    let store = Watched::new();
    let stage = Stage::on(Arc::<Watched>::clone(&store));
    let node = stage.up("a").await;
    let mut listener = node.observer.listen(queue());
    until(&mut listener, |moment| total(moment) == Some(0)).await;
    let before = store.reads.load(Ordering::Relaxed);
    let flood = async {
        loop {
            node.desk.submit_all(&Domain::default(), vec![later(); 101]).await;
            sleep(Duration::from_millis(200)).await;
        }
    };
    let mut told = Vec::new();
    let listen = async {
        while told.len() < 5 {
            let moment = until(&mut listener, |_| true).await;
            assert!(moment.is_incomplete() && said(&moment, "job").is_empty());
            told.push((Instant::now(), total(&moment)));
        }
    };
    tokio::select! {
        () = listen => {}
        () = flood => {}
    }
    let totals: Vec<u64> = told.iter().filter_map(|(_, total)| *total).collect();
    assert!(totals.len() >= 4 && totals.is_sorted(), "{told:?}");
    assert!(told[4].0 - told[1].0 >= Duration::from_millis(2_900), "{told:?}");
    assert_eq!(store.reads.load(Ordering::Relaxed), before, "no job is read");
    node.stop().await;
}
