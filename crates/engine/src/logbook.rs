//! What nodes and handlers said, for those who look it up and those who listen.
//!
//! - [`follower`]: what is being said, as it is stored

mod follower;
mod seen;

use std::sync::Arc;

use rota_model::ids::LogId;
use rota_model::log::LogLine;
use rota_model::time::UnixMillis;
use rota_store::cursor::Cursor;
use rota_store::logs::{LogFilter, Logs};
use rota_store::{Store, StoreError};

use crate::patience::answered;
use crate::surroundings::Surroundings;

pub use follower::Follower;

#[derive(Clone)]
pub struct Logbook {
    logs: Logs,
    surroundings: Surroundings,
}

/// Where a listener begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what is said from now on.
    Now,
    /// With so many of the lines there are, the newest.
    Newest(usize),
    /// With what was said after this instant.
    After(UnixMillis),
    /// Behind a line that it has heard.
    Behind(LogId),
}

impl Logbook {
    pub(crate) fn new(store: Arc<dyn Store>, surroundings: Surroundings) -> Self {
        Self { logs: Logs::new(store), surroundings }
    }

    /// Lines that match, newest first.
    pub async fn search(
        &self,
        filter: &LogFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<LogLine>, Option<Cursor>), StoreError> {
        answered("search the log", self.logs.search(filter, limit, after)).await
    }

    /// Listens from now on.
    pub fn follow(&self, filter: LogFilter, start: Start) -> Follower {
        Follower::new(self.logs.clone(), self.surroundings.clone(), filter, start)
    }
}
