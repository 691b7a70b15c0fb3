//! How large a store is, and what takes the room.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rota_store::StoreError;
use rota_store::collection::{ALL, Collection};
use rusqlite::Connection;

use crate::statements::table;
use crate::text::companion;
use crate::{FILE, file, text, unavailable};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    pub schema: u64,
    pub page_bytes: u64,
    /// The file of documents.
    pub file_bytes: u64,
    /// Of it, what is free for new documents.
    pub free_bytes: u64,
    /// Writes that are on disk and not yet in the file.
    pub log_bytes: u64,
    /// The file of the text indexes.
    pub text_bytes: u64,
    pub collections: Vec<CollectionStats>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionStats {
    pub name: &'static str,
    pub documents: u64,
    /// Deleted, and not yet purged.
    pub hidden: u64,
    pub document_bytes: u64,
    pub index_bytes: u64,
}

/// Looks at the store in a folder, while others may go on writing.
pub fn stats(folder: &Path) -> Result<Stats, StoreError> {
    let path = folder.join(FILE);
    let failed = unavailable("measure the store");
    let connection = file::open_guest(&path)?;
    let number = |name: &str| -> Result<u64, StoreError> {
        let value: i64 = connection.pragma_query_value(None, name, |row| row.get(0)).map_err(&failed)?;
        Ok(value.unsigned_abs())
    };
    let page_bytes = number("page_size")?;
    let bytes = bytes_by_name(&connection).map_err(&failed)?;
    let collections = ALL.iter().map(|collection| stats_of(&connection, collection, &bytes));
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let text_file = path.with_file_name(text::FILE);
    Ok(Stats {
        schema: number("user_version")?,
        page_bytes,
        file_bytes: size(&path),
        free_bytes: number("freelist_count")? * page_bytes,
        log_bytes: size(&companion(&path, "-wal")),
        text_bytes: size(&text_file) + size(&companion(&text_file, "-wal")),
        collections: collections.collect::<rusqlite::Result<_>>().map_err(&failed)?,
    })
}

type Bytes = BTreeMap<String, u64>;

fn bytes_by_name(connection: &Connection) -> rusqlite::Result<Bytes> {
    let mut statement = connection.prepare("SELECT name, pgsize FROM dbstat WHERE aggregate = true")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
    rows.collect()
}

fn stats_of(
    connection: &Connection,
    collection: &'static Collection,
    bytes: &Bytes,
) -> rusqlite::Result<CollectionStats> {
    let name = collection.name;
    let tables = [format!("{name}.rows"), format!("{name}.large")];
    let document_bytes = tables.iter().filter_map(|table| bytes.get(table)).sum();
    let (start, own) = (format!("{name}."), format!("sqlite_autoindex_{name}."));
    let belongs = |other: &str| other.starts_with(&start) || other.starts_with(&own);
    let all: u64 = bytes.iter().filter(|(other, _)| belongs(other)).map(|(_, bytes)| bytes).sum();
    let (rows, hidden) = rows_and_hidden(connection, collection)?;
    Ok(CollectionStats {
        name,
        documents: (rows - hidden).unsigned_abs(),
        hidden: hidden.unsigned_abs(),
        document_bytes,
        index_bytes: all - document_bytes,
    })
}

/// An older file lacks what came later: a table, or a column of it.
fn rows_and_hidden(connection: &Connection, collection: &Collection) -> rusqlite::Result<(i64, i64)> {
    let columns = "SELECT count(*), count(*) FILTER (WHERE name = 'hidden_at') FROM pragma_table_info(?)";
    let both = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (columns, hides): (i64, i64) =
        connection.query_row(columns, [format!("{}.rows", collection.name)], both)?;
    if columns == 0 {
        return Ok((0, 0));
    }
    let hidden = if hides > 0 { "count(hidden_at)" } else { "0" };
    connection.query_row(&format!("SELECT count(*), {hidden} FROM {}", table(collection)), [], both)
}
