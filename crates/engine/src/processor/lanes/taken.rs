//! What each has had of what was claimed, for its weight: by that it is decided whose turn it is next.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::Job;
use rota_store::Versioned;
use tokio::time::Instant;

use super::{Kind, Lanes, Plan, Tenant, taker};

/// How long the weights of domains are believed.
const WEIGHTS_HOLD: Duration = Duration::from_secs(10);

impl Lanes {
    /// Whether the weights of domains matter and were not read for a while.
    pub(in crate::processor) fn wants_weights(&self) -> bool {
        let mut tenants = self.known.values().map(|known| &known.tenant);
        let first = tenants.next();
        let several = tenants.any(|tenant| Some(tenant) != first);
        several && self.weighed.is_none_or(|at| at.elapsed() >= WEIGHTS_HOLD)
    }

    /// Those that were read; if they could not be, the old ones hold for a while longer.
    pub(in crate::processor) fn set_weights(&mut self, weights: Option<BTreeMap<Domain, u32>>) {
        self.weights = weights.unwrap_or_else(|| std::mem::take(&mut self.weights));
        self.weighed = Some(Instant::now());
    }

    /// This is what was claimed by a plan. If that was less than there was room for, nothing is left that is due where it
    /// asked; whether something waits there for its time is to be seen.
    pub(in crate::processor) fn took(
        &mut self,
        plan: &Plan,
        claimed: &[Versioned<Job>],
        is_short: bool,
        at: Duration,
    ) {
        let mut had: BTreeMap<Tenant, BTreeMap<Kind, usize>> = BTreeMap::new();
        for job in claimed {
            let (tenant, kind) = taker(&job.document.lane);
            *had.entry(tenant).or_default().entry(kind).or_default() += 1;
        }
        let exhausted = self.put_back(plan, claimed, at);
        let mut parts = Vec::new();
        for (tenant, kinds) in &plan.parts {
            if let Some(had) = had.get(tenant) {
                self.kinds.entry(tenant.clone()).or_default().charge(had, kinds, |_| 1);
            }
            parts.push((tenant.clone(), kinds.iter().map(|(_, part)| part).sum()));
        }
        let totals = had.iter().map(|(tenant, kinds)| (tenant.clone(), kinds.values().sum())).collect();
        let weights = &self.weights;
        self.tenants.charge(&totals, &parts, |tenant| weight_in(weights, tenant));
        self.kinds.retain(|tenant, _| plan.parts.iter().any(|(wanting, _)| wanting == tenant));
        if is_short {
            for place in plan.asked.iter().filter(|place| !exhausted.contains(*place)) {
                if self.known.get(place).is_some_and(|known| known.expected <= plan.expected) {
                    self.known.remove(place);
                    self.stale = true;
                }
            }
            self.find_next_due();
        }
    }

    pub(super) fn weight(&self, tenant: &Tenant) -> u32 {
        weight_in(&self.weights, tenant)
    }
}

fn weight_in(weights: &BTreeMap<Domain, u32>, tenant: &Tenant) -> u32 {
    tenant.as_ref().and_then(|domain| weights.get(domain)).copied().unwrap_or(1)
}
