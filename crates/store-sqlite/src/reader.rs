//! Connections that read. In write-ahead mode a reader sees the last commit and waits for nobody.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rota_store::StoreError;
use rota_store::collection::Index;
use rota_store::cursor::Cursor;
use rota_store::query::{Filter, Page, Query};
use rota_store::seam::{Body, Document, Key, Tally};
use rota_store::words::Words;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::row::{document_in, from_column, key_in, whole_in};
use crate::select::{self, Statement, Suitable, Way, order_columns};
use crate::statements::{Statements, column, document, key};
use crate::{counts, file, narrow, text, unavailable};

/// How many documents are looked at for words that many have; a page ends there, and another goes on.
const STEPS: usize = 4_000;
/// A page ends when its documents have more than this, in bytes: a thousand large ones are several pages.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// More would only wait for the cores.
const CONNECTIONS: usize = 4;

pub(crate) struct Readers {
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    statements: Arc<Statements>,
}

impl Readers {
    pub(crate) fn open(documents: &Path) -> Result<Self, StoreError> {
        let open = || {
            let connection = file::open_reader(documents)?;
            text::attach(&connection, documents)?;
            Ok(connection)
        };
        let connections = (0..CONNECTIONS).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            free: Arc::new(Mutex::new(connections)),
            permits: Arc::new(Semaphore::new(CONNECTIONS)),
            statements: Arc::new(Statements::new()),
        })
    }

    pub(crate) async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let statements = Arc::clone(&self.statements);
        self.with(move |connection| keys.iter().map(|key| read_one(connection, &statements, key)).collect())
            .await
    }

    pub(crate) async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.with(move |connection| find(connection, &query)).await
    }

    pub(crate) async fn count(
        &self,
        query: Query,
        by: Option<&'static str>,
    ) -> Result<Vec<Tally>, StoreError> {
        self.with(move |connection| count(connection, query, by)).await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = |why: &str| StoreError::unavailable("read", why);
        let permit =
            Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed("the store is closed"))?;
        let free = Arc::clone(&self.free);
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let connection = lock(&free).pop();
            let connection = connection.ok_or_else(|| closed("no connection is free"))?;
            let lent = Lent { connection: Some(connection), free };
            lent.connection.as_ref().map_or_else(|| Err(closed("no connection is free")), work)
        });
        task.await.map_err(|error| StoreError::unavailable("read", error))?
    }
}

/// A connection that goes back when this is dropped, even if the work with it panics.
struct Lent {
    connection: Option<Connection>,
    free: Arc<Mutex<Vec<Connection>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        lock(&self.free).extend(self.connection.take());
    }
}

fn lock(free: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_one(
    connection: &Connection,
    statements: &Statements,
    key: &Key,
) -> Result<Option<Document>, StoreError> {
    let failed = unavailable("read");
    let Some(texts) = statements.of(key.collection) else { return Ok(None) };
    let mut statement = connection.prepare_cached(&texts.read).map_err(&failed)?;
    let mut rows = match &key.domain {
        None => statement.query(params![key.id]),
        Some(domain) => statement.query(params![key.id, domain.as_str()]),
    }
    .map_err(&failed)?;
    rows.next().map_err(&failed)?.map(|found| document_in(key.collection, found, 0)).transpose()
}

/// A row of a list: a document, and what it is sorted by.
struct Found {
    document: Document,
    sort_key: Vec<Value>,
}

fn find(connection: &Connection, query: &Query) -> Result<Page, StoreError> {
    // One more than asked for, to know whether there is a next page.
    let limit = query.limit + 1;
    let Listed { mut found, cut_behind } = if query.firsts {
        Listed { found: firsts(connection, query, limit)?, cut_behind: None }
    } else {
        list(connection, query, limit)?
    };
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let last = if more { found.last().map(|last| last.sort_key.clone()) } else { cut_behind };
    let next = last.map(|key| Cursor::behind_key(key, query));
    // The text index may know a document by words that it no longer has.
    if let Some(words) = query.words() {
        found.retain(|found| words.are_in(query.collection, &found.document.body));
    }
    let mut documents: Vec<Document> = found.into_iter().map(|found| found.document).collect();
    if query.keys_only && !query.firsts {
        documents.iter_mut().for_each(|document| document.body = Body::new());
    }
    Ok(Page { documents, next })
}

/// The first documents of a list. It may end early: because they are large, or because many were looked at in vain.
struct Listed {
    found: Vec<Found>,
    cut_behind: Option<Vec<Value>>,
}

/// How a list is read.
struct Reading {
    statements: Vec<Statement>,
    /// What only the document itself tells.
    words: Option<Words>,
    /// How many documents are looked at.
    steps: usize,
}

fn reading(connection: &Connection, query: &Query, columns: &str, limit: usize) -> rusqlite::Result<Reading> {
    let read = |query: &Query, way: Way<'_>, words, steps| Reading {
        statements: select::lists(query, columns, way),
        words,
        steps,
    };
    if let Some(rows) = narrow::to_few(connection, query)? {
        return Ok(read(query, Way::Among(&rows), None, limit));
    }
    if !narrow::are_common(connection, query)? {
        return Ok(read(query, Way::By(index_for(connection, query)?), None, limit));
    }
    let mut walk = query.clone();
    walk.filters.retain(|filter| !matches!(filter, Filter::Text(_)));
    Ok(read(&walk, Way::By(index_for(connection, &walk)?), query.words(), limit.max(STEPS)))
}

fn list(connection: &Connection, query: &Query, limit: usize) -> Result<Listed, StoreError> {
    let failed = unavailable("find");
    let collection = query.collection;
    let order = order_columns(query);
    let needs_body = !query.keys_only || query.words().is_some();
    let shown = if needs_body { document(collection) } else { key(collection).to_owned() };
    let columns = format!("{}, {shown}", order.join(", "));
    let read = if query.whole { whole_in } else { document_in };
    let (mut found, mut bytes) = (Vec::new(), 0);
    let Reading { statements, words, mut steps } =
        reading(connection, query, &columns, limit).map_err(&failed)?;
    for statement in statements {
        let room = i64::try_from(steps).unwrap_or(i64::MAX);
        let values = statement.values.into_iter().chain([SqlValue::Integer(room)]);
        let mut prepared = connection.prepare_cached(&statement.text).map_err(&failed)?;
        let mut rows = prepared.query(params_from_iter(values)).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            steps -= 1;
            let sort_key = sort_key_in(row, order.len()).map_err(&failed)?;
            let document = if needs_body {
                bytes += body_bytes(row, order.len());
                read(collection, row, order.len())?
            } else {
                let (key, version) = key_in(collection, row, order.len())?;
                Document { key, version, body: Body::new() }
            };
            let is_meant = words.as_ref().is_none_or(|words| words.are_in(collection, &document.body));
            let in_vain = words.is_some() && steps == 0;
            if bytes > PAGE_BYTES || in_vain {
                let cut_behind = Some(sort_key.clone());
                found.extend(is_meant.then_some(Found { document, sort_key }));
                return Ok(Listed { found, cut_behind });
            }
            found.extend(is_meant.then_some(Found { document, sort_key }));
            if found.len() == limit {
                return Ok(Listed { found, cut_behind: None });
            }
        }
    }
    Ok(Listed { found, cut_behind: None })
}

/// The first document of each value of the order's first field, each found by one step into the index.
fn firsts(connection: &Connection, query: &Query, limit: usize) -> Result<Vec<Found>, StoreError> {
    let failed = unavailable("find");
    let order = order_columns(query);
    let columns = format!("{}, {}", order.join(", "), key(query.collection));
    let by = index_for(connection, query).map_err(&failed)?;
    let mut found: Vec<Found> = Vec::new();
    let mut last = query.after.as_ref().and_then(|cursor| cursor.key.first().cloned());
    while found.len() < limit
        && let Some(Statement { text, values }) = select::first_behind(query, &columns, by, last.as_ref())
    {
        let mut prepared = connection.prepare_cached(&text).map_err(&failed)?;
        let values = values.into_iter().chain([SqlValue::Integer(1)]);
        let mut rows = prepared.query(params_from_iter(values)).map_err(&failed)?;
        let Some(row) = rows.next().map_err(&failed)? else { break };
        let sort_key = sort_key_in(row, order.len()).map_err(&failed)?;
        let (key, version) = key_in(query.collection, row, order.len())?;
        last = sort_key.first().cloned();
        let document = Document { key, version, body: query.order_of(&sort_key) };
        found.push(Found { document, sort_key });
    }
    Ok(found)
}

/// How large the texts of a row are from this column on.
fn body_bytes(row: &Row<'_>, first: usize) -> usize {
    let texts = (first..).map_while(|nth| row.get_ref(nth).ok());
    texts.map(|value| value.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len)).sum()
}

/// Documents in a rare state, such as those that wait among a million that have ended, are sorted faster than looked for:
/// the totals tell whether they are rare. Where they are not, any order meets enough of them.
fn index_for(connection: &Connection, query: &Query) -> rusqlite::Result<Option<&'static Index>> {
    let Suitable { ordered, guarded } = select::suitable(query);
    let Some(index) = guarded else { return Ok(ordered) };
    let counted =
        |filter: &&Filter| filter.path().is_some_and(|path| query.collection.counted.contains(&path));
    let filters = query.filters.iter().filter(counted).cloned().collect();
    let totals = counts::kept(connection, &Query { filters, after: None, ..query.clone() }, None)?;
    let few = totals
        .is_some_and(|totals| totals.iter().map(|tally| tally.count).sum::<u64>() <= narrow::FEW as u64);
    Ok(if few { Some(index) } else { ordered })
}

fn sort_key_in(row: &Row<'_>, columns: usize) -> rusqlite::Result<Vec<Value>> {
    (0..columns).map(|nth| row.get_ref(nth).map(from_column)).collect()
}

fn count(connection: &Connection, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
    let failed = unavailable("count");
    if query.words().is_some() {
        return count_found(connection, query, by);
    }
    if let Some(kept) = counts::kept(connection, &query, by).map_err(&failed)? {
        return Ok(kept);
    }
    let matching = select::matching(&query, None);
    let (value, group) = match by {
        Some(path) => (column(path), " GROUP BY 1 ORDER BY 1"),
        None => ("NULL".to_owned(), ""),
    };
    let text = format!("SELECT {value}, count(*){}{group}", matching.text);
    let mut statement = connection.prepare_cached(&text).map_err(&failed)?;
    let tally = |row: &Row<'_>| {
        let count: i64 = row.get(1)?;
        Ok(Tally { value: from_column(row.get_ref(0)?), count: count.unsigned_abs() })
    };
    let rows = statement.query_map(params_from_iter(matching.values), tally).map_err(&failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(&failed)
}

/// Documents found by words are looked at, each of them.
fn count_found(
    connection: &Connection,
    mut query: Query,
    by: Option<&'static str>,
) -> Result<Vec<Tally>, StoreError> {
    query.after = None;
    query.limit = rota_store::limits::MAX_PAGE;
    query.keys_only = false;
    let field = by.and_then(|path| query.collection.field(path));
    let mut totals: BTreeMap<(Option<i64>, Option<String>), Tally> = BTreeMap::new();
    if field.is_none() {
        totals.insert((None, None), Tally { value: Value::Null, count: 0 });
    }
    loop {
        let page = find(connection, &query)?;
        for document in page.documents {
            let value = field.map(|field| field.sort_value(&document.body)).unwrap_or_default();
            let key = (value.as_i64(), value.as_str().map(str::to_owned));
            totals.entry(key).or_insert(Tally { value, count: 0 }).count += 1;
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(totals.into_values().collect()),
        }
    }
}
