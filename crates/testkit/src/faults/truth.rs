//! The store that is right, shared by all nodes, and beside it its past, for those who find, count and claim.
//!
//! Where finds do not lag, the store does everything itself. Where they do, it is written to through here alone, and
//! from empty on: what it answers is written into the past under one lock, so that the past knows each document's
//! versions in their order. A claim is then what a search engine can make of it: a look at the past, and a change of
//! each document found, if its version is still the one that was seen. Nobody shares a document, whatever was seen.

use std::sync::Arc;
use std::time::Duration;

use rota_store::StoreError;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Fields, Promises, Store, Tally, Write, Written};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::past::Past;

pub struct Truth {
    store: Arc<dyn Store>,
    lag: Duration,
    past: Option<Mutex<Past>>,
}

impl Truth {
    /// Finds show what is there now.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, lag: Duration::ZERO, past: None })
    }

    /// Finds may lag by up to this span: by how much, each fate decides. The store must be empty.
    pub fn lagging(store: Arc<dyn Store>, lag: Duration) -> Arc<Self> {
        Arc::new(Self { store, lag, past: Some(Mutex::new(Past::new(lag))) })
    }

    /// The store itself: what it holds is what happened.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(super) fn promises(&self) -> Promises {
        let promises = self.store.promises();
        let (find_lag, text_lag) = (promises.find_lag + self.lag, promises.text_lag + self.lag);
        Promises { find_lag, text_lag, ..promises }
    }

    /// The instant that a look goes back to.
    fn back(&self, lag: Duration) -> Instant {
        let now = Instant::now();
        now.checked_sub(lag.min(self.lag)).unwrap_or(now)
    }

    pub(super) async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        match &self.past {
            None => self.store.write(batch).await,
            Some(past) => self.write_down(&mut *past.lock().await, batch).await,
        }
    }

    async fn write_down(&self, past: &mut Past, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let answers = self.store.write(batch.clone()).await?;
        let now = Instant::now();
        for (write, answer) in batch.into_iter().zip(&answers) {
            if let Written::Applied(version) = answer {
                past.record(now, write, *version);
            }
        }
        Ok(answers)
    }

    pub(super) async fn find(&self, query: Query, lag: Duration) -> Result<Page, StoreError> {
        let Some(past) = &self.past else { return self.store.find(query).await };
        let matching = past.lock().await.matching(&query, self.back(lag));
        Ok(query.page_of(matching))
    }

    pub(super) async fn count(
        &self,
        query: Query,
        by: Option<&'static str>,
        lag: Duration,
    ) -> Result<Vec<Tally>, StoreError> {
        let Some(past) = &self.past else { return self.store.count(query, by).await };
        Ok(past.lock().await.count(query, by, self.back(lag)))
    }

    pub(super) async fn claim(&self, claim: Claim, lag: Duration) -> Result<Vec<Document>, StoreError> {
        if claim.max == 0 {
            return Ok(Vec::new());
        }
        let Some(past) = &self.past else { return self.store.claim(claim).await };
        let past = &mut *past.lock().await;
        let mut claimed = Vec::new();
        for query in &claim.from {
            let room = query.limit.min(claim.max - claimed.len());
            if room == 0 {
                continue;
            }
            let mut found = past.matching(query, self.back(lag));
            found.truncate(room);
            claimed.extend(self.take(past, &claim, found).await?);
        }
        Ok(claimed)
    }

    /// Changes what was found, and keeps what nobody else had changed since.
    async fn take(
        &self,
        past: &mut Past,
        claim: &Claim,
        found: Vec<Document>,
    ) -> Result<Vec<Document>, StoreError> {
        let fields: Vec<Fields> = found.iter().map(|document| fields_for(claim, document)).collect();
        let changes = found.iter().zip(&fields).map(|(document, fields)| Write::Change {
            key: document.key.clone(),
            version: document.version,
            fields: fields.clone(),
        });
        let answers = self.write_down(past, changes.collect()).await?;
        let mut taken = Vec::new();
        for ((mut document, fields), answer) in found.into_iter().zip(fields).zip(answers) {
            if let Written::Applied(version) = answer {
                super::past::set(document.key.collection, &mut document.body, fields);
                taken.push(Document { version, ..document });
            }
        }
        Ok(taken)
    }
}

/// What a claim sets in a document that was found, one more in a field among it.
fn fields_for(claim: &Claim, document: &Document) -> Fields {
    let mut fields = claim.fields();
    if let Some(path) = claim.add_one {
        let set = fields.iter().rfind(|(set, _)| *set == path).map(|(_, value)| value.clone());
        let held = || claim.collection.field(path).and_then(|field| field.get(&document.body)).cloned();
        let sum = set.or_else(held).as_ref().and_then(Value::as_i64).unwrap_or(0).saturating_add(1);
        fields.push((path, sum.into()));
    }
    fields
}
