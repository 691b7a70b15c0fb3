//! Limits (rule 9): who may run how many jobs of a type or of a key, and up to when starts are taken. Each is one document
//! that nodes change by compare-and-set; what the numbers mean is for `model` to say.

use std::sync::Arc;

use rota_model::limit::{Limit, LimitName};
use rota_model::time::UnixMillis;

use crate::StoreError;
use crate::collection::{Collection, LIMITS};
use crate::cursor::Cursor;
use crate::hints::Changes;
use crate::query::{Filter, Order, Query};
use crate::repository::{Kept, Repository, Saved, Versioned};
use crate::seam::{Key, Store, Version};

impl Kept for Limit {
    const COLLECTION: &'static Collection = &LIMITS;
}

const BY_HOLDERS: Order = Order { fields: &["held"], descending: false };
const OLDEST_FIRST: Order = Order { fields: &["metadata.updatedAt"], descending: false };

#[derive(Clone)]
pub struct JobLimits {
    limits: Repository<Limit>,
}

impl JobLimits {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { limits: Repository::new(store) }
    }

    /// One for each name, in the order given: none where nobody has written it yet, or it cannot be understood.
    pub async fn get_each(&self, names: &[LimitName]) -> Result<Vec<Option<Versioned<Limit>>>, StoreError> {
        self.limits.get_each(names.iter().map(key).collect()).await
    }

    /// Stores limits that were not there, each on its own. None where somebody was faster.
    pub async fn create_all(&self, limits: &[Limit]) -> Result<Vec<Option<Version>>, StoreError> {
        self.limits.create_all(limits.iter().map(|limit| (key(&limit.name()), limit))).await
    }

    /// Writes changes of limits, each on its own, where nobody wrote since it was read.
    pub async fn save_all<'a>(
        &self,
        changes: impl Iterator<Item = (&'a Versioned<Limit>, &'a Limit)>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.limits.save_all(changes).await
    }

    /// Forgets limits, each on its own, if nobody wrote since it was read.
    pub async fn delete_all(
        &self,
        limits: Vec<Versioned<Limit>>,
        at: UnixMillis,
    ) -> Result<Vec<Saved>, StoreError> {
        self.limits.delete_all(limits.into_iter().map(|limit| (limit.key, limit.version)).collect(), at).await
    }

    /// Limits that somebody holds or waits for.
    pub async fn held(
        &self,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Limit>>, Option<Cursor>), StoreError> {
        let held = Query::new(&LIMITS, BY_HOLDERS).filter(Filter::AtLeast("held", 1));
        self.limits.find(held.limit(limit).after(after)).await
    }

    /// Limits that were last written at an instant or before, the oldest first.
    pub async fn unchanged_since(
        &self,
        before: UnixMillis,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Limit>>, Option<Cursor>), StoreError> {
        let query = Query::new(&LIMITS, OLDEST_FIRST)
            .filter(Filter::AtMost("metadata.updatedAt", before.0))
            .limit(limit)
            .after(after);
        self.limits.find(query).await
    }

    pub fn changes(&self) -> Changes {
        self.limits.store().changes(&LIMITS)
    }
}

/// The name under which a limit is stored.
fn key(name: &LimitName) -> Key {
    Key::new(&LIMITS, name.id())
}
