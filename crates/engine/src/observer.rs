//! The observer: it follows nodes and queues for all who look at them, so that a thousand listeners cost the store no more
//! than one.
//!
//! ```text
//!   hints of the store ──▶ hearing ──▶ watch: reads what changed, once ──▶ room of each topic ──▶ listeners
//!                           (gathered)        and everything, now and then      (newest moments)
//! ```
//!
//! - A room holds the newest moments of one topic: the jobs and counts of a domain, or the nodes. Nothing queues up for a
//!   listener: who is slow gets several moments as one, and who missed too many is told to read again.
//! - Hints may be lost. When that is known, and every few seconds in any case, the observer reads for itself; if the counts
//!   changed although nobody told, listeners are told to read again.
//! - While nobody listens, nothing is read.
//!
//! Here: who listens to what, and what people ask once. [`room`]: moments and listeners; [`watch`]: the loop that reads;
//! [`hearing`]: hints, gathered.

mod hearing;
mod room;
mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::waiting::{self, Circumstances, Waiting};
use rota_model::job::{Job, JobCounts, JobStatus};
use rota_store::jobs::Jobs;
use rota_store::nodes::Nodes;
use rota_store::{Store, StoreError};
use tokio::sync::Notify;

use crate::desk::JobDesk;
use crate::patience::answered;
use crate::surroundings::Surroundings;

use room::Room;
pub use room::{Listener, Moment, Said};

/// What can be listened to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The jobs of a domain and their counts.
    Queue(Domain),
    /// The nodes of the installation.
    Nodes,
}

#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    jobs: Jobs,
    desk: Arc<JobDesk>,
    nodes: Nodes,
    surroundings: Surroundings,
    is_on: bool,
    rooms: Mutex<BTreeMap<Topic, Arc<Room>>>,
    /// Somebody came who has to be told how things stand.
    arrived: Notify,
    listeners: AtomicU64,
}

impl Observer {
    /// Nobody is told anything by one that is not on: its node has another role.
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        desk: Arc<JobDesk>,
        surroundings: Surroundings,
        is_on: bool,
    ) -> Self {
        let shared = Shared {
            jobs: Jobs::new(Arc::clone(store)),
            desk,
            nodes: Nodes::new(Arc::clone(store)),
            surroundings,
            is_on,
            rooms: Mutex::default(),
            arrived: Notify::new(),
            listeners: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether this node observes.
    pub fn is_on(&self) -> bool {
        self.shared.is_on
    }

    /// Follows what is listened to, until the store closes.
    pub(crate) async fn run(self) {
        watch::run(self.shared).await;
    }

    /// Listens to some topics from now on. How things stand comes first, where it is known.
    pub fn listen(&self, topics: Vec<Topic>) -> Listener {
        let mut rooms = self.shared.rooms();
        let enter = |topic: Topic| {
            let room = rooms.entry(topic.clone()).or_default();
            (topic, Arc::clone(room))
        };
        let entered: Vec<_> = topics.into_iter().map(enter).collect();
        let listener = Listener::new(Arc::clone(&self.shared), entered);
        drop(rooms);
        self.shared.arrived.notify_one();
        listener
    }

    /// How many jobs a domain has, by status and type.
    pub async fn counts(&self, domain: &Domain) -> Result<JobCounts, StoreError> {
        answered("count jobs", self.shared.jobs.counts(domain)).await
    }

    /// Why a job is not running; none if there is no such job.
    pub async fn why_waiting(&self, domain: &Domain, id: JobId) -> Result<Option<Waiting>, StoreError> {
        let Shared { jobs, nodes, surroundings, .. } = &*self.shared;
        let found = answered("read a job", jobs.get(domain, id)).await?;
        let Some(job) = found.map(|job| job.document) else { return Ok(None) };
        let nodes = answered("read the nodes", nodes.all()).await?;
        let nodes: Vec<_> = nodes.into_iter().map(|node| node.document).collect();
        let known = self.circumstances(&job).await?;
        Ok(Some(waiting::why(&job, &nodes, &known, surroundings.now())))
    }

    async fn circumstances(&self, job: &Job) -> Result<Circumstances, StoreError> {
        if job.status != JobStatus::Queued {
            return Ok(Circumstances::default());
        }
        let waiting = self.counts(&job.domain).await?.of(&job.input.kind, JobStatus::Queued);
        let limit = answered("read the limits of a job", self.shared.desk.held_up(job)).await?;
        let limit = limit.map(|limit| limit.to_string());
        Ok(Circumstances { others: Some(waiting.saturating_sub(1)), limit })
    }

    /// How many listen.
    pub fn listeners(&self) -> u64 {
        self.shared.listeners.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn rooms(&self) -> MutexGuard<'_, BTreeMap<Topic, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
