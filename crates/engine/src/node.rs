//! One node of the fleet, put together: what it does, each in a task of its own so that nothing waits for anything else.
//!
//! ```text
//!  beat ──────▶ state document ◀────── watch (all nodes, every second)
//!    │ acknowledged                       │ dead          │ rank, wishes
//!  lease ──▶ watchdog ──▶ processor ◀── recovery       sections, pause
//! ```
//!
//! - beat: says that the node lives, every two seconds; joins again if others took it for dead
//! - watch: reads the `state` documents, finds the dead, and its own place among the living
//! - recovery: queues again what nobody runs
//! - watchdog: stops all handlers when the lease is over
//! - observer: follows nodes and queues for those who look at them, in the role of that name
//! - limits: what the node may run of what is limited
//! - maintenance: what expired, and what was deleted long ago

mod rounds;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::log::Level;
use rota_model::node::{NodeRole, NodeWish};
use rota_model::settings::Settings;
use rota_store::jobs::Jobs;
use rota_store::logs::Logs;
use rota_store::metrics::Metrics;
use rota_store::nodes::Nodes;
use rota_store::{Store, StoreError};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::desk::{self, JobDesk};
use crate::fleet::Fleet;
use crate::lease::Lease;
use crate::logbook::Logbook;
use crate::maintenance::Maintenance;
use crate::membership::{Card, Doing, Membership, Place};
use crate::meter::board::Board;
use crate::meter::{self, Level as Measure};
use crate::observer::Observer;
use crate::processor::{self, Processor};
use crate::registry::TypeRegistry;
use crate::surroundings::Surroundings;
use crate::types::JobTypes;
use crate::waiters::Waiters;
use crate::watching::Watching;

/// How long a node that stops tries to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Who the node is and how much it takes on.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub id: NodeId,
    pub name: String,
    pub version: String,
    pub roles: Vec<NodeRole>,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// Whether people may pause and drain it.
    pub controllable: bool,
    /// How long running jobs may go on when the node stops or is drained; the rest is given back.
    pub grace: Duration,
    /// Whether domains may define job types of their own here.
    pub registry: bool,
}

pub struct Node {
    pub desk: Arc<JobDesk>,
    pub fleet: Fleet,
    pub logbook: Logbook,
    pub board: Board,
    pub observer: Observer,
    membership: Membership,
    life: Arc<Life>,
    rounds: Rounds,
    registry: Arc<TypeRegistry>,
}

/// Where what the node says and measures is stored.
struct Papers {
    logs: Logs,
    metrics: Metrics,
    node: NodeId,
}

/// What is begun when the node runs.
struct Rounds {
    maintenance: Maintenance,
    watching: Watching,
    papers: Papers,
}

impl Papers {
    fn new(store: &Arc<dyn Store>, node: NodeId) -> Self {
        Self { logs: Logs::new(Arc::clone(store)), metrics: Metrics::new(Arc::clone(store)), node }
    }
}

/// What the tasks of a node share.
pub(crate) struct Life {
    pub(crate) processor: Arc<Processor>,
    pub(crate) nodes: Nodes,
    pub(crate) jobs: Jobs,
    pub(crate) waiters: Waiters,
    pub(crate) lease: Arc<Lease>,
    pub(crate) surroundings: Surroundings,
    pub(crate) exclusive: bool,
    pub(crate) grace: Duration,
    /// Where the node stands among the living.
    pub(crate) place: Mutex<Place>,
    works: bool,
    /// What people want of the node, as far as it has read.
    wanted: Mutex<Wanted>,
    pub(crate) calls: Calls,
}

/// What the tasks of a node tell each other.
#[derive(Default)]
pub(crate) struct Calls {
    /// A beat is wanted at once.
    pub(crate) beat_now: Notify,
    /// Somebody was found dead.
    pub(crate) recover_now: Notify,
    /// How many beats were acknowledged: what was read before the last of them is old.
    pub(crate) beats: AtomicU64,
}

/// What people want of a node.
#[derive(Default)]
struct Wanted {
    wish: Option<NodeWish>,
    /// Ends what was begun because of it.
    over: CancellationToken,
}

impl Node {
    /// Joins the fleet and takes over what dead nodes left; work begins with [`Node::run`].
    pub async fn join(
        store: Arc<dyn Store>,
        settings: &Settings,
        options: NodeOptions,
        types: Arc<JobTypes>,
        surroundings: Surroundings,
    ) -> Result<Self, StoreError> {
        let store = surroundings.meter().measure(store);
        let (jobs, nodes) = (Jobs::new(Arc::clone(&store)), Nodes::new(Arc::clone(&store)));
        let card = card(&options, &types, settings.sections);
        let exclusive = store.promises().exclusive;
        let lease = Arc::new(Lease::new(surroundings.clone()));
        let membership =
            Membership::join(nodes.clone(), card, surroundings.clone(), Arc::clone(&lease), exclusive)
                .await?;
        tell_of_joining(&surroundings, &options, membership.wanted());
        let waiters = Waiters::default();
        let registry = TypeRegistry::new(&store, Arc::clone(&types), surroundings.clone(), options.registry);
        let registry = Arc::new(registry);
        let processor = Arc::new(Processor::new(processor::Parts {
            store: Arc::clone(&store),
            registry: Arc::clone(&registry),
            types,
            surroundings: surroundings.clone(),
            waiters: waiters.clone(),
            lease: Arc::clone(&lease),
            holder: membership.holder(),
            capacity: usize::try_from(options.capacity).unwrap_or(usize::MAX),
        }));
        let works = options.roles.contains(&NodeRole::Processor);
        let wanted = membership.wanted();
        processor.set_rests(!works || wanted.is_some());
        let desk = Arc::new(JobDesk::new(desk::Parts {
            store: Arc::clone(&store),
            registry: Arc::clone(&registry),
            waiters: waiters.clone(),
            surroundings: surroundings.clone(),
            sections: settings.sections,
            node: options.id,
            processor: Arc::clone(&processor),
        }));
        let taken = processor.recover(&nodes, exclusive).await?;
        tell_of_taken(&surroundings, taken);
        let fleet = Fleet::new(nodes.clone(), surroundings.clone(), options.id);
        let logbook = Logbook::new(Arc::clone(&store), surroundings.clone());
        let papers = Papers::new(&store, options.id);
        let board = Board::new(&store, &surroundings, options.version.clone());
        surroundings.meter().set(Measure::Capacity, u64::from(options.capacity));
        let observes = options.roles.contains(&NodeRole::Observer);
        let observer = Observer::new(&store, Arc::clone(&desk), surroundings.clone(), observes);
        let maintenance = Maintenance::new(store, surroundings.clone(), options.id);
        let watching = Watching::new(options.id, settings.sections, surroundings.clone());
        let life = Life {
            processor,
            nodes,
            jobs,
            waiters,
            lease,
            surroundings,
            exclusive,
            grace: options.grace,
            place: Mutex::new(Place::of(0, 1, settings.sections)),
            works,
            wanted: Mutex::new(Wanted { wish: wanted, ..Wanted::default() }),
            calls: Calls::default(),
        };
        let (life, rounds) = (Arc::new(life), Rounds { maintenance, watching, papers });
        Ok(Self { desk, fleet, logbook, board, observer, membership, life, rounds, registry })
    }

    /// Lives until told to stop, then says goodbye.
    pub async fn run(self, stop: CancellationToken) {
        let Self { membership, life, rounds, registry, observer, .. } = self;
        let Rounds { maintenance, watching, papers } = rounds;
        let over = CancellationToken::new();
        let mut scribe = Scribe::begin(&life.surroundings, papers);
        let spawn = |task: Task| life.surroundings.spawn(until(over.clone(), task));
        let mut parts = vec![
            spawn(Box::pin(life.waiters.clone().run(life.jobs.changes()))),
            spawn(Box::pin(rounds::watch(Arc::clone(&life), watching))),
            spawn(Box::pin(rounds::recover(Arc::clone(&life)))),
            spawn(Box::pin(rounds::guard(Arc::clone(&life)))),
            spawn(Box::pin(rounds::maintain(Arc::clone(&life), maintenance))),
        ];
        if registry.is_open() {
            parts.push(spawn(Box::pin(registry.listen())));
            parts.push(spawn(Box::pin(Arc::clone(&life.processor).keep_limits())));
        }
        if observer.is_on() {
            parts.push(spawn(Box::pin(observer.run())));
        }
        let mut beats =
            life.surroundings.spawn(rounds::beat(Arc::clone(&life), membership, over.clone(), stop.clone()));
        let mut work = life.surroundings.spawn(Arc::clone(&life.processor).run(stop.clone(), life.grace));
        // None of them ends before it is told to, unless by a fault: then the node must not go on as if all were well.
        tokio::select! {
            biased;
            ended = &mut work => life.tell_of(ended, "the processor"),
            ended = &mut beats => life.tell_of(ended, "the heartbeat"),
            what = scribe.ended() => life.surroundings.journal().tell_with(Level::Error, "the node stops", what),
            _ = futures::future::select_all(parts) => {
                life.surroundings.journal().tell(Level::Error, "a part of the node ended; the node stops");
            }
        }
        stop.cancel();
        if !work.is_finished() {
            let _ = work.await;
        }
        // A processor that ended by a fault has stopped nothing; whoever is said goodbye of may be taken over at once.
        life.lease.end();
        life.processor.abandon();
        over.cancel();
        life.surroundings.journal().tell(Level::Info, "this node stops; nothing runs here any more");
        let goodbye = async {
            if !beats.is_finished() && timeout(GOODBYE, &mut beats).await.is_err() {
                beats.abort();
                tracing::warn!("could not say goodbye in time");
            }
        };
        tokio::join!(goodbye, scribe.end());
    }
}

/// The tasks that store what the node says and measures, if it has a journal and a meter.
struct Scribe {
    over: CancellationToken,
    says: Option<JoinHandle<()>>,
    measures: Option<JoinHandle<()>>,
}

impl Scribe {
    fn begin(surroundings: &Surroundings, papers: Papers) -> Self {
        let Papers { logs, metrics, node } = papers;
        let over = CancellationToken::new();
        let (journal, meter) = (surroundings.journal(), surroundings.meter());
        let says = journal.is_on().then(|| surroundings.spawn(journal.clone().write(logs, over.clone())));
        let measured = || meter::writer::write(metrics, node, surroundings.clone(), over.clone());
        let measures = meter.is_on().then(|| surroundings.spawn(measured()));
        Self { over, says, measures }
    }

    /// Until one of them ends though nobody told it to. Says which.
    async fn ended(&mut self) -> &'static str {
        tokio::select! {
            biased;
            () = ends(&mut self.says) => "the task that stores what it says ended",
            () = ends(&mut self.measures) => "the task that stores what it measures ended",
        }
    }

    /// Lets them store what is left, for as long as a goodbye may take.
    async fn end(self) {
        self.over.cancel();
        tokio::join!(in_time(self.says, "log lines"), in_time(self.measures, "metrics"));
    }
}

async fn ends(task: &mut Option<JoinHandle<()>>) {
    match task {
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

async fn in_time(task: Option<JoinHandle<()>>, what: &str) {
    let Some(mut task) = task.filter(|task| !task.is_finished()) else { return };
    if timeout(GOODBYE, &mut task).await.is_err() {
        task.abort();
        tracing::warn!("not all {what} could be stored in time");
    }
}

fn tell_of_joining(surroundings: &Surroundings, options: &NodeOptions, wanted: Option<NodeWish>) {
    let NodeOptions { name, version, capacity, .. } = options;
    let rests =
        if wanted.is_some() { "; it is paused, and begins nothing new until it is resumed" } else { "" };
    let detail = format!("{name}, version {version}, runs {capacity} jobs at once{rests}");
    surroundings.journal().tell_with(Level::Info, "this node joined the fleet", detail);
}

pub(crate) fn tell_of_taken(surroundings: &Surroundings, taken: usize) {
    if taken > 0 {
        let title = format!("jobs whose holder is gone were queued again: {taken}");
        surroundings.journal().tell(Level::Info, &title);
    }
}

fn card(options: &NodeOptions, types: &JobTypes, sections: u32) -> Card {
    Card {
        id: options.id,
        name: options.name.clone(),
        version: options.version.clone(),
        roles: options.roles.clone(),
        types: types.names(),
        capacity: options.capacity,
        sections,
        controllable: options.controllable,
    }
}

type Task = futures::future::BoxFuture<'static, ()>;

async fn until(over: CancellationToken, task: Task) {
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        () = task => {}
    }
}

impl Life {
    fn doing(&self) -> Doing {
        let running = u32::try_from(self.processor.busy_with()).unwrap_or(u32::MAX);
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let meter = self.surroundings.meter();
        meter.set(Measure::Running, u64::from(running));
        meter.set(Measure::Sections, place.sections.len() as u64);
        Doing { running, place }
    }

    /// Does what people want of the node, as soon as that is read.
    pub(crate) fn obey(self: &Arc<Self>, wanted: Option<NodeWish>) {
        let mut known = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if known.wish == wanted {
            return;
        }
        // A drain that is under way ends with the wish for it.
        known.over.cancel();
        *known = Wanted { wish: wanted, over: CancellationToken::new() };
        let title = match wanted {
            None => "this node works again",
            Some(NodeWish::Pause) => "this node is paused: it begins nothing new",
            Some(NodeWish::Drain) => {
                "this node is drained: it begins nothing new, and gives back what it does not finish"
            }
        };
        self.surroundings.journal().tell(Level::Info, title);
        self.processor.set_rests(!self.works || wanted.is_some());
        if wanted == Some(NodeWish::Drain) {
            let (drained, over) = (Arc::clone(self), known.over.clone());
            let drain = Box::pin(async move { drained.processor.give_back(drained.grace).await });
            self.surroundings.spawn(until(over, drain));
        }
    }

    /// Stops all handlers when the lease is over.
    fn stop_if_over(&self) {
        if self.lease.is_good() {
            return;
        }
        let stopped = self.processor.abandon();
        if stopped > 0 {
            let why = "this node stood still, or could not reach the store, for too long";
            let title = format!("{why}; what ran here was stopped: {stopped} jobs");
            self.surroundings.journal().tell(Level::Warn, &title);
        }
    }

    fn tell_of(&self, ended: Result<(), tokio::task::JoinError>, part: &str) {
        if let Err(error) = ended {
            let title = format!("{part} ended; the node stops");
            self.surroundings.journal().tell_with(Level::Error, &title, error);
        }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).rank
    }
}
