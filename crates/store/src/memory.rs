//! The store that is obviously right: ordered maps behind one lock. It is the model for the others, and what tests run
//! on. Nothing survives the process.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use serde_json::Value;

use crate::collection::Collection;
use crate::hints::{Changes, Hint, HintSender};
use crate::query::{Page, Query, rank};
use crate::seam::{Body, Claim, Document, Fields, Key, Promises, Store, Tally, Version, Write, Written};
use crate::{StoreError, limits};

#[derive(Debug, Default)]
pub struct MemoryStore {
    data: Mutex<Data>,
    hints: HintSender,
}

#[derive(Debug, Default)]
struct Data {
    documents: BTreeMap<&'static str, Documents>,
    sequences: BTreeMap<&'static str, u64>,
    /// One counter for all versions, so that a document made anew never has the version of its predecessor.
    versions: u64,
}

type Documents = BTreeMap<(Option<Domain>, String), Held>;

/// A document that is there, or hidden.
#[derive(Clone, Debug)]
struct Held {
    version: Version,
    body: Body,
    hidden_at: Option<UnixMillis>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic elsewhere leaves the maps whole: each change is one insert or one remove.
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Data {
    fn next_version(&mut self) -> Version {
        self.versions += 1;
        Version(self.versions)
    }

    fn documents(&mut self, collection: &'static Collection) -> &mut Documents {
        self.documents.entry(collection.name).or_default()
    }

    fn apply(&mut self, write: Write) -> Written {
        let next = self.next_version();
        let Key { collection, domain, id } = write.key().clone();
        let documents = self.documents(collection);
        let place = (domain, id);
        let Some(held) = documents.get_mut(&place) else {
            let Write::Create { body, .. } = write else { return Written::Missing };
            documents.insert(place, Held { version: next, body, hidden_at: None });
            return Written::Applied(next);
        };
        match write {
            Write::Create { .. } => return Written::Exists,
            Write::Purge { version, .. } if held.hidden_at.is_some() && version == held.version => {
                documents.remove(&place);
                return Written::Applied(next);
            }
            Write::Purge { .. } => return Written::Conflict,
            _ if held.hidden_at.is_some() => return Written::Missing,
            Write::Replace { version, body, .. } if version == held.version => held.body = body,
            Write::Change { version, fields, .. } if version == held.version => {
                set(collection, &mut held.body, &fields);
            }
            Write::Delete { version, at, .. } if version == held.version && collection.hides() => {
                held.hidden_at = Some(at);
            }
            Write::Delete { version, .. } if version == held.version => {
                documents.remove(&place);
                return Written::Applied(next);
            }
            _ => return Written::Conflict,
        }
        held.version = next;
        Written::Applied(next)
    }

    /// Everything that matches, in order, from the cursor on.
    fn matching(&mut self, query: &Query) -> Vec<Document> {
        let shown = |held: &Held| match query.hidden_before {
            None => held.hidden_at.is_none(),
            Some(before) => held.hidden_at.is_some_and(|at| at <= before),
        };
        let collection = query.collection;
        let mut found: Vec<Document> = self
            .documents(collection)
            .iter()
            .filter(|((domain, _), _)| query.domain.is_none() || *domain == query.domain)
            .filter(|(_, held)| shown(held))
            .filter(|(_, held)| query.filters.iter().all(|filter| filter.holds(collection, &held.body)))
            .map(|((domain, id), held)| {
                let key = Key { collection, domain: domain.clone(), id: id.clone() };
                Document { key, version: held.version, body: held.body.clone() }
            })
            .filter(|document| is_behind(document, query))
            .collect();
        found.sort_by(|a, b| query.compare(&query.sort_key(a), &query.sort_key(b)));
        found
    }

    fn claim(&mut self, claim: &Claim) -> Vec<Document> {
        let fields = claim.fields();
        let before = self.versions;
        let mut claimed = Vec::new();
        for query in &claim.from {
            let room = query.limit.min(claim.max - claimed.len());
            // What an earlier query found is not taken once more.
            let found = self.matching(query).into_iter().filter(|document| document.version.0 <= before);
            for mut document in found.take(room).collect::<Vec<_>>() {
                set(claim.collection, &mut document.body, &fields);
                if let Some(field) = claim.add_one.and_then(|path| claim.collection.field(path)) {
                    let sum =
                        field.get(&document.body).and_then(Value::as_i64).unwrap_or(0).saturating_add(1);
                    field.set(&mut document.body, sum.into());
                }
                document.version = self.next_version();
                let held = Held { version: document.version, body: document.body.clone(), hidden_at: None };
                let place = (document.key.domain.clone(), document.key.id.clone());
                self.documents(claim.collection).insert(place, held);
                claimed.push(document);
            }
        }
        claimed
    }
}

fn set(collection: &Collection, body: &mut Body, fields: &Fields) {
    for (path, value) in fields {
        if let Some(field) = collection.field(path) {
            field.set(body, value.clone());
        }
    }
}

fn is_behind(document: &Document, query: &Query) -> bool {
    let Some(cursor) = &query.after else { return true };
    query.compare(&query.sort_key(document), &cursor.key) == Ordering::Greater
}

#[async_trait]
impl Store for MemoryStore {
    fn promises(&self) -> Promises {
        Promises { find_lag: Duration::ZERO, text_lag: Duration::ZERO, exclusive: false }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        limits::check_writes(&batch)?;
        let mut hints = Vec::new();
        let mut data = self.data();
        let mut answers = Vec::with_capacity(batch.len());
        for write in batch {
            let hint = Hint::of(&write);
            let answer = data.apply(write);
            if matches!(answer, Written::Applied(_)) {
                hints.extend(hint);
            }
            answers.push(answer);
        }
        drop(data);
        self.hints.send(hints);
        Ok(answers)
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        limits::check_keys(&keys)?;
        let mut data = self.data();
        let read = |key: Key| {
            let held = data.documents(key.collection).get(&(key.domain.clone(), key.id.clone()))?;
            let held = held.hidden_at.is_none().then(|| held.clone())?;
            Some(Document { key, version: held.version, body: held.body })
        };
        Ok(keys.into_iter().map(read).collect())
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        limits::check_query(&query)?;
        let matching = self.data().matching(&query);
        Ok(query.page_of(matching))
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        limits::check_count(&query, by)?;
        let matching = self.data().matching(&Query { after: None, ..query.clone() });
        let Some(field) = by.and_then(|path| query.collection.field(path)) else {
            return Ok(vec![Tally { value: Value::Null, count: matching.len() as u64 }]);
        };
        let mut totals: Vec<Tally> = Vec::new();
        for document in matching {
            let value = field.sort_value(&document.body);
            match totals.binary_search_by(|tally| rank(&tally.value).cmp(&rank(&value))) {
                Ok(nth) => totals.iter_mut().skip(nth).take(1).for_each(|tally| tally.count += 1),
                Err(nth) => totals.insert(nth, Tally { value, count: 1 }),
            }
        }
        Ok(totals)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        limits::check_claim(&claim)?;
        let claimed = self.data().claim(&claim);
        self.hints
            .send(claimed.iter().map(|document| Hint { key: document.key.clone(), is_new: false }).collect());
        Ok(claimed)
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        limits::check_sequence(name, n)?;
        let mut data = self.data();
        let next = data.sequences.entry(name).or_insert(1);
        let first = *next;
        *next += n;
        Ok(first..*next)
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.hints.listen(collection)
    }
}
