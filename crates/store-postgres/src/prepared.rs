//! Writes made ready for the server, and gathered so that one statement does many of them.
//!
//! Writes of one commit to different documents may be done in any order. A document that is written several times is
//! written in as many rounds, one after the other.

use std::collections::{BTreeMap, HashMap};

use rota_store::collection::{ALL, Collection, Walkers};
use rota_store::hints::Hint;
use rota_store::seam::{Body, Fields, Key, Write};
use rota_store::words;
use serde_json::Value;

use crate::row::{Cell, Row, cells_of};
use crate::value::Json;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Deed {
    Create,
    Replace,
    /// Of these fields, one bit each.
    Change(u64),
    Delete,
    Purge,
}

/// A write as the server takes it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) key: Key,
    pub(crate) deed: Deed,
    /// The version that must be there.
    pub(crate) version: i64,
    pub(crate) body: Option<Json>,
    /// By the place of their fields: all of them, those that change, or none.
    pub(crate) cells: Vec<Cell>,
    /// The words at each path that is searched, where they are written.
    pub(crate) words: Vec<Option<String>>,
    /// When it was deleted.
    pub(crate) at: i64,
    pub(crate) hint: Option<Hint>,
}

impl Prepared {
    /// About how long it is.
    pub(crate) fn bytes(&self) -> usize {
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => text.len(),
            Cell::Json(json) => json.len(),
            Cell::Int(_) | Cell::Null => 8,
        };
        self.body.as_ref().map_or(0, Json::len) + self.cells.iter().map(cell).sum::<usize>()
    }

    pub(crate) fn of(write: Write, walkers: &mut Walkers) -> Self {
        let hint = Hint::of(&write);
        let plain = |key, deed, version: u64| Self {
            key,
            deed,
            version: version.cast_signed(),
            body: None,
            cells: Vec::new(),
            words: Vec::new(),
            at: 0,
            hint: hint.clone(),
        };
        match write {
            Write::Create { key, body } => Self::whole(plain(key, Deed::Create, 0), body, walkers),
            Write::Replace { key, version, body } => {
                Self::whole(plain(key, Deed::Replace, version.0), body, walkers)
            }
            Write::Change { key, version, fields } => {
                let cells = cells_of(key.collection, &fields);
                let mask = cells.iter().fold(0, |mask, (nth, _)| mask | 1 << nth);
                let words = words_of_change(key.collection, mask, fields);
                let cells = cells.into_iter().map(|(_, cell)| cell).collect();
                Self { cells, words, ..plain(key, Deed::Change(mask), version.0) }
            }
            Write::Delete { key, version, at } => Self { at: at.0, ..plain(key, Deed::Delete, version.0) },
            Write::Purge { key, version } => plain(key, Deed::Purge, version.0),
        }
    }

    fn whole(plain: Self, body: Body, walkers: &mut Walkers) -> Self {
        let collection = plain.key.collection;
        let words = collection.text.iter().map(|path| words_at(path, &body)).collect();
        let Row { body, cells } = Row::of(collection, body, walkers.of(collection));
        Self { body: Some(body), cells, words, ..plain }
    }
}

/// The words at a path of a document; none if there are none.
fn words_at(path: &str, body: &Body) -> Option<String> {
    let text = rota_store::collection::value_at(body, path).and_then(Value::as_str)?;
    Some(words::divided(text)).filter(|words| !words.is_empty())
}

/// The words at each path that stands in fields that a change sets.
pub(crate) fn words_of_change(
    collection: &'static Collection,
    mask: u64,
    fields: Fields,
) -> Vec<Option<String>> {
    let changed = fields.into_iter().map(|(path, value)| (path.to_owned(), value)).collect();
    changed_words(collection, mask).map(|path| words_below(path, &changed)).collect()
}

/// The same, from the fields that a change sets.
fn words_below(path: &str, changed: &Body) -> Option<String> {
    let (field, value) = changed.iter().find(|(field, _)| stands_in(path, field))?;
    let rest = path.strip_prefix(field.as_str())?.trim_start_matches('.');
    let text = if rest.is_empty() {
        value.as_str()?
    } else {
        rota_store::collection::value_at(value.as_object()?, rest)?.as_str()?
    };
    Some(words::divided(text)).filter(|words| !words.is_empty())
}

fn stands_in(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The paths with words that stand in fields that are set, one bit each.
pub(crate) fn changed_words(
    collection: &'static Collection,
    mask: u64,
) -> impl Iterator<Item = &'static str> {
    let is_set = move |path: &&&str| {
        let mut fields = collection.fields.iter().enumerate().filter(|(nth, _)| mask & (1 << nth) != 0);
        fields.any(|(_, field)| stands_in(path, field.path))
    };
    collection.text.iter().filter(is_set).copied()
}

/// Writes that one statement does: to documents of one collection, each another, in the same way.
pub(crate) struct Gathered<'a> {
    pub(crate) collection: &'static Collection,
    pub(crate) deed: Deed,
    pub(crate) writes: Vec<&'a Prepared>,
    /// Where each of them stands in the commit.
    pub(crate) places: Vec<usize>,
    /// How many writes to the same documents came before.
    pub(crate) round: usize,
}

/// Each write's round, statement by statement. Documents stand in the order of their ids, which all writers keep: so they
/// rarely wait for one another crosswise.
pub(crate) fn gather(writes: &[Prepared]) -> Vec<Gathered<'_>> {
    let mut rounds: HashMap<&Key, usize> = HashMap::new();
    let mut gathered: BTreeMap<_, Vec<(&Prepared, usize)>> = BTreeMap::new();
    for (nth, write) in writes.iter().enumerate() {
        let round = rounds.entry(&write.key).and_modify(|round| *round += 1).or_default();
        let place = ALL.iter().position(|known| *known == write.key.collection).unwrap_or_default();
        gathered.entry((*round, place, write.deed)).or_default().push((write, nth));
    }
    let mut statements = Vec::with_capacity(gathered.len());
    for ((round, place, deed), mut writes) in gathered {
        let Some(collection) = ALL.get(place).copied() else { continue };
        writes.sort_unstable_by(|(a, _), (b, _)| a.key.id.cmp(&b.key.id));
        let (writes, places) = writes.into_iter().unzip();
        statements.push(Gathered { collection, deed, writes, places, round });
    }
    statements
}
