//! Unique keys (rule 7): the one document that twins both want to write, and which tells the second of them about the
//! first. Who keeps twins away, and until when, is decided by those who read it.

use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;

use crate::StoreError;
use crate::collection::{Collection, UNIQUE_KEYS};
use crate::cursor::Cursor;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::{Key, Store};

impl Kept for UniqueKey {
    const COLLECTION: &'static Collection = &UNIQUE_KEYS;
}

const OLDEST_FIRST: Order = Order { fields: &["metadata.updatedAt"], descending: false };

fn key(domain: &Domain, key: &str) -> Key {
    Key::new(&UNIQUE_KEYS, UniqueKey::id(domain, key))
}

#[derive(Clone)]
pub struct UniqueKeys {
    keys: Repository<UniqueKey>,
}

impl UniqueKeys {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { keys: Repository::new(store) }
    }

    /// Takes a key for its job. Whoever finds it taken reads who has it.
    pub async fn create(&self, document: UniqueKey) -> Result<Created<UniqueKey>, StoreError> {
        self.keys.create(key(&document.domain, &document.key), document).await
    }

    pub async fn get(&self, domain: &Domain, name: &str) -> Result<Option<Versioned<UniqueKey>>, StoreError> {
        self.keys.get(key(domain, name)).await
    }

    /// Moves a key on, if nobody did since it was read.
    pub async fn save(&self, before: &Versioned<UniqueKey>, after: &UniqueKey) -> Result<Saved, StoreError> {
        self.keys.save(before, after).await
    }

    /// Frees keys, each on its own, where nobody moved it on since it was read.
    pub async fn delete_all(
        &self,
        keys: Vec<Versioned<UniqueKey>>,
        at: UnixMillis,
    ) -> Result<Vec<Saved>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.keys.delete_all(keys.into_iter().map(|key| (key.key, key.version)).collect(), at).await
    }

    /// Keys of all domains that were last written at an instant or before, the oldest first.
    pub async fn unchanged_since(
        &self,
        before: UnixMillis,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<UniqueKey>>, Option<Cursor>), StoreError> {
        let query = Query::new(&UNIQUE_KEYS, OLDEST_FIRST)
            .filter(Filter::AtMost("metadata.updatedAt", before.0))
            .limit(limit)
            .after(after);
        self.keys.find(query).await
    }
}
