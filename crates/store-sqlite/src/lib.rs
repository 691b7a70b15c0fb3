//! The embedded store: a folder with one SQLite file, opened by one process.
//!
//! - [`holder`]: one process at a time, and who it is
//! - [`mod@file`]: whether the file is ours, and how it is opened and made; [`upgrade`]: how older ones are brought up to date
//! - [`schema`]: tables, indexes and views, derived from the declarations of the collections
//! - [`statements`], [`select`]: what is asked of SQLite, made once per shape
//! - [`row`]: a document as columns and a body; [`rows`]: how it is written
//! - [`writer`]: one thread that writes for all, with one fsync for everybody who waits at the same moment; [`inbox`]: who
//!   is next; [`prepared`]: writes made ready for it; [`commit`], [`sheet`], [`mod@line`], [`heads`]: what one commit changes;
//!   [`counts`]: totals that are kept
//! - [`durability`]: when what was acknowledged is on disk
//! - [`reader`]: connections that read and never wait for the writer; [`narrow`]: few documents found by their words
//! - [`text`]: words, indexed behind the writer
//! - [`backup`], [`mod@check`], [`stats`]: what an operator does with a folder, while it is in use too

pub mod backup;
pub mod check;
mod commit;
mod counts;
pub mod durability;
mod file;
mod heads;
pub mod holder;
mod inbox;
mod line;
mod narrow;
mod prepared;
mod reader;
mod row;
mod rows;
mod schema;
mod select;
mod sheet;
mod statements;
pub mod stats;
mod text;
mod upgrade;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rota_store::collection::Collection;
use rota_store::hints::{Changes, HintSender};
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Store, Tally, Write, Written};
use rota_store::{StoreError, limits};

use crate::durability::{Durability, Log, Syncer};
use crate::file::InUse;
use crate::holder::Holder;
use crate::reader::Readers;
use crate::row::RawDocument;
use crate::text::TextIndex;
use crate::writer::{Pending, Writer};

/// The file in the data folder.
pub const FILE: &str = "rota.db";

/// How many documents of one call are written at a time: what waits behind a large batch waits for no more than this.
const PORTION: usize = 1_000;

pub struct SqliteStore {
    /// Closed before the others: who closes a file last puts the log of writes into it, and readers cannot.
    readers: Readers,
    /// Ends before the writer, which it tells how far it got.
    _text: TextIndex,
    writer: Writer,
    hints: HintSender,
    /// Where commits do not wait for the disk.
    log: Option<Arc<Log>>,
    _in_use: InUse,
    /// Kept until the store is closed: the lock on the folder.
    _holder: Holder,
}

impl SqliteStore {
    /// Opens the store in a folder, making both if they are not there. The holder's lock comes first: nothing is
    /// touched before it is ours. What it acknowledges is on disk.
    pub fn open(folder: &Path, holder: Holder) -> Result<Self, StoreError> {
        Self::open_with(folder, holder, Durability::OnDisk)
    }

    /// The same, with a choice of when what it acknowledges is on disk.
    pub fn open_with(folder: &Path, holder: Holder, durability: Durability) -> Result<Self, StoreError> {
        // Whole, so that no name means anything else to SQLite.
        let folder =
            std::path::absolute(folder).map_err(|error| StoreError::unavailable("open the folder", error))?;
        let file = folder.join(FILE);
        let connection = file::open(&file)?;
        let in_use = InUse::mark(&file);
        let log = match durability {
            Durability::OnDisk => None,
            Durability::Within(span) => {
                file::commit_without_waiting(&connection)?;
                Some(Log::open(&file, span)?)
            }
        };
        let syncer = log.clone().map(Syncer::start).transpose()?;
        let hints = HintSender::default();
        let text = text::open(&file, log.clone())?;
        let writer = Writer::start(connection, syncer, hints.clone(), text.bell())?;
        let text = text.start(writer.forgetter())?;
        let readers = Readers::open(&file)?;
        Ok(Self { _text: text, writer, readers, hints, log, _in_use: in_use, _holder: holder })
    }

    /// How many commits were acknowledged and are not known to be on disk: none, unless it was opened to wait for the disk
    /// later.
    pub fn unsynced_commits(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.unsynced())
    }

    /// Writes portion after portion: the next is handed over when the one before is on disk, so that others come between.
    async fn write_in_portions(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut under_way: Option<Pending<Vec<Written>>> = None;
        let mut rest = batch.into_iter().peekable();
        while rest.peek().is_some() {
            let portion = rest.by_ref().take(PORTION).collect();
            if let Some(pending) = under_way.take() {
                answers.extend(pending.wait().await.map_err(behind(&answers))?);
            }
            under_way = Some(self.writer.write(portion).map_err(behind(&answers))?);
        }
        if let Some(pending) = under_way {
            answers.extend(pending.wait().await.map_err(behind(&answers))?);
        }
        Ok(answers)
    }
}

/// What the failure of a portion means for the batch: who was answered for before is written.
fn behind(answered: &[Written]) -> impl Fn(StoreError) -> StoreError {
    let is_first = answered.is_empty();
    move |error| if is_first { error } else { error.in_part() }
}

#[async_trait]
impl Store for SqliteStore {
    fn promises(&self) -> Promises {
        Promises { find_lag: Duration::ZERO, text_lag: text::LAG, exclusive: true }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        limits::check_writes(&batch)?;
        self.write_in_portions(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        limits::check_keys(&keys)?;
        self.readers.read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        limits::check_query(&query)?;
        self.readers.find(query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        limits::check_count(&query, by)?;
        self.readers.count(query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        limits::check_claim(&claim)?;
        let claimed = self.writer.claim(claim)?.wait().await?;
        Ok(claimed.into_iter().map(RawDocument::into_document).collect())
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        limits::check_sequence(name, n)?;
        self.writer.sequence(name, n)?.wait().await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.hints.listen(collection)
    }
}

/// What SQLite says, in the words of the seam: nothing happened, unless the commit itself failed.
fn unavailable(what: &str) -> impl Fn(rusqlite::Error) -> StoreError + use<'_> {
    move |error| match &error {
        // Without the whole text of the statement.
        rusqlite::Error::SqlInputError { msg, .. } => StoreError::unavailable(what, msg),
        _ => StoreError::unavailable(what, error),
    }
}

#[expect(clippy::disallowed_methods, reason = "the threads of a store stand beside a real disk")]
fn stopwatch() -> Instant {
    Instant::now()
}
