//! What one process says to its store and hears from it: stands between the node and the faults, and takes down each call
//! when it is sent and when it is answered. A call whose process dies is never answered.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use rota_store::StoreError;
use rota_store::collection::Collection;
use rota_store::hints::Changes;
use rota_store::query::{Filter, Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Store, Tally, Write, Written};
use tokio::task;

use super::people::is_request;
use super::record::{Answer, Call, Life, Notebook, Target, Task, What};
use crate::faults::FaultyStore;
use crate::faults::caller::{Caller, calling};

pub struct Witness {
    life: Life,
    store: FaultyStore,
    notes: Notebook,
    calls: AtomicU64,
    /// The tasks that made calls, in the order of their first. Only looked into.
    tasks: Mutex<HashMap<Option<task::Id>, u32>>,
}

impl Witness {
    pub fn new(life: Life, store: FaultyStore, notes: Notebook) -> Self {
        Self { life, store, notes, calls: AtomicU64::new(0), tasks: Mutex::default() }
    }

    fn task(&self) -> Task {
        if is_request() {
            return Task::Request;
        }
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        Task::Own(*tasks.entry(task::try_id()).or_insert(next))
    }

    async fn call<T>(
        &self,
        what: Call,
        call: impl Future<Output = Result<T, StoreError>>,
        answer: impl FnOnce(&T) -> Answer,
    ) -> Result<T, StoreError> {
        let caller = Caller { life: self.life, call: self.calls.fetch_add(1, Ordering::Relaxed) };
        self.notes.note(What::Sent(caller, self.task(), what));
        let answered = calling(caller, call).await;
        let heard = match &answered {
            Ok(answered) => answer(answered),
            Err(StoreError::Unknown { .. }) => Answer::Unknown,
            Err(_) => Answer::Failed,
        };
        self.notes.note(What::Answered(caller, heard));
        answered
    }
}

/// The sections that a claim is about; none if it is about all.
fn sections(claim: &Claim) -> Option<Vec<u32>> {
    let filters = claim.from.iter().flat_map(|query| &query.filters);
    filters.into_iter().find_map(|filter| match filter {
        Filter::In("section", sections) => {
            Some(sections.iter().filter_map(|section| section.as_u64()?.try_into().ok()).collect())
        }
        _ => None,
    })
}

fn target(write: &Write) -> Target {
    let version = match write {
        Write::Create { .. } => None,
        Write::Replace { version, .. }
        | Write::Change { version, .. }
        | Write::Delete { version, .. }
        | Write::Purge { version, .. } => Some(*version),
    };
    let key = write.key();
    Target { collection: key.collection.name, id: key.id.clone(), version }
}

#[async_trait]
impl Store for Witness {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let targets = batch.iter().map(target).collect();
        self.call(Call::Write(targets), self.store.write(batch), |written| Answer::Written(written.clone()))
            .await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let is_state = |key: &&Key| key.collection.name == "state";
        let nodes: Vec<_> = keys.iter().filter(is_state).filter_map(|key| key.id.parse().ok()).collect();
        if nodes.is_empty() {
            let collection = keys.first().map_or("", |key| key.collection.name);
            return self.call(Call::Other("read", collection), self.store.read(keys), |_| Answer::Done).await;
        }
        let states: Vec<bool> = keys.iter().map(|key| is_state(&key)).collect();
        let versions = move |read: &Vec<Option<Document>>| {
            let of_states = read.iter().zip(states).filter(|(_, is_state)| *is_state);
            Answer::States(of_states.map(|(found, _)| found.as_ref().map(|found| found.version)).collect())
        };
        self.call(Call::ReadStates(nodes), self.store.read(keys), versions).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        self.call(Call::Other("find", query.collection.name), self.store.find(query), |_| Answer::Done).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        self.call(Call::Other("count", query.collection.name), self.store.count(query, by), |_| Answer::Done)
            .await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        let ids = |claimed: &Vec<Document>| {
            Answer::Claimed(claimed.iter().map(|document| document.key.id.clone()).collect())
        };
        self.call(Call::Claim(sections(&claim)), self.store.claim(claim), ids).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.call(Call::Other("take numbers from", name), self.store.sequence(name, n), |_| Answer::Done)
            .await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.store.changes(collection)
    }
}
