//! What has to be done now and then: jobs that nobody could begin with in time end, what was deleted an hour ago goes for
//! good, unique keys go that keep nobody away any more, and types that nobody runs are told of. What is kept no longer goes, too
//! ([`crate::retention`]). In slices, so that nobody is held up.
//! [`limits`]: the slots of the dead go back, and limits that nobody uses are forgotten.

mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::job::Job;
use rota_model::log::Level;
use rota_model::node::{NodeRole, NodeState, NodeStatus};
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::collection::JOBS;
use rota_store::cursor::Cursor;
use rota_store::jobs::Jobs;
use rota_store::nodes::Nodes;
use rota_store::seam::Version;
use rota_store::unique_keys::UniqueKeys;
use rota_store::{Store, StoreError, Versioned, sweep};
use tokio::time::{Instant, sleep};

use limits::Sweep;

use crate::flaws::Flaw;
use crate::journal::About;
use crate::retention::Retention;
use crate::surroundings::Surroundings;

const SLICE: usize = 200;
/// Expiry is looked at every tick, the rest every so many.
const CLEAR_EVERY: u32 = 60;
/// How long a tick may purge what is hidden, rests and all.
const PURGE: Duration = Duration::from_millis(500);
/// How long a tick may end what expired, rests and all.
const EXPIRE: Duration = Duration::from_millis(500);
/// How long a node that ended is still shown.
const NODE_REST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many slices of keys are looked at in one go.
const MAX_SLICES: u32 = 50;
const MAX_WITHOUT_JOB: usize = 10_000;
/// A key that was written to within this time may belong to a submission that is under way.
const KEY_REST: Duration = Duration::from_secs(60 * 60);

pub(crate) struct Maintenance {
    store: Arc<dyn Store>,
    jobs: Jobs,
    unique_keys: UniqueKeys,
    nodes: Nodes,
    surroundings: Surroundings,
    node: NodeId,
    ticks: u32,
    /// Whether there may be more to purge.
    purges: bool,
    retention: Retention,
    /// Where the walk through old keys goes on.
    keys_from: Option<Cursor>,
    /// Keys whose job is missing: since when, by the clock that only goes forward, and at which version.
    without_job: BTreeMap<String, (Version, Duration)>,
    sweep: Sweep,
}

impl Maintenance {
    pub(crate) fn new(store: Arc<dyn Store>, surroundings: Surroundings, node: NodeId) -> Self {
        let jobs = Jobs::new(Arc::clone(&store));
        let unique_keys = UniqueKeys::new(Arc::clone(&store));
        let nodes = Nodes::new(Arc::clone(&store));
        let retention = Retention::new(Arc::clone(&store), surroundings.clone());
        let sweep = Sweep::new(Arc::clone(&store));
        Self {
            store,
            retention,
            jobs,
            unique_keys,
            nodes,
            surroundings,
            node,
            ticks: 0,
            purges: true,
            keys_from: None,
            without_job: BTreeMap::new(),
            sweep,
        }
    }

    /// To be called about every second.
    pub(crate) async fn tick(&mut self) -> Result<(), StoreError> {
        self.end_expired().await?;
        self.sweep_limits().await?;
        if self.surroundings.has(Flaw::DeletePurges) {
            let later = self.surroundings.now().plus(Duration::from_secs(7_200));
            sweep::purge_hidden(&*self.store, &JOBS, later, SLICE).await?;
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(CLEAR_EVERY) {
            self.purges = true;
            self.clear_keys().await?;
            self.clear_nodes().await?;
            self.tell_of_the_unwanted().await?;
            self.sweep.clears = true;
        }
        self.clear_limits().await?;
        self.purge().await?;
        self.retention.tick(self.surroundings.steady_now()).await
    }

    /// Some slices of what was deleted long ago; what is left is for the next tick.
    async fn purge(&mut self) -> Result<(), StoreError> {
        let began = Instant::now();
        while self.purges && began.elapsed() < PURGE {
            let slice = Instant::now();
            self.purges =
                sweep::purge_hidden(&*self.store, &JOBS, self.surroundings.steady_now(), SLICE).await? > 0;
            // The store has half of its time for others.
            sleep(slice.elapsed()).await;
        }
        Ok(())
    }

    /// Nodes that ended long ago. One that lives after all joins again.
    async fn clear_nodes(&self) -> Result<(), StoreError> {
        let now = self.surroundings.steady_now();
        let is_over = |node: &Versioned<NodeState>| {
            node.document.status == NodeStatus::Terminated
                && now.since(node.document.last_seen_at) > NODE_REST
        };
        for node in self.nodes.all().await?.iter().filter(|node| is_over(node)) {
            self.nodes.delete(node, now).await?;
        }
        Ok(())
    }

    /// A type that nobody runs waits, and that is said.
    async fn tell_of_the_unwanted(&self) -> Result<(), StoreError> {
        let nodes = self.nodes.all().await?;
        let part = nodes.iter().filter(|node| node.document.takes_part(NodeRole::Processor));
        let run: BTreeSet<&str> = part.flat_map(|node| &node.document.types).map(String::as_str).collect();
        for (kind, jobs) in self.jobs.waiting().await? {
            if !run.contains(kind.as_str()) {
                let title = "jobs wait, and no node at work runs their type";
                self.surroundings.journal().tell_with(Level::Warn, title, format!("{jobs} of type {kind}"));
            }
        }
        Ok(())
    }

    /// Jobs that waited longer than they may end as ERROR, in slices; what is left is for the next tick.
    async fn end_expired(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            let slice = Instant::now();
            if self.end_some_expired().await? < SLICE || began.elapsed() >= EXPIRE {
                return Ok(());
            }
            // The store has half of its time for others.
            sleep(slice.elapsed()).await;
        }
    }

    /// A slice of them. Says how many it ended.
    async fn end_some_expired(&self) -> Result<usize, StoreError> {
        let now = self.surroundings.now();
        let expired = self.jobs.expired(self.surroundings.steady_now(), SLICE).await?;
        let end = |job: Versioned<Job>| {
            let mut after = job.document.clone();
            after.expire(now, self.node).ok().map(|()| (job, after))
        };
        let changes: Vec<_> = expired.into_iter().filter_map(end).collect();
        // Overtaken means that a node began with it after all, or somebody else ended it.
        let ended = self.jobs.save_or_set_aside(&changes, now).await?;
        if ended == changes.len() {
            let title = "it expired before it could begin";
            for (_, job) in &changes {
                self.surroundings.journal().tell_of(&About::job(job), Level::Error, title, None);
            }
        }
        Ok(ended)
    }

    /// Some slices of the keys that were not written to for long.
    async fn clear_keys(&mut self) -> Result<(), StoreError> {
        let now = self.surroundings.steady_now();
        let before =
            UnixMillis(now.0.saturating_sub(i64::try_from(KEY_REST.as_millis()).unwrap_or(i64::MAX)));
        for _ in 0..MAX_SLICES {
            let (keys, next) = self.unique_keys.unchanged_since(before, SLICE, self.keys_from.take()).await?;
            self.keys_from = next;
            let unneeded = self.unneeded(keys).await?;
            self.unique_keys.delete_all(unneeded, now).await?;
            if self.keys_from.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Those of the keys that keep nobody away, and of whose jobs no requeue is under way.
    async fn unneeded(
        &mut self,
        keys: Vec<Versioned<UniqueKey>>,
    ) -> Result<Vec<Versioned<UniqueKey>>, StoreError> {
        let ids: Vec<_> = keys.iter().map(|key| key.document.job_id).collect();
        let jobs = self.jobs.get_each(&ids).await?;
        let mut unneeded = Vec::new();
        for (key, job) in keys.into_iter().zip(jobs) {
            let job = job.filter(|job| job.document.domain == key.document.domain);
            let is_needed = match job {
                Some(job) => self.is_needed(&key.document, &job.document),
                None => !self.is_long_without_job(&key) || self.is_unreadable(&key.document).await?,
            };
            if !is_needed {
                unneeded.push(key);
            }
        }
        Ok(unneeded)
    }

    fn is_needed(&self, key: &UniqueKey, job: &Job) -> bool {
        let under_way = key.requeue.is_some_and(|epoch| job.epoch < epoch);
        under_way || job.is_in_scope(self.surroundings.steady_now())
    }

    /// A key whose job is missing may belong to a submission under way, whatever the clocks say: it is needed until it was
    /// seen unchanged for long enough.
    fn is_long_without_job(&mut self, key: &Versioned<UniqueKey>) -> bool {
        let now = self.surroundings.elapsed();
        if self.without_job.len() >= MAX_WITHOUT_JOB {
            self.without_job.clear();
        }
        let seen = self.without_job.entry(key.key.id.clone()).or_insert((key.version, now));
        if seen.0 != key.version {
            *seen = (key.version, now);
        }
        now.saturating_sub(seen.1) >= KEY_REST
    }

    /// A job that is there and cannot be understood may still keep its twins away.
    async fn is_unreadable(&self, key: &UniqueKey) -> Result<bool, StoreError> {
        match self.jobs.get(&key.domain, key.job_id).await {
            Err(StoreError::Damaged { .. }) => Ok(true),
            found => found.map(|job| job.is_some()),
        }
    }
}
