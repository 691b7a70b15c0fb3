//! The file: its settings, its tables and indexes. Tables are derived from the declarations of the collections.
//!
//! A document is a row. Fields that change stand in columns only; the body holds the rest and is written once. Fixed
//! declared fields stand in both. The row id rises with each insert, which keeps the table dense.

use std::path::Path;

use rota_store::StoreError;
use rota_store::collection::{self, Collection, Index, Kind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::sql::{column, quoted, table};
use crate::unavailable;

/// Written into the head of the file, so that it is known as Rota's: "Rota".
const APPLICATION_ID: i64 = 0x526f_7461;
const SCHEMA_VERSION: i64 = 1;
/// Larger pages than the default: job-sized documents fill them better.
const PAGE_BYTES: i64 = 8_192;

/// Opens the file for writing and makes the tables if it is new. A file that is not Rota's is left untouched.
pub(crate) fn open(file: &Path) -> Result<Connection, StoreError> {
    let what = format!("open {}", file.display());
    make_private(file).map_err(|error| StoreError::unavailable(&what, error))?;
    let connection = Connection::open(file).map_err(unavailable(&what))?;
    if is_blank(&connection) {
        set_up(&connection).map_err(unavailable(&what))?;
    }
    recognise(&connection, &what)?;
    configure(&connection).map_err(unavailable(&what))?;
    Ok(connection)
}

/// Opens the file once more, to read.
pub(crate) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let what = format!("open {}", file.display());
    let failed = unavailable(&what);
    let connection = Connection::open_with_flags(file, flags).map_err(&failed)?;
    keep_statements(&connection).map_err(&failed)?;
    Ok(connection)
}

/// Whether there is nothing in the file, or only what a process left that died while making it.
fn is_blank(connection: &Connection) -> bool {
    let blank = "SELECT (SELECT count(*) FROM sqlite_schema) = 0
        AND (SELECT application_id FROM pragma_application_id) = 0
        AND (SELECT user_version FROM pragma_user_version) = 0";
    connection.query_row(blank, [], |row| row.get(0)).unwrap_or(false)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let mut script = String::from("BEGIN IMMEDIATE;\n");
    for collection in collection::ALL {
        script.push_str(&table_ddl(collection));
    }
    script.push_str("CREATE TABLE sequences (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;\n");
    script.push_str(&format!("PRAGMA application_id = {APPLICATION_ID};\n"));
    script.push_str(&format!("PRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;"));
    connection.execute_batch(&script)
}

fn recognise(connection: &Connection, what: &str) -> Result<(), StoreError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match number("application_id") {
        Ok(APPLICATION_ID) => {}
        Ok(_) => {
            return Err(StoreError::refused(
                what,
                "it is a database of another program; it was left untouched",
            ));
        }
        Err(error) => return Err(StoreError::refused(what, format!("it is not a store of Rota ({error})"))),
    }
    match number("user_version") {
        Ok(SCHEMA_VERSION) => Ok(()),
        Ok(other) => {
            Err(StoreError::refused(what, format!("its schema {other} is not one this version knows")))
        }
        Err(error) => Err(unavailable(what)(error)),
    }
}

/// Durable on return: the write-ahead log is synced at each commit.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -64_000)?;
    keep_statements(connection)
}

/// A statement is prepared once and kept. Without the guarantee that its plan does not depend on the values bound to it,
/// SQLite would prepare it again whenever they change.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(())
}

/// Makes the file before SQLite does, for its owner alone: SQLite gives its companions the same permissions.
fn make_private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(|_| ())
}

fn table_ddl(collection: &Collection) -> String {
    let columns: String = collection
        .fields
        .iter()
        .map(|field| {
            let affinity = if field.kind == Kind::Integer { "INTEGER" } else { "TEXT" };
            format!(", {} {affinity}", column(field.path))
        })
        .collect();
    let table = table(collection);
    let mut ddl = format!(
        "CREATE TABLE {table} (pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, \
         body TEXT NOT NULL{columns});\n"
    );
    for index in collection.indexes {
        ddl.push_str(&index_ddl(collection, index, &table));
    }
    ddl
}

fn index_ddl(collection: &Collection, index: &Index, table: &str) -> String {
    let name = quoted(&format!("{}.{}", collection.name, index.name));
    let fields: Vec<String> = index.fields.iter().map(|path| column(path)).collect();
    let only =
        index.only.map(|(path, value)| format!(" WHERE {} = '{value}'", column(path))).unwrap_or_default();
    format!("CREATE INDEX {name} ON {table} ({}){only};\n", fields.join(", "))
}
