//! What a search in the log is narrowed to, and where a listener begins.

use axum::http::HeaderMap;
use rota_engine::logbook::Start;
use rota_model::check::{Checker, Invalid};
use rota_model::domain::Domain;
use rota_model::ids::{JobId, LogId, NodeId};
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use rota_store::logs::LogFilter;
use serde::Deserialize;

use crate::routes::list::{self, searched};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// What was said about this job.
    #[param(value_type = Option<String>, format = "uuid")]
    job: Option<JobId>,
    /// What was said on this node.
    #[param(value_type = Option<String>, format = "uuid")]
    node: Option<NodeId>,
    /// This level and those that matter more.
    #[param(inline)]
    level: Option<Level>,
    /// Words that stand in the line, all of them, in any case; `word*` is a beginning. A line may be found by its words
    /// about a second later than it was stored.
    #[param(example = "disk full")]
    text: Option<String>,
    /// Unix milliseconds; said later than this.
    after: Option<i64>,
    /// Unix milliseconds; said earlier than this.
    before: Option<i64>,
    /// How many, 50 if left out. With `follow`: with how many of the newest lines the stream begins, none if left out.
    #[param(minimum = 1, maximum = 1000)]
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<String>,
    /// Lines as they are stored, as server-sent events, instead of a page; oldest first.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    pub(super) follow: bool,
}

impl LogsQuery {
    pub(super) fn into_filter(self, domain: Option<Domain>) -> Result<LogFilter, Invalid> {
        Ok(LogFilter {
            domain,
            job: self.job,
            node: self.node,
            levels: self.level.map(Level::and_above).unwrap_or_default(),
            text: self.text.map(searched).transpose()?,
            after: self.after.map(UnixMillis),
            before: self.before.map(UnixMillis),
        })
    }

    /// The filter of a listener, and where it begins.
    pub(super) fn into_following(
        self,
        domain: Option<Domain>,
        headers: &HeaderMap,
    ) -> Result<(LogFilter, Start), Invalid> {
        let mut check = Checker::new();
        if self.before.is_some() {
            check.refuse("/before", "cannot stand beside follow: what is being said is later");
        }
        if self.cursor.is_some() {
            check.refuse("/cursor", "cannot stand beside follow: send the header Last-Event-ID to go on");
        }
        if self.after.is_some() && self.limit.is_some() {
            check.refuse("/limit", "cannot stand beside follow and after: leave out one of the two");
        }
        check.finish()?;
        let newest = self.limit.map(|limit| list::limit(Some(limit))).transpose()?;
        let start = match (last_event(headers)?, self.after, newest) {
            (Some(line), _, _) => Start::Behind(line),
            (None, Some(after), _) => Start::After(UnixMillis(after)),
            (None, None, Some(count)) => Start::Newest(count),
            (None, None, None) => Start::Now,
        };
        Ok((self.into_filter(domain)?, start))
    }
}

/// The line that a listener heard last, before its connection broke.
fn last_event(headers: &HeaderMap) -> Result<Option<LogId>, Invalid> {
    let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) else { return Ok(None) };
    let read = id.to_str().ok().and_then(|id| id.parse().ok());
    let refused =
        || Invalid::one("", "the header Last-Event-ID must be the id of a line, as the stream gave it");
    read.map(Some).ok_or_else(refused)
}
