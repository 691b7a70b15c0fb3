//! Jobs whose holder is gone, and those that are ours no more (rule 1).
//!
//! Both are looked for continually, not once per death or per failure: a claim may land long after its caller gave up or
//! died. Whether a holder lives is read after its job was found, from its `state` document: who claims has written that
//! before. What others hold who live is counted, and not read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use rota_model::ids::{Incarnation, JobId};
use rota_model::job::Job;
use rota_model::node::{NodeState, NodeStatus};
use rota_store::jobs::Held;
use rota_store::limits::MAX_PAGE;
use rota_store::nodes::Nodes;
use rota_store::seam::{Key, Version};
use rota_store::{StoreError, Versioned};

use super::Processor;
use super::brake::Stop;
use super::run::is_held;
use crate::flaws::Flaw;
use crate::patience::answered;

/// How many jobs are queued again in one write.
const SLICE: usize = 500;

/// What is known of the jobs that name us, from one look to the next.
#[derive(Clone, Default)]
pub(super) struct Own {
    /// Those in hand: at which version they were read, and under which epoch they were ours. Who finds the same version need
    /// not read again: what runs for long is not read over and over, payload and all.
    read: BTreeMap<JobId, (Version, u64)>,
    /// Those whose handlers were stopped with the lease: when they are given back, they have begun.
    interrupted: BTreeSet<(JobId, u64)>,
}

impl Own {
    /// What a look found takes the place of what was known before it; what came up meanwhile stays.
    fn update(&mut self, before: &Own, found: Own) {
        self.read = found.read;
        self.interrupted
            .retain(|held| found.interrupted.contains(held) || !before.interrupted.contains(held));
    }
}

impl Processor {
    /// Queues again what dead nodes held, and what names us although we do not have it in hand; stops what we have in hand
    /// and is ours no more. Says how many were queued again.
    pub(crate) async fn recover(&self, nodes: &Nodes, exclusive: bool) -> Result<usize, StoreError> {
        let ours = self.incarnation();
        let lost = self.hands().lanes.limits.lost(self.surroundings.elapsed(), self.find_lag);
        let (mut taken, mut seen) = (0, BTreeSet::new());
        for holder in answered("look who holds jobs", self.jobs.holders()).await? {
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
        let holder_name = holder.to_string();
        let held = self.jobs.held_by(Some(&holder_name), 1, None);
        let Held { jobs, unreadable, .. } = answered("look what a node holds", held).await?;
        let id = match (jobs.first(), unreadable.first()) {
            (Some(job), _) => job.document.owner_node,
            (None, Some(unreadable)) => unreadable.holder,
            // What was counted is no more, or not to be seen yet.
            (None, None) => return Ok(true),
        };
        let Some(id) = id else {
            let all = answered("list the nodes", nodes.all()).await?;
            return Ok(all.iter().any(|state| is_alive(&state.document)));
        };
        let state = answered("read the state of a node", nodes.get_each(&[id])).await?;
        match state.into_iter().next().flatten() {
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
            } else if self.surroundings.has(Flaw::GivesUpEarly) && after.lost > 0 {
                after.give_up("its nodes died", now, node)
            } else {
                after.lose(epoch, self.surroundings.chance(), now, node)
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
        let (ours, before) = (ours.to_string(), self.own().clone());
        let (mut found, mut given_back, mut after) = (Own::default(), 0, None);
        loop {
            let keys = self.jobs.keys_held_by(&ours, MAX_PAGE, after);
            let (keys, next) = answered("look what this node holds", keys).await?;
            let mut unknown = Vec::new();
            for (key, version) in keys {
                match self.as_read(&before, &key, version) {
                    Some((id, epoch)) => _ = found.read.insert(id, (version, epoch)),
                    None => unknown.push(key),
                }
            }
            let held = answered("read what this node holds", self.jobs.held_among(&ours, unknown)).await?;
            given_back += self.queue_each(held, |job| self.sort(job, &before, &mut found)).await?;
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        seen.extend(found.read.iter().map(|(id, (_, epoch))| (*id, *epoch)));
        self.own().update(&before, found);
        Ok(given_back)
    }

    /// A job that we have in hand, if it still is what was read of it.
    fn as_read(&self, before: &Own, key: &Key, version: Version) -> Option<(JobId, u64)> {
        let id = key.id.parse().ok()?;
        let (_, epoch) = before.read.get(&id).filter(|(read, _)| *read == version)?;
        let hands = self.hands();
        hands.running.get(&id).filter(|held| held.epoch == *epoch).map(|held| (id, held.epoch))
    }

    /// What becomes of a job that names us: nothing if it is in hand.
    fn sort(&self, job: &Versioned<Job>, before: &Own, found: &mut Own) -> Option<Job> {
        let (id, epoch) = (job.document.job_id, job.document.epoch);
        if self.hands().has(&job.document) || self.surroundings.has(Flaw::LostClaimForgotten) {
            found.read.insert(id, (job.version, epoch));
            return None;
        }
        let (now, node) = (self.surroundings.now(), self.node());
        let mut after = job.document.clone();
        // The handler may have been stopped since the look began.
        let forgets = self.surroundings.has(Flaw::ForgetsBeginning);
        let has_begun = |own: &Own| own.interrupted.contains(&(id, epoch));
        let has_begun = if forgets { has_begun(before) } else { has_begun(&self.own()) };
        // Whoever lives on as somebody else since then knows no more of it than others do: it is taken over.
        if job.document.owner != Some(self.incarnation()) {
            return None;
        }
        let given_back = if has_begun {
            found.interrupted.insert((id, epoch));
            after.interrupt(epoch, now, node)
        } else {
            after.release(epoch, now, node)
        };
        given_back.ok().map(|()| after)
    }

    /// Goes through what somebody holds, and writes what `change` makes of it.
    async fn queue_again(
        &self,
        holder: Option<&str>,
        mut change: impl FnMut(&Versioned<Job>) -> Option<Job>,
    ) -> Result<usize, StoreError> {
        let (mut taken, mut after) = (0, None);
        loop {
            let held = answered("look what a node held", self.jobs.held_by(holder, MAX_PAGE, after)).await?;
            let next = held.next.clone();
            taken += self.queue_each(held, &mut change).await?;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(taken),
            }
        }
    }

    /// Writes what `change` makes of jobs. Overtaken means that its holder, or another node, was faster. What cannot be read is
    /// run by nobody: it is set aside.
    async fn queue_each(
        &self,
        held: Held,
        mut change: impl FnMut(&Versioned<Job>) -> Option<Job>,
    ) -> Result<usize, StoreError> {
        let mut taken = 0;
        let with_change = |job| change(&job).map(|after| (job, after));
        let changes: Vec<_> = held.jobs.into_iter().filter_map(with_change).collect();
        for slice in changes.chunks(SLICE) {
            let written = self.jobs.save_or_set_aside(slice, self.surroundings.now());
            let written = answered("queue jobs again", written).await?;
            taken += written;
            // Where another node was faster with some of them, it is not known with which.
            if written == slice.len() {
                let lost = slice.iter().filter(|(before, after)| after.lost > before.document.lost);
                lost.for_each(|(_, after)| self.tell_of_loss(after));
            }
        }
        for job in held.unreadable {
            self.jobs.set_aside(job, self.surroundings.now()).await?;
        }
        Ok(taken)
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
        let found = answered("read what this node runs", self.jobs.get_each(&ids)).await?;
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
            self.own().interrupted.insert((id, epoch));
        }
    }

    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incarnation(&self) -> Incarnation {
        self.hands().holder.incarnation
    }
}
