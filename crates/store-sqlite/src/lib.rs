//! The embedded store: a folder with one SQLite file, opened by one process.
//!
//! - [`holder`]: one process at a time, and who it is
//! - [`schema`]: tables and indexes, derived from the declarations of the collections
//! - [`sql`]: statements, made once per shape
//! - [`row`]: a document as columns and a body
//! - [`writer`]: one thread that writes for all, with one fsync for everybody who waits at the same moment
//! - [`reader`]: connections that read and never wait for the writer

pub mod holder;
mod reader;
mod row;
mod schema;
mod sql;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use rota_store::StoreError;
use rota_store::collection::Collection;
use rota_store::hints::{Changes, HintSender};
use rota_store::query::{Page, Query, check_set};
use rota_store::seam::{Claim, Document, Key, Promises, Store, Write, Written};

use crate::holder::Holder;
use crate::reader::Readers;
use crate::writer::Writer;

/// The file in the data folder.
pub const FILE: &str = "rota.db";

pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    hints: HintSender,
    /// Kept until the store is closed: the lock on the folder.
    _holder: Holder,
}

impl SqliteStore {
    /// Opens the store in a folder, making both if they are not there. The holder's lock comes first: nothing is
    /// touched before it is ours.
    pub fn open(folder: &Path, holder: Holder) -> Result<Self, StoreError> {
        let file = folder.join(FILE);
        let connection = schema::open(&file)?;
        let hints = HintSender::default();
        let writer = Writer::start(connection, hints.clone())?;
        let readers = Readers::open(&file)?;
        Ok(Self { writer, readers, hints, _holder: holder })
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn promises(&self) -> Promises {
        Promises { find_lag: Duration::ZERO, exclusive: true }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        batch.iter().try_for_each(Write::check)?;
        self.writer.write(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        self.readers.read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        query.check()?;
        query.after.as_ref().map_or(Ok(()), |cursor| cursor.check(&query))?;
        self.readers.find(query).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        check_set(claim.collection, &claim.set)?;
        for query in &claim.from {
            query.check()?;
        }
        self.writer.claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.writer.sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.hints.listen(collection)
    }
}

/// What SQLite says, in the words of the seam: nothing happened, unless the commit itself failed.
fn unavailable(what: &str) -> impl Fn(rusqlite::Error) -> StoreError + use<'_> {
    move |error| StoreError::unavailable(what, error)
}
