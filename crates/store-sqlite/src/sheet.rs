//! What one commit changes. Writes are applied here first, to what the file holds of each document, and the file is
//! written from here: several changes of one document in one commit are written once.
//!
//! ```text
//!  write ──▶ line of its document (looked up once) ──▶ … ──▶ flush: one insert, update or delete per line
//! ```
//!
//! A claim looks for documents in the file and on the sheet: a job that is made and taken within one commit is written
//! once.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use rota_store::StoreError;
use rota_store::collection::{Collection, Kind, Walker};
use rota_store::query::{Filter, Query};
use rota_store::seam::{Document, Key, Version, Written};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Row as SqlRow};
use serde_json::Value;

use crate::counts::{KindId, Totals};
use crate::prepared::Prepared;
use crate::row::{Columns, RawDocument, Row, document_in, value_of};
use crate::rows::{Head, Rows, counted_value};
use crate::statements::{document, table};
use crate::unavailable;

/// What the file holds of a document, as far as writing it again needs to know.
pub(crate) struct Stored {
    pub(crate) pk: i64,
    pub(crate) version: Version,
    pub(crate) hidden_at: Option<i64>,
    /// What it counts as.
    pub(crate) kind: Option<KindId>,
}

impl Stored {
    /// From a row that begins with pk, version, hidden_at and the counted fields.
    pub(crate) fn of(key: &Key, row: &SqlRow<'_>, totals: &mut Totals) -> rusqlite::Result<Self> {
        let version: i64 = row.get(1)?;
        let domain = key.domain.iter().map(|domain| Some(domain.as_str()));
        let counted = (0..key.collection.counted.len())
            .map(|nth| row.get_ref(3 + nth).ok().and_then(|value| value.as_str_or_null().ok().flatten()));
        let kind = totals.kind(key.collection, domain.chain(counted));
        Ok(Self { pk: row.get(0)?, version: Version(version.unsigned_abs()), hidden_at: row.get(2)?, kind })
    }
}

/// A document that a claim may take.
pub(crate) struct Found {
    pub(crate) sort_key: Vec<Value>,
    pub(crate) document: RawDocument,
    /// What the file holds of it, where it was found there.
    pub(crate) stored: Option<Stored>,
}

/// What is to be written of it.
enum Content {
    /// Some columns, by the place of their fields.
    Columns(Columns),
    Whole(Row),
}

/// A document as it will be.
struct Now {
    pk: i64,
    version: Version,
    hidden_at: Option<i64>,
    content: Content,
    /// Whether its words changed, so that the text index must look at it again.
    has_new_words: bool,
}

struct Line {
    key: Key,
    stored: Option<Stored>,
    now: Option<Now>,
    is_changed: bool,
}

#[derive(Default)]
pub(crate) struct Sheet {
    lines: Vec<Line>,
    /// Their places, by key.
    by_key: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Sheet {
    /// Applies one write, under a version that nothing else has.
    pub(crate) fn apply(
        &mut self,
        rows: &mut Rows<'_>,
        totals: &mut Totals,
        write: Prepared,
        next: Version,
    ) -> rusqlite::Result<Written> {
        let nth = match self.place(write.key()) {
            Some(nth) => nth,
            None => {
                let key = write.key().clone();
                let stored = rows.head(&key, |row| Stored::of(&key, row, totals))?;
                self.add(key, stored)
            }
        };
        let Some(line) = self.lines.get_mut(nth) else { return Ok(Written::Missing) };
        let written = line.apply(write, next);
        line.is_changed |= matches!(written, Written::Applied(_));
        Ok(written)
    }

    /// Whether something is known of a document.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.place(key).is_some()
    }

    /// Changes columns of a document that was just found, under a version that nothing else has.
    pub(crate) fn change_found(
        &mut self,
        key: &Key,
        stored: Option<Stored>,
        columns: Columns,
        has_words: bool,
        next: Version,
    ) {
        let nth = match self.place(key) {
            Some(nth) => nth,
            None => self.add(key.clone(), stored),
        };
        if let Some(line) = self.lines.get_mut(nth) {
            line.change(columns, has_words, next);
            line.is_changed = true;
        }
    }

    /// Whether what the file holds of a document is out of date.
    pub(crate) fn has_changed(&self, key: &Key) -> bool {
        self.place(key).and_then(|nth| self.lines.get(nth)).is_some_and(|line| line.is_changed)
    }

    /// How many documents have changed.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The changed documents that a query is about, in no order; those that were changed before this version.
    pub(crate) fn matching(
        &self,
        connection: &Connection,
        query: &Query,
        before: Version,
    ) -> Result<Vec<Found>, StoreError> {
        let mut matching = Vec::new();
        let filters = known_filters(query);
        for line in
            self.lines.iter().filter(|line| line.is_changed && line.may_match(query, &filters, before))
        {
            let Some(document) = line.document(connection)? else { continue };
            if query.filters.iter().all(|filter| filter.holds(query.collection, &document.body)) {
                let sort_key = query.sort_key(&document);
                let row = Row::of(query.collection, document.body, &mut Walker::new(query.collection));
                let document = RawDocument::of_row(document.key, document.version, &row);
                matching.push(Found { sort_key, document, stored: None });
            }
        }
        Ok(matching)
    }

    fn add(&mut self, key: Key, stored: Option<Stored>) -> usize {
        let now = stored.as_ref().map(|stored| Now {
            pk: stored.pk,
            version: stored.version,
            hidden_at: stored.hidden_at,
            content: Content::Columns(Columns::new()),
            has_new_words: false,
        });
        let nth = self.lines.len();
        let hash = self.hasher.hash_one(&key);
        self.lines.push(Line { key, stored, now, is_changed: false });
        let Self { lines, by_key, hasher } = self;
        by_key.insert_unique(hash, nth, |nth| lines.get(*nth).map_or(0, |line| hasher.hash_one(&line.key)));
        nth
    }

    fn place(&self, key: &Key) -> Option<usize> {
        let is_same = |nth: &usize| self.lines.get(*nth).is_some_and(|line| line.key == *key);
        self.by_key.find(self.hasher.hash_one(key), is_same).copied()
    }

    /// Writes every line that changed, and forgets all of them.
    pub(crate) fn flush(&mut self, rows: &mut Rows<'_>, totals: &mut Totals) -> rusqlite::Result<()> {
        self.by_key.clear();
        let mut changed = self.lines.drain(..).filter(|line| line.is_changed);
        changed.try_for_each(|line| line.write(rows, totals))
    }
}

/// The filters of a query about fields with one value, with the places of those fields.
fn known_filters(query: &Query) -> Vec<(usize, &Filter)> {
    let fields = query.collection.fields;
    let place = |filter: &Filter| {
        fields.iter().position(|field| field.kind != Kind::Keywords && Some(field.path) == filter.path())
    };
    query.filters.iter().filter_map(|filter| Some((place(filter)?, filter))).collect()
}

impl Line {
    /// Whether nothing that is known without looking further speaks against it.
    fn may_match(&self, query: &Query, filters: &[(usize, &Filter)], before: Version) -> bool {
        let Some(now) = self.now.as_ref().filter(|now| now.hidden_at.is_none()) else { return false };
        let is_about = self.key.collection == query.collection
            && (query.domain.is_none() || self.key.domain == query.domain);
        let speaks_against = |(nth, filter): &(usize, &Filter)| {
            now.known(*nth).is_some_and(|column| contradicts(filter, column))
        };
        is_about && now.version.0 < before.0 && !filters.iter().any(speaks_against)
    }

    /// The whole document as it will be.
    fn document(&self, connection: &Connection) -> Result<Option<Document>, StoreError> {
        let (key, collection): (&Key, &'static Collection) = (&self.key, self.key.collection);
        let Some(now) = &self.now else { return Ok(None) };
        let mut document = match &now.content {
            Content::Whole(row) => row.document(key.clone(), now.version),
            Content::Columns(_) => {
                let failed = unavailable("claim");
                let query =
                    format!("SELECT {} FROM {} WHERE pk = ?", document(collection), table(collection));
                let mut statement = connection.prepare_cached(&query).map_err(&failed)?;
                let mut rows = statement.query([now.pk]).map_err(&failed)?;
                let Some(row) = rows.next().map_err(&failed)? else { return Ok(None) };
                document_in(collection, row, 0)?
            }
        };
        if let Content::Columns(columns) = &now.content {
            for (nth, value) in columns {
                if let Some(field) = collection.fields.get(*nth) {
                    field.set(&mut document.body, value_of(field.kind, value));
                }
            }
        }
        document.version = now.version;
        Ok(Some(document))
    }

    fn apply(&mut self, write: Prepared, next: Version) -> Written {
        let Some(now) = &mut self.now else {
            let Prepared::Create { row, .. } = write else { return Written::Missing };
            let pk = next.0.cast_signed();
            // A document that is made anew has its own row, and its words are not yet known by it.
            self.now = Some(Now {
                pk,
                version: next,
                hidden_at: None,
                content: Content::Whole(row),
                has_new_words: false,
            });
            return Written::Applied(next);
        };
        let is_hidden = now.hidden_at.is_some();
        match write {
            Prepared::Create { .. } => Written::Exists,
            Prepared::Purge { version, .. } if is_hidden && version == now.version => {
                self.now = None;
                Written::Applied(next)
            }
            Prepared::Purge { .. } => Written::Conflict,
            _ if is_hidden => Written::Missing,
            Prepared::Replace { version, row, .. } if version == now.version => {
                now.content = Content::Whole(row);
                now.has_new_words |= !self.key.collection.text.is_empty();
                now.version = next;
                Written::Applied(next)
            }
            Prepared::Change { version, columns, has_words, .. } if version == now.version => {
                self.change(columns, has_words, next);
                Written::Applied(next)
            }
            Prepared::Delete { version, at, .. } if version == now.version => {
                if self.key.collection.hides() {
                    now.hidden_at = Some(at.0);
                    now.version = next;
                } else {
                    self.now = None;
                }
                Written::Applied(next)
            }
            _ => Written::Conflict,
        }
    }

    fn change(&mut self, columns: Columns, has_words: bool, next: Version) {
        let Some(now) = &mut self.now else { return };
        now.version = next;
        now.has_new_words |= has_words;
        match &mut now.content {
            Content::Whole(row) => {
                for (nth, value) in columns {
                    if let Some(column) = row.columns.get_mut(nth) {
                        *column = value;
                    }
                }
            }
            Content::Columns(held) => {
                for (nth, value) in columns {
                    match held.iter_mut().find(|(place, _)| *place == nth) {
                        Some((_, column)) => *column = value,
                        None => held.push((nth, value)),
                    }
                }
            }
        }
    }

    fn write(self, rows: &mut Rows<'_>, totals: &mut Totals) -> rusqlite::Result<()> {
        let Line { key, stored, now, .. } = self;
        let collection = key.collection;
        let before =
            stored.as_ref().filter(|stored| stored.hidden_at.is_none()).and_then(|stored| stored.kind);
        let shown = now.as_ref().filter(|now| now.hidden_at.is_none());
        let after = shown.and_then(|now| now.kind(&key, stored.as_ref(), rows.counted(collection), totals));
        if before != after {
            totals.add(before, -1);
            totals.add(after, 1);
        }
        let same_row = |now: &Now| stored.as_ref().is_some_and(|stored| stored.pk == now.pk);
        let is_update = now.as_ref().is_some_and(same_row);
        if let Some(stored) = &stored
            && !is_update
        {
            rows.remove(collection, stored.pk)?;
        }
        let Some(Now { pk, version, hidden_at, content, has_new_words }) = now else { return Ok(()) };
        let head = Head { pk, version, hidden_at };
        if has_new_words && is_update {
            rows.note_words(collection, pk)?;
        }
        match content {
            Content::Whole(row) if is_update => rows.replace(collection, head, &row),
            // Its id was looked up, and is free.
            Content::Whole(row) => rows.insert(&key, head, &row).map(|_| ()),
            Content::Columns(columns) => rows.change(collection, head, columns),
        }
    }
}

/// Whether a filter cannot hold for a document with this value in its column.
fn contradicts(filter: &Filter, column: &SqlValue) -> bool {
    match (filter, column) {
        (Filter::Is(_, Value::String(wanted)), SqlValue::Text(held)) => wanted != held,
        (Filter::Is(_, wanted), SqlValue::Integer(held)) => wanted.as_i64() != Some(*held),
        (Filter::AtLeast(_, least), SqlValue::Integer(held)) => held < least,
        (Filter::AtMost(_, most), SqlValue::Integer(held)) => held > most,
        (Filter::Absent(_), held) => *held != SqlValue::Null,
        (_, SqlValue::Null) => true,
        _ => false,
    }
}

impl Now {
    /// What will stand in a column, if it is known without looking into the file.
    fn known(&self, nth: usize) -> Option<&SqlValue> {
        match &self.content {
            Content::Whole(row) => row.columns.get(nth),
            Content::Columns(columns) => {
                columns.iter().find(|(place, _)| *place == nth).map(|(_, value)| value)
            }
        }
    }

    /// What it will count as.
    fn kind(
        &self,
        key: &Key,
        stored: Option<&Stored>,
        counted: &[usize],
        totals: &mut Totals,
    ) -> Option<KindId> {
        let domain = key.domain.as_ref().map(rota_model::domain::Domain::as_str);
        match (&self.content, stored.and_then(|stored| stored.kind)) {
            (Content::Columns(columns), Some(kind)) => {
                if !columns.iter().any(|(nth, _)| counted.contains(nth)) {
                    return Some(kind);
                }
                let held: Vec<Option<String>> = totals.values(kind).to_vec();
                let old = held.iter().skip(usize::from(domain.is_some())).map(Option::as_deref);
                let value = |(nth, old): (&usize, _)| {
                    self.known(*nth).map_or(old, |column| counted_value(Some(column)))
                };
                let values = domain.into_iter().map(Some).chain(counted.iter().zip(old).map(value));
                totals.kind(key.collection, values)
            }
            _ => {
                let values = counted.iter().map(|nth| counted_value(self.known(*nth)));
                totals.kind(key.collection, domain.into_iter().map(Some).chain(values))
            }
        }
    }
}

/// What a new row counts as.
pub(crate) fn kind_of(key: &Key, row: &Row, counted: &[usize], totals: &mut Totals) -> Option<KindId> {
    let domain = key.domain.iter().map(|domain| Some(domain.as_str()));
    totals.kind(key.collection, domain.chain(counted.iter().map(|nth| counted_value(row.columns.get(*nth)))))
}
