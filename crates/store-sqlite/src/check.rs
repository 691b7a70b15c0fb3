//! Whether a file holds together: its pages and indexes, each document with its columns, and what is derived from
//! documents. It looks at one moment of the store, while others go on writing.

use std::path::Path;
use std::time::Duration;

use rota_store::StoreError;
use rota_store::collection::{ALL, Collection, Kind, Walker};
use rota_store::seam::Key;
use rota_store::words;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, ErrorCode, Row as SqlRow, params};
use serde_json::Value;

use crate::backup::{Progress, Report};
use crate::row::{Row, document_in};
use crate::statements::{column, divides, document, is_shown, keywords_table, large_table, table};
use crate::{FILE, counts, file, schema, select, text, unavailable};

/// Past this many, more of the same tell nothing new.
const MAX_FAULTS: usize = 100;

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub documents: u64,
    pub faults: Vec<String>,
    /// Faults of the text index alone, which is made anew when it is removed.
    pub text_faults: Vec<String>,
    /// What is no fault, and worth knowing.
    pub notes: Vec<String>,
}

impl Findings {
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.text_faults.is_empty()
    }

    fn text_fault(&mut self, fault: String) {
        if self.text_faults.len() < MAX_FAULTS {
            self.text_faults.push(fault);
        }
    }

    fn fault(&mut self, fault: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault.into());
        }
    }
}

/// Looks at the store in a folder.
pub fn check(folder: &Path, report: Report<'_>) -> Result<Findings, StoreError> {
    let path = folder.join(FILE);
    let failed = unavailable("check the store");
    let connection = file::open_guest(&path)?;
    let mut findings = Findings::default();
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&failed)?;
    match check_pages(&connection, &mut findings) {
        Err(error) if is_damage(&error) => findings.fault(error.to_string()),
        checked => checked.map_err(&failed)?,
    }
    if version < schema::VERSION {
        findings.notes.push(format!(
            "its schema is {version} and the newest is {}: only its pages were checked. Rota brings it up to date when it \
             opens it; check it again then",
            schema::VERSION
        ));
        findings.documents = old_total(&connection).map_err(&failed)?;
        return Ok(findings);
    }
    match check_content(&connection, &path, &mut findings, report) {
        // Damaged pages break off the reading of what is on them.
        Err(_) if !findings.is_sound() => Ok(findings),
        checked => checked.map(|()| findings),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn check_content(
    connection: &Connection,
    path: &Path,
    findings: &mut Findings,
    report: Report<'_>,
) -> Result<(), StoreError> {
    let failed = unavailable("check the store");
    let moment = connection.unchecked_transaction().map_err(&failed)?;
    let of = total(connection).map_err(&failed)?;
    for collection in ALL {
        let mut looked = |documents| report(Progress { done: documents, of });
        check_documents(connection, collection, findings, &mut looked)?;
        check_apart(connection, collection, findings).map_err(&failed)?;
        check_counts(connection, collection, findings).map_err(&failed)?;
    }
    moment.finish().map_err(&failed)?;
    let has_text = attach_text(connection, path, findings);
    for collection in ALL.into_iter().filter(|collection| has_text && !collection.text.is_empty()) {
        let checked = check_words(connection, collection, findings);
        checked.unwrap_or_else(|error| findings.text_fault(error.to_string()));
    }
    Ok(())
}

/// Whether there is a text index to look at. A store that was just restored has none.
fn attach_text(connection: &Connection, path: &Path, findings: &mut Findings) -> bool {
    if !path.with_file_name(text::FILE).exists() {
        return false;
    }
    let attached = text::attach(connection, path);
    attached.map_err(|error| findings.text_fault(error.to_string())).is_ok()
}

/// SQLite's own check: pages, and that indexes and tables agree.
fn check_pages(connection: &Connection, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_FAULTS})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let said: String = row.get(0)?;
        if said != "ok" {
            findings.fault(said);
        }
    }
    Ok(())
}

/// The documents of an older file, which lacks tables that came later.
fn old_total(connection: &Connection) -> rusqlite::Result<u64> {
    let known = "SELECT count(*) FROM sqlite_schema WHERE name = ?";
    let mut total = 0;
    for collection in ALL {
        let is_there =
            connection.query_row(known, [format!("{}.rows", collection.name)], |row| row.get::<_, i64>(0))?;
        if is_there > 0 {
            let count = format!("SELECT count(*) FROM {}", table(collection));
            total += connection.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
        }
    }
    Ok(total)
}

fn total(connection: &Connection) -> rusqlite::Result<u64> {
    let mut total = 0;
    for collection in ALL {
        let count = format!("SELECT count(*) FROM {}", table(collection));
        total += connection.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    }
    Ok(total)
}

/// Each document, divided again, must give the columns and the body that are there.
fn check_documents(
    connection: &Connection,
    collection: &'static Collection,
    findings: &mut Findings,
    looked: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let failed = unavailable("check the store");
    let columns: Vec<String> = collection.fields.iter().map(|field| column(field.path)).collect();
    let listed: String = columns.iter().map(|column| format!(", {column}")).collect();
    let query = format!("SELECT pk{listed}, {} FROM {}", document(collection), table(collection));
    let mut statement = connection.prepare(&query).map_err(&failed)?;
    let mut rows = statement.query([]).map_err(&failed)?;
    let mut walker = Walker::new(collection);
    while let Some(row) = rows.next().map_err(&failed)? {
        let first = 1 + columns.len();
        let found = document_in(collection, row, first)?;
        let key = found.key.clone();
        let expected = Row::of(collection, found.body, &mut walker);
        for (nth, field) in collection.fields.iter().enumerate() {
            let stored: SqlValue = row.get(1 + nth).map_err(&failed)?;
            if !agrees(field.kind, expected.columns.get(nth), &stored) {
                findings.fault(format!("{key}: the column of {} and the document disagree", field.path));
            }
        }
        check_body(row, first + 3, &expected.body, &key.to_string(), findings).map_err(&failed)?;
        check_keywords(connection, collection, row, &expected, &key.to_string(), findings)
            .map_err(&failed)?;
        findings.documents += 1;
        if findings.documents.is_multiple_of(1_000) {
            looked(findings.documents);
        }
    }
    looked(findings.documents);
    Ok(())
}

fn agrees(kind: Kind, expected: Option<&SqlValue>, stored: &SqlValue) -> bool {
    match (expected, stored) {
        (Some(SqlValue::Text(expected)), SqlValue::Text(stored))
            if matches!(kind, Kind::Json | Kind::Keywords) =>
        {
            let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
            parse(stored).is_some() && parse(expected) == parse(stored)
        }
        (expected, stored) => expected == Some(stored),
    }
}

fn check_body(
    row: &SqlRow<'_>,
    nth: usize,
    expected: &str,
    key: &str,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let stored: Option<String> = row.get(nth)?;
    let parsed = stored.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match parsed {
        Some(body @ Value::Object(_))
            if serde_json::from_str::<Value>(expected).ok().as_ref() == Some(&body) => {}
        Some(Value::Object(_)) => {
            findings.fault(format!("{key}: its body holds a field that belongs in a column"));
        }
        _ => findings.fault(format!("{key}: its body is missing or not a JSON object")),
    }
    Ok(())
}

fn check_keywords(
    connection: &Connection,
    collection: &Collection,
    row: &SqlRow<'_>,
    expected: &Row,
    key: &str,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let pk: i64 = row.get(0)?;
    for (nth, field) in collection.fields.iter().enumerate().filter(|(_, field)| field.kind == Kind::Keywords)
    {
        let texts = expected.keywords.iter().find(|(place, _)| *place == nth);
        let texts = texts.map(|(_, texts)| texts.clone()).unwrap_or_default();
        let query = format!(
            "SELECT value FROM {} WHERE pk = ? ORDER BY value",
            keywords_table(collection, field.path)
        );
        let stored: Vec<String> = connection
            .prepare_cached(&query)?
            .query_map([pk], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut texts = texts;
        texts.sort();
        texts.dedup();
        if texts != stored {
            findings.fault(format!("{key}: the index of {} and the document disagree", field.path));
        }
    }
    Ok(())
}

/// What stands apart from the rows belongs to one of them.
fn check_apart(
    connection: &Connection,
    collection: &Collection,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let mut apart: Vec<String> = collection
        .fields
        .iter()
        .filter(|field| field.kind == Kind::Keywords)
        .map(|field| keywords_table(collection, field.path))
        .collect();
    if divides(collection) {
        apart.push(large_table(collection));
    }
    for part in apart {
        let query =
            format!("SELECT count(*) FROM {part} WHERE pk NOT IN (SELECT pk FROM {})", table(collection));
        let orphans: i64 = connection.query_row(&query, [], |row| row.get(0))?;
        if orphans > 0 {
            findings.fault(format!("{part}: {orphans} rows belong to no document"));
        }
    }
    Ok(())
}

fn check_counts(
    connection: &Connection,
    collection: &'static Collection,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let mut expected = counts::recounted(connection, collection)?;
    counts::each(connection, collection, "", |key, n| {
        let kind = expected.kind(collection, key.iter().map(Value::as_str));
        expected.add(kind, -i64::try_from(n).unwrap_or(i64::MAX));
    })?;
    for (counted, off) in expected.differences() {
        let key = serde_json::to_string(counted).unwrap_or_default();
        findings.fault(format!("{}: the total of {key} is off by {off}", collection.name));
    }
    Ok(())
}

/// How often, and after which pause, a document is looked at again whose words seem to be missing. The two files are read
/// at slightly different moments: what changed between them is not a fault.
const LOOKS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Every document that the text index says it has seen is found by its first word.
fn check_words(
    connection: &Connection,
    collection: &'static Collection,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut suspects = unindexed(connection, collection, "true", MAX_FAULTS)?;
    for _ in 0..LOOKS {
        if suspects.is_empty() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
        let which = suspects.iter().map(|(pk, _)| pk.to_string()).collect::<Vec<_>>().join(", ");
        suspects = unindexed(connection, collection, &format!("document.pk IN ({which})"), MAX_FAULTS)?;
    }
    for (_, key) in suspects {
        findings.text_fault(format!("{key}: its words are not in the text index"));
    }
    Ok(())
}

/// Documents, by primary key, that should be in the text index and are not.
fn unindexed(
    connection: &Connection,
    collection: &'static Collection,
    which: &str,
    most: usize,
) -> Result<Vec<(i64, Key)>, StoreError> {
    let failed = unavailable("check the text index");
    let query = format!(
        "SELECT pk, {} FROM {} AS document WHERE {which} AND {}
            AND pk <= (SELECT coalesce(max(pk), 0) FROM text.seen WHERE collection = '{name}')
            AND NOT EXISTS
            (SELECT 1 FROM text_changes WHERE collection = '{name}' AND text_changes.pk = document.pk)",
        document(collection).replace(&table(collection), "document"),
        table(collection),
        is_shown(collection),
        name = collection.name
    );
    let mut statement = connection.prepare(&query).map_err(&failed)?;
    let mut rows = statement.query([]).map_err(&failed)?;
    let index = select::index(collection);
    let has = format!("SELECT 1 FROM text.{index} WHERE {index} MATCH ? AND rowid = ?");
    let mut unindexed = Vec::new();
    while unindexed.len() < most
        && let Some(row) = rows.next().map_err(&failed)?
    {
        let (pk, found): (i64, _) = (row.get(0).map_err(&failed)?, document_in(collection, row, 1)?);
        let words = words::of(collection, &found.body);
        let Some(first) = words.split(' ').next().filter(|word| !word.is_empty()) else { continue };
        let mut has = connection.prepare_cached(&has).map_err(&failed)?;
        if !has.exists(params![format!("\"{first}\""), pk]).map_err(&failed)? {
            unindexed.push((pk, found.key));
        }
    }
    Ok(unindexed)
}
