//! Types are defined, changed and deleted: by compare-and-set on what was read, so that two who change the same type do
//! not undo each other unseen. A write whose answer was lost is recognised by what it wrote.

use rota_model::check::Invalid;
use rota_model::domain::Domain;
use rota_model::job_type::JobType;
use rota_store::limits::MAX_ID_BYTES;
use rota_store::repository::{Created, Saved};
use rota_store::seam::Version;
use rota_store::{StoreError, Versioned};
use tokio::time::sleep;

use super::{InTheWay, TypeRegistry, id_of};
use crate::patience::{STORE_PAUSE, answered, persevere};
use crate::schema::Schema;

/// How many types a domain may have of its own; about, where several are made at once.
pub const MAX_TYPES: u64 = 500;
/// How often a change is tried while the store is away or others write to the type.
const TRIES: usize = 20;

/// Why a type was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TypeError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("there is no such type")]
    Missing,
    #[error("the type is built in: only what the domain defined can be deleted")]
    BuiltIn,
    /// It is not the version that the caller decided on.
    #[error("the type changed since it was read")]
    Changed,
    /// Jobs that wait, or what timers are going to make, do not fit the schema that it is to have.
    #[error("{} jobs that wait and {} timers do not fit the new schema", .0.jobs.count, .0.timers.count)]
    Misfits(InTheWay),
    /// Jobs wait or are still to come, and nobody would know their type any more.
    #[error("{} jobs of the type wait, {} timers make some, and no node runs it", .0.jobs.count, .0.timers.count)]
    Waiting(InTheWay),
    #[error("the domain has {MAX_TYPES} types of its own: delete one first")]
    TooMany,
    #[error("others write to the type at this moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    pub job_type: Versioned<JobType>,
    pub is_new: bool,
}

/// What came of one try to write; none if somebody came between.
type Tried = Result<Option<Put>, StoreError>;

impl TypeRegistry {
    /// Defines a type of a domain, or changes it: `on` a version, if one is given. Nothing is written if jobs that wait do
    /// not fit, or what timers are going to make does not, unless that is forced.
    pub async fn put(
        &self,
        domain: &Domain,
        job_type: JobType,
        on: Option<Version>,
        force: bool,
    ) -> Result<Put, TypeError> {
        job_type.check()?;
        let schema = job_type.schema.as_ref().map(Schema::compile).transpose()?;
        let (mut seen_through, mut tried, mut last) = (force, false, TypeError::Busy);
        for _ in 0..TRIES {
            let before = self.own(domain, &job_type.kind).await?;
            if let Some(before) = before.as_ref().filter(|before| before.document == job_type)
                && (tried || on.is_none_or(|on| on == before.version))
            {
                return Ok(Put { job_type: before.clone(), is_new: false });
            }
            if on.is_some_and(|on| before.as_ref().is_none_or(|before| before.version != on)) {
                return Err(TypeError::Changed);
            }
            let schema_before = before.as_ref().and_then(|before| before.document.schema.as_ref());
            if !seen_through && schema_before != job_type.schema.as_ref() && schema.is_some() {
                let misfits = self.in_the_way(domain, &job_type.kind, schema.as_ref()).await?;
                if !misfits.is_empty() {
                    return Err(TypeError::Misfits(misfits));
                }
            }
            seen_through = true;
            if before.is_none() && self.count(domain).await? >= MAX_TYPES {
                return Err(TypeError::TooMany);
            }
            let written = self.write(before, &job_type).await;
            self.cache.forget(&id_of(domain, &job_type.kind));
            match written {
                Ok(Some(put)) => return Ok(put),
                Ok(None) => last = TypeError::Busy,
                Err(error) => last = self.pause(error, &mut tried).await?,
            }
        }
        Err(if tried { unanswered() } else { last })
    }

    async fn write(&self, before: Option<Versioned<JobType>>, job_type: &JobType) -> Tried {
        let Some(before) = before else {
            let created = answered("define a job type", self.stored.create(job_type.clone())).await?;
            return Ok(match created {
                Created::New(job_type) => Some(Put { job_type, is_new: true }),
                Created::Exists(_) => None,
            });
        };
        let saved = answered("change a job type", self.stored.save(&before, job_type)).await?;
        Ok(match saved {
            Saved::Applied(version) => {
                Some(Put { job_type: before.written(job_type.clone(), version), is_new: false })
            }
            Saved::Overtaken => None,
        })
    }

    /// Deletes what a domain defined. A type that is built in then means that one again. If nobody would know the type of
    /// jobs that wait or are still to come any more, nothing is done, unless that is forced: they wait on, for a node that
    /// runs it.
    pub async fn delete(
        &self,
        domain: &Domain,
        kind: &str,
        on: Option<Version>,
        force: bool,
    ) -> Result<(), TypeError> {
        let is_built_in = self.compiled.schema(kind).is_some();
        let (mut tried, mut last) = (false, TypeError::Busy);
        for _ in 0..TRIES {
            let Some(before) = self.own(domain, kind).await? else {
                return match (tried, is_built_in) {
                    (true, _) => Ok(()),
                    (false, true) => Err(TypeError::BuiltIn),
                    (false, false) => Err(TypeError::Missing),
                };
            };
            if on.is_some_and(|on| on != before.version) {
                return Err(TypeError::Changed);
            }
            if !force && !is_built_in && !self.is_run(kind).await? {
                let waiting = self.in_the_way(domain, kind, None).await?;
                if !waiting.is_empty() {
                    return Err(TypeError::Waiting(waiting));
                }
            }
            let deleted = self.stored.delete(&before, self.surroundings.now());
            let deleted = answered("delete a job type", deleted).await;
            self.cache.forget(&id_of(domain, kind));
            match deleted {
                Ok(Saved::Applied(_)) => return Ok(()),
                Ok(Saved::Overtaken) => last = TypeError::Busy,
                Err(error) => last = self.pause(error, &mut tried).await?,
            }
        }
        Err(if tried { unanswered() } else { last })
    }

    /// What a domain defined under a name, as it is stored.
    pub async fn own(&self, domain: &Domain, kind: &str) -> Result<Option<Versioned<JobType>>, StoreError> {
        if id_of(domain, kind).len() > MAX_ID_BYTES {
            return Ok(None);
        }
        persevere("read a job type", |_| self.stored.own(domain, kind)).await
    }

    async fn count(&self, domain: &Domain) -> Result<u64, StoreError> {
        persevere("count job types", |_| self.stored.count(domain)).await
    }

    async fn is_run(&self, kind: &str) -> Result<bool, StoreError> {
        let nodes = persevere("read the nodes", |_| self.working_nodes()).await?;
        Ok(nodes.iter().any(|node| node.types.iter().any(|run| run == kind)))
    }

    /// Leaves a store alone for a moment that did not answer as it should; any other error is the end.
    async fn pause(&self, error: StoreError, tried: &mut bool) -> Result<TypeError, TypeError> {
        if !error.is_passing() {
            return Err(error.into());
        }
        *tried |= matches!(error, StoreError::Unknown { .. });
        sleep(STORE_PAUSE).await;
        Ok(error.into())
    }
}

fn unanswered() -> TypeError {
    StoreError::unknown("change a job type", "its answer was lost").into()
}
