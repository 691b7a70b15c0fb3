//! What the typed repositories share: documents as types, and the ways to write one on the condition that nobody
//! else did.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use rota_model::time::UnixMillis;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::StoreError;
use crate::collection::Collection;
use crate::cursor::Cursor;
use crate::limits::{self, MAX_BATCH, MAX_KEYS};
use crate::query::Query;
use crate::seam::{Body, Document, Fields, Key, Store, Tally, Version, Write, Written};

/// A type that is kept in a collection.
pub trait Kept: Serialize + DeserializeOwned + Send + Sync {
    const COLLECTION: &'static Collection;

    /// The declared changing fields in which two of them differ, if nothing else differs. None where that is not known
    /// without writing both out: who is changed often knows it.
    fn changed(_before: &Self, _after: &Self) -> Option<Fields> {
        None
    }
}

/// A document with its name and the version it was read at.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    pub key: Key,
    pub document: T,
    pub version: Version,
}

impl<T> Versioned<T> {
    /// The same document after it was written.
    #[must_use]
    pub fn written(&self, document: T, version: Version) -> Self {
        Self { key: self.key.clone(), document, version }
    }
}

/// What became of a create.
#[derive(Clone, Debug, PartialEq)]
pub enum Created<T> {
    New(Versioned<T>),
    /// The id was taken: what was to be stored comes back.
    Exists(T),
}

impl<T> Created<T> {
    /// The document, if it is new.
    pub fn into_new(self) -> Option<T> {
        match self {
            Created::New(created) => Some(created.document),
            Created::Exists(_) => None,
        }
    }
}

/// What became of a write on a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    Applied(Version),
    /// Someone else wrote or deleted it meanwhile: read again and decide anew.
    Overtaken,
}

/// What became of an update.
#[derive(Clone, Debug, PartialEq)]
pub enum Updated<T, R> {
    Done(Versioned<T>),
    /// The change itself said no.
    Refused(R),
    /// There is no such document.
    Missing,
}

pub struct Repository<T> {
    store: Arc<dyn Store>,
    kept: PhantomData<fn() -> T>,
}

impl<T> Clone for Repository<T> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), kept: PhantomData }
    }
}

impl<T: Kept> Repository<T> {
    /// Only repositories make one: whoever has it may do anything with these documents.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, kept: PhantomData }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub async fn create(&self, key: Key, document: T) -> Result<Created<T>, StoreError> {
        Ok(match self.create_as(key.clone(), &document).await? {
            Some(version) => Created::New(Versioned { key, document, version }),
            None => Created::Exists(document),
        })
    }

    /// Creates a document of which the caller keeps its own. None if the id was taken.
    pub async fn create_as(&self, key: Key, document: &T) -> Result<Option<Version>, StoreError> {
        let body = encode(document)?;
        Ok(created(self.write_one(Write::Create { key, body }).await?))
    }

    /// Creates many, each on its own, and says of each what [`Repository::create_as`] would.
    pub async fn create_all<'a>(
        &self,
        documents: impl Iterator<Item = (Key, &'a T)>,
    ) -> Result<Vec<Option<Version>>, StoreError>
    where
        T: 'a,
    {
        let write = |(key, document)| Ok(Write::Create { key, body: encode(document)? });
        let batch = documents.map(write).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(self.write_all(batch).await?.into_iter().map(created).collect())
    }

    pub async fn get(&self, key: Key) -> Result<Option<Versioned<T>>, StoreError> {
        let found = self.store.read(vec![key]).await?;
        found.into_iter().flatten().next().map(decode).transpose()
    }

    /// Those of the documents that exist and can be understood, in the order given.
    pub async fn get_all(&self, keys: Vec<Key>) -> Result<Vec<Versioned<T>>, StoreError> {
        Ok(self.get_each(keys).await?.into_iter().flatten().collect())
    }

    /// One for each key, in the order given: none where there is no such document, or it cannot be understood.
    pub async fn get_each(&self, keys: Vec<Key>) -> Result<Vec<Option<Versioned<T>>>, StoreError> {
        let mut each = Vec::with_capacity(keys.len());
        for some in keys.chunks(MAX_KEYS) {
            let found = self.store.read(some.to_vec()).await?.into_iter();
            each.extend(found.map(|document| document.and_then(|document| readable(decode(document)))));
        }
        Ok(each)
    }

    /// Writes what differs, if nobody wrote since `before` was read.
    pub async fn save(&self, before: &Versioned<T>, after: &T) -> Result<Saved, StoreError> {
        Ok(saved(self.write_one(difference(before, after)?).await?))
    }

    /// Saves many, each on its own, and says of each what became of it.
    pub async fn save_all<'a>(
        &self,
        changes: impl Iterator<Item = (&'a Versioned<T>, &'a T)>,
    ) -> Result<Vec<Saved>, StoreError>
    where
        T: 'a,
    {
        let batch = changes.map(|(before, after)| difference(before, after));
        let written = self.write_all(batch.collect::<Result<_, _>>()?).await?;
        Ok(written.into_iter().map(saved).collect())
    }

    /// Deletes it, if nobody wrote since it was read.
    pub async fn delete(&self, document: &Versioned<T>, at: UnixMillis) -> Result<Saved, StoreError> {
        let (key, version) = (document.key.clone(), document.version);
        Ok(saved(self.write_one(Write::Delete { key, version, at }).await?))
    }

    /// Deletes many, each on its own: those that nobody wrote since they were found.
    pub async fn delete_all(
        &self,
        documents: Vec<(Key, Version)>,
        at: UnixMillis,
    ) -> Result<Vec<Saved>, StoreError> {
        let batch = documents.into_iter().map(|(key, version)| Write::Delete { key, version, at });
        let written = self.write_all(batch.collect()).await?;
        Ok(written.into_iter().map(saved).collect())
    }

    /// Reads, changes and saves, again and again until nobody came between; where nothing differs, nothing is written. The
    /// change is a pure function: it may be called several times.
    pub async fn update<R>(
        &self,
        key: Key,
        change: impl Fn(&mut T) -> Result<(), R>,
    ) -> Result<Updated<T, R>, StoreError>
    where
        T: Clone + PartialEq,
    {
        loop {
            let Some(before) = self.get(key.clone()).await? else { return Ok(Updated::Missing) };
            let mut after = before.document.clone();
            if let Err(refusal) = change(&mut after) {
                return Ok(Updated::Refused(refusal));
            }
            if after == before.document {
                return Ok(Updated::Done(before));
            }
            if let Saved::Applied(version) = self.save(&before, &after).await? {
                return Ok(Updated::Done(Versioned { key, document: after, version }));
            }
        }
    }

    pub async fn find(&self, query: Query) -> Result<(Vec<Versioned<T>>, Option<Cursor>), StoreError> {
        let page = self.store.find(query).await?;
        let documents =
            page.documents.into_iter().filter_map(|document| readable(decode(document))).collect();
        Ok((documents, page.next))
    }

    /// Everything that matches, page by page.
    pub async fn find_all(&self, mut query: Query) -> Result<Vec<Versioned<T>>, StoreError> {
        let mut all = Vec::new();
        loop {
            let (documents, next) = self.find(query.clone()).await?;
            all.extend(documents);
            match next {
                Some(cursor) => query.after = Some(cursor),
                None => return Ok(all),
            }
        }
    }

    /// How many documents have each value of a declared field. A value that nobody knows is told to the operator and left
    /// out, like a document that cannot be understood.
    pub async fn totals<V: DeserializeOwned + Ord>(
        &self,
        query: Query,
        by: &'static str,
    ) -> Result<BTreeMap<V, u64>, StoreError> {
        let tallies = self.store.count(query, Some(by)).await?;
        Ok(tallies.into_iter().filter_map(|tally| readable(total::<T, V>(tally, by))).collect())
    }

    async fn write_one(&self, write: Write) -> Result<Written, StoreError> {
        let what = format!("write {}", write.key());
        let answers = self.store.write(vec![write]).await?;
        answers.into_iter().next().ok_or_else(|| StoreError::unknown(what, "the store gave no answer"))
    }

    /// In one call, or in several where there are too many for one. Nothing is written if any of it would be refused.
    async fn write_all(&self, mut batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        if batch.len() > MAX_BATCH {
            batch.chunks(MAX_BATCH).try_for_each(limits::check_writes)?;
        }
        let count = batch.len();
        let mut answers = Vec::with_capacity(count);
        while !batch.is_empty() {
            let rest = batch.split_off(batch.len().min(MAX_BATCH));
            let written = self.store.write(batch).await;
            answers.extend(if answers.is_empty() {
                written?
            } else {
                written.map_err(StoreError::in_part)?
            });
            batch = rest;
        }
        if answers.len() == count {
            return Ok(answers);
        }
        let why = format!("the store gave {} answers to {count} writes", answers.len());
        Err(StoreError::unknown(format!("write to {}", T::COLLECTION.name), why))
    }
}

fn created(written: Written) -> Option<Version> {
    match written {
        Written::Applied(version) => Some(version),
        Written::Exists | Written::Conflict | Written::Missing => None,
    }
}

fn saved(written: Written) -> Saved {
    match written {
        Written::Applied(version) => Saved::Applied(version),
        Written::Conflict | Written::Missing | Written::Exists => Saved::Overtaken,
    }
}

fn total<T: Kept, V: DeserializeOwned>(tally: Tally, by: &str) -> Result<(V, u64), StoreError> {
    let Tally { value, count } = tally;
    let what = || format!("count {} by {by}", T::COLLECTION.name);
    let known = serde_json::from_value(value).map_err(|error| StoreError::damaged(what(), error))?;
    Ok((known, count))
}

/// A change of fields where only declared changing ones differ, a replace otherwise.
fn difference<T: Kept>(before: &Versioned<T>, after: &T) -> Result<Write, StoreError> {
    let (key, version) = (before.key.clone(), before.version);
    if let Some(fields) = T::changed(&before.document, after) {
        return Ok(Write::Change { key, version, fields });
    }
    let (mut before, after) = (encode(&before.document)?, encode(after)?);
    let mut rest = after.clone();
    let mut fields = Vec::new();
    for field in key.collection.changing() {
        let (old, new) = (field.take(&mut before), field.take(&mut rest));
        if old != new {
            fields.push((field.path, new.unwrap_or(Value::Null)));
        }
    }
    Ok(if before == rest {
        Write::Change { key, version, fields }
    } else {
        Write::Replace { key, version, body: after }
    })
}

/// One document that cannot be understood must not hide the others: it is told to the operator and left out.
fn readable<T>(decoded: Result<T, StoreError>) -> Option<T> {
    decoded.inspect_err(|error| tracing::error!(%error, "a stored document cannot be understood")).ok()
}

pub(crate) fn encode<T: Kept>(document: &T) -> Result<Body, StoreError> {
    match serde_json::to_value(document) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(StoreError::refused(format!("write to {}", T::COLLECTION.name), "it is not an object")),
        Err(error) => Err(StoreError::refused(format!("write to {}", T::COLLECTION.name), error)),
    }
}

pub(crate) fn decode<T: Kept>(document: Document) -> Result<Versioned<T>, StoreError> {
    let Document { key, version, body } = document;
    match serde_json::from_value(Value::Object(body)) {
        Ok(document) => Ok(Versioned { key, document, version }),
        Err(error) => Err(StoreError::damaged(format!("read {key}"), error)),
    }
}
