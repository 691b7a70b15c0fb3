//! What is known about each type of job (`job-types`): the domain's own types, and those of the installation behind
//! them. A domain that defines a type under the name of a built-in one means its own; everything here answers so.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::job_type::JobType;
use rota_model::time::UnixMillis;
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, JOB_TYPES};
use crate::hints::Changes;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned, decode};
use crate::seam::{Key, Store};

impl Kept for JobType {
    const COLLECTION: &'static Collection = &JOB_TYPES;
}

/// What has no domain comes first.
const BY_DOMAIN: Order = Order { fields: &["domain", "type"], descending: false };

#[derive(Clone)]
pub struct JobTypes {
    types: Repository<JobType>,
}

impl JobTypes {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { types: Repository::new(store) }
    }

    pub async fn create(&self, job_type: JobType) -> Result<Created<JobType>, StoreError> {
        self.types.create(Key::new(&JOB_TYPES, job_type.id()), job_type).await
    }

    /// Writes a change of a type, if nobody wrote since it was read.
    pub async fn save(&self, before: &Versioned<JobType>, after: &JobType) -> Result<Saved, StoreError> {
        self.types.save(before, after).await
    }

    pub async fn delete(&self, job_type: &Versioned<JobType>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.types.delete(job_type, at).await
    }

    /// What a type means in a domain: the domain's own, otherwise the installation's. If its own cannot be understood
    /// that is an error: payloads must not be checked against another's schema.
    pub async fn get(&self, domain: &Domain, kind: &str) -> Result<Option<Versioned<JobType>>, StoreError> {
        let found = self.types.store().read(vec![key(Some(domain), kind), key(None, kind)]).await?;
        found.into_iter().flatten().next().map(decode).transpose()
    }

    /// The domain's own type of this name.
    pub async fn own(&self, domain: &Domain, kind: &str) -> Result<Option<Versioned<JobType>>, StoreError> {
        self.types.get(key(Some(domain), kind)).await
    }

    /// How many types a domain has of its own.
    pub async fn count(&self, domain: &Domain) -> Result<u64, StoreError> {
        let own = Query::new(&JOB_TYPES, BY_DOMAIN).filter(Filter::Is("domain", json!(domain)));
        let tallies = self.types.store().count(own, None).await?;
        Ok(tallies.iter().map(|tally| tally.count).sum())
    }

    /// Every type that has a meaning in a domain, by name, each as [`JobTypes::get`] would find it.
    pub async fn of_domain(&self, domain: &Domain) -> Result<Vec<Versioned<JobType>>, StoreError> {
        let own = Query::new(&JOB_TYPES, BY_DOMAIN).filter(Filter::Is("domain", json!(domain)));
        let mut by_name = BTreeMap::new();
        for job_type in self.built_in().await?.into_iter().chain(self.types.find_all(own).await?) {
            by_name.insert(job_type.document.kind.clone(), job_type);
        }
        Ok(by_name.into_values().collect())
    }

    pub fn changes(&self) -> Changes {
        self.types.store().changes(&JOB_TYPES)
    }

    /// The types of the installation.
    async fn built_in(&self) -> Result<Vec<Versioned<JobType>>, StoreError> {
        self.types.find_all(Query::new(&JOB_TYPES, BY_DOMAIN).filter(Filter::Absent("domain"))).await
    }
}

fn key(domain: Option<&Domain>, kind: &str) -> Key {
    let named = JobType { domain: domain.cloned(), kind: kind.to_owned(), ..JobType::default() };
    Key::new(&JOB_TYPES, named.id())
}
