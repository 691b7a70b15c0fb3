//! Totals that people look at often are kept, not counted: for each collection, how many documents have which values in
//! its counted fields. A commit that changes documents changes their totals with it, each once.
//!
//! A key is a JSON array of the values: the domain first, where each domain has its own, then the counted fields.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashTable};
use rota_store::collection::{ALL, Collection, Reach};
use rota_store::query::{Filter, Query};
use rota_store::seam::Tally;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::statements::{column, is_shown, table};

/// What documents count as, each kind of it once: there are many documents and few kinds.
#[derive(Default)]
pub(crate) struct Totals {
    kinds: Vec<Kind>,
    /// Their places, by what they are.
    places: HashTable<usize>,
    hasher: DefaultHashBuilder,
    /// Those whose totals change with the present commit.
    changed: Vec<usize>,
}

struct Kind {
    collection: &'static str,
    values: Vec<Option<String>>,
    /// By how much the present commit changes the total.
    delta: i64,
}

/// A kind, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindId(usize);

impl Totals {
    /// The kind of documents with these values; none if the collection is not counted.
    pub(crate) fn kind<'a>(
        &mut self,
        collection: &'static Collection,
        values: impl Iterator<Item = Option<&'a str>> + Clone,
    ) -> Option<KindId> {
        if collection.counted.is_empty() {
            return None;
        }
        let Self { kinds, places, hasher, .. } = self;
        let hash = hash_of(hasher, collection.name, values.clone());
        let is_same = |nth: &usize| {
            kinds.get(*nth).is_some_and(|kind| {
                // Of one collection they are all of one length.
                let mut both = kind.values.iter().zip(values.clone());
                kind.collection == collection.name && both.all(|(held, value)| held.as_deref() == value)
            })
        };
        if let Some(nth) = places.find(hash, is_same) {
            return Some(KindId(*nth));
        }
        let nth = kinds.len();
        let values = values.map(|value| value.map(str::to_owned)).collect();
        kinds.push(Kind { collection: collection.name, values, delta: 0 });
        places.insert_unique(hash, nth, |nth| {
            kinds
                .get(*nth)
                .map_or(0, |kind| hash_of(hasher, kind.collection, kind.values.iter().map(Option::as_deref)))
        });
        Some(KindId(nth))
    }

    /// The values of a kind.
    pub(crate) fn values(&self, KindId(nth): KindId) -> &[Option<String>] {
        self.kinds.get(nth).map(|kind| kind.values.as_slice()).unwrap_or_default()
    }

    pub(crate) fn add(&mut self, kind: Option<KindId>, n: i64) {
        let Some(KindId(nth)) = kind else { return };
        if let Some(kind) = self.kinds.get_mut(nth) {
            if kind.delta == 0 {
                self.changed.push(nth);
            }
            kind.delta += n;
        }
    }

    /// What is not balanced.
    pub(crate) fn differences(&self) -> impl Iterator<Item = (&[Option<String>], i64)> {
        self.kinds.iter().filter(|kind| kind.delta != 0).map(|kind| (kind.values.as_slice(), kind.delta))
    }

    /// Writes what the present commit changes.
    pub(crate) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let add = "INSERT INTO counts (collection, key, n) VALUES (?1, ?2, ?3)
            ON CONFLICT (collection, key) DO UPDATE SET n = n + ?3 RETURNING n";
        let remove = "DELETE FROM counts WHERE collection = ?1 AND key = ?2";
        for nth in std::mem::take(&mut self.changed) {
            let Some(kind) = self.kinds.get_mut(nth) else { continue };
            let delta = std::mem::take(&mut kind.delta);
            if delta == 0 {
                continue;
            }
            let (collection, key) =
                (kind.collection, serde_json::to_string(&kind.values).unwrap_or_default());
            let n: i64 = connection
                .prepare_cached(add)?
                .query_row(params![collection, key, delta], |row| row.get(0))?;
            if n == 0 {
                connection.prepare_cached(remove)?.execute(params![collection, key])?;
            }
        }
        Ok(())
    }
}

fn hash_of<'a>(
    hasher: &DefaultHashBuilder,
    collection: &str,
    values: impl Iterator<Item = Option<&'a str>>,
) -> u64 {
    let mut state = hasher.build_hasher();
    collection.hash(&mut state);
    values.for_each(|value| value.hash(&mut state));
    state.finish()
}

/// The names of what is counted together; none if nothing is.
fn names(collection: &Collection) -> Vec<&'static str> {
    if collection.counted.is_empty() {
        return Vec::new();
    }
    let domain = (collection.reach == Reach::Domain).then_some(rota_store::collection::DOMAIN);
    domain.into_iter().chain(collection.counted.iter().copied()).collect()
}

/// The totals that a query asks for, if they are among those kept.
pub(crate) fn kept(
    connection: &Connection,
    query: &Query,
    by: Option<&'static str>,
) -> rusqlite::Result<Option<Vec<Tally>>> {
    let names = names(query.collection);
    let place = |path: &str| names.iter().position(|name| *name == path);
    let mut wanted: Vec<(usize, Vec<Value>)> = Vec::new();
    let mut is_kept =
        !names.is_empty() && query.hidden_before.is_none() && by.is_none_or(|by| place(by).is_some());
    for filter in &query.filters {
        match (filter, filter.path().and_then(place)) {
            (Filter::Is(_, value), Some(nth)) => wanted.push((nth, vec![value.clone()])),
            (Filter::In(_, values), Some(nth)) => wanted.push((nth, values.clone())),
            (Filter::Absent(_), Some(nth)) => wanted.push((nth, vec![Value::Null])),
            _ => is_kept = false,
        }
    }
    if !is_kept {
        return Ok(None);
    }
    if let Some(domain) = &query.domain {
        wanted.push((0, vec![domain.as_str().into()]));
    }
    let mut totals: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let by = by.and_then(place);
    each(connection, query.collection, &prefix(&wanted), |key, n| {
        let holds =
            |(nth, values): &(usize, Vec<Value>)| key.get(*nth).is_some_and(|held| values.contains(held));
        if wanted.iter().all(holds) {
            let value = by.and_then(|nth| key.get(nth)).and_then(Value::as_str).map(str::to_owned);
            *totals.entry(value).or_default() += n;
        }
    })?;
    if by.is_none() {
        totals.entry(None).or_default();
    }
    let tally = |(value, count): (Option<String>, u64)| Tally {
        value: value.map_or(Value::Null, Value::from),
        count,
    };
    Ok(Some(totals.into_iter().map(tally).collect()))
}

/// How the keys begin that can match: one domain's totals do not grow with the number of domains.
fn prefix(wanted: &[(usize, Vec<Value>)]) -> String {
    let first = wanted.iter().find_map(|(nth, values)| match values.as_slice() {
        [only] if *nth == 0 => Some(only),
        _ => None,
    });
    first.map(|value| format!("[{value}")).unwrap_or_default()
}

/// The totals of a collection whose keys begin like this.
pub(crate) fn each(
    connection: &Connection,
    collection: &Collection,
    prefix: &str,
    mut found: impl FnMut(&[Value], u64),
) -> rusqlite::Result<()> {
    let query = "SELECT key, n FROM counts WHERE collection = ?1 AND key >= ?2 AND key < ?3";
    let end = format!("{prefix}\u{10ffff}");
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(params![collection.name, prefix, end])?;
    while let Some(row) = rows.next()? {
        let key: Vec<Value> = serde_json::from_str(row.get_ref(0)?.as_str()?).unwrap_or_default();
        let n: i64 = row.get(1)?;
        found(&key, n.unsigned_abs());
    }
    Ok(())
}

/// What the totals of a collection must be, counted.
pub(crate) fn recounted(
    connection: &Connection,
    collection: &'static Collection,
) -> rusqlite::Result<Totals> {
    let mut totals = Totals::default();
    let names = names(collection);
    if names.is_empty() {
        return Ok(totals);
    }
    let columns: Vec<String> = names.iter().map(|name| column(name)).collect();
    let (columns, table, shown) = (columns.join(", "), table(collection), is_shown(collection));
    let query = format!("SELECT count(*), {columns} FROM {table} WHERE {shown} GROUP BY {columns}");
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values =
            (1..=names.len()).map(|nth| row.get(nth)).collect::<rusqlite::Result<Vec<Option<String>>>>()?;
        let kind = totals.kind(collection, values.iter().map(Option::as_deref));
        totals.add(kind, row.get(0)?);
    }
    Ok(totals)
}

/// Counts everything anew.
pub(crate) fn recount(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM counts")?;
    ALL.into_iter().try_for_each(|collection| recounted(connection, collection)?.write(connection))
}
