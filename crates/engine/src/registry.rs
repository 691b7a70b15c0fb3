//! The types that domains define for themselves (`job-types`), beside those that nodes bring along.
//!
//! A domain may define a type under a new name: its jobs are taken, and wait for a node that runs it. Or under the name of
//! a built-in one: then both schemas hold, since the handler relies on its own, and what the domain says of attempts,
//! backoff and timeout holds where a submission says nothing.
//!
//! A payload is checked when it is submitted, and never again: what was accepted runs. So a change of a type decides about
//! submissions from then on. One that would refuse what waits in the queue, or what a timer is going to make, is refused
//! itself, unless it is forced. A job that comes in while the queue is looked through, or on a node that has not heard of the
//! change yet, is checked by the type as it was, and runs as those do that were there before.
//!
//! - [`cache`]: what submissions are checked against, without asking the store each time
//! - [`changes`]: define, change and delete types
//! - [`queue`]: which jobs and timers are in the way of a change

mod cache;
mod changes;
mod queue;

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::check::Invalid;
use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_model::job_type::{JobType, JobTypeView, TypeLimits};
use rota_model::node::{NodeRole, NodeState};
use rota_store::access::WebService;
use rota_store::hints::News;
use rota_store::job_types::JobTypes as StoredTypes;
use rota_store::jobs::Jobs;
use rota_store::limits::MAX_ID_BYTES;
use rota_store::nodes::Nodes;
use rota_store::seam::Version;
use rota_store::{Store, StoreError, Versioned};

use crate::patience::{answered, persevere};
use crate::schema::Schema;
use crate::surroundings::Surroundings;
use crate::types::JobTypes;
use cache::Cache;

pub(crate) use cache::{Known, Told};
pub use changes::{MAX_TYPES, Put, TypeError};
pub(crate) use queue::TURN;
pub use queue::{InTheWay, Several};

pub struct TypeRegistry {
    compiled: Arc<JobTypes>,
    stored: StoredTypes,
    jobs: Jobs,
    /// By which the timers of a domain are looked at.
    service: WebService,
    nodes: Nodes,
    surroundings: Surroundings,
    cache: Cache,
    /// Whether domains may have types of their own here.
    is_open: bool,
}

/// What types limit, by domain and type.
pub(crate) type Listed = BTreeMap<(Option<Domain>, String), TypeLimits>;

/// A type as a domain sees it, and its version where it is the domain's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub view: JobTypeView,
    pub version: Option<Version>,
}

impl TypeRegistry {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        compiled: Arc<JobTypes>,
        surroundings: Surroundings,
        is_open: bool,
    ) -> Self {
        Self {
            compiled,
            stored: StoredTypes::new(Arc::clone(store)),
            jobs: Jobs::new(Arc::clone(store)),
            service: WebService::new(Arc::clone(store)),
            nodes: Nodes::new(Arc::clone(store)),
            surroundings,
            cache: Cache::default(),
            is_open,
        }
    }

    /// What a domain says of a type; none if it says nothing.
    pub(crate) async fn known(&self, domain: &Domain, kind: &str) -> Result<Option<Arc<Known>>, StoreError> {
        if !self.is_open {
            return Ok(None);
        }
        let id = id_of(domain, kind);
        if id.len() > MAX_ID_BYTES {
            return Ok(None);
        }
        if let Some(found) = self.cache.look(&id) {
            return Ok(found);
        }
        let generation = self.cache.generation();
        let read = persevere("read a job type", |_| self.stored.get(domain, kind)).await?;
        self.keep(id, read, generation)
    }

    /// What a type limits in a domain; none if it limits nothing. Asks the store once, for those who ask again soon.
    pub(crate) async fn limits(&self, domain: &Domain, kind: &str) -> Result<Option<TypeLimits>, StoreError> {
        let id = id_of(domain, kind);
        if !self.is_open || id.len() > MAX_ID_BYTES {
            return Ok(None);
        }
        let found = match self.cache.look(&id) {
            Some(found) => found,
            None => {
                let generation = self.cache.generation();
                let read = answered("read a job type", self.stored.get(domain, kind)).await?;
                self.keep(id, read, generation)?
            }
        };
        Ok(found.map(|known| known.job_type.limits()).filter(|limits| !limits.is_none()))
    }

    fn keep(
        &self,
        id: String,
        read: Option<Versioned<JobType>>,
        generation: u64,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        let found = read.map(|found| Known::compile(found.document)).transpose()?.map(Arc::new);
        self.cache.keep(id, found.clone(), generation);
        Ok(found)
    }

    /// What there is to be said against a payload: by the handler of its type, and by the domain.
    pub(crate) fn check(&self, job: &NewJob, known: Option<&Known>) -> Result<(), Invalid> {
        let (kind, payload) = (&job.input.kind, &job.input.payload);
        let relied_on = self.compiled.schema(kind);
        if relied_on.is_none() && known.is_none() {
            return Err(self.compiled.unknown(kind));
        }
        let mut schemas = relied_on.into_iter().chain(known.and_then(|known| known.schema.as_ref()));
        schemas.try_for_each(|schema| schema.check(payload))
    }

    /// How much work that is, about.
    pub(crate) fn effort(&self, job: &NewJob, known: Option<&Known>) -> u64 {
        let schemas = self.compiled.schema(&job.input.kind).into_iter();
        let schemas = schemas.chain(known.and_then(|known| known.schema.as_ref()));
        schemas.map(|schema| schema.effort(&job.input.payload)).sum()
    }

    /// Forgets what others changed, until the store is closed.
    pub(crate) async fn listen(self: Arc<Self>) {
        let mut changes = self.stored.changes();
        loop {
            match changes.next().await {
                News::Of(hints) => hints.iter().for_each(|hint| self.cache.forget(&hint.key.id)),
                News::Lost => self.cache.forget_all(),
                News::Closed => return,
            }
        }
    }

    /// What types limit, each on its own, as the store has it now.
    pub(crate) async fn limits_of(
        &self,
        types: &[(Domain, String)],
    ) -> Result<Vec<Result<TypeLimits, StoreError>>, StoreError> {
        let read = answered("read what types limit", self.stored.get_each(types)).await?;
        let limits =
            |job_type: Option<JobType>| job_type.map(|job_type| job_type.limits()).unwrap_or_default();
        Ok(read.into_iter().map(|meant| meant.map(limits)).collect())
    }

    /// What all types limit that limit anything, by domain and type; without a domain, what the installation limits. It may
    /// lag behind by as much as finds do.
    pub(crate) async fn limited(&self) -> Result<Listed, StoreError> {
        let found = answered("list what types limit", self.stored.limited()).await?;
        let limits =
            |job_type: JobType| ((job_type.domain.clone(), job_type.kind.clone()), job_type.limits());
        Ok(found.into_iter().map(limits).collect())
    }

    /// Which types somebody wrote to since this was last asked.
    pub(crate) fn take_told(&self) -> Told {
        self.cache.take_told()
    }

    pub(crate) fn was_told(&self) -> bool {
        self.cache.was_told()
    }

    /// Until somebody writes to a type.
    pub(crate) async fn news(&self) {
        self.cache.news().await;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Every type that has a meaning in a domain, by name.
    pub async fn list(&self, domain: &Domain) -> Result<Vec<Seen>, StoreError> {
        let nodes = self.working_nodes().await?;
        let mut types = BTreeMap::new();
        for (kind, schema) in self.compiled.known() {
            types.insert(kind.to_owned(), (built_in(kind, schema), None));
        }
        for stored in self.stored.of_domain(domain).await? {
            types.insert(stored.document.kind.clone(), (stored.document, Some(stored.version)));
        }
        let seen = types.into_values().map(|(job_type, version)| self.seen(job_type, version, &nodes));
        Ok(seen.collect())
    }

    /// What a type means in a domain.
    pub async fn get(&self, domain: &Domain, kind: &str) -> Result<Option<Seen>, StoreError> {
        if id_of(domain, kind).len() > MAX_ID_BYTES {
            return Ok(None);
        }
        let stored = self.stored.get(domain, kind).await?;
        let found = match (stored, self.compiled.schema(kind)) {
            (Some(stored), _) => (stored.document, Some(stored.version)),
            (None, Some(schema)) => (built_in(kind, schema), None),
            (None, None) => return Ok(None),
        };
        let (job_type, version) = found;
        Ok(Some(self.seen(job_type, version, &self.working_nodes().await?)))
    }

    fn seen(&self, job_type: JobType, version: Option<Version>, nodes: &[NodeState]) -> Seen {
        let is_own = job_type.domain.is_some();
        let runs = |node: &&NodeState| node.types.contains(&job_type.kind);
        let run_by = nodes.iter().filter(runs).map(|node| node.name.clone()).collect();
        let relied_on = self.compiled.schema(&job_type.kind).filter(|_| is_own);
        let handler_schema = relied_on.map(|schema| schema.source().clone());
        let view = JobTypeView { job_type, built_in: !is_own, handler_schema, run_by };
        Seen { view, version: version.filter(|_| is_own) }
    }

    /// The nodes that take part in the work, by name.
    async fn working_nodes(&self) -> Result<Vec<NodeState>, StoreError> {
        let nodes = self.nodes.all().await?.into_iter().map(|node| node.document);
        let mut nodes: Vec<_> = nodes.filter(|node| node.takes_part(NodeRole::Processor)).collect();
        nodes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(nodes)
    }
}

fn built_in(kind: &str, schema: &Schema) -> JobType {
    JobType { kind: kind.to_owned(), schema: Some(schema.source().clone()), ..JobType::default() }
}

/// The id under which a domain's own type is stored.
pub(crate) fn id_of(domain: &Domain, kind: &str) -> String {
    format!("{domain}:{kind}")
}
