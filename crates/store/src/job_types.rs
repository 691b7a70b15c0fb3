//! What is known about each type of job (`job-types`): the domain's own types, and those of the installation behind
//! them. A domain that defines a type under the name of a built-in one means its own; everything here answers so.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::job_type::JobType;
use rota_model::time::UnixMillis;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, JOB_TYPES};
use crate::hints::Changes;
use crate::limits::MAX_KEYS;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned, decode};
use crate::seam::{Key, Store};

/// A type as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// There where it limits something, so that those are found without the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limited: Option<u64>,
    #[serde(flatten)]
    job_type: JobType,
}

impl Stored {
    fn new(job_type: JobType) -> Self {
        Self { limited: (!job_type.limits().is_none()).then_some(1), job_type }
    }
}

impl Kept for Stored {
    const COLLECTION: &'static Collection = &JOB_TYPES;
}

/// What has no domain comes first.
const BY_DOMAIN: Order = Order { fields: &["domain", "type"], descending: false };
const LIMITED: Order = Order { fields: &["limited"], descending: false };

#[derive(Clone)]
pub struct JobTypes {
    types: Repository<Stored>,
}

impl JobTypes {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { types: Repository::new(store) }
    }

    pub async fn create(&self, job_type: JobType) -> Result<Created<JobType>, StoreError> {
        let created = self.types.create(Key::new(&JOB_TYPES, job_type.id()), Stored::new(job_type)).await?;
        Ok(match created {
            Created::New(stored) => Created::New(unwrapped(stored)),
            Created::Exists(stored) => Created::Exists(stored.job_type),
        })
    }

    /// Writes a change of a type, if nobody wrote since it was read.
    pub async fn save(&self, before: &Versioned<JobType>, after: &JobType) -> Result<Saved, StoreError> {
        self.types.save(&wrapped(before), &Stored::new(after.clone())).await
    }

    pub async fn delete(&self, job_type: &Versioned<JobType>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.types.delete(&wrapped(job_type), at).await
    }

    /// What a type means in a domain: the domain's own, otherwise the installation's. If its own cannot be understood
    /// that is an error: payloads must not be checked against another's schema.
    pub async fn get(&self, domain: &Domain, kind: &str) -> Result<Option<Versioned<JobType>>, StoreError> {
        let found = self.types.store().read(vec![key(Some(domain), kind), key(None, kind)]).await?;
        found.into_iter().flatten().next().map(|found| decode(found).map(unwrapped)).transpose()
    }

    /// The same of many, in the order given, each on its own.
    pub async fn get_each(&self, types: &[(Domain, String)]) -> Result<Vec<Meant>, StoreError> {
        let mut meant = Vec::with_capacity(types.len());
        for some in types.chunks(MAX_KEYS / 2) {
            let keys = some.iter().flat_map(|(domain, kind)| [key(Some(domain), kind), key(None, kind)]);
            let mut found = self.types.store().read(keys.collect()).await?.into_iter();
            while let (Some(own), built_in) = (found.next(), found.next()) {
                let stored = own.or(built_in.flatten());
                meant.push(
                    stored
                        .map(|found| decode::<Stored>(found).map(|found| found.document.job_type))
                        .transpose(),
                );
            }
        }
        Ok(meant)
    }

    /// Every type that limits something, of whatever domain.
    pub async fn limited(&self) -> Result<Vec<JobType>, StoreError> {
        let limited = Query::new(&JOB_TYPES, LIMITED).filter(Filter::AtLeast("limited", 1));
        let found = self.types.find_all(limited).await?;
        Ok(found.into_iter().map(|found| found.document.job_type).collect())
    }

    /// The domain's own type of this name.
    pub async fn own(&self, domain: &Domain, kind: &str) -> Result<Option<Versioned<JobType>>, StoreError> {
        Ok(self.types.get(key(Some(domain), kind)).await?.map(unwrapped))
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
            by_name.insert(job_type.document.job_type.kind.clone(), unwrapped(job_type));
        }
        Ok(by_name.into_values().collect())
    }

    pub fn changes(&self) -> Changes {
        self.types.store().changes(&JOB_TYPES)
    }

    /// The types of the installation.
    async fn built_in(&self) -> Result<Vec<Versioned<Stored>>, StoreError> {
        self.types.find_all(Query::new(&JOB_TYPES, BY_DOMAIN).filter(Filter::Absent("domain"))).await
    }
}

/// What a type means in a domain; none if nobody defined it, an error if it cannot be understood.
pub type Meant = Result<Option<JobType>, StoreError>;

fn unwrapped(stored: Versioned<Stored>) -> Versioned<JobType> {
    let Versioned { key, document, version } = stored;
    Versioned { key, document: document.job_type, version }
}

fn wrapped(job_type: &Versioned<JobType>) -> Versioned<Stored> {
    let Versioned { key, document, version } = job_type;
    Versioned { key: key.clone(), document: Stored::new(document.clone()), version: *version }
}

fn key(domain: Option<&Domain>, kind: &str) -> Key {
    let named = JobType { domain: domain.cloned(), kind: kind.to_owned(), ..JobType::default() };
    Key::new(&JOB_TYPES, named.id())
}
