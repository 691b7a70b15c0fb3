//! A store that one process alone has open, as the embedded one is: whoever starts on it is the only one that lives. It buries
//! all others, and takes up at once what they held, however often the process dies.

mod stage;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::node::NodeOptions;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobEvent, JobStatus};
use rota_model::node::NodeStatus;
use rota_store::collection::Collection;
use rota_store::hints::Changes;
use rota_store::memory::MemoryStore;
use rota_store::nodes::Nodes;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Tally, Write, Written};
use rota_store::{Store, StoreError};
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Running, Stage, act};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The store in memory, as if one process alone could open it.
struct Alone(MemoryStore);

#[async_trait]
impl Store for Alone {
    fn promises(&self) -> Promises {
        Promises { exclusive: true, ..self.0.promises() }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        self.0.write(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        self.0.read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.0.find(query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        self.0.count(query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        self.0.claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.0.sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.0.changes(collection)
    }
}

/// Whether its process is no more: then nothing of it reaches the store.
#[derive(Default)]
struct Dead(AtomicBool);

impl Fate for Dead {
    fn of(&self, _: &Call<'_>) -> Lot {
        let effect = if self.0.load(Ordering::Relaxed) { Effect::Fails } else { Effect::Done };
        Lot { effect, ..Lot::CALM }
    }
}

struct World {
    stage: Stage,
    truth: Arc<Truth>,
}

impl World {
    fn new() -> Self {
        let truth = Truth::new(Arc::new(Alone(MemoryStore::new())));
        Self { stage: Stage::on(Arc::clone(truth.store())), truth }
    }

    fn open(&self) -> (Arc<dyn Store>, Arc<Dead>) {
        let dead = Arc::new(Dead::default());
        (Arc::new(FaultyStore::new(&self.truth, Arc::clone(&dead) as Arc<dyn Fate>)), dead)
    }

    /// A process that takes jobs and dies some time later.
    async fn live_and_die(&self, options: NodeOptions, jobs: u32, lives: Duration) -> Vec<JobId> {
        let (store, dead) = self.open();
        let node: Running = self.stage.up_on(store, options).await;
        let mut made = Vec::new();
        for nth in 0..jobs {
            made.push(node.submit(act(json!({"steps": 1 + 4 * nth}))).await);
        }
        sleep(lives).await;
        dead.0.store(true, Ordering::Relaxed);
        node.die();
        made
    }
}

#[tokio::test(start_paused = true)]
async fn who_starts_alone_buries_the_others_and_takes_up_what_they_held() {
    let world = World::new();
    let stage = &world.stage;
    let mut made = Vec::new();
    for round in 0..12_u32 {
        // The same node again, or another on the same files.
        let name = if round % 5 == 3 { "other" } else { "one" };
        let lives = Duration::from_millis(u64::from(round * 370 % 900));
        made.extend(world.live_and_die(Stage::options(name), 3, lives).await);
        let (store, dead) = world.open();
        let node = stage.join(store, Stage::options("one")).await;
        let own = stage.state(Stage::options("one").id).await;
        assert_eq!(stage.jobs().holders().await.unwrap(), [], "nobody else holds anything any more");
        for state in Nodes::new(Arc::clone(&stage.store)).all().await.unwrap() {
            let is_own = state.document.id == own.id;
            assert_eq!(state.document.status == NodeStatus::Terminated, !is_own, "{:?}", state.document.name);
        }
        // Killed before it did anything.
        dead.0.store(true, Ordering::Relaxed);
        drop(node);
    }
    let (store, _) = world.open();
    let (node, stop) = (stage.join(store, Stage::options("one")).await, CancellationToken::new());
    let desk = Arc::clone(&node.desk);
    let running = tokio::spawn(node.run(stop.clone()));
    let mut lost = 0;
    for id in made {
        let patience = Duration::from_secs(300);
        let job = desk.wait(&Domain::default(), id, patience).await.unwrap().unwrap().document;
        assert_eq!((job.status, job.attempt), (JobStatus::Successful, 1), "{job:?}");
        assert_eq!(job.result.get("epoch"), Some(&json!(job.epoch)), "a result of the last epoch");
        let losses = job.history.iter().filter(|entry| entry.event == JobEvent::Lose).count();
        assert_eq!(u32::try_from(losses).unwrap(), job.lost);
        lost += job.lost;
    }
    assert!(lost > 5, "the deaths hit running jobs: {lost}");
    stop.cancel();
    running.await.unwrap();
}
