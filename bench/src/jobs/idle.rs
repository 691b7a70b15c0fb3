//! What a node costs that has nothing to do: time of a core, and calls to its store.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::node::Node;
use rota_engine::types::JobTypes;
use rota_store::collection::Collection;
use rota_store::hints::Changes;
use rota_store::memory::MemoryStore;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Tally, Write, Written};
use rota_store::{Store, StoreError, settings};
use rota_testkit::process::Home;
use rota_testkit::surroundings::surroundings;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::http::{program, up};
use super::stage::options;
use crate::ground::On;
use crate::report::Measurement;

const SPAN: Duration = Duration::from_secs(10);

pub(super) async fn run(on: On) -> Vec<Measurement> {
    let measurement = |case: &str, value, unit| Measurement {
        bench: "jobs",
        case: case.to_owned(),
        value,
        unit,
        against: None,
        ratio: None,
    };
    vec![
        measurement("idle, share of a core", core_share(on).await * 100.0, "%"),
        measurement("idle, calls to the store", store_calls().await, "calls/s"),
    ]
}

/// Of the real program.
async fn core_share(on: On) -> f64 {
    eprintln!("idle for {SPAN:?}");
    let home = Home::new(program());
    let rota = up(&home, on);
    sleep(Duration::from_secs(3)).await;
    let before = cpu_seconds(rota.id());
    sleep(SPAN).await;
    (cpu_seconds(rota.id()) - before) / SPAN.as_secs_f64()
}

/// Waits until this process has nothing to do any more: the index of words follows behind what was written.
pub(super) async fn at_rest() {
    const MOMENT: Duration = Duration::from_millis(500);
    loop {
        let before = cpu_seconds(std::process::id());
        sleep(MOMENT).await;
        if cpu_seconds(std::process::id()) - before <= 0.02 {
            return;
        }
    }
}

/// What the system has counted for a process, in hundredths of a second.
fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

async fn store_calls() -> f64 {
    let store = Arc::new(Counting { store: MemoryStore::new(), calls: AtomicU64::new(0) });
    let shared: Arc<dyn Store> = Arc::<Counting>::clone(&store);
    let surroundings = surroundings();
    let settings = settings::open(Arc::clone(&shared), surroundings.now().to_date()).await.unwrap();
    let types = Arc::new(JobTypes::built_in().unwrap());
    let node = Node::join(shared, &settings, options(), types, surroundings).await.unwrap();
    tokio::spawn(node.run(CancellationToken::new()));
    sleep(Duration::from_secs(2)).await;
    let before = store.calls.load(Ordering::Relaxed);
    sleep(SPAN).await;
    let calls = u32::try_from(store.calls.load(Ordering::Relaxed) - before).unwrap();
    f64::from(calls) / SPAN.as_secs_f64()
}

/// Counts what is asked of it.
struct Counting {
    store: MemoryStore,
    calls: AtomicU64,
}

impl Counting {
    fn store(&self) -> &MemoryStore {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.store
    }
}

#[async_trait]
impl Store for Counting {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        self.store().write(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        self.store().read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.store().find(query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        self.store().count(query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        self.store().claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.store().sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.store.changes(collection)
    }
}
