//! What nodes and handlers said: searched, or followed as it is stored.
//!
//! - [`tail`]: a listener that goes on where it was when its connection breaks

pub mod tail;

use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::log::{Level, LogLine};
use rota_model::time::UnixMillis;
use serde::Serialize;

use crate::call::Call;
use crate::{Client, Error, Page};

/// Which lines are meant; every field that is set narrows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LogFilter {
    pub job: Option<JobId>,
    pub node: Option<NodeId>,
    /// This level and those that matter more.
    pub level: Option<Level>,
    /// Words that stand in the line; `word*` is a beginning. What was said within the last second may not be found yet.
    pub text: Option<String>,
    pub after: Option<UnixMillis>,
    pub before: Option<UnixMillis>,
    /// How many a page holds: 50 if not set, at most 1,000. Of a tail, with how many of the newest it begins: none if not set.
    pub limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// One page of lines, the newest first: those of a domain, or without one those of the whole installation, for its
    /// administrators.
    pub async fn logs(&self, domain: Option<&Domain>, filter: &LogFilter) -> Result<Page<LogLine>, Error> {
        self.logs_call(domain).query(filter).document().await
    }

    fn logs_call(&self, domain: Option<&Domain>) -> Call<'_> {
        match domain {
            Some(domain) => self.get(&["api", "v1", "domains", domain.as_str(), "logs"]),
            None => self.get(&["api", "v1", "logs"]),
        }
    }
}
