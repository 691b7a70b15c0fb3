//! A store in which others are at work: whatever can happen between two calls does.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use rota_store::collection::Collection;
use rota_store::hints::Changes;
use rota_store::memory::MemoryStore;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Tally, Write, Written};
use rota_store::{Store, StoreError};

/// After each read and write everybody else has a turn.
#[derive(Default)]
pub(super) struct Crowded {
    store: MemoryStore,
    /// What somebody else writes right after the next find.
    pub(super) meanwhile: Mutex<Vec<Write>>,
}

#[async_trait]
impl Store for Crowded {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let answer = self.store.write(batch).await;
        tokio::task::yield_now().await;
        answer
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let answer = self.store.read(keys).await;
        tokio::task::yield_now().await;
        answer
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        let answer = self.store.find(query).await;
        let meanwhile = std::mem::take(&mut *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner));
        self.store.write(meanwhile).await?;
        answer
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        self.store.count(query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        self.store.claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.store.sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.store.changes(collection)
    }
}
