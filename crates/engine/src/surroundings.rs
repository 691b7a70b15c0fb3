//! Time, chance and life. All three are passed in, so that a run can be repeated: the simulator brings its own. So is whoever
//! hears what a node says, measures what it does, and follows traces.
//!
//! A node asks two clocks. What people and documents see is wall time, which may jump. How long something lasts is asked
//! of a clock that only goes forward, and goes on while the machine sleeps: by it a lease ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng};
use rota_model::ids::Randomness;
use rota_model::time::UnixMillis;
use tokio::task::JoinHandle;

use crate::flaws::{Flaw, Flaws};
use crate::journal::Journal;
use crate::meter::Meter;
use crate::traces::Traces;

/// Says what time it is.
pub trait Clock: Send + Sync + 'static {
    /// Wall time. It may jump, forward and back.
    fn now(&self) -> UnixMillis;

    /// How long it is since some fixed instant. Never goes back, and goes on while the machine sleeps.
    fn elapsed(&self) -> Duration;
}

/// Stands before every task of a node: one that is shut lets none of them do anything.
pub trait Gate: Send + Sync + 'static {
    fn hold(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;
}

/// What a node knows of the world besides its store.
#[derive(Clone)]
pub struct Surroundings {
    clock: Arc<dyn Clock>,
    /// When they were first asked for, by both clocks.
    began: (UnixMillis, Duration),
    dice: Arc<Mutex<StdRng>>,
    gate: Option<Arc<dyn Gate>>,
    flaws: Flaws,
    journal: Journal,
    meter: Meter,
    traces: Traces,
}

impl Surroundings {
    pub fn new(clock: Arc<dyn Clock>, seed: [u8; 32]) -> Self {
        let dice = Arc::new(Mutex::new(StdRng::from_seed(seed)));
        Self {
            began: (clock.now(), clock.elapsed()),
            clock,
            dice,
            gate: None,
            flaws: Flaws::NONE,
            journal: Journal::default(),
            meter: Meter::default(),
            traces: Traces::default(),
        }
    }

    /// The same, with every task behind a gate.
    #[must_use]
    pub fn behind(self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// The same, for a node that is broken on purpose.
    #[must_use]
    pub fn flawed(self, flaws: Flaws) -> Self {
        Self { flaws, ..self }
    }

    /// The same, with a journal for what is said.
    #[must_use]
    pub fn heard_by(self, journal: Journal) -> Self {
        Self { journal, ..self }
    }

    /// The same, with a meter for what is done.
    #[must_use]
    pub fn measured_by(self, meter: Meter) -> Self {
        Self { meter, ..self }
    }

    /// What is done here is counted and timed by it; by a meter that is off, if none was given.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The same, with somebody who wants to know of spans.
    #[must_use]
    pub fn traced_by(self, traces: Traces) -> Self {
        Self { traces, ..self }
    }

    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// The time, but never later than it would be had nobody set the clock since the node started: an id that was taken
    /// a minute ago is not free because a clock was put forward, and no job has expired, and no key served its time.
    pub fn steady_now(&self) -> UnixMillis {
        let (wall, elapsed) = self.began;
        self.now().min(wall.plus(self.elapsed().saturating_sub(elapsed)))
    }

    /// By the clock that only goes forward.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    pub fn randomness(&self) -> Randomness {
        self.random_bytes()
    }

    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        bytes
    }

    /// From 0 to 1.
    pub fn chance(&self) -> f64 {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    /// Begins a task of this node.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match &self.gate {
            None => tokio::spawn(task),
            Some(gate) => tokio::spawn(gate.hold(Box::pin(task))),
        }
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaws.has(flaw)
    }
}
