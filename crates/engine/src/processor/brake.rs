//! How a handler is stopped from outside, and why.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// Why a handler is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The job was cancelled, or is somebody else's by now.
    NotOurs,
    /// The node cannot be sure any more that the job is its own.
    LeaseOver,
    /// The node stops, and gives it back.
    Release,
}

/// What stops a handler: first it is told, then it is dropped.
#[derive(Default)]
pub(super) struct Brake {
    pub(super) told: CancellationToken,
    pub(super) dropped: CancellationToken,
    why: OnceLock<Stop>,
}

impl Brake {
    pub(super) fn pull(&self, why: Stop) {
        let _ = self.why.set(why);
        self.told.cancel();
        if why == Stop::LeaseOver {
            self.dropped.cancel();
        }
    }

    /// Why it was told to stop, if it was.
    pub(super) fn why(&self) -> Option<Stop> {
        if self.dropped.is_cancelled() { Some(Stop::LeaseOver) } else { self.why.get().copied() }
    }
}
