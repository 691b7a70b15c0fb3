//! The tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::domain::{Domain, DomainDocument};

use crate::StoreError;
use crate::collection::{Collection, DOMAINS};
use crate::cursor::Cursor;
use crate::query::{Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::{Key, Store};

impl Kept for DomainDocument {
    const COLLECTION: &'static Collection = &DOMAINS;
}

#[derive(Clone)]
pub struct Domains {
    domains: Repository<DomainDocument>,
}

impl Domains {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { domains: Repository::new(store) }
    }

    pub async fn create(&self, domain: DomainDocument) -> Result<Created<DomainDocument>, StoreError> {
        self.domains.create(Key::new(&DOMAINS, &domain.name), domain).await
    }

    pub async fn get(&self, name: &Domain) -> Result<Option<Versioned<DomainDocument>>, StoreError> {
        self.domains.get(Key::new(&DOMAINS, name)).await
    }

    /// The weights of those that have one.
    pub async fn weights(&self) -> Result<BTreeMap<Domain, u32>, StoreError> {
        let domains = self.domains.find_all(Query::new(&DOMAINS, Order::BY_ID)).await?;
        let weight =
            |domain: Versioned<DomainDocument>| Some((domain.document.name, domain.document.weight?));
        Ok(domains.into_iter().filter_map(weight).collect())
    }

    /// All of them.
    pub async fn all(&self) -> Result<Vec<DomainDocument>, StoreError> {
        let domains = self.domains.find_all(Query::new(&DOMAINS, Order::BY_ID)).await?;
        Ok(domains.into_iter().map(|domain| domain.document).collect())
    }

    /// Writes a change of a tenant, if nobody wrote since it was read.
    pub async fn save(
        &self,
        before: &Versioned<DomainDocument>,
        after: &DomainDocument,
    ) -> Result<Saved, StoreError> {
        self.domains.save(before, after).await
    }

    pub async fn list(
        &self,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<DomainDocument>, Option<Cursor>), StoreError> {
        let mut query = Query::new(&DOMAINS, Order::BY_ID).limit(limit);
        query.after = after;
        let (domains, next) = self.domains.find(query).await?;
        Ok((domains.into_iter().map(|domain| domain.document).collect(), next))
    }
}
