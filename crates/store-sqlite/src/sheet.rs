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
use rota_store::collection::{Kind, Walker};
use rota_store::query::{Filter, Query};
use rota_store::seam::{Key, Version, Written};
use rusqlite::Connection;
use serde_json::Value;

use crate::commit::Memory;
use crate::line::{Line, Stored};
use crate::prepared::Prepared;
use crate::row::{Columns, RawDocument, Row};
use crate::rows::Rows;

/// A document that a claim may take.
pub(crate) struct Found {
    pub(crate) sort_key: Vec<Value>,
    pub(crate) document: RawDocument,
    /// What the file holds of it, where it was found there.
    pub(crate) stored: Option<Stored>,
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
        memory: &mut Memory,
        write: Prepared,
        next: Version,
    ) -> rusqlite::Result<Written> {
        let nth = match self.place(write.key()) {
            Some(nth) => nth,
            None => {
                let key = write.key().clone();
                let stored = match memory.heads.of(&key) {
                    Some(stored) => Some(stored),
                    None => rows.head(&key, |row| Stored::of(&key, row, &mut memory.totals))?,
                };
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

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
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
        let nth = self.lines.len();
        let hash = self.hasher.hash_one(&key);
        self.lines.push(Line::new(key, stored));
        let Self { lines, by_key, hasher } = self;
        by_key.insert_unique(hash, nth, |nth| lines.get(*nth).map_or(0, |line| hasher.hash_one(&line.key)));
        nth
    }

    fn place(&self, key: &Key) -> Option<usize> {
        let is_same = |nth: &usize| self.lines.get(*nth).is_some_and(|line| line.key == *key);
        self.by_key.find(self.hasher.hash_one(key), is_same).copied()
    }

    /// Writes every line that changed, and forgets all of them.
    pub(crate) fn flush(&mut self, rows: &mut Rows<'_>, memory: &mut Memory) -> rusqlite::Result<()> {
        self.by_key.clear();
        for line in self.lines.drain(..).filter(|line| line.is_changed) {
            let (key, stored) = line.write(rows, &mut memory.totals)?;
            memory.heads.keep(key, stored);
        }
        Ok(())
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
