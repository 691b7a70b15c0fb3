//! Clearing out: documents that are older than they are kept, and hidden ones whose time is over.
//!
//! One call takes one slice, so that whoever is at work in between is hardly held up; the caller decides how often.
//! Nothing is taken away that somebody changed since it was looked at: each document goes by its version, and one that
//! has another by then is left to a later sweep. A slice from which nothing went is the end, for this time.

use std::time::Duration;

use rota_model::time::UnixMillis;

use crate::StoreError;
use crate::collection::{Collection, Deleting, Retention};
use crate::limits::MAX_PAGE;
use crate::query::{Filter, Order, Query};
use crate::seam::{Document, Store, Write, Written};

/// Deletes a slice of what is older than `before`, the oldest first. Says how many documents went.
pub async fn delete_older(
    store: &dyn Store,
    collection: &'static Collection,
    before: UnixMillis,
    now: UnixMillis,
    slice: usize,
) -> Result<u64, StoreError> {
    delete_older_of(store, collection, None, before, now, slice).await
}

/// The same, of those alone for which this holds as well.
pub async fn delete_older_of(
    store: &dyn Store,
    collection: &'static Collection,
    filter: Option<Filter>,
    before: UnixMillis,
    now: UnixMillis,
    slice: usize,
) -> Result<u64, StoreError> {
    let Retention::For { since, .. } = &collection.kept else {
        let what = format!("delete what is old in {}", collection.name);
        return Err(StoreError::refused(what, "it declares no field by which its documents age"));
    };
    let oldest_first = Order { fields: std::slice::from_ref(since), descending: false };
    let mut old = Query::new(collection, oldest_first)
        .filter(Filter::AtMost(since, before.0.saturating_sub(1)))
        .limit(slice.min(MAX_PAGE));
    old.filters.extend(filter);
    let delete = |Document { key, version, .. }| Write::Delete { key, version, at: now };
    write_each(store, old, delete).await
}

/// Purges a slice of what has been hidden for as long as the collection hides, and frees the ids. Says how many
/// documents went.
pub async fn purge_hidden(
    store: &dyn Store,
    collection: &'static Collection,
    now: UnixMillis,
    slice: usize,
) -> Result<u64, StoreError> {
    let Deleting::Hides(span) = collection.deleting else { return Ok(0) };
    let hidden =
        Query::new(collection, Order::BY_ID).hidden_before(earlier(now, span)).limit(slice.min(MAX_PAGE));
    write_each(store, hidden, |Document { key, version, .. }| Write::Purge { key, version }).await
}

/// Writes to each document that is found, and counts what was applied.
async fn write_each(
    store: &dyn Store,
    query: Query,
    write: impl Fn(Document) -> Write,
) -> Result<u64, StoreError> {
    let found = store.find(query.keys_only()).await?.documents;
    if found.is_empty() {
        return Ok(0);
    }
    let written = store.write(found.into_iter().map(write).collect()).await?;
    Ok(written.iter().filter(|written| matches!(written, Written::Applied(_))).count() as u64)
}

fn earlier(now: UnixMillis, span: Duration) -> UnixMillis {
    UnixMillis(now.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
}
