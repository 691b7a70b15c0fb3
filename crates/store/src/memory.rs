//! The store that is obviously right: ordered maps behind one lock. It is the model for the others, and `memory:` for
//! trying things out. Nothing survives the process.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::StoreError;
use crate::collection::Collection;
use crate::cursor::Cursor;
use crate::hints::{Changes, Hint, HintSender};
use crate::query::{Page, Query, check_set};
use crate::seam::{Body, Claim, Document, Key, Promises, Store, Version, Write, Written};

#[derive(Debug, Default)]
pub struct MemoryStore {
    data: Mutex<Data>,
    hints: HintSender,
}

#[derive(Debug, Default)]
struct Data {
    documents: BTreeMap<&'static str, BTreeMap<String, (Version, Body)>>,
    sequences: BTreeMap<&'static str, u64>,
    /// One counter for all versions, so that a document made anew never has the version of its predecessor.
    versions: u64,
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

    fn collection(&mut self, collection: &Collection) -> &mut BTreeMap<String, (Version, Body)> {
        self.documents.entry(collection.name).or_default()
    }

    fn apply(&mut self, write: Write) -> Written {
        let next = self.next_version();
        let documents = self.collection(write.key().collection);
        let current = documents.get(&write.key().id).map(|(version, _)| *version);
        match (write, current) {
            (Write::Create { .. }, Some(_)) => Written::Exists,
            (Write::Create { key, body }, None) => put(documents, key.id, next, body),
            (_, None) => Written::Missing,
            (Write::Replace { key, version, body }, Some(now)) if version == now => {
                put(documents, key.id, next, body)
            }
            (Write::Change { key, version, fields }, Some(now)) if version == now => {
                let Some((held, body)) = documents.get_mut(&key.id) else { return Written::Missing };
                set(key.collection, body, &fields);
                *held = next;
                Written::Applied(next)
            }
            (Write::Delete { key, version }, Some(now)) if version == now => {
                documents.remove(&key.id);
                Written::Applied(next)
            }
            _ => Written::Conflict,
        }
    }

    /// Everything that matches, in order, from the cursor on.
    fn matching(&mut self, query: &Query) -> Vec<Document> {
        let collection = query.collection;
        let documents = self.collection(collection).iter();
        let mut found: Vec<Document> = documents
            .filter(|(_, (_, body))| query.filters.iter().all(|filter| filter.holds(collection, body)))
            .map(|(id, (version, body))| Document { id: id.clone(), version: *version, body: body.clone() })
            .filter(|document| is_behind(document, query))
            .collect();
        found.sort_by(|a, b| {
            let order = compare(&sort_key(a, query), &sort_key(b, query));
            if query.order.descending { order.reverse() } else { order }
        });
        found
    }
}

fn put(
    documents: &mut BTreeMap<String, (Version, Body)>,
    id: String,
    version: Version,
    body: Body,
) -> Written {
    documents.insert(id, (version, body));
    Written::Applied(version)
}

fn set(collection: &Collection, body: &mut Body, fields: &[(&'static str, Value)]) {
    for (path, value) in fields {
        if let Some(field) = collection.field(path) {
            field.set(body, value.clone());
        }
    }
}

fn sort_key(document: &Document, query: &Query) -> Vec<Value> {
    Cursor::behind(document, query.collection, query.order).key
}

fn is_behind(document: &Document, query: &Query) -> bool {
    let Some(cursor) = &query.after else { return true };
    let wanted = if query.order.descending { Ordering::Less } else { Ordering::Greater };
    compare(&sort_key(document, query), &cursor.key) == wanted
}

/// Absent before numbers before texts, as SQL engines do it.
fn compare(a: &[Value], b: &[Value]) -> Ordering {
    let rank = |value: &Value| (value.is_string(), value.as_i64(), value.as_str().map(str::to_owned));
    a.iter().map(rank).cmp(b.iter().map(rank))
}

#[async_trait]
impl Store for MemoryStore {
    fn promises(&self) -> Promises {
        Promises { find_lag: Duration::ZERO, exclusive: false }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        batch.iter().try_for_each(Write::check)?;
        let mut hints = Vec::new();
        let mut data = self.data();
        let mut answers = Vec::with_capacity(batch.len());
        for write in batch {
            let hint = write.hint();
            let answer = data.apply(write);
            if matches!(answer, Written::Applied(_)) {
                hints.push(hint);
            }
            answers.push(answer);
        }
        drop(data);
        self.hints.send(hints);
        Ok(answers)
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        let mut data = self.data();
        let read = |key: Key| {
            let (version, body) = data.collection(key.collection).get(&key.id)?.clone();
            Some(Document { id: key.id, version, body })
        };
        Ok(keys.into_iter().map(read).collect())
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        query.check()?;
        query.after.as_ref().map_or(Ok(()), |cursor| cursor.check(&query))?;
        let mut documents = self.data().matching(&query);
        let more = documents.len() > query.limit;
        documents.truncate(query.limit);
        let last = documents.last().filter(|_| more);
        let next = last.map(|last| Cursor::behind(last, query.collection, query.order));
        Ok(Page { documents, next })
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        let (token_field, token) = claim.token;
        let mut fields = claim.set;
        fields.push((token_field, json!(token)));
        check_set(claim.collection, &fields)?;
        for query in &claim.from {
            query.check()?;
        }
        let mut data = self.data();
        let mut claimed = Vec::new();
        for query in &claim.from {
            let room = claim.max - claimed.len();
            for mut document in data.matching(query).into_iter().take(room) {
                set(claim.collection, &mut document.body, &fields);
                if let Some(field) = claim.add_one.and_then(|path| claim.collection.field(path)) {
                    let sum = field.get(&document.body).and_then(Value::as_i64).unwrap_or(0) + 1;
                    field.set(&mut document.body, json!(sum));
                }
                document.version = data.next_version();
                let held = (document.version, document.body.clone());
                data.collection(claim.collection).insert(document.id.clone(), held);
                claimed.push(document);
            }
        }
        drop(data);
        let hint = |document: &Document| Hint {
            collection: claim.collection,
            id: document.id.clone(),
            is_new: false,
        };
        self.hints.send(claimed.iter().map(hint).collect());
        Ok(claimed)
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
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
