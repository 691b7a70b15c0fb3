//! Jobs whose holder is gone, and those that are ours no more (rule 1).
//!
//! Both are looked for continually, not once per death or per failure: a claim may land long after its caller gave up or
//! died. Whether a holder lives is read after its job was found, from its `state` document: who claims has written that
//! before. What others hold who live is counted, and not read.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use rota_model::ids::{Incarnation, JobId};
use rota_model::job::Job;
use rota_model::node::{NodeState, NodeStatus};
use rota_store::jobs::Held;
use rota_store::limits::MAX_PAGE;
use rota_store::nodes::Nodes;
use rota_store::{StoreError, Versioned};

use super::Processor;
use super::brake::Stop;
use super::run::is_held;
use crate::flaws::Flaw;

/// How many jobs are queued again in one write.
const SLICE: usize = 500;

/// Jobs, under their epochs, whose handlers were stopped with the lease, and which may name us for a while yet: when they are
/// given back, they have begun.
pub(super) type Interrupted = BTreeSet<(JobId, u64)>;

impl Processor {
    /// Queues again what dead nodes held, and what names us although we do not have it in hand; stops what we have in hand
    /// and is ours no more. Says how many were queued again.
    pub(crate) async fn recover(&self, nodes: &Nodes, exclusive: bool) -> Result<usize, StoreError> {
        let ours = self.incarnation();
        let lost = self.hands().lanes.limits.lost();
        let (mut taken, mut seen) = (0, BTreeSet::new());
        for holder in self.jobs.holders().await? {
            if holder == Some(ours.to_string()) {
                taken += self.sort_own(ours, &mut seen).await?;
            } else if exclusive || !self.lives(holder.as_deref(), nodes).await? {
                taken += self.take_over(holder.as_deref()).await?;
            }
        }
        if taken > 0 {
            let mut hands = self.hands();
            hands.quiet = false;
            hands.lanes.tell();
            drop(hands);
            self.work_again.notify_one();
        }
        self.check_running(&seen).await?;
        if lost > 0 && self.incarnation() == ours {
            self.hands().lanes.limits.free_lost(lost, self.surroundings.elapsed());
            self.limits_wanted.notify_one();
            self.slots.notify_one();
        }
        Ok(taken)
    }

    /// Whether somebody who holds jobs lives: its `state` document says so now.
    async fn lives(&self, holder: Option<&str>, nodes: &Nodes) -> Result<bool, StoreError> {
        let Some(holder) = holder.and_then(|holder| holder.parse::<Incarnation>().ok()) else {
            return Ok(false);
        };
        let is_alive =
            |state: &NodeState| state.incarnation == Some(holder) && state.status != NodeStatus::Terminated;
        let Held { jobs, unreadable, .. } = self.jobs.held_by(Some(&holder.to_string()), 1, None).await?;
        let id = match (jobs.first(), unreadable.first()) {
            (Some(job), _) => job.document.owner_node,
            (None, Some(unreadable)) => unreadable.holder,
            // What was counted is no more, or not to be seen yet.
            (None, None) => return Ok(true),
        };
        let Some(id) = id else {
            return Ok(nodes.all().await?.iter().any(|state| is_alive(&state.document)));
        };
        match nodes.get_each(&[id]).await?.into_iter().next().flatten() {
            Some(state) => Ok(is_alive(&state.document)),
            // Whom we cannot understand we do not take for dead.
            None => nodes.unreadable(&[id]).await.map(|unreadable| !unreadable.is_empty()),
        }
    }

    /// Queues again what somebody held who is no more.
    async fn take_over(&self, holder: Option<&str>) -> Result<usize, StoreError> {
        self.queue_again(holder, |job| {
            let (now, node, epoch) = (self.surroundings.now(), self.node(), job.document.epoch);
            let mut after = job.document.clone();
            let changed = if self.surroundings.has(Flaw::LossCostsAttempt) {
                let again = (after.attempt < after.attempts).then_some(now);
                after.fail(epoch, "its node died", again, now, node)
            } else {
                after.lose(epoch, now, node)
            };
            changed.ok().map(|()| after)
        })
        .await
    }

    /// Gives back what names us and is not in hand, and notes what we hold as it should be.
    async fn sort_own(
        &self,
        ours: Incarnation,
        seen: &mut BTreeSet<(JobId, u64)>,
    ) -> Result<usize, StoreError> {
        let forgets = self.surroundings.has(Flaw::LostClaimForgotten);
        let interrupted = self.interrupted().clone();
        let mut found = Interrupted::new();
        let ours = ours.to_string();
        let given_back = self.queue_again(Some(&ours), |job| {
            let held = (job.document.job_id, job.document.epoch);
            if self.hands().has(&job.document) || forgets {
                seen.insert(held);
                return None;
            }
            let (now, node) = (self.surroundings.now(), self.node());
            let mut after = job.document.clone();
            let released = if interrupted.contains(&held) {
                found.insert(held);
                after.interrupt(held.1, now, node)
            } else {
                after.release(held.1, now, node)
            };
            released.ok().map(|()| after)
        });
        let given_back = given_back.await?;
        self.interrupted().retain(|held| found.contains(held) || !interrupted.contains(held));
        Ok(given_back)
    }

    /// Goes through what somebody holds, and writes what `change` makes of it. Overtaken means that its holder, or another
    /// node, was faster. What cannot be read is run by nobody: it is set aside.
    async fn queue_again(
        &self,
        holder: Option<&str>,
        mut change: impl FnMut(&Versioned<Job>) -> Option<Job>,
    ) -> Result<usize, StoreError> {
        let (mut taken, mut after) = (0, None);
        loop {
            let Held { jobs, unreadable, next } = self.jobs.held_by(holder, MAX_PAGE, after).await?;
            let with_change = |job| change(&job).map(|after| (job, after));
            let changes: Vec<_> = jobs.into_iter().filter_map(with_change).collect();
            for slice in changes.chunks(SLICE) {
                let written = self.jobs.save_or_set_aside(slice, self.surroundings.now()).await?;
                taken += written;
                // Where another node was faster with some of them, it is not known with which.
                if written == slice.len() {
                    let lost = slice.iter().filter(|(before, after)| after.lost > before.document.lost);
                    lost.for_each(|(_, after)| self.tell_of_loss(after));
                }
            }
            for job in unreadable {
                self.jobs.set_aside(job, self.surroundings.now()).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(taken),
            }
        }
    }

    /// Stops what we run and that is ours no more: somebody cancelled it, or took it over. What was just seen to be ours
    /// need not be read again.
    async fn check_running(&self, seen: &BTreeSet<(JobId, u64)>) -> Result<(), StoreError> {
        let (ids, epochs): (Vec<_>, Vec<_>) = {
            let hands = self.hands();
            let in_hand = hands.running.iter().map(|(id, held)| (*id, held.epoch));
            in_hand.filter(|held| !seen.contains(held)).unzip()
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

    /// A handler was stopped, and nothing is written about that.
    pub(super) fn note_interrupted(&self, id: JobId, epoch: u64, why: Stop) {
        if why == Stop::LeaseOver {
            self.interrupted().insert((id, epoch));
        }
    }

    pub(super) fn interrupted(&self) -> MutexGuard<'_, Interrupted> {
        self.interrupted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incarnation(&self) -> Incarnation {
        self.hands().holder.incarnation
    }
}
