//! A fate that a test writes down, and the jobs it is tried on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::JOBS;
use rota_store::hints::Hint;
use rota_store::memory::MemoryStore;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Document, Key, Version, Write, Written};
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What was written down for the next calls and hints, one after the other; then all is calm.
#[derive(Default)]
pub(crate) struct Script {
    lots: Mutex<VecDeque<Lot>>,
    hints: Mutex<VecDeque<Vec<Duration>>>,
    asked: Mutex<Vec<String>>,
}

impl Fate for Script {
    fn of(&self, call: &Call<'_>) -> Lot {
        let shown = format!("{call:?}");
        self.asked.lock().unwrap().push(shown.split('(').next().unwrap().to_owned());
        self.lots.lock().unwrap().pop_front().unwrap_or(Lot::CALM)
    }

    fn of_hint(&self, _hint: &Hint) -> Vec<Duration> {
        self.hints.lock().unwrap().pop_front().unwrap_or_else(|| vec![Duration::ZERO])
    }
}

impl Script {
    pub(crate) fn next(&self, lot: Lot) {
        self.lots.lock().unwrap().push_back(lot);
    }

    pub(crate) fn next_effect(&self, effect: Effect) {
        self.next(Lot { effect, ..Lot::CALM });
    }

    pub(crate) fn next_lag(&self, lag: Duration) {
        self.next(Lot { lag, ..Lot::CALM });
    }

    pub(crate) fn next_hint(&self, arrivals: &[Duration]) {
        self.hints.lock().unwrap().push_back(arrivals.to_vec());
    }

    /// The verbs that were asked about, so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// One node before a store that is right, and its fate.
pub(crate) struct World {
    pub(crate) right: Arc<dyn Store>,
    pub(crate) truth: Arc<Truth>,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) fate: Arc<Script>,
}

pub(crate) fn world() -> World {
    of_truth(Truth::new(Arc::new(MemoryStore::new())))
}

pub(crate) fn lagging(lag: Duration) -> World {
    of_truth(Truth::lagging(Arc::new(MemoryStore::new()), lag))
}

fn of_truth(truth: Arc<Truth>) -> World {
    let fate = Arc::new(Script::default());
    let store = node(&truth, &fate);
    World { right: Arc::clone(truth.store()), truth, store, fate }
}

pub(crate) fn node(truth: &Arc<Truth>, fate: &Arc<Script>) -> Arc<FaultyStore> {
    let fate: Arc<dyn Fate> = Arc::<Script>::clone(fate);
    Arc::new(FaultyStore::new(truth, fate))
}

pub(crate) fn job(number: i64) -> Key {
    Key::new(&JOBS, format!("job-{number}"))
}

fn body(number: i64) -> Body {
    json!({"jobNumber": number, "status": "QUEUED"}).as_object().unwrap().clone()
}

pub(crate) fn create(number: i64) -> Write {
    Write::Create { key: job(number), body: body(number) }
}

pub(crate) fn start(number: i64, version: Version) -> Write {
    Write::Change { key: job(number), version, fields: vec![("status", json!("STARTED"))] }
}

pub(crate) fn jobs() -> Query {
    Query::new(&JOBS, Order { fields: &["jobNumber"], descending: false })
}

pub(crate) fn queued() -> Query {
    jobs().filter(Filter::Is("status", json!("QUEUED")))
}

pub(crate) fn claim(max: usize, token: u8) -> Claim {
    Claim {
        collection: &JOBS,
        from: vec![queued()],
        max,
        set: vec![("status", json!("STARTED"))],
        add_one: Some("epoch"),
        token: ("claimToken", ClaimToken::rising(UnixMillis(0), &[token; 10])),
    }
}

pub(crate) fn numbers(documents: &[Document]) -> Vec<i64> {
    documents.iter().map(|document| document.body["jobNumber"].as_i64().unwrap()).collect()
}

pub(crate) async fn applied(store: &dyn Store, write: Write) -> Version {
    match store.write(vec![write]).await.unwrap()[..] {
        [Written::Applied(version)] => version,
        ref other => panic!("{other:?}"),
    }
}

/// The numbers of the jobs that are there.
pub(crate) async fn there(store: &dyn Store, query: Query) -> Vec<i64> {
    numbers(&store.find(query).await.unwrap().documents)
}
