//! The store that is right, and takes down whatever takes effect in it, in order, with what was there before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rota_model::domain::DomainDocument;
use rota_model::job::Job;
use rota_model::job_type::JobType;
use rota_model::limit::Limit;
use rota_model::log::Log;
use rota_model::metric::MetricsBucket;
use rota_model::node::NodeState;
use rota_model::unique_key::UniqueKey;
use rota_store::StoreError;
use rota_store::collection::{Collection, JOBS};
use rota_store::hints::Changes;
use rota_store::memory::MemoryStore;
use rota_store::query::{Filter, Page, Query};
use rota_store::seam::{Body, Claim, Document, Key, Promises, Store, Tally, Version, Write, Written};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::record::{self, Change, Kind, Notebook, What};
use crate::faults::caller::caller;

#[derive(Default)]
struct Shelf {
    jobs: BTreeMap<String, Arc<Job>>,
    states: BTreeMap<String, Arc<NodeState>>,
    keys: BTreeMap<String, Arc<UniqueKey>>,
    limits: BTreeMap<String, Arc<Limit>>,
    types: BTreeMap<String, Arc<JobType>>,
    tenants: BTreeMap<String, Arc<DomainDocument>>,
    lines: BTreeMap<String, Arc<Log>>,
    buckets: BTreeMap<String, Arc<MetricsBucket>>,
}

pub struct Recorder {
    store: MemoryStore,
    notes: Notebook,
    /// What is there now.
    shelf: Mutex<Shelf>,
}

impl Recorder {
    pub fn new(notes: Notebook) -> Self {
        Self { store: MemoryStore::new(), notes, shelf: Mutex::default() }
    }

    /// The jobs that are there.
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.shelf().jobs.values().cloned().collect()
    }

    /// The states of nodes that are there.
    pub fn states(&self) -> Vec<Arc<NodeState>> {
        self.shelf().states.values().cloned().collect()
    }

    /// Whether a query asks for jobs that are certainly not there. Idle nodes ask for little else, and a look at every
    /// document is most of what a run would spend its time on.
    fn is_in_vain(&self, query: &Query) -> bool {
        let may_match = |job: &Arc<Job>| query.filters.iter().all(|filter| may_hold(filter, job));
        let is_plain = query.collection == &JOBS && query.hidden_before.is_none();
        is_plain && !self.shelf().jobs.values().any(may_match)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_down(&self, kind: Kind, version: Version, key: &Key, body: Option<Body>) {
        let document = self.put(key, body);
        self.notes.note(What::Landed(caller(), Change { kind, version, document }));
    }

    fn put(&self, key: &Key, body: Option<Body>) -> record::Document {
        let shelf = &mut *self.shelf();
        let id = key.id.clone();
        match key.collection.name {
            "jobs" => {
                let id = id.parse().expect("the id of a job is one");
                let (before, after) = replaced(&mut shelf.jobs, key, body);
                record::Document::Job { id, before, after }
            }
            "state" => {
                let (before, after) = replaced(&mut shelf.states, key, body);
                record::Document::State { before, after }
            }
            "unique-keys" => {
                let (before, after) = replaced(&mut shelf.keys, key, body);
                record::Document::Key { before, after }
            }
            "limits" => {
                let (before, after) = replaced(&mut shelf.limits, key, body);
                record::Document::Limit { before, after }
            }
            "job-types" => {
                let (before, after) = replaced(&mut shelf.types, key, body);
                record::Document::Type { before, after }
            }
            "domains" => {
                let (_, after) = replaced(&mut shelf.tenants, key, body);
                record::Document::Tenant { after }
            }
            "logs" => {
                let (before, after) = replaced(&mut shelf.lines, key, body);
                record::Document::Line { before, after }
            }
            "metrics" => {
                let (before, after) = replaced(&mut shelf.buckets, key, body);
                record::Document::Bucket { before, after }
            }
            collection => record::Document::Other { collection, id },
        }
    }
}

/// Whether a job may be what a filter asks for; some filters are left to the store.
fn may_hold(filter: &Filter, job: &Job) -> bool {
    match filter {
        Filter::Is("status", status) => status == job.status.as_str(),
        Filter::Is("lane", lane) => job.lane.as_deref() == lane.as_str(),
        Filter::Absent("lane") => job.lane.is_none(),
        Filter::AtMost("runAt", at) => job.run_at.0 <= *at,
        Filter::AtMost("expiresAt", at) => job.expires_at.is_some_and(|expires| expires.0 <= *at),
        Filter::In("input.type", kinds) => kinds.iter().any(|kind| *kind == job.input.kind),
        Filter::In("section", sections) => sections.iter().any(|section| *section == job.section),
        _ => true,
    }
}

type Pair<T> = (Option<Arc<T>>, Option<Arc<T>>);

fn replaced<T: DeserializeOwned>(
    shelf: &mut BTreeMap<String, Arc<T>>,
    key: &Key,
    body: Option<Body>,
) -> Pair<T> {
    let after = body.map(|body| {
        let read = serde_json::from_value(Value::Object(body));
        Arc::new(read.unwrap_or_else(|error| panic!("{key} cannot be understood: {error}")))
    });
    let before = match &after {
        Some(after) => shelf.insert(key.id.clone(), Arc::clone(after)),
        None => shelf.remove(&key.id),
    };
    (before, after)
}

fn kind(write: &Write) -> Kind {
    match write {
        Write::Create { .. } => Kind::Created,
        Write::Replace { .. } | Write::Change { .. } => Kind::Changed,
        Write::Delete { .. } => Kind::Deleted,
        Write::Purge { .. } => Kind::Purged,
    }
}

#[async_trait]
impl Store for Recorder {
    fn promises(&self) -> Promises {
        self.store.promises()
    }

    /// One at a time: a batch may name a document twice.
    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        rota_store::limits::check_writes(&batch)?;
        let mut answers = Vec::with_capacity(batch.len());
        for write in batch {
            let (kind, key) = (kind(&write), write.key().clone());
            let answer = self.store.write(vec![write]).await?;
            if let Some(Written::Applied(version)) = answer.first() {
                let there = self.store.read(vec![key.clone()]).await?;
                let body = there.into_iter().flatten().next().map(|document| document.body);
                self.take_down(kind, *version, &key, body);
            }
            answers.extend(answer);
        }
        Ok(answers)
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        self.store.read(keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        if self.is_in_vain(&query) {
            return Ok(Page { documents: Vec::new(), next: None });
        }
        self.store.find(query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        self.store.count(query, by).await
    }

    async fn claim(&self, mut claim: Claim) -> Result<Vec<Document>, StoreError> {
        claim.from.retain(|query| !self.is_in_vain(query));
        let claimed = self.store.claim(claim).await?;
        for document in &claimed {
            self.take_down(Kind::Changed, document.version, &document.key, Some(document.body.clone()));
        }
        Ok(claimed)
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.store.sequence(name, n).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.store.changes(collection)
    }
}
