//! One commit: what is asked of it is applied to a [`Sheet`] and to the file, inside a transaction that the writer begins
//! and ends.

use std::collections::HashSet;
use std::ops::Range;

use rota_store::StoreError;
use rota_store::collection::Reach;
use rota_store::hints::Hint;
use rota_store::query::Query;
use rota_store::seam::{Claim, Key, Version, Written};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params, params_from_iter};

use crate::counts::Totals;
use crate::heads::Heads;
use crate::line::{Stored, kind_of};
use crate::prepared::{Prepared, has_words};
use crate::row::{RawDocument, Row, columns_of, from_column, key_in};
use crate::rows::{Head, Rows};
use crate::select::{self, order_columns};
use crate::sheet::{Found, Sheet};
use crate::statements::{Statements, column, document};
use crate::{schema, unavailable};

/// Versions are reserved in blocks, so that a commit need not store how far they got.
const VERSION_BLOCK: u64 = 1_000_000;

/// What is remembered from commit to commit, and forgotten when one fails.
#[derive(Default)]
pub(crate) struct Memory {
    versions: Versions,
    pub(crate) totals: Totals,
    pub(crate) heads: Heads,
    /// Where views of one domain's collection are known to be.
    domains: HashSet<(&'static str, String)>,
}

pub(crate) struct Commit<'a> {
    rows: Rows<'a>,
    memory: &'a mut Memory,
    sheet: Sheet,
    hints: Vec<Hint>,
    /// Whether somebody claims within it.
    claims: bool,
    /// Whether numbers were taken that must never be taken again.
    gave_numbers: bool,
    pub(crate) failure: Option<StoreError>,
}

/// What is left of a commit when only the disk is waited for.
pub(crate) struct Finished {
    pub(crate) hints: Vec<Hint>,
    pub(crate) gave_numbers: bool,
    pub(crate) failure: Option<StoreError>,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        statements: &'a Statements,
        memory: &'a mut Memory,
        claims: bool,
    ) -> Self {
        let rows = Rows::new(connection, statements);
        Self {
            rows,
            memory,
            sheet: Sheet::default(),
            hints: Vec::new(),
            claims,
            gave_numbers: false,
            failure: None,
        }
    }

    /// Writes what gathered. What is left to do is to wait for the disk.
    pub(crate) fn finish(mut self) -> Finished {
        if self.failure.is_none() {
            self.failure = self.flush().err().map(unavailable("write"));
        }
        Finished { hints: self.hints, gave_numbers: self.gave_numbers, failure: self.failure }
    }

    fn flush(&mut self) -> rusqlite::Result<()> {
        self.sheet.flush(&mut self.rows, self.memory)?;
        self.memory.totals.write(self.rows.connection)
    }

    /// Applies each write and adds what became of it.
    pub(crate) fn write(&mut self, batch: Vec<Prepared>, answers: &mut Vec<Written>) -> rusqlite::Result<()> {
        for write in batch {
            let version = self.next_version()?;
            // What goes for good was hidden before, and nobody sees a difference.
            let is_seen = !matches!(write, Prepared::Purge { .. });
            let hint = Hint { key: write.key().clone(), is_new: write.is_new() };
            let written = match write {
                Prepared::Create { key, row } if !self.claims && !self.sheet.has(&key) => {
                    self.insert(&key, &row, version)?
                }
                write => self.sheet.apply(&mut self.rows, self.memory, write, version)?,
            };
            if matches!(written, Written::Applied(_)) {
                if hint.is_new {
                    self.show_domain(&hint.key)?;
                }
                if is_seen {
                    self.hints.push(hint);
                }
            }
            answers.push(written);
        }
        Ok(())
    }

    /// Where nobody can claim it within the commit, a new document goes straight into the file, which says whether its id
    /// is free.
    fn insert(&mut self, key: &Key, row: &Row, version: Version) -> rusqlite::Result<Written> {
        let head = Head { pk: version.0.cast_signed(), version, hidden_at: None };
        if !self.rows.insert(key, head, row)? {
            return Ok(Written::Exists);
        }
        let kind = kind_of(key, row, self.rows.counted(key.collection), &mut self.memory.totals);
        self.memory.totals.add(kind, 1);
        Ok(Written::Applied(version))
    }

    /// Makes the view of a domain's own collection when the domain is first met.
    fn show_domain(&mut self, key: &Key) -> rusqlite::Result<()> {
        let (Reach::Domain, Some(domain)) = (key.collection.reach, &key.domain) else { return Ok(()) };
        let known = (key.collection.name, domain.to_string());
        if self.memory.domains.contains(&known) {
            return Ok(());
        }
        let view = schema::view_of_domain(key.collection, domain);
        let is_there = "SELECT count(*) FROM sqlite_schema WHERE name = ?";
        if self.rows.connection.query_row(is_there, [&view.name], |row| row.get::<_, i64>(0))? == 0 {
            self.rows.connection.execute_batch(&view.ddl)?;
        }
        self.memory.domains.insert(known);
        Ok(())
    }

    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Vec<RawDocument>, StoreError> {
        let collection = claim.collection;
        let has_words = has_words(collection, &claim.fields());
        let set = columns_of(collection, claim.fields());
        let place = |path: &str| collection.fields.iter().position(|field| field.path == path);
        let counter = claim.add_one.and_then(place);
        // What an earlier query of the same claim found is not taken once more.
        let before = self.next_version().map_err(unavailable("claim"))?;
        let mut claimed = Vec::new();
        for query in &claim.from {
            let room = query.limit.min(claim.max - claimed.len());
            if room == 0 {
                break;
            }
            for Found { mut document, stored, .. } in self.candidates(query, room, before)? {
                document.version = self.next_version().map_err(unavailable("claim"))?;
                let mut columns = set.clone();
                columns.extend(counter.map(|nth| (nth, SqlValue::Integer(document.add_one(nth)))));
                document.set(&columns);
                self.sheet.change_found(&document.key, stored, columns, has_words, document.version);
                self.hints.push(Hint { key: document.key.clone(), is_new: false });
                claimed.push(document);
            }
        }
        Ok(claimed)
    }

    /// The first documents that a query is about: of the file, as far as it is up to date, and of the sheet.
    fn candidates(&mut self, query: &Query, room: usize, before: Version) -> Result<Vec<Found>, StoreError> {
        let mut found = self.stored_candidates(query, room)?;
        let changed = self.sheet.matching(self.rows.connection, query, before)?;
        if !changed.is_empty() {
            found.extend(changed);
            found.sort_by(|a, b| query.compare(&a.sort_key, &b.sort_key));
        }
        found.truncate(room);
        Ok(found)
    }

    fn stored_candidates(&mut self, query: &Query, room: usize) -> Result<Vec<Found>, StoreError> {
        let failed = unavailable("claim");
        let collection = query.collection;
        let hidden_at = if collection.hides() { "hidden_at" } else { "NULL" };
        let counted: String = collection.counted.iter().map(|path| format!(", {}", column(path))).collect();
        let order = order_columns(query);
        let columns =
            format!("pk, version, {hidden_at}{counted}, {}, {}", order.join(", "), document(collection));
        let sorted_by = 3 + collection.counted.len()..3 + collection.counted.len() + order.len();
        let mut found = Vec::new();
        for statement in select::lists(query, &columns, select::Way::By(None)) {
            let mut prepared = self.rows.connection.prepare_cached(&statement.text).map_err(&failed)?;
            let most = i64::try_from(room + self.sheet.len()).unwrap_or(i64::MAX);
            let values = statement.values.into_iter().chain([SqlValue::Integer(most)]);
            let mut rows = prepared.query(params_from_iter(values)).map_err(&failed)?;
            while found.len() < room
                && let Some(row) = rows.next().map_err(&failed)?
            {
                let (key, version) = key_in(collection, row, sorted_by.end)?;
                if self.sheet.has_changed(&key) {
                    continue;
                }
                let stored = Some(Stored::of(&key, row, &mut self.memory.totals).map_err(&failed)?);
                // Nobody compares it where nothing else was written.
                let compared = if self.sheet.is_empty() { 0..0 } else { sorted_by.clone() };
                let sort_key = compared.map(|nth| row.get_ref(nth).map(from_column));
                let sort_key = sort_key.collect::<rusqlite::Result<_>>().map_err(&failed)?;
                let document = RawDocument::of(key, version, row, sorted_by.end).map_err(&failed)?;
                found.push(Found { sort_key, document, stored });
            }
        }
        Ok(found)
    }

    /// Numbers that nobody was given before.
    pub(crate) fn numbers(&mut self, name: &str, n: u64) -> rusqlite::Result<Range<u64>> {
        self.gave_numbers = true;
        advance(self.rows.connection, name, n)
    }

    fn next_version(&mut self) -> rusqlite::Result<Version> {
        self.gave_numbers |= self.memory.versions.are_used_up();
        self.memory.versions.next(self.rows.connection)
    }

    /// The text index has seen the notes up to this one.
    pub(crate) fn forget_words(&self, seq: i64) -> rusqlite::Result<()> {
        self.rows.connection.execute("DELETE FROM text_changes WHERE seq <= ?", [seq]).map(|_| ())
    }
}

/// The versions of this store: they rise over all documents and all restarts, so that a document made anew never has
/// a version its predecessor had.
#[derive(Default)]
struct Versions {
    next: u64,
    end: u64,
}

impl Versions {
    fn are_used_up(&self) -> bool {
        self.next == self.end
    }

    fn next(&mut self, connection: &Connection) -> rusqlite::Result<Version> {
        if self.are_used_up() {
            let block = advance(connection, "versions", VERSION_BLOCK)?;
            (self.next, self.end) = (block.start, block.end);
        }
        self.next += 1;
        Ok(Version(self.next - 1))
    }
}

/// Moves a sequence on; the first number is 1.
fn advance(connection: &Connection, name: &str, n: u64) -> rusqlite::Result<Range<u64>> {
    let statement = "INSERT INTO sequences (name, next) VALUES (?1, 1 + ?2)
        ON CONFLICT (name) DO UPDATE SET next = next + ?2 RETURNING next";
    let end: i64 =
        connection.prepare_cached(statement)?.query_row(params![name, n.cast_signed()], |row| row.get(0))?;
    let end = end.unsigned_abs();
    Ok(end - n..end)
}
