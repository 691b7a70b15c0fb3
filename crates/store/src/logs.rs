//! What nodes and handlers said (seed 003, `logs`), and how it is found again.
//!
//! An entry is evidence: it is written once, never changed, and cut rather than refused. Its id comes from whoever
//! said it, so that entries handed over again after a lost answer are not doubled.

use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::ids::{JobId, LogId, NodeId};
use rota_model::log::{Level, Log, LogLine};
use rota_model::time::UnixMillis;
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, LOGS};
use crate::cursor::Cursor;
use crate::hints::Changes;
use crate::limits::MAX_KEYS;
use crate::query::{Filter, Order, Query};
use crate::repository::{Kept, Repository, Versioned, decode};
use crate::seam::{Key, Store};

impl Kept for Log {
    const COLLECTION: &'static Collection = &LOGS;
}

/// Entries of the same millisecond are told apart by their ids, which rise as well.
const NEWEST_FIRST: Order = Order { fields: &["metadata.createdAt"], descending: true };
const OLDEST_FIRST: Order = Order { descending: false, ..NEWEST_FIRST };

/// What a search is narrowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogFilter {
    /// Everybody's, and the installation's own, if none is given: for those who may see all of it.
    pub domain: Option<Domain>,
    pub job: Option<JobId>,
    pub node: Option<NodeId>,
    /// Any of these; all if there are none.
    pub levels: Vec<Level>,
    /// Words in title or message.
    pub text: Option<String>,
    pub after: Option<UnixMillis>,
    pub before: Option<UnixMillis>,
}

#[derive(Clone)]
pub struct Logs {
    logs: Repository<Log>,
}

impl Logs {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { logs: Repository::new(store) }
    }

    /// Keeps entries, all in one write. Those that are there already stay as they are.
    pub async fn append(&self, entries: Vec<(LogId, Log)>) -> Result<(), StoreError> {
        let entries: Vec<_> = entries.into_iter().map(|(id, log)| (id, log.within_limits())).collect();
        self.logs.create_all(entries.iter().map(|(id, log)| (Key::new(&LOGS, id), log))).await.map(|_| ())
    }

    /// Entries that match, newest first.
    pub async fn search(
        &self,
        filter: &LogFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<LogLine>, Option<Cursor>), StoreError> {
        let (found, next) = self.logs.find(query(filter, NEWEST_FIRST).limit(limit).after(after)).await?;
        Ok((found.into_iter().filter_map(line).collect(), next))
    }

    /// Which entries match, oldest first.
    pub async fn ids(
        &self,
        filter: &LogFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<LogId>, Option<Cursor>), StoreError> {
        let query = query(filter, OLDEST_FIRST).limit(limit).after(after).keys_only();
        let page = self.logs.store().find(query).await?;
        let ids = page.documents.iter().filter_map(|document| document.key.id.parse().ok());
        Ok((ids.collect(), page.next))
    }

    /// Those of these entries that are there and match, in the order in which they were said. They are read, not searched:
    /// what was written before is found.
    pub async fn pick(&self, filter: &LogFilter, ids: &[LogId]) -> Result<Vec<LogLine>, StoreError> {
        let filters = query(filter, OLDEST_FIRST).filters;
        let mut lines = Vec::new();
        for some in ids.chunks(MAX_KEYS) {
            let keys = some.iter().map(|id| Key::new(&LOGS, id)).collect();
            let found = self.logs.store().read(keys).await?.into_iter().flatten();
            let matching =
                found.filter(|document| filters.iter().all(|one| one.holds(&LOGS, &document.body)));
            // What cannot be understood is told by whoever searches for it.
            lines.extend(matching.filter_map(|document| decode(document).ok()).filter_map(line));
        }
        lines.sort_by_key(LogLine::position);
        Ok(lines)
    }

    pub fn changes(&self) -> Changes {
        self.logs.store().changes(&LOGS)
    }
}

fn line(found: Versioned<Log>) -> Option<LogLine> {
    Some(LogLine { log_id: found.key.id.parse().ok()?, log: found.document })
}

fn query(filter: &LogFilter, order: Order) -> Query {
    let mut query = Query::new(&LOGS, order);
    query.filters.extend(filter.domain.as_ref().map(|domain| Filter::Is("domain", json!(domain))));
    query.filters.extend(filter.job.map(|job| Filter::Is("jobId", json!(job))));
    query.filters.extend(filter.node.map(|node| Filter::Is("origin", json!(node))));
    if !filter.levels.is_empty() {
        let levels = filter.levels.iter().map(|level| json!(level)).collect();
        query.filters.push(Filter::In("level", levels));
    }
    query.filters.extend(filter.text.clone().map(Filter::Text));
    let (after, before) = (filter.after, filter.before);
    query.filters.extend(after.map(|at| Filter::AtLeast("metadata.createdAt", at.0.saturating_add(1))));
    query.filters.extend(before.map(|at| Filter::AtMost("metadata.createdAt", at.0.saturating_sub(1))));
    query
}
