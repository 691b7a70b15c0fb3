//! The file: whether it is ours, how it is opened, and how it is made.

mod log;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use self::log::{Log, number_at};
use crate::text::companion;
use crate::{schema, unavailable, upgrade};

/// Opens the file for writing, makes it if it is new and brings it up to date if it is old. A file that is not Rota's is
/// left untouched.
pub(crate) fn open(file: &Path) -> Result<Connection, StoreError> {
    let what = format!("open {}", file.display());
    let head = recognise_head(file, &what)?;
    make_private(file).map_err(|error| StoreError::unavailable(&what, error))?;
    let mut connection = Connection::open(file).map_err(unavailable(&what))?;
    leave_log_alone(&connection, true).map_err(unavailable(&what))?;
    head.settle(&connection, &what)?;
    if is_blank(&connection) {
        set_up(&connection).map_err(unavailable(&what))?;
    }
    let version = recognise(&connection, &what)?;
    configure(&connection).map_err(unavailable(&what))?;
    leave_log_alone(&connection, false).map_err(unavailable(&what))?;
    if version < schema::VERSION {
        tracing::info!(from = version, to = schema::VERSION, "bringing the tables up to date");
        upgrade::run(&mut connection).map_err(unavailable(&format!("upgrade {}", file.display())))?;
    }
    Ok(connection)
}

/// Opens the file once more, to read.
pub(crate) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let what = format!("open {}", file.display());
    let failed = unavailable(&what);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(&failed)?;
    connection.busy_timeout(BUSY).map_err(&failed)?;
    keep_statements(&connection).map_err(&failed)?;
    Ok(connection)
}

/// Whether closing the file leaves its log of writes beside it. Otherwise whoever closes it last puts the log into it,
/// which those who only look must not do, nor those who find that it is not theirs.
fn leave_log_alone(connection: &Connection, alone: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, alone).map(|_| ())
}

/// Readers wait for nobody, except while another process that closes the file is cleaning up.
const BUSY: std::time::Duration = std::time::Duration::from_secs(5);

/// Opens a file that another process may have open, to look at it. It must be there, and Rota's.
pub(crate) fn open_guest(file: &Path) -> Result<Connection, StoreError> {
    let what = format!("open {}", file.display());
    let head = head_of(file, &what)?;
    let failed = unavailable(&what);
    // Not read-only: whoever reads a log of writes must be able to map its index, and to make it if nobody has it open.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(&failed)?;
    leave_log_alone(&connection, true).map_err(&failed)?;
    connection.busy_timeout(BUSY).map_err(&failed)?;
    connection.pragma_update(None, "query_only", true).map_err(&failed)?;
    head.settle(&connection, &what)?;
    match recognise(&connection, &what) {
        // Whoever may only read can still look at a file that nobody has open.
        Err(StoreError::Unavailable { .. }) if !companion(file, "-wal").exists() => open_alone(file, &what),
        recognised => recognised.map(|_| connection),
    }
}

/// Opens a file as it is: nothing is written beside it, it may lie on a medium that cannot be written.
pub(crate) fn open_alone(file: &Path, what: &str) -> Result<Connection, StoreError> {
    let path = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags);
    let connection = opened.map_err(unavailable(what))?;
    recognise(&connection, what)?;
    Ok(connection)
}

/// The files that this process has open as stores. Opening one of them past SQLite, and closing it again, would drop the
/// locks that the process holds on it: that is how POSIX has it.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Says that this process has a file open, until it is dropped.
pub(crate) struct InUse(PathBuf);

impl InUse {
    pub(crate) fn mark(file: &Path) -> Self {
        let name = whole_name(file);
        files_in_use().insert(name.clone());
        Self(name)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        files_in_use().remove(&self.0);
    }
}

fn files_in_use() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn whole_name(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Refuses what is not there, or not a store of Rota, as far as its first bytes tell.
pub(crate) fn must_be_ours(file: &Path, what: &str) -> Result<(), StoreError> {
    head_of(file, what).map(|_| ())
}

fn head_of(file: &Path, what: &str) -> Result<Head, StoreError> {
    if files_in_use().contains(&whole_name(file)) {
        return Ok(Head::Whole);
    }
    match fs::metadata(file) {
        Ok(found) if found.is_file() && found.len() > 0 => recognise_head(file, what),
        Ok(_) => Err(StoreError::refused(what, "it is not a store of Rota")),
        Err(_) => Err(StoreError::refused(what, "there is no such file")),
    }
}

/// Where SQLite's locks stand: a gigabyte into the file.
const LOCK_BYTE: u64 = 1 << 30;

/// What can be said from the first bytes, before SQLite touches anything.
fn recognise_head(file: &Path, what: &str) -> Result<Head, StoreError> {
    let refuse = |why: String| Err(StoreError::refused(what, format!("{why}; it was left untouched")));
    let mut opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Head::Whole),
        Err(error) => return Err(StoreError::unavailable(what, error)),
    };
    let length = opened.metadata().map_err(|error| StoreError::unavailable(what, error))?.len();
    if length == 0 {
        return Ok(Head::Whole);
    }
    let mut head = [0; 100];
    let is_database = opened.read_exact(&mut head).is_ok() && head.starts_with(b"SQLite format 3\0");
    if !is_database {
        return refuse("it is not a store of Rota".to_owned());
    }
    let application = i64::from(number_at(&head, 68));
    if application != 0 && application != schema::APPLICATION_ID {
        return refuse("it is a database of another program".to_owned());
    }
    let page_bytes = match u64::from(number_at(&head, 16) >> 16) {
        1 => 65_536,
        bytes => bytes,
    };
    let log = Log::read(&companion(file, "-wal")).map_err(|error| StoreError::unavailable(what, error))?;
    let pages = log.as_ref().and_then(|log| log.page_count).unwrap_or(number_at(&head, 28));
    let there = u32::try_from(length / page_bytes.max(1)).unwrap_or(u32::MAX);
    // What the file lacks at its end may be in the log of writes.
    let lacks = |page: u32| {
        // The page around this byte holds SQLite's locks and is never written.
        let is_lock_page = u64::from(page) == LOCK_BYTE / page_bytes.max(1) + 1;
        !is_lock_page && !log.as_ref().is_some_and(|log| log.has(page))
    };
    if !(there.saturating_add(1)..=pages).any(lacks) {
        return Ok(Head::Whole);
    }
    let expected = page_bytes * u64::from(pages);
    let why = format!("it is cut short: {length} bytes of {expected} are there. Restore a backup");
    if log.is_some() { Ok(Head::Doubtful(why)) } else { refuse(why) }
}

/// What the first bytes of a file tell.
enum Head {
    Whole,
    /// Pages are missing in the file and in its log. Some pages are never written, so SQLite must say whether they matter.
    Doubtful(String),
}

impl Head {
    /// Looks at every page, if there is doubt. Nothing is written.
    fn settle(self, connection: &Connection, what: &str) -> Result<(), StoreError> {
        let Head::Doubtful(why) = self else { return Ok(()) };
        let whole = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        if whole.is_ok_and(|whole| whole == "ok") {
            return Ok(());
        }
        Err(StoreError::refused(what, format!("{why}; it was left untouched")))
    }
}

/// Whether there is nothing in the file, or only what a process left that died while making it.
fn is_blank(connection: &Connection) -> bool {
    let blank = "SELECT (SELECT count(*) FROM sqlite_schema) = 0
        AND (SELECT application_id FROM pragma_application_id) = 0
        AND (SELECT user_version FROM pragma_user_version) = 0";
    connection.query_row(blank, [], |row| row.get(0)).unwrap_or(false)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", schema::PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let objects = schema::tables().into_iter().chain(schema::indexes()).chain(schema::views());
    let script: String = objects.map(|object| format!("{};\n", object.ddl)).collect();
    let (id, version) = (schema::APPLICATION_ID, schema::VERSION);
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;\n{script}{NAME_THE_FILE};\nPRAGMA application_id = {id};\nPRAGMA user_version = {version};\nCOMMIT;"
    ))
}

/// A name by which its text index knows the file.
pub(crate) const NAME_THE_FILE: &str = "INSERT INTO facts (name, value) VALUES ('file', lower(hex(randomblob(16)))) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The version of the schema, if it is one that this Rota can use.
pub(crate) fn recognise(connection: &Connection, what: &str) -> Result<i64, StoreError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match number("application_id") {
        Ok(schema::APPLICATION_ID) => {}
        Ok(_) => {
            return Err(StoreError::refused(
                what,
                "it is a database of another program; it was left untouched",
            ));
        }
        Err(error) => return Err(unreadable(error, what)),
    }
    match number("user_version") {
        Ok(version @ 1..=schema::VERSION) => Ok(version),
        Ok(0) => Err(StoreError::refused(what, "it is not a store of Rota; it was left untouched")),
        Ok(newer) => {
            let why =
                format!("its schema {newer} is newer than {}, the newest this Rota knows", schema::VERSION);
            Err(StoreError::refused(what, format!("{why}: use a newer Rota")))
        }
        Err(error) => Err(unreadable(error, what)),
    }
}

fn unreadable(error: rusqlite::Error, what: &str) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::refused(
            what,
            format!("it is damaged ({error}); it was left untouched. Restore a backup"),
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            StoreError::unavailable(what, format!("{error}: Rota must be able to write in its folder"))
        }
        _ => unavailable(what)(error),
    }
}

/// Durable on return: the write-ahead log is synced at each commit.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -64_000)?;
    connection.busy_timeout(BUSY)?;
    keep_statements(connection)
}

/// From now on a commit is safe from a crash of the process alone, until somebody syncs the log of writes.
pub(crate) fn commit_without_waiting(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(unavailable("open the store"))
}

/// A statement is prepared once and kept. Without the guarantee that its plan does not depend on the values bound to it,
/// SQLite would prepare it again whenever they change.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(())
}

/// Makes the file before SQLite does, for its owner alone: SQLite gives its companions the same permissions.
pub(crate) fn make_private(file: &Path) -> std::io::Result<()> {
    private().create(true).truncate(false).open(file).map(|_| ())
}

/// To write to a file which, if it is made, is its owner's alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gigabyte into a file stands a page that neither the file nor the log has, if the file ends before it.
    #[test]
    fn the_page_of_the_locks_is_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rota.db");
        let pages_there = u32::try_from(LOCK_BYTE / 8_192).unwrap() - 1;
        let head = |pages: u32| {
            let mut head = [0; 100];
            head[..16].copy_from_slice(b"SQLite format 3\0");
            head[16..18].copy_from_slice(&8_192_u16.to_be_bytes());
            head[28..32].copy_from_slice(&pages.to_be_bytes());
            head
        };
        let write_head = |pages: u32| {
            fs::write(&file, head(pages)).unwrap();
            File::options().write(true).open(&file).unwrap().set_len(u64::from(pages_there) * 8_192).unwrap();
        };
        write_log(&companion(&file, "-wal"), &[pages_there + 1, pages_there + 3], pages_there + 3);
        write_head(pages_there + 3);
        assert!(matches!(recognise_head(&file, "open").unwrap(), Head::Whole));
        write_log(&companion(&file, "-wal"), &[pages_there + 3], pages_there + 3);
        assert!(matches!(recognise_head(&file, "open").unwrap(), Head::Doubtful(_)));
    }

    fn write_log(path: &Path, pages: &[u32], page_count: u32) {
        let mut log = [0_u8; 32].to_vec();
        log[8..12].copy_from_slice(&8_192_u32.to_be_bytes());
        for page in pages {
            let mut frame = [0_u8; 24];
            frame[..4].copy_from_slice(&page.to_be_bytes());
            frame[4..8].copy_from_slice(&page_count.to_be_bytes());
            log.extend(frame);
            log.extend(vec![0; 8_192]);
        }
        fs::write(path, log).unwrap();
    }
}
