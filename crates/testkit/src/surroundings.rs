//! A clock that follows tokio's, so that a test with paused time moves both, and chance that repeats itself.

use std::sync::Arc;
use std::time::Duration;

use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::time::UnixMillis;
use tokio::time::Instant;

/// When the tests' world begins: 2026-01-01 in UTC.
pub const BEGINNING: UnixMillis = UnixMillis(1_767_225_600_000);

struct TestClock {
    began: Instant,
}

impl Clock for TestClock {
    fn now(&self) -> UnixMillis {
        BEGINNING.plus(self.began.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Must be called inside a runtime.
pub fn surroundings() -> Surroundings {
    Surroundings::new(Arc::new(TestClock { began: Instant::now() }), [7; 32])
}
