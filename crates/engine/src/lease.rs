//! How long a node may believe that what it claimed is its own: rule 2, from the holder's side.
//!
//! The others take a node for dead after seven reads, one a second, of the same `state` document. The first of them saw
//! the last beat that arrived, and that was sent before; so six seconds after *sending* the last beat that was acknowledged
//! nobody can have taken over yet, and by then every handler is stopped. The clock goes on while the machine sleeps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::flaws::Flaw;
use crate::surroundings::Surroundings;

/// How long after sending a beat a node may count on it.
pub const LEASE: Duration = Duration::from_secs(6);

pub(crate) struct Lease {
    surroundings: Surroundings,
    /// In milliseconds of the clock; 0 while there is none.
    until: AtomicU64,
}

impl Lease {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, until: AtomicU64::new(0) }
    }

    /// By the clock that leases are measured by.
    pub(crate) fn clock(&self) -> Duration {
        if self.surroundings.has(Flaw::LeaseByWallClock) {
            return Duration::from_millis(self.surroundings.now().as_u64());
        }
        self.surroundings.elapsed()
    }

    /// A beat that was sent at this instant was acknowledged.
    pub(crate) fn renew(&self, sent: Duration) {
        let until = u64::try_from((sent + LEASE).as_millis()).unwrap_or(u64::MAX);
        self.until.fetch_max(until, Ordering::AcqRel);
    }

    /// The life that had it is over.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// How much of it is left; nothing if it is over.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.until.load(Ordering::Acquire)).saturating_sub(self.clock())
    }

    pub(crate) fn is_good(&self) -> bool {
        !self.left().is_zero()
    }
}
