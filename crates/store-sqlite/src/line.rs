//! One document within a commit: what the file holds of it, and what it will be.

use rota_store::StoreError;
use rota_store::collection::Collection;
use rota_store::query::{Filter, Query};
use rota_store::seam::{Document, Key, Version, Written};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Row as SqlRow};
use serde_json::Value;

use crate::counts::{KindId, Totals};
use crate::prepared::Prepared;
use crate::row::{Columns, Row, document_in, value_of};
use crate::rows::{Head, Rows, counted_value};
use crate::statements::{document, table};
use crate::unavailable;

/// What the file holds of a document, as far as writing it again needs to know.
#[derive(Clone, Copy)]
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

pub(crate) struct Line {
    pub(crate) key: Key,
    stored: Option<Stored>,
    now: Option<Now>,
    pub(crate) is_changed: bool,
}

impl Line {
    /// As the file holds it.
    pub(crate) fn new(key: Key, stored: Option<Stored>) -> Self {
        let now = stored.as_ref().map(|stored| Now {
            pk: stored.pk,
            version: stored.version,
            hidden_at: stored.hidden_at,
            content: Content::Columns(Columns::new()),
            has_new_words: false,
        });
        Self { key, stored, now, is_changed: false }
    }

    /// Whether nothing that is known without looking further speaks against it.
    pub(crate) fn may_match(&self, query: &Query, filters: &[(usize, &Filter)], before: Version) -> bool {
        let Some(now) = self.now.as_ref().filter(|now| now.hidden_at.is_none()) else { return false };
        let is_about = self.key.collection == query.collection
            && (query.domain.is_none() || self.key.domain == query.domain);
        let speaks_against = |(nth, filter): &(usize, &Filter)| {
            now.known(*nth).is_some_and(|column| contradicts(filter, column))
        };
        is_about && now.version.0 < before.0 && !filters.iter().any(speaks_against)
    }

    /// The whole document as it will be.
    pub(crate) fn document(&self, connection: &Connection) -> Result<Option<Document>, StoreError> {
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

    pub(crate) fn apply(&mut self, write: Prepared, next: Version) -> Written {
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

    pub(crate) fn change(&mut self, columns: Columns, has_words: bool, next: Version) {
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

    /// Writes it; what the file holds of it then.
    pub(crate) fn write(
        self,
        rows: &mut Rows<'_>,
        totals: &mut Totals,
    ) -> rusqlite::Result<(Key, Option<Stored>)> {
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
        let Some(Now { pk, version, hidden_at, content, has_new_words }) = now else {
            return Ok((key, None));
        };
        let head = Head { pk, version, hidden_at };
        if has_new_words && is_update {
            rows.note_words(collection, pk)?;
        }
        match content {
            Content::Whole(row) if is_update => rows.replace(collection, head, &row)?,
            // Its id was looked up, and is free.
            Content::Whole(row) => {
                rows.insert(&key, head, &row)?;
            }
            Content::Columns(columns) => {
                let was_hidden = stored.as_ref().is_some_and(|stored| stored.hidden_at.is_some());
                rows.change(collection, head, columns, hidden_at.is_some() != was_hidden)?;
            }
        }
        // What is hidden counts as nothing; what it was is looked up where it matters.
        let stored = hidden_at.is_none().then_some(Stored { pk, version, hidden_at, kind: after });
        Ok((key, stored))
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
        let columns = match &self.content {
            Content::Whole(row) => return kind_of(key, row, counted, totals),
            Content::Columns(columns) => columns,
        };
        let kind = stored.and_then(|stored| stored.kind)?;
        if !columns.iter().any(|(nth, _)| counted.contains(nth)) {
            return Some(kind);
        }
        let domain = key.domain.iter().map(|domain| Some(domain.as_str()));
        let held: Vec<Option<String>> = totals.values(kind).to_vec();
        let old = held.iter().skip(domain.len()).map(Option::as_deref);
        let value =
            |(nth, old): (&usize, _)| self.known(*nth).map_or(old, |column| counted_value(Some(column)));
        totals.kind(key.collection, domain.chain(counted.iter().zip(old).map(value)))
    }
}

/// What a new row counts as.
pub(crate) fn kind_of(key: &Key, row: &Row, counted: &[usize], totals: &mut Totals) -> Option<KindId> {
    let domain = key.domain.iter().map(|domain| Some(domain.as_str()));
    totals.kind(key.collection, domain.chain(counted.iter().map(|nth| counted_value(row.columns.get(*nth)))))
}
