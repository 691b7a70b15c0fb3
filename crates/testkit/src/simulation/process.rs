//! One life of a node: a process with its own gate, clocks, way to the store and handlers, that joins the fleet and runs
//! until it is stopped or crashes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rota_engine::desk::JobDesk;
use rota_engine::flaws::{Flaw, Flaws};
use rota_engine::fleet::Fleet;
use rota_engine::journal::Journal;
use rota_engine::meter::{Count, Meter};
use rota_engine::node::{Node, NodeOptions};
use rota_engine::surroundings::Surroundings;
use rota_engine::types::JobTypes;
use rota_model::ids::NodeId;
use rota_model::log::Level;
use rota_model::node::NodeRole;
use rota_store::{Store, StoreError, settings};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::attic::METRICS_KEPT;
use super::clock::Clock;
use super::gate::Gate;
use super::record::{Event, Life, Notebook, What};
use super::witness::Witness;
use super::work::{Actor, TYPES};
use crate::faults::{FaultyStore, Rates, Sky, Truth, Weather};

/// Who a node is, whichever life it lives.
#[derive(Clone, Debug)]
pub struct Identity {
    pub id: NodeId,
    pub name: String,
    pub types: Vec<String>,
    pub capacity: u32,
    /// How long its jobs may go on when it stops.
    pub grace: Duration,
}

impl Identity {
    fn options(&self) -> NodeOptions {
        NodeOptions {
            id: self.id,
            name: self.name.clone(),
            version: "simulated".to_owned(),
            roles: vec![NodeRole::Web, NodeRole::Processor],
            capacity: self.capacity,
            controllable: true,
            grace: self.grace,
            registry: true,
        }
    }
}

/// Where people meet the nodes that are up.
#[derive(Clone)]
pub struct Front {
    pub life: Life,
    pub gate: Gate,
    pub desk: Arc<JobDesk>,
    pub fleet: Fleet,
}

#[derive(Clone, Default)]
pub struct Fronts(Arc<Mutex<BTreeMap<Life, Front>>>);

impl Fronts {
    /// One of them, by chance.
    pub fn draw(&self, dice: &mut StdRng) -> Option<Front> {
        let open: Vec<Front> = self.lock().values().cloned().collect();
        if open.is_empty() { None } else { open.get(dice.random_range(0..open.len())).cloned() }
    }

    pub fn close(&self, life: Life) {
        self.lock().remove(&life);
    }

    fn open(&self, front: Front) {
        self.lock().insert(front.life, front);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Life, Front>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all processes of a run share.
#[derive(Clone)]
pub struct Ground {
    pub began: Instant,
    pub notes: Notebook,
    pub truth: Arc<Truth>,
    pub fronts: Fronts,
    pub rates: Rates,
    pub flaw: Option<Flaw>,
    /// Whether nodes say and measure what they do.
    pub is_measured: bool,
}

pub struct Process {
    pub life: Life,
    pub gate: Gate,
    pub clock: Arc<Clock>,
    pub weather: Arc<Weather>,
    pub stop: CancellationToken,
    pub is_frozen: bool,
    pub meter: Meter,
    has_ended: Arc<AtomicBool>,
}

impl Process {
    /// Begins a life of a node, under a sky.
    pub fn start(
        ground: &Ground,
        who: &Identity,
        life: Life,
        sky: Sky,
        off_by_ms: i64,
        mut dice: StdRng,
    ) -> Self {
        let notes = &ground.notes;
        notes.note(What::World(Event::Starts {
            life,
            node: who.id,
            name: who.name.clone(),
            types: who.types.clone(),
            off_by_ms,
        }));
        let (gate, stop) = (Gate::default(), CancellationToken::new());
        let clock = Arc::new(Clock::new(ground.began, off_by_ms));
        let weather = Arc::new(Weather::new(dice.random(), ground.rates, sky));
        let faulty = FaultyStore::new(&ground.truth, Arc::clone(&weather) as _);
        let mut surroundings =
            Surroundings::new(Arc::clone(&clock) as _, dice.random()).behind(Arc::new(gate.clone()));
        if let Some(flaw) = ground.flaw {
            surroundings = surroundings.flawed(Flaws::only(flaw));
        }
        let meter = if ground.is_measured { Meter::keeping(METRICS_KEPT) } else { Meter::default() };
        if ground.is_measured {
            surroundings = surroundings.measured_by(meter.clone());
            let journal = Journal::new(who.id, Level::Info, &surroundings);
            surroundings = surroundings.heard_by(journal);
        }
        let actor = Actor { life, notes: notes.clone(), clock: Arc::clone(&clock) };
        let newborn = Newborn {
            who: who.clone(),
            life,
            gate: gate.clone(),
            store: Arc::new(Witness::new(life, faulty, notes.clone())),
            surroundings: surroundings.clone(),
            types: Arc::new(types(&who.types, actor)),
            notes: notes.clone(),
            fronts: ground.fronts.clone(),
            meter: meter.clone(),
        };
        let (has_ended, stopped) = (Arc::new(AtomicBool::new(false)), stop.clone());
        let ended = Arc::clone(&has_ended);
        surroundings.spawn(async move {
            newborn.live(stopped).await;
            ended.store(true, Ordering::Relaxed);
        });
        Self { life, gate, clock, weather, stop, is_frozen: false, meter, has_ended }
    }

    /// Whether it was stopped, and that is done.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// Takes down what a process has counted, if it counts.
pub fn note_counts(notes: &Notebook, life: Life, meter: &Meter) {
    if let Some(reading) = meter.reading() {
        let counts = Count::ALL.into_iter().map(|what| (what.name(), reading.count(what))).collect();
        notes.note(What::World(Event::Counted { life, counts }));
    }
}

/// Every node takes jobs of every type, and runs some.
fn types(names: &[String], actor: Actor) -> JobTypes {
    let actor = Arc::new(actor);
    let mut types = JobTypes::default();
    for name in names {
        types.add(name, &json!({}), Arc::clone(&actor) as _).expect("a schema for any payload");
    }
    for other in TYPES.iter().filter(|other| !names.iter().any(|name| name == *other)) {
        types.add_foreign(other, &json!({})).expect("a schema for any payload");
    }
    types
}

/// What the first task of a process needs.
struct Newborn {
    who: Identity,
    life: Life,
    gate: Gate,
    store: Arc<dyn Store>,
    surroundings: Surroundings,
    types: Arc<JobTypes>,
    notes: Notebook,
    fronts: Fronts,
    meter: Meter,
}

impl Newborn {
    async fn live(self, stop: CancellationToken) {
        let (life, notes, fronts) = (self.life, self.notes.clone(), self.fronts.clone());
        let (gate, meter) = (self.gate.clone(), self.meter.clone());
        if let Some(node) = self.join(&stop).await {
            notes.note(What::World(Event::Joins { life }));
            fronts.open(Front {
                life,
                gate: self.gate,
                desk: Arc::clone(&node.desk),
                fleet: node.fleet.clone(),
            });
            node.run(stop).await;
        }
        fronts.close(life);
        note_counts(&notes, life, &meter);
        notes.note(What::World(Event::Ends { life }));
        // The process exits, and whatever it still did goes with it.
        gate.kill();
    }

    /// Tries until the store lets it, or until it is to stop.
    async fn join(&self, stop: &CancellationToken) -> Option<Node> {
        while !stop.is_cancelled() {
            match self.try_to_join().await {
                Ok(node) => return Some(node),
                Err(_) => sleep(Duration::from_millis(500)).await,
            }
        }
        None
    }

    async fn try_to_join(&self) -> Result<Node, StoreError> {
        let today = self.surroundings.now().to_date();
        let settings = settings::open(Arc::clone(&self.store), today).await?;
        let (types, surroundings) = (Arc::clone(&self.types), self.surroundings.clone());
        Node::join(Arc::clone(&self.store), &settings, self.who.options(), types, surroundings).await
    }
}
