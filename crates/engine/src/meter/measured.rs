//! A store whose answers are timed and counted. All that a node asks of its store goes through it, so that no repository has to
//! know; a call of the store costs tens of microseconds, and this some tens of nanoseconds.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use rota_store::collection::{Collection, JOBS};
use rota_store::hints::Changes;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Tally, Write, Written};
use rota_store::{Promises, Store, StoreError};

use super::{Began, Count, Latency, Meter};

pub(super) struct Measured {
    store: Arc<dyn Store>,
    meter: Meter,
}

impl Measured {
    pub(super) fn new(store: Arc<dyn Store>, meter: Meter) -> Self {
        Self { store, meter }
    }

    /// A call was answered: how long that took, or that it failed.
    fn answered<T>(&self, verb: Latency, began: Began, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.meter.end(verb, began),
            Err(error) if error.is_passing() => self.meter.count(Count::StoreErrors, 1),
            // It was asked for something impossible.
            Err(_) => {}
        }
    }

    fn count_conflicts(&self, written: &[Written]) {
        let conflicts = written.iter().filter(|written| **written == Written::Conflict).count();
        if conflicts > 0 {
            self.meter.count(Count::Conflicts, conflicts as u64);
        }
    }
}

#[async_trait]
impl Store for Measured {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let began = self.meter.begin();
        let answer = self.store.write(batch).await;
        self.answered(Latency::StoreWrite, began, &answer);
        answer.inspect(|written| self.count_conflicts(written))
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let began = self.meter.begin();
        let answer = self.store.read(keys).await;
        self.answered(Latency::StoreRead, began, &answer);
        answer
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        let began = self.meter.begin();
        let answer = self.store.find(query).await;
        self.answered(Latency::StoreFind, began, &answer);
        answer
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        let began = self.meter.begin();
        let answer = self.store.count(query, by).await;
        self.answered(Latency::StoreCount, began, &answer);
        answer
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        let (began, is_of_jobs) = (self.meter.begin(), claim.collection == &JOBS);
        let answer = self.store.claim(claim).await;
        self.answered(Latency::StoreClaim, began, &answer);
        answer.inspect(|claimed| {
            if is_of_jobs {
                self.meter.count(Count::Claims, 1);
                self.meter.count(Count::JobsClaimed, claimed.len() as u64);
            }
        })
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        let began = self.meter.begin();
        let answer = self.store.sequence(name, n).await;
        self.answered(Latency::StoreSequence, began, &answer);
        answer
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.store.changes(collection)
    }
}
