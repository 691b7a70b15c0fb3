//! The verbs of a store. The promises behind them stand at the head of the crate.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use rota_model::ids::ClaimToken;
use serde_json::{Map, Value};

use crate::StoreError;
use crate::collection::Collection;
use crate::hints::{Changes, Hint};
use crate::query::{Page, Query, check_body, check_set};

/// The body of a document: a JSON object.
pub type Body = Map<String, Value>;

/// Names a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub collection: &'static Collection,
    pub id: String,
}

impl Key {
    pub fn new(collection: &'static Collection, id: impl ToString) -> Self {
        Self { collection, id: id.to_string() }
    }
}

/// Which writing of a document this is. Only equality means anything to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub u64);

/// A document as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub id: String,
    pub version: Version,
    pub body: Body,
}

/// A wish to write one document.
#[derive(Clone, Debug)]
pub enum Write {
    /// If the id is free.
    Create { key: Key, body: Body },
    /// If the version is still this one: the whole document.
    Replace { key: Key, version: Version, body: Body },
    /// If the version is still this one: declared changing fields alone; null takes a field away.
    Change { key: Key, version: Version, fields: Vec<(&'static str, Value)> },
    /// If the version is still this one.
    Delete { key: Key, version: Version },
}

impl Write {
    pub fn key(&self) -> &Key {
        match self {
            Write::Create { key, .. }
            | Write::Replace { key, .. }
            | Write::Change { key, .. }
            | Write::Delete { key, .. } => key,
        }
    }

    /// Refuses what the declaration of the collection does not allow.
    pub fn check(&self) -> Result<(), StoreError> {
        match self {
            Write::Create { key, body } | Write::Replace { key, body, .. } => {
                check_body(key.collection, body)
            }
            Write::Change { key, fields, .. } => check_set(key.collection, fields),
            Write::Delete { .. } => Ok(()),
        }
    }

    /// What listeners are told if it is applied.
    pub fn hint(&self) -> Hint {
        let Key { collection, id } = self.key().clone();
        Hint { collection, id, is_new: matches!(self, Write::Create { .. }) }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Applied(Version),
    /// Another version is there.
    Conflict,
    /// The id was taken.
    Exists,
    /// There is no such document.
    Missing,
}

/// A wish to take documents for oneself.
#[derive(Clone, Debug)]
pub struct Claim {
    pub collection: &'static Collection,
    /// Asked one after the other until `max` documents are found.
    pub from: Vec<Query>,
    pub max: usize,
    /// Declared changing fields to set.
    pub set: Vec<(&'static str, Value)>,
    /// A declared changing field to which one is added.
    pub add_one: Option<&'static str>,
    /// The field that takes the token, and the token.
    pub token: (&'static str, ClaimToken),
}

/// What differs between stores, and callers may know.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// By how much a find may lag behind a write.
    pub find_lag: Duration,
    /// Whether this process alone has the store open. Then every other incarnation in it is dead.
    pub exclusive: bool,
}

#[async_trait]
pub trait Store: Send + Sync + 'static {
    fn promises(&self) -> Promises;

    /// Applies each write on its own and answers for each, in the order given. On return it is durable.
    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError>;

    /// The newest version of each, as far as the store knows.
    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError>;

    /// A page of what matches. It may be short and still have a next.
    async fn find(&self, query: Query) -> Result<Page, StoreError>;

    /// Finds, changes and returns documents so that no two callers get the same one.
    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError>;

    /// Numbers that are never handed out twice and rise for one caller; gaps are allowed. The first is 1.
    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError>;

    /// Hints that something in a collection changed.
    fn changes(&self, collection: &'static Collection) -> Changes;
}
