//! The slots of the dead go back (rule 9), and limits that nobody uses are forgotten.
//!
//! Whoever holds slots has written its `state` before; so who is not alive by that, read after the limit, is gone. Its
//! slots are free only when no job is STARTED any more that names it: until then what it began may be all that its slots
//! are for. And this goes on and on, not once per death, since a write may land late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::{Incarnation, NodeId};
use rota_model::limit::{Holding, Limit};
use rota_model::node::NodeStatus;
use rota_model::time::UnixMillis;
use rota_store::cursor::Cursor;
use rota_store::job_limits::JobLimits;
use rota_store::{Store, StoreError, Versioned};
use tokio::time::{Instant, sleep};

use super::{KEY_REST, Maintenance, SLICE};
use crate::flaws::Flaw;

/// For whom is broken on purpose: who was not seen for this long is taken for dead.
const SEEN_LATELY: Duration = Duration::from_secs(4);
/// How many slices of limits are looked through in one tick.
const SLICES: u32 = 20;
/// How long a tick may forget limits, rests and all.
const CLEAR: Duration = Duration::from_millis(250);

pub(super) struct Sweep {
    limits: JobLimits,
    /// Where the walk through what is held goes on.
    from: Option<Cursor>,
    /// Those that were found gone, and when: what they claimed last may not be seen yet.
    gone: BTreeMap<Incarnation, Duration>,
    /// Whether there may be more to forget, and where the walk through old limits goes on.
    pub(super) clears: bool,
    old_from: Option<Cursor>,
}

impl Sweep {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            limits: JobLimits::new(store),
            from: None,
            gone: BTreeMap::new(),
            clears: false,
            old_from: None,
        }
    }
}

impl Maintenance {
    /// Takes back what the dead hold; some slices of all that is held.
    pub(super) async fn sweep_limits(&mut self) -> Result<(), StoreError> {
        if self.surroundings.has(Flaw::SweepsNever) {
            return Ok(());
        }
        for _ in 0..SLICES {
            let (limits, next) = self.sweep.limits.held(SLICE, self.sweep.from.take()).await?;
            self.sweep.from = next;
            if !limits.is_empty() {
                self.sweep_slice(limits).await?;
            }
            if self.sweep.from.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn sweep_slice(&mut self, limits: Vec<Versioned<Limit>>) -> Result<(), StoreError> {
        let holders: BTreeMap<Incarnation, NodeId> = limits
            .iter()
            .flat_map(|limit| &limit.document.holders)
            .map(|holding| (holding.incarnation, holding.node))
            .collect();
        let gone = self.gone(&holders).await?;
        if gone.is_empty() {
            return Ok(());
        }
        let now = self.surroundings.now();
        let is_gone = |holding: &Holding| gone.contains(&holding.incarnation);
        let swept = |limit: Versioned<Limit>| {
            limit.document.holders.iter().any(is_gone).then(|| {
                let mut after = limit.document.clone();
                after.sweep(is_gone);
                after.metadata.touch(now, self.node);
                (limit, after)
            })
        };
        let changes: Vec<_> = limits.into_iter().filter_map(swept).collect();
        // Overtaken means that somebody lives who uses it: then it is looked at again the next time.
        let changes = changes.iter().map(|(before, after)| (before, after));
        self.sweep.limits.save_all(changes).await.map(|_| ())
    }

    /// Those of the holders that live no more and hold no job any more either.
    async fn gone(
        &mut self,
        holders: &BTreeMap<Incarnation, NodeId>,
    ) -> Result<BTreeSet<Incarnation>, StoreError> {
        let dead = self.dead(holders).await?;
        let (at, lag) = (self.surroundings.elapsed(), self.store.promises().find_lag);
        self.sweep
            .gone
            .retain(|incarnation, _| dead.contains(incarnation) || !holders.contains_key(incarnation));
        if self.sweep.gone.len() > SLICE {
            self.sweep.gone.clear();
        }
        let early = self.surroundings.has(Flaw::SweepsEarly);
        let since = |gone: &mut BTreeMap<_, _>, one| *gone.entry(one).or_insert(at);
        let long_enough: BTreeSet<Incarnation> =
            dead.into_iter().filter(|one| early || at >= since(&mut self.sweep.gone, *one) + lag).collect();
        if long_enough.is_empty() || early {
            return Ok(long_enough);
        }
        let busy: BTreeSet<String> = self.jobs.holders().await?.into_iter().flatten().collect();
        Ok(long_enough.into_iter().filter(|one| !busy.contains(&one.to_string())).collect())
    }

    async fn dead(&self, holders: &BTreeMap<Incarnation, NodeId>) -> Result<Vec<Incarnation>, StoreError> {
        let ids: BTreeSet<NodeId> = holders.values().copied().collect();
        let ids: Vec<NodeId> = ids.into_iter().collect();
        let states = self.nodes.get_each(&ids).await?;
        let missing: Vec<NodeId> =
            ids.iter().zip(&states).filter(|(_, state)| state.is_none()).map(|(id, _)| *id).collect();
        // Whom we cannot understand we do not take for dead.
        let unreadable =
            if missing.is_empty() { Vec::new() } else { self.nodes.unreadable(&missing).await? };
        let (now, early) = (self.surroundings.now(), self.surroundings.has(Flaw::SweepsEarly));
        let alive: BTreeSet<Incarnation> = states
            .iter()
            .flatten()
            .filter(|state| state.document.status != NodeStatus::Terminated)
            .filter(|state| !early || now.since(state.document.last_seen_at) < SEEN_LATELY)
            .filter_map(|state| state.document.incarnation)
            .collect();
        let is_dead =
            |(one, node): &(&Incarnation, &NodeId)| !alive.contains(one) && !unreadable.contains(node);
        Ok(holders.iter().filter(is_dead).map(|(one, _)| *one).collect())
    }

    /// Limits that nobody holds and nobody wrote to for long. Who is about to reserve finds another version, or none. Some slices;
    /// what is left is for the next tick.
    pub(super) async fn clear_limits(&mut self) -> Result<(), StoreError> {
        let now = self.surroundings.steady_now();
        let rest = i64::try_from(KEY_REST.as_millis()).unwrap_or(i64::MAX);
        let before = UnixMillis(now.0.saturating_sub(rest));
        let began = Instant::now();
        while self.sweep.clears && began.elapsed() < CLEAR {
            let slice = Instant::now();
            let from = self.sweep.old_from.take();
            let (mut limits, next) = self.sweep.limits.unchanged_since(before, SLICE, from).await?;
            limits.retain(|limit| limit.document.holders.is_empty());
            if !limits.is_empty() {
                self.sweep.limits.delete_all(limits, now).await?;
            }
            self.sweep.clears = next.is_some();
            self.sweep.old_from = next;
            // The store has half of its time for others.
            sleep(slice.elapsed()).await;
        }
        Ok(())
    }
}
