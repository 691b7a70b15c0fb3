//! Jobs whose holder is gone, and those that are ours no more (rule 1).
//!
//! Both are looked for continually, not once per death or per failure: a claim may land long after its caller gave up or
//! died. Whether a holder lives is read after its job was found, from its `state` document: who claims has written that
//! before.

use std::collections::{BTreeMap, BTreeSet};

use rota_model::ids::{Incarnation, NodeId};
use rota_model::job::Job;
use rota_model::node::NodeStatus;
use rota_store::nodes::Nodes;
use rota_store::repository::Saved;
use rota_store::{StoreError, Versioned};

use super::Processor;
use super::hands::Stop;
use super::run::is_held;
use crate::flaws::Flaw;

/// How many jobs are queued again in one write.
const SLICE: usize = 500;

impl Processor {
    /// Queues again what dead nodes held, and what names us although we do not have it in hand. Says how many.
    pub(crate) async fn take_over(&self, nodes: &Nodes, exclusive: bool) -> Result<usize, StoreError> {
        let (mut taken, mut after) = (0, None);
        loop {
            let started = self.jobs.started(after).await?;
            let holders = started.jobs.iter().map(|job| (job.document.owner, job.document.owner_node));
            let unreadable = started.unreadable.iter().map(|job| (job.owner, None));
            let alive = self.alive(nodes, holders.chain(unreadable), exclusive).await?;
            let changes: Vec<_> =
                started.jobs.into_iter().filter_map(|job| self.queued_again(job, &alive)).collect();
            for slice in changes.chunks(SLICE) {
                taken += self.save_slice(slice).await?;
            }
            for job in started.unreadable {
                // A live node of a newer version may well understand what it runs. We run nothing that we cannot read.
                let elsewhere = |owner| owner != self.incarnation() && alive.contains(&owner);
                if !job.owner.is_some_and(elsewhere) {
                    self.jobs.set_aside(job, self.surroundings.now()).await?;
                }
            }
            if started.next.is_none() {
                break;
            }
            after = started.next;
        }
        if taken > 0 {
            self.hands().quiet = false;
            self.work_again.notify_one();
        }
        Ok(taken)
    }

    /// Which of the holders live: ourselves, and whoever's `state` document says so now.
    async fn alive(
        &self,
        nodes: &Nodes,
        holders: impl Iterator<Item = (Option<Incarnation>, Option<NodeId>)>,
        exclusive: bool,
    ) -> Result<BTreeSet<Incarnation>, StoreError> {
        let ours = self.incarnation();
        let mut alive = BTreeSet::from([ours]);
        if exclusive {
            return Ok(alive);
        }
        let mut others: BTreeMap<Option<NodeId>, BTreeSet<Incarnation>> = BTreeMap::new();
        for (incarnation, node) in holders {
            if let Some(incarnation) = incarnation.filter(|incarnation| *incarnation != ours) {
                others.entry(node).or_default().insert(incarnation);
            }
        }
        let ids: Vec<NodeId> = others.keys().copied().flatten().collect();
        let mut states = Vec::new();
        if !ids.is_empty() {
            let found = nodes.get_each(&ids).await?;
            let missing = ids.iter().zip(&found).filter(|(_, found)| found.is_none());
            let missing: Vec<NodeId> = missing.map(|(id, _)| *id).collect();
            // Whom we cannot understand we do not take for dead.
            for id in nodes.unreadable(&missing).await? {
                alive.extend(others.get(&Some(id)).into_iter().flatten());
            }
            states.extend(found.into_iter().flatten());
        }
        if others.contains_key(&None) {
            states.extend(nodes.all().await?);
        }
        let live = states.into_iter().filter(|state| state.document.status != NodeStatus::Terminated);
        alive.extend(live.filter_map(|state| state.document.incarnation).filter(|life| *life != ours));
        Ok(alive)
    }

    /// The job as it is to be written, if its holder does not have it.
    fn queued_again(
        &self,
        job: Versioned<Job>,
        alive: &BTreeSet<Incarnation>,
    ) -> Option<(Versioned<Job>, Job)> {
        let (now, node, epoch) = (self.surroundings.now(), self.node(), job.document.epoch);
        let mut after = job.document.clone();
        let ours = job.document.owner == Some(self.incarnation());
        let changed = if ours {
            if self.hands().has(&job.document) || self.surroundings.has(Flaw::LostClaimForgotten) {
                return None;
            }
            after.release(epoch, now, node)
        } else if job.document.owner.is_some_and(|owner| alive.contains(&owner)) {
            return None;
        } else if self.surroundings.has(Flaw::LossCostsAttempt) {
            let again = (after.attempt < after.attempts).then_some(now);
            after.fail(epoch, "its node died", again, now, node)
        } else {
            after.lose(epoch, now, node)
        };
        changed.ok().map(|()| (job, after))
    }

    /// Overtaken means that its holder, or another node, was faster.
    async fn save_slice(&self, slice: &[(Versioned<Job>, Job)]) -> Result<usize, StoreError> {
        let saved = self.jobs.save_all(slice).await?;
        Ok(saved.iter().filter(|saved| matches!(saved, Saved::Applied(_))).count())
    }

    /// Stops what we run and that is ours no more: somebody cancelled it, or took it over.
    pub(crate) async fn check_running(&self) -> Result<(), StoreError> {
        let (ids, epochs): (Vec<_>, Vec<_>) = {
            let hands = self.hands();
            hands.running.iter().map(|(id, held)| (*id, held.epoch)).unzip()
        };
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.jobs.get_each(&ids).await?;
        let hands = self.hands();
        for ((id, epoch), job) in ids.into_iter().zip(epochs).zip(found) {
            // What is not there yet is about to be stored as already claimed.
            let lost = job.is_some_and(|job| !is_held(&job.document, epoch));
            if let Some(held) = hands.running.get(&id).filter(|held| lost && held.epoch == epoch) {
                held.brake.pull(Stop::NotOurs);
            }
        }
        Ok(())
    }

    fn incarnation(&self) -> Incarnation {
        self.hands().holder.incarnation
    }
}
