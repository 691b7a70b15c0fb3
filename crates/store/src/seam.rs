//! The verbs of a store. The promises behind them stand at the head of the crate.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use rota_model::domain::Domain;
use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use serde_json::{Map, Value};

use crate::StoreError;
use crate::collection::Collection;
use crate::hints::Changes;
use crate::query::{Page, Query};

/// The body of a document: a JSON object.
pub type Body = Map<String, Value>;

/// Names a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub collection: &'static Collection,
    /// Whose collection it stands in, where each domain has its own.
    pub domain: Option<Domain>,
    pub id: String,
}

impl Key {
    /// A document of a collection of the installation.
    pub fn new(collection: &'static Collection, id: impl ToString) -> Self {
        Self { collection, domain: None, id: id.to_string() }
    }

    /// A document of a collection that each domain has for itself.
    pub fn in_domain(collection: &'static Collection, domain: &Domain, id: impl ToString) -> Self {
        Self { collection, domain: Some(domain.clone()), id: id.to_string() }
    }
}

/// As people say it: `jobs/0197…`, `timers-default/4f3a…`.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = rota_model::check::escape(&self.id);
        match &self.domain {
            Some(domain) => write!(f, "{}-{domain}/{id}", self.collection.name),
            None => write!(f, "{}/{id}", self.collection.name),
        }
    }
}

/// Which writing of a document this is. Only equality means anything to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub u64);

/// A document as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub key: Key,
    pub version: Version,
    /// Empty where only keys were asked for.
    pub body: Body,
}

/// Declared changing fields with their new values; null takes a field away.
pub type Fields = Vec<(&'static str, Value)>;

/// A wish to write one document.
#[derive(Clone, Debug)]
pub enum Write {
    /// If the id is free.
    Create { key: Key, body: Body },
    /// If the version is still this one: the whole document.
    Replace { key: Key, version: Version, body: Body },
    /// If the version is still this one: declared changing fields alone.
    Change { key: Key, version: Version, fields: Fields },
    /// If the version is still this one. Where the collection hides what is deleted, it is hidden as of `at`.
    Delete { key: Key, version: Version, at: UnixMillis },
    /// If it is hidden and the version is still this one: the id is free again.
    Purge { key: Key, version: Version },
}

impl Write {
    pub fn key(&self) -> &Key {
        match self {
            Write::Create { key, .. }
            | Write::Replace { key, .. }
            | Write::Change { key, .. }
            | Write::Delete { key, .. }
            | Write::Purge { key, .. } => key,
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Applied(Version),
    /// Another version is there, or it is not hidden and should be.
    Conflict,
    /// The id was taken.
    Exists,
    /// There is no such document, or it is hidden.
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
    pub set: Fields,
    /// A declared changing field to which one is added.
    pub add_one: Option<&'static str>,
    /// The field that takes the token, and the token.
    pub token: (&'static str, ClaimToken),
}

impl Claim {
    /// Everything that is set, the token among it.
    pub fn fields(&self) -> Fields {
        let (field, token) = self.token;
        let mut fields = self.set.clone();
        fields.push((field, Value::String(token.to_string())));
        fields
    }
}

/// How many documents have a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// Null for those that have none, and for the total.
    pub value: Value,
    pub count: u64,
}

/// What differs between stores, and callers may know.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// By how much a find may lag behind a write.
    pub find_lag: Duration,
    /// By how much a search for words may lag behind a write, while the store is not busy.
    pub text_lag: Duration,
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

    /// How many documents match, for each value of a declared keyword or integer field, by value; or in total. Order,
    /// limit and cursor of the query mean nothing here.
    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError>;

    /// Finds, changes and returns documents so that no two callers get the same one.
    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError>;

    /// Numbers that are never handed out twice and rise for one caller; gaps are allowed. The first is 1.
    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError>;

    /// Hints that something in a collection changed.
    fn changes(&self, collection: &'static Collection) -> Changes;
}
