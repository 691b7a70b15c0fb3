//! The tenants.

use std::sync::Arc;

use rota_model::domain::{Domain, DomainDocument};

use crate::StoreError;
use crate::collection::{Collection, DOMAINS};
use crate::cursor::Cursor;
use crate::query::{Order, Query};
use crate::repository::{Created, Kept, Repository};
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

    pub async fn get(&self, name: &Domain) -> Result<Option<DomainDocument>, StoreError> {
        Ok(self.domains.get(Key::new(&DOMAINS, name)).await?.map(|domain| domain.document))
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
