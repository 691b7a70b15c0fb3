//! What the typed repositories share: documents as types, and the ways to write one on the condition that nobody
//! else did.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::StoreError;
use crate::collection::Collection;
use crate::cursor::Cursor;
use crate::query::Query;
use crate::seam::{Body, Document, Key, Store, Version, Write, Written};

/// A type that is kept in a collection.
pub trait Kept: Serialize + DeserializeOwned + Send + Sync {
    const COLLECTION: &'static Collection;

    fn id(&self) -> String;
}

/// A document with the version it was read at.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    pub document: T,
    pub version: Version,
}

/// What became of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New(Version),
    /// The id was taken.
    Exists,
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
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, kept: PhantomData }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub async fn create(&self, document: &T) -> Result<Created, StoreError> {
        let key = Key::new(T::COLLECTION, document.id());
        match self.write_one(Write::Create { key, body: encode(document)? }).await? {
            Written::Applied(version) => Ok(Created::New(version)),
            Written::Exists | Written::Conflict | Written::Missing => Ok(Created::Exists),
        }
    }

    pub async fn get(&self, id: impl ToString) -> Result<Option<Versioned<T>>, StoreError> {
        let found = self.store.read(vec![Key::new(T::COLLECTION, id)]).await?;
        found.into_iter().flatten().next().map(decode).transpose()
    }

    /// Those of the ids that exist and can be understood, in the order given.
    pub async fn get_all(&self, ids: Vec<String>) -> Result<Vec<Versioned<T>>, StoreError> {
        let keys = ids.into_iter().map(|id| Key { collection: T::COLLECTION, id }).collect();
        let found = self.store.read(keys).await?.into_iter().flatten();
        Ok(found.filter_map(|document| readable(decode(document))).collect())
    }

    /// Writes what differs, if nobody wrote since `before` was read.
    pub async fn save(&self, before: &Versioned<T>, after: &T) -> Result<Saved, StoreError> {
        let key = Key::new(T::COLLECTION, after.id());
        let write = difference(T::COLLECTION, key, before.version, encode(&before.document)?, encode(after)?);
        Ok(saved(self.write_one(write).await?))
    }

    pub async fn delete(&self, document: &Versioned<T>) -> Result<Saved, StoreError> {
        let key = Key::new(T::COLLECTION, document.document.id());
        Ok(saved(self.write_one(Write::Delete { key, version: document.version }).await?))
    }

    /// Reads, changes and saves, again and again until nobody came between. The change is a pure function: it may be
    /// called several times.
    pub async fn update<R>(
        &self,
        id: impl ToString,
        change: impl Fn(&mut T) -> Result<(), R>,
    ) -> Result<Updated<T, R>, StoreError>
    where
        T: Clone,
    {
        let id = id.to_string();
        loop {
            let Some(before) = self.get(&id).await? else { return Ok(Updated::Missing) };
            let mut after = before.document.clone();
            if let Err(refusal) = change(&mut after) {
                return Ok(Updated::Refused(refusal));
            }
            if let Saved::Applied(version) = self.save(&before, &after).await? {
                return Ok(Updated::Done(Versioned { document: after, version }));
            }
        }
    }

    pub async fn find(&self, query: Query) -> Result<(Vec<Versioned<T>>, Option<Cursor>), StoreError> {
        let page = self.store.find(query).await?;
        let documents =
            page.documents.into_iter().filter_map(|document| readable(decode(document))).collect();
        Ok((documents, page.next))
    }

    async fn write_one(&self, write: Write) -> Result<Written, StoreError> {
        let what = format!("write {}/{}", T::COLLECTION.name, write.key().id);
        let answers = self.store.write(vec![write]).await?;
        answers.into_iter().next().ok_or_else(|| StoreError::unknown(what, "the store gave no answer"))
    }
}

fn saved(written: Written) -> Saved {
    match written {
        Written::Applied(version) => Saved::Applied(version),
        Written::Conflict | Written::Missing | Written::Exists => Saved::Overtaken,
    }
}

/// A change of fields where only declared changing ones differ, a replace otherwise.
fn difference(
    collection: &'static Collection,
    key: Key,
    version: Version,
    mut before: Body,
    after: Body,
) -> Write {
    let mut rest = after.clone();
    let mut fields = Vec::new();
    for field in collection.changing() {
        let (old, new) = (field.take(&mut before), field.take(&mut rest));
        if old != new {
            fields.push((field.path, new.unwrap_or(Value::Null)));
        }
    }
    if before == rest {
        Write::Change { key, version, fields }
    } else {
        Write::Replace { key, version, body: after }
    }
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
    let what = format!("read {}/{}", T::COLLECTION.name, document.id);
    match serde_json::from_value(Value::Object(document.body)) {
        Ok(decoded) => Ok(Versioned { document: decoded, version: document.version }),
        Err(error) => Err(StoreError::damaged(what, error)),
    }
}
