//! Words are indexed behind the writer, never in the way of it: in a file of their own, by a thread of its own, which rests
//! most of the time while others write.
//!
//! ```text
//!  rota.db ── documents made since (by primary key), documents noted in text_changes ──▶ rota-text.db
//! ```
//!
//! The index holds nothing that the documents do not: if it is lost, damaged or of another file, it is made anew. It may
//! name documents that have lost the word or are gone, so whoever searches looks at each document again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rota_store::StoreError;
use rota_store::collection::{ALL, Collection};
use rota_store::hints::Hint;
use rota_store::words;
use rusqlite::{Connection, OptionalExtension, params};

use crate::durability::Log;
use crate::row::document_in;
use crate::select::index;
use crate::statements::{document, is_shown, table};
use crate::{file, stopwatch, unavailable};

/// The file of the text indexes, beside that of the documents.
pub(crate) const FILE: &str = "rota-text.db";
/// After a change, how long to wait for more of them.
const GATHER: Duration = Duration::from_millis(100);
/// What is promised while the store is not busy.
pub(crate) const LAG: Duration = Duration::from_secs(1);
/// How many documents are looked at in one go.
const SLICE: usize = 500;
/// How many times as long as it works the thread rests: while others write, and while nobody does.
const BUSY_REST: u32 = 15;
const QUIET_REST: u32 = 1;
/// How long to wait after something went wrong.
const RETRY: Duration = Duration::from_secs(5);
/// Rises with every change of how words are indexed.
const VERSION: i64 = 1;

/// Tells the index that documents changed.
pub(crate) struct Bell(SyncSender<Signal>);

enum Signal {
    Changed,
    Stop,
}

impl Bell {
    pub(crate) fn ring(&self, hints: &[Hint]) {
        if hints.iter().any(|hint| !hint.key.collection.text.is_empty()) {
            // One that is already on its way says the same.
            let _ = self.0.try_send(Signal::Changed);
        }
    }
}

/// The thread; it ends when this is dropped.
pub(crate) struct TextIndex {
    signals: SyncSender<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// The index before its thread runs: the file is there, and whoever searches can open it.
pub(crate) struct Opened {
    work: Work,
    signals: SyncSender<Signal>,
    inbox: Receiver<Signal>,
}

impl Opened {
    pub(crate) fn bell(&self) -> Bell {
        Bell(self.signals.clone())
    }

    /// Starts the thread. `forget` is told up to which note it has seen.
    pub(crate) fn start(self, forget: impl Fn(i64) + Send + 'static) -> Result<TextIndex, StoreError> {
        let Opened { work, signals, inbox } = self;
        let thread = std::thread::Builder::new()
            .name("store-text".to_owned())
            .spawn(move || work.run(&inbox, &forget));
        let thread = thread.map_err(|error| StoreError::unavailable("start the text index", error))?;
        Ok(TextIndex { signals, thread: Some(thread) })
    }
}

impl Drop for TextIndex {
    fn drop(&mut self) {
        // It may be resting with a signal in its inbox: that one is taken first, and then this.
        let mut signal = Signal::Stop;
        while let Err(TrySendError::Full(back)) = self.signals.try_send(signal) {
            signal = back;
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens the index of a file of documents, and makes it anew if it is not that file's.
pub(crate) fn open(documents: &Path, log: Option<Arc<Log>>) -> Result<Opened, StoreError> {
    let path = documents.with_file_name(FILE);
    let reader = file::open_reader(documents)?;
    let name =
        reader.query_row("SELECT value FROM facts WHERE name = 'file'", [], |row| row.get::<_, String>(0));
    let name = name.map_err(unavailable("open the text index"))?;
    let index = match open_index(&path, &name) {
        Ok(Some(index)) => index,
        Err(error) if is_passing(&error) => return Err(unavailable("open the text index")(error)),
        Ok(None) | Err(_) => make_anew(&path, &name)?,
    };
    let (signals, inbox) = sync_channel(1);
    Ok(Opened { work: Work { documents: reader, log, index }, signals, inbox })
}

/// Whether an error says nothing about the index itself.
fn is_passing(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly,
    };
    let code = error.sqlite_error_code();
    matches!(code, Some(CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | PermissionDenied | ReadOnly))
}

/// Whoever searches has the index at hand under the name `text`.
pub(crate) fn attach(connection: &Connection, documents: &Path) -> Result<(), StoreError> {
    // As bytes: a path need not be a text.
    let path = documents.with_file_name(FILE).into_os_string().into_encoded_bytes();
    let attached = connection.execute("ATTACH ? AS text", [path]);
    attached.map(|_| ()).map_err(unavailable("open the text index"))
}

/// Removes the index of a file; it will be made anew.
pub(crate) fn remove(documents: &Path) -> std::io::Result<()> {
    let path = documents.with_file_name(FILE);
    for end in ["", "-wal", "-shm"] {
        match std::fs::remove_file(companion(&path, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn companion(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The index, if it is there and whole and belongs to the file of this name.
fn open_index(path: &Path, name: &str) -> rusqlite::Result<Option<Connection>> {
    if !path.is_file() {
        return Ok(None);
    }
    let index = Connection::open(path)?;
    configure(&index)?;
    let version: i64 = index.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        return Ok(None);
    }
    let of: String = index.query_row("SELECT value FROM facts WHERE name = 'file'", [], |row| row.get(0))?;
    for words in searched().map(crate::select::index) {
        let touch = format!("SELECT count(*) FROM {words} WHERE {words} MATCH '\"a\"'");
        index.query_row(&touch, [], |_| Ok(()))?;
    }
    Ok((of == name).then_some(index))
}

fn make_anew(path: &Path, name: &str) -> Result<Connection, StoreError> {
    let failed = |error: String| StoreError::unavailable("make the text index", error);
    remove(path).map_err(|error| failed(error.to_string()))?;
    file::make_private(path).map_err(|error| failed(error.to_string()))?;
    let make = || {
        let index = Connection::open(path)?;
        configure(&index)?;
        let tables: String = searched().map(index_ddl).collect();
        index.execute_batch(&format!(
            "BEGIN; CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
             CREATE TABLE seen (collection TEXT PRIMARY KEY, pk INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
             {tables} INSERT INTO facts VALUES ('file', '{name}'); PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
        Ok(index)
    };
    make().map_err(|error: rusqlite::Error| failed(error.to_string()))
}

/// How far the index got is written with it, and is on disk before a note is let go of.
fn configure(index: &Connection) -> rusqlite::Result<()> {
    index.pragma_update(None, "journal_mode", "WAL")?;
    index.pragma_update(None, "synchronous", "FULL")
}

/// Words alone, without their places or the text: they were divided before, so spaces are all that is left to divide at.
fn index_ddl(collection: &Collection) -> String {
    format!(
        "CREATE VIRTUAL TABLE {} USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');\n",
        index(collection)
    )
}

fn searched() -> impl Iterator<Item = &'static Collection> {
    ALL.into_iter().filter(|collection| !collection.text.is_empty())
}

struct Work {
    documents: Connection,
    /// Where documents may be seen before they are on disk.
    log: Option<Arc<Log>>,
    index: Connection,
}

/// How far the index of a collection got.
#[derive(Clone, Copy, Default)]
struct Seen {
    pk: i64,
    seq: i64,
}

impl Work {
    fn run(mut self, inbox: &Receiver<Signal>, forget: &impl Fn(i64)) {
        // At the start there may be documents that the process before did not come to.
        let mut pause = Duration::ZERO;
        loop {
            // However often it is told that there is more, it does not wait longer.
            let end = stopwatch() + pause;
            let mut rest = QUIET_REST;
            loop {
                match inbox.recv_timeout(end.saturating_duration_since(stopwatch())) {
                    Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                    Ok(Signal::Changed) => rest = BUSY_REST,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            let began = stopwatch();
            pause = match self.catch_up(forget) {
                Ok(true) => began.elapsed() * rest,
                Ok(false) => match inbox.recv() {
                    Ok(Signal::Changed) => GATHER,
                    Ok(Signal::Stop) | Err(_) => return,
                },
                Err(error) => {
                    tracing::warn!(%error, "words cannot be indexed; trying again");
                    RETRY
                }
            };
        }
    }

    /// Indexes a slice of each collection; whether there may be more.
    fn catch_up(&mut self, forget: &impl Fn(i64)) -> Result<bool, StoreError> {
        let mut more = false;
        let mut notes = None;
        for collection in searched() {
            let seen = self.seen(collection).map_err(unavailable("index words"))?;
            let (made, seen) = self.index_made(collection, seen)?;
            let noted = self.index_noted(collection, seen)?;
            more |= made || noted.is_some();
            notes = notes.max(noted);
        }
        if let Some(seq) = notes {
            self.forget(seq, forget).map_err(unavailable("index words"))?;
        }
        Ok(more)
    }

    fn seen(&self, collection: &Collection) -> rusqlite::Result<Seen> {
        let query = "SELECT pk, seq FROM seen WHERE collection = ?";
        let seen = |row: &rusqlite::Row<'_>| Ok(Seen { pk: row.get(0)?, seq: row.get(1)? });
        let seen = self.index.prepare_cached(query)?.query_row([collection.name], seen).optional()?;
        Ok(seen.unwrap_or_default())
    }

    /// Documents that were made since.
    fn index_made(
        &mut self,
        collection: &'static Collection,
        seen: Seen,
    ) -> Result<(bool, Seen), StoreError> {
        let query = format!(
            "SELECT pk, {} FROM {} WHERE pk > ? AND {} ORDER BY pk LIMIT {SLICE}",
            document(collection),
            table(collection),
            is_shown(collection)
        );
        let slice = self.words(collection, &query, seen.pk)?;
        let Some(last) = slice.last().map(|(pk, _)| *pk) else { return Ok((false, seen)) };
        let seen = Seen { pk: last, ..seen };
        self.settle()?;
        self.put(collection, slice, seen).map_err(unavailable("index words"))?;
        Ok((true, seen))
    }

    /// Documents whose words changed, or that are gone; the last note that was seen.
    fn index_noted(
        &mut self,
        collection: &'static Collection,
        seen: Seen,
    ) -> Result<Option<i64>, StoreError> {
        let failed = unavailable("index words");
        let query = format!(
            "SELECT seq, pk FROM text_changes WHERE collection = ? AND seq > ? ORDER BY seq LIMIT {SLICE}"
        );
        let notes: Vec<(i64, i64)> = self
            .documents
            .prepare_cached(&query)
            .and_then(|mut notes| {
                let note = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                notes.query_map(params![collection.name, seen.seq], note)?.collect()
            })
            .map_err(&failed)?;
        let Some(last) = notes.last().map(|(seq, _)| *seq) else { return Ok(None) };
        let one = format!("SELECT pk, {} FROM {} WHERE pk = ?", document(collection), table(collection));
        let mut slice = Vec::with_capacity(notes.len());
        for (_, pk) in notes {
            let words = self.words(collection, &one, pk)?.pop();
            slice.push(words.unwrap_or((pk, String::new())));
        }
        self.settle()?;
        self.put(collection, slice, Seen { seq: last, ..seen }).map_err(&failed)?;
        Ok(Some(last))
    }

    fn words(
        &self,
        collection: &'static Collection,
        query: &str,
        value: i64,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let failed = unavailable("index words");
        let mut statement = self.documents.prepare_cached(query).map_err(&failed)?;
        let mut rows = statement.query([value]).map_err(&failed)?;
        let mut words = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let document = document_in(collection, row, 1)?;
            words.push((row.get(0).map_err(&failed)?, words::of(collection, &document.body)));
        }
        Ok(words)
    }

    /// What was read is on disk before the index has seen it: it would not look there again if it were lost.
    fn settle(&self) -> Result<(), StoreError> {
        let settled = self.log.as_ref().map_or(Ok(()), |log| log.sync());
        settled.map_err(|error| StoreError::unavailable("index words", error))
    }

    fn put(
        &mut self,
        collection: &Collection,
        slice: Vec<(i64, String)>,
        seen: Seen,
    ) -> rusqlite::Result<()> {
        let index = index(collection);
        let put = self.index.transaction()?;
        for (pk, words) in slice {
            if words.is_empty() {
                put.prepare_cached(&format!("DELETE FROM {index} WHERE rowid = ?"))?.execute([pk])?;
            } else {
                let replace = format!("INSERT OR REPLACE INTO {index} (rowid, words) VALUES (?, ?)");
                put.prepare_cached(&replace)?.execute(params![pk, words])?;
            }
        }
        let note = "INSERT OR REPLACE INTO seen (collection, pk, seq) VALUES (?, ?, ?)";
        put.prepare_cached(note)?.execute(params![collection.name, seen.pk, seen.seq])?;
        put.commit()
    }

    /// Lets go of notes that every index has seen. They are kept by number: what one collection has seen beyond the
    /// notes of another is safe to forget only when the other has none before it.
    fn forget(&self, up_to: i64, forget: &impl Fn(i64)) -> rusqlite::Result<()> {
        let mut safe = up_to;
        for collection in searched() {
            let seen = self.seen(collection)?;
            let query = "SELECT min(seq) FROM text_changes WHERE collection = ? AND seq > ?";
            let next: Option<i64> = self
                .documents
                .prepare_cached(query)?
                .query_row(params![collection.name, seen.seq], |row| row.get(0))?;
            safe = next.map_or(safe, |next| safe.min(next - 1));
        }
        if safe > 0 {
            forget(safe);
        }
        Ok(())
    }
}
