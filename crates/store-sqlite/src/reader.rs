//! Connections that read. In write-ahead mode a reader sees the last commit and waits for nobody.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rota_store::StoreError;
use rota_store::cursor::Cursor;
use rota_store::query::{Page, Query};
use rota_store::seam::{Document, Key};
use rusqlite::{Connection, params_from_iter};
use tokio::sync::Semaphore;

use crate::{row, schema, sql, unavailable};

/// More would only wait for the cores.
const CONNECTIONS: usize = 4;

pub(crate) struct Readers {
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        let connections =
            (0..CONNECTIONS).map(|_| schema::open_reader(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { free: Arc::new(Mutex::new(connections)), permits: Arc::new(Semaphore::new(CONNECTIONS)) })
    }

    pub(crate) async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        self.with(move |connection| keys.iter().map(|key| read_one(connection, key)).collect()).await
    }

    pub(crate) async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.with(move |connection| find(connection, &query)).await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = |why: &str| StoreError::unavailable("read", why);
        let permit =
            Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed("the store is closed"))?;
        let free = Arc::clone(&self.free);
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let connection = lock(&free).pop();
            let connection = connection.ok_or_else(|| closed("no connection is free"))?;
            let answer = work(&connection);
            lock(&free).push(connection);
            answer
        });
        task.await.map_err(|error| StoreError::unavailable("read", error))?
    }
}

fn lock(free: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_one(connection: &Connection, key: &Key) -> Result<Option<Document>, StoreError> {
    let failed = unavailable("read");
    let mut statement = connection.prepare_cached(&sql::read(key.collection)).map_err(&failed)?;
    let mut rows = statement.query([&key.id]).map_err(&failed)?;
    rows.next().map_err(&failed)?.map(|found| row::join(key.collection, found)).transpose()
}

fn find(connection: &Connection, query: &Query) -> Result<Page, StoreError> {
    let failed = unavailable("find");
    // One more than asked for, to know whether there is a next page.
    let (text, values) = sql::select(query, &sql::document_columns(query.collection), query.limit + 1);
    let mut statement = connection.prepare_cached(&text).map_err(&failed)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(&failed)?;
    let mut documents = Vec::new();
    while let Some(found) = rows.next().map_err(&failed)? {
        documents.push(row::join(query.collection, found)?);
    }
    let more = documents.len() > query.limit;
    documents.truncate(query.limit);
    let last = documents.last().filter(|_| more);
    let next = last.map(|last| Cursor::behind(last, query.collection, query.order));
    Ok(Page { documents, next })
}
