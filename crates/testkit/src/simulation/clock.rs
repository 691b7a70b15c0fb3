//! The clocks of a process: one that shows the world's time plus whatever it is off by, and one that cannot be wrong.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rota_model::time::UnixMillis;
use tokio::time::Instant;

use crate::surroundings::BEGINNING;

pub struct Clock {
    began: Instant,
    off_by_ms: AtomicI64,
}

impl Clock {
    /// Of a world that began at an instant.
    pub fn new(began: Instant, off_by_ms: i64) -> Self {
        Self { began, off_by_ms: AtomicI64::new(off_by_ms) }
    }

    pub fn jump(&self, by_ms: i64) {
        self.off_by_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    pub fn off_by_ms(&self) -> i64 {
        self.off_by_ms.load(Ordering::Relaxed)
    }
}

impl rota_engine::surroundings::Clock for Clock {
    fn now(&self) -> UnixMillis {
        let right = BEGINNING.plus(self.began.elapsed());
        UnixMillis(right.0 + self.off_by_ms())
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
