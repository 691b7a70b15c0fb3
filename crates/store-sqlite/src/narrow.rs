//! Documents that few share a word with are found by the text index and sorted, rather than looked for among all others. A name
//! is found by its words too: an index of names would have to be written in as many places as there are names.
//!
//! The text index lags behind. Who searches for words lives with that; who asks for a name gets what is behind the index as
//! well, which is little.

use rota_store::collection::Collection;
use rota_store::query::{Filter, Query};
use rota_store::words::Words;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use crate::select::{index, match_words};
use crate::statements::{column, table};

/// How many documents are sorted at once, rather than looked for among the others.
pub(crate) const FEW: usize = 2_000;
/// Words that more have than this are met soon, whoever walks.
const MANY: i64 = 20_000;
/// How far behind the text index may be, in documents, to be of use to who asks for a name.
const BEHIND: i64 = 20_000;
/// So many words of a name tell enough.
const NAME_WORDS: usize = 8;

/// The rows that may be meant, if they are few: no other is.
pub(crate) fn to_few(connection: &Connection, query: &Query) -> rusqlite::Result<Option<Vec<i64>>> {
    if query.hidden_before.is_some() {
        return Ok(None);
    }
    if let Some(words) = query.words() {
        return with_words(connection, query.collection, &words);
    }
    let Some((path, name)) = named(query) else { return Ok(None) };
    let mut words = Words::parse(name);
    words.0.truncate(NAME_WORDS);
    if words.0.is_empty() {
        return Ok(None);
    }
    let Some(unseen) = unseen(connection, query.collection, path, name)? else { return Ok(None) };
    let seen = with_words(connection, query.collection, &words)?;
    Ok(seen.map(|seen| [seen, unseen].concat()))
}

/// Whether so many have the words that a walk meets some soon, and the index would only have to list them all.
pub(crate) fn are_common(connection: &Connection, query: &Query) -> rusqlite::Result<bool> {
    let Some(words) = query.words() else { return Ok(false) };
    let limit = MANY + 1;
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 FROM text.{0} WHERE {0} MATCH ? LIMIT {limit})",
        index(query.collection)
    );
    let count: i64 = connection.prepare_cached(&text)?.query_row([match_words(&words)], |row| row.get(0))?;
    Ok(count == limit)
}

/// The field that has words and whose whole text is asked for. One that changes may have had other words.
fn named(query: &Query) -> Option<(&'static str, &str)> {
    query.filters.iter().find_map(|filter| match filter {
        Filter::Is(path, Value::String(text)) if query.collection.text.contains(path) => {
            let is_fixed = query.collection.field(path).is_some_and(|field| !field.changes);
            is_fixed.then_some((*path, text.as_str()))
        }
        _ => None,
    })
}

/// Those that the index knows by all of these words; none if they are more than a few.
fn with_words(
    connection: &Connection,
    collection: &Collection,
    words: &Words,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let query = format!("SELECT rowid FROM text.{0} WHERE {0} MATCH ? LIMIT {1}", index(collection), FEW + 1);
    let mut statement = connection.prepare_cached(&query)?;
    let rows = statement.query_map([match_words(words)], |row| row.get(0))?;
    let found: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
    Ok((found.len() <= FEW).then_some(found))
}

/// Those of this name that the index has not seen yet; none if it is too far behind.
fn unseen(
    connection: &Connection,
    collection: &Collection,
    path: &str,
    name: &str,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let seen = "SELECT pk FROM text.seen WHERE collection = ?";
    let seen = connection.prepare_cached(seen)?.query_row([collection.name], |row| row.get(0)).optional()?;
    let (seen, rows): (i64, _) = (seen.unwrap_or(0), table(collection));
    let newest = format!("SELECT coalesce(max(pk), 0) FROM {rows}");
    let newest: i64 = connection.prepare_cached(&newest)?.query_row([], |row| row.get(0))?;
    if newest.saturating_sub(seen) > BEHIND {
        return Ok(None);
    }
    let query = format!("SELECT pk FROM {rows} NOT INDEXED WHERE pk > ? AND {} = ?", column(path));
    let mut statement = connection.prepare_cached(&query)?;
    let found = statement.query_map(params![seen, name], |row| row.get(0))?;
    found.collect::<rusqlite::Result<_>>().map(Some)
}
