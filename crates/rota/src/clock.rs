//! The system's clock and its source of chance: the one place where either is asked.

use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::time::UnixMillis;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::{Exit, Failure};

pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else is handed")]
    fn now(&self) -> UnixMillis {
        jiff::Timestamp::now().into()
    }

    fn elapsed(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(time).unwrap_or_default()
    }
}

/// Real time and real chance.
pub(crate) fn surroundings() -> Result<Surroundings, Failure> {
    let mut seed = [0; 32];
    let filled = getrandom::fill(&mut seed);
    filled.map_err(|error| {
        Failure::new(Exit::Unreachable, format!("the system gives no randomness: {error}"))
    })?;
    Ok(Surroundings::new(Arc::new(SystemClock), seed))
}
