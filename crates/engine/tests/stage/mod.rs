//! A store in memory, nodes on it, and time that the test moves.
#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]
#![allow(clippy::allow_attributes, reason = "what is unused differs from one test file to the next")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::desk::JobDesk;
use rota_engine::fleet::Fleet;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::journal::Journal;
use rota_engine::logbook::Logbook;
use rota_engine::node::{Node, NodeOptions};
use rota_engine::observer::Observer;
use rota_engine::surroundings::Surroundings;
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{Job, NewJob};
use rota_model::log::Level;
use rota_model::node::{NodeRole, NodeState};
use rota_store::collection::Collection;
use rota_store::jobs::Jobs;
use rota_store::memory::MemoryStore;
use rota_store::nodes::Nodes;
use rota_store::query::{Order, Query};
use rota_store::{Store, StoreError, Versioned, settings};
use rota_testkit::surroundings::surroundings;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What handlers did: a word, the job and its epoch.
pub(crate) type Record = Arc<Mutex<Vec<(&'static str, JobId, u64)>>>;

pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) surroundings: Surroundings,
    pub(crate) record: Record,
    /// Whether what nodes say is kept.
    pub(crate) heard: bool,
}

/// A node that runs.
pub(crate) struct Running {
    pub(crate) desk: Arc<JobDesk>,
    pub(crate) fleet: Fleet,
    pub(crate) logbook: Logbook,
    pub(crate) observer: Observer,
    pub(crate) id: NodeId,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        Self { store, surroundings: surroundings(), record: Record::default(), heard: false }
    }

    /// What nodes say is kept.
    pub(crate) fn heard(self) -> Self {
        Self { heard: true, ..self }
    }

    pub(crate) fn options(name: &str) -> NodeOptions {
        NodeOptions {
            id: NodeId::derived(&[name]),
            name: name.to_owned(),
            version: "test".to_owned(),
            roles: vec![NodeRole::Web, NodeRole::Processor, NodeRole::Observer],
            capacity: 8,
            controllable: true,
            grace: Duration::from_secs(2),
            registry: true,
        }
    }

    pub(crate) async fn join(&self, store: Arc<dyn Store>, options: NodeOptions) -> Node {
        self.try_join(store, options).await.unwrap()
    }

    pub(crate) async fn try_join(
        &self,
        store: Arc<dyn Store>,
        options: NodeOptions,
    ) -> Result<Node, StoreError> {
        let settings = settings::open(Arc::clone(&store), self.surroundings.now().to_date()).await.unwrap();
        let mut types = JobTypes::built_in().unwrap();
        types.add("act", &json!({}), Arc::new(Actor(Arc::clone(&self.record)))).unwrap();
        types.add_foreign("elsewhere", &json!({})).unwrap();
        let mut surroundings = self.surroundings.clone();
        if self.heard {
            surroundings = surroundings.heard_by(Journal::new(options.id, Level::Info, &self.surroundings));
        }
        Node::join(store, &settings, options, Arc::new(types), surroundings).await
    }

    pub(crate) async fn up(&self, name: &str) -> Running {
        self.up_with(Self::options(name)).await
    }

    pub(crate) async fn up_with(&self, options: NodeOptions) -> Running {
        self.up_on(Arc::clone(&self.store), options).await
    }

    /// With a view of its own of the store.
    pub(crate) async fn up_on(&self, store: Arc<dyn Store>, options: NodeOptions) -> Running {
        let id = options.id;
        let node = self.join(store, options).await;
        let (desk, fleet, logbook) = (Arc::clone(&node.desk), node.fleet.clone(), node.logbook.clone());
        let observer = node.observer.clone();
        let stop = CancellationToken::new();
        let task = tokio::spawn(node.run(stop.clone()));
        // Until it has looked at the queue once.
        sleep(Duration::from_millis(300)).await;
        Running { desk, fleet, logbook, observer, id, stop, task }
    }

    pub(crate) fn jobs(&self) -> Jobs {
        Jobs::new(Arc::clone(&self.store))
    }

    /// How many documents a collection holds.
    pub(crate) async fn count(&self, collection: &'static Collection) -> u64 {
        let all = self.store.count(Query::new(collection, Order::BY_ID), None).await.unwrap();
        all.iter().map(|tally| tally.count).sum()
    }

    pub(crate) async fn job(&self, id: JobId) -> Versioned<Job> {
        self.jobs().get_any(id).await.unwrap().unwrap()
    }

    pub(crate) async fn state(&self, id: NodeId) -> NodeState {
        Nodes::new(Arc::clone(&self.store)).get(id).await.unwrap().unwrap().document
    }

    pub(crate) fn record(&self) -> Vec<(&'static str, JobId, u64)> {
        self.record.lock().unwrap().clone()
    }
}

impl Running {
    pub(crate) async fn submit(&self, job: NewJob) -> JobId {
        self.desk.submit(&Domain::default(), job).await.unwrap().job().document.job_id
    }

    pub(crate) async fn ended(&self, id: JobId) -> Job {
        let patience = Duration::from_secs(600);
        let job = self.desk.wait(&Domain::default(), id, patience).await.unwrap().unwrap().document;
        assert!(job.status.is_terminal(), "{job:?}");
        job
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Whether it has stopped of itself.
    pub(crate) fn has_stopped(&self) -> bool {
        self.task.is_finished()
    }

    /// As if the process were killed, as far as one task can be: what it began elsewhere goes on until its lease is over.
    pub(crate) fn die(self) {
        self.task.abort();
    }
}

/// Acts by its payload, and records what it does.
struct Actor(Record);

impl Actor {
    fn note(&self, word: &'static str, job: &Context) {
        self.0.lock().unwrap().push((word, job.job_id, job.epoch));
    }
}

#[async_trait]
impl Handler for Actor {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        self.note("begun", &job);
        let number = |name: &str| job.payload.get(name).and_then(Value::as_u64).unwrap_or(0);
        for nth in 0..number("lines") {
            job.log(Level::Info, format!("line {nth}"));
        }
        if let Some(text) = job.payload.get("say").and_then(Value::as_str) {
            job.log(Level::Warn, text.repeat(usize::try_from(number("times").max(1)).unwrap()));
        }
        for step in 0..number("steps") {
            let percent = u32::try_from(step * 100 / number("steps")).unwrap();
            job.progress(f64::from(percent), format!("step {step}"));
            tokio::select! {
                () = sleep(Duration::from_millis(100)) => {}
                () = job.cancelled.cancelled(), if !job.payload.contains_key("stubborn") => {
                    self.note("stopped", &job);
                    return Err(HandlerError::Stopped);
                }
            }
        }
        assert!(!job.payload.contains_key("panic"), "on purpose");
        if job.payload.contains_key("absurd") {
            job.progress(f64::NAN, format!("a NUL: \0, and more: {}", "x".repeat(100_000)));
            sleep(Duration::from_secs(3)).await;
        }
        if let Some(left) = job.time_left() {
            return Ok(Map::from_iter([("leftMs".to_owned(), json!(left.as_millis()))]));
        }
        if number("large") > 0 {
            let large = "x".repeat(usize::try_from(number("large")).unwrap());
            return Ok(Map::from_iter([("large".to_owned(), json!(large))]));
        }
        if number("failures") >= u64::from(job.attempt) {
            return Err(HandlerError::Failed(format!("no luck at attempt {}", job.attempt)));
        }
        if job.payload.contains_key("fatal") {
            return Err(HandlerError::Fatal("it will never work".to_owned()));
        }
        if let Some(at) = job.payload.get("retryAt").and_then(Value::as_i64).filter(|_| job.attempt == 1) {
            let at = rota_model::time::UnixMillis(at);
            return Err(HandlerError::RetryAt { at, why: "busy".to_owned() });
        }
        self.note("ended", &job);
        Ok(Map::from_iter([("epoch".to_owned(), json!(job.epoch))]))
    }
}

pub(crate) fn act(payload: Value) -> NewJob {
    NewJob::new("a job", "act", payload)
}
