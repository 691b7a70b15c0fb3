//! What limits the jobs of this node (rule 9): which limits there are, and what the node has of each.
//!
//! A node claims no more from a lane than it has slots and starts for. Slots are reserved in the limit's document before
//! that, and given back when they are not used; starts are taken from it in small portions. Here is what the node knows of
//! its own part, [`balance`](super::balance) brings it in line with the documents. What is limited by nothing meets none
//! of this.
//!
//! ```text
//!   rules: what types limit          accounts: what we have of each limit
//!        │                                │  held ≥ used
//!   lane ─▶ gate (the limits of a job) ─▶ allot ─▶ claim ─▶ in hand ─▶ free
//!                                              └── answer lost ──▶ lost ──▶ free, once all that names us was looked through
//! ```
//!
//! - [`account`]: what the node has of one limit

mod account;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job_type::{Bounds, TypeLimits};
use rota_model::limit::LimitName;

use crate::patience::STORE_PAUSE;

pub(super) use account::{Account, Part};

/// How long what a type limits is believed; the registry, which is asked then, hears of changes.
const RULES_HOLD: Duration = Duration::from_secs(1);
/// In so many lines a node stands at a time at most.
const MOST_LINES: usize = 64;

#[derive(Default)]
pub(super) struct Limits {
    /// By domain and type.
    rules: BTreeMap<Domain, BTreeMap<String, Rule>>,
    /// Whether a type was met of which nothing is known.
    unknown: bool,
    /// When the rules were last asked for, and when that failed.
    asked: Option<Duration>,
    failed: Option<Duration>,
    /// What the registry had heard of by then.
    generation: u64,
    accounts: BTreeMap<LimitName, Account>,
    /// The accounts by the ids of their documents.
    by_id: BTreeMap<String, LimitName>,
    /// Which life of the node it is: what another one used is not to be freed here.
    life: u32,
    /// What claims were for whose answers were lost, and jobs that we let go of though they may still name us.
    lost: Vec<(Gate, u32)>,
}

/// What a type limits, as far as is known.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Unknown,
    Free,
    Limited(TypeLimits),
}

/// The limits that a job is under: that of its type, that of its key, or both.
#[derive(Clone)]
pub(super) struct Gate {
    life: u32,
    names: Arc<[LimitName]>,
}

/// Whether a lane may be claimed from.
pub(super) enum Passage {
    /// Nothing limits it.
    Free,
    /// What limits it is not known yet.
    Unknown,
    Limited(Gate),
}

impl Limits {
    /// A type has work.
    pub(super) fn meet(&mut self, domain: &Domain, kind: &str) {
        if self.rules.get(domain).is_some_and(|rules| rules.contains_key(kind)) {
            return;
        }
        self.rules.entry(domain.clone()).or_default().insert(kind.to_owned(), Rule::Unknown);
        self.unknown = true;
    }

    /// Whether to ask what types limit.
    pub(super) fn wants_rules(&self, at: Duration, generation: u64) -> bool {
        if self.rules.is_empty() || self.failed.is_some_and(|failed| at < failed + STORE_PAUSE) {
            return false;
        }
        let is_old = self.asked.is_none_or(|asked| at >= asked + RULES_HOLD);
        self.unknown || is_old || self.generation != generation
    }

    /// The types that were met.
    pub(super) fn types(&self) -> Vec<(Domain, String)> {
        let of = |(domain, rules): (&Domain, &BTreeMap<String, Rule>)| {
            rules.keys().map(|kind| (domain.clone(), kind.clone())).collect::<Vec<_>>()
        };
        self.rules.iter().flat_map(of).collect()
    }

    /// What a type limits, as it was read; what is met without a rule goes on waiting for one. Says whether it may
    /// limit what it did not limit before: some of it may run.
    pub(super) fn set_rule(&mut self, domain: &Domain, kind: &str, limits: Option<TypeLimits>) -> bool {
        let limits = limits.unwrap_or_default();
        let rule = if limits.is_none() { Rule::Free } else { Rule::Limited(limits) };
        let known = self.rules.get_mut(domain).and_then(|rules| rules.get_mut(kind));
        let Some(known) = known else { return false };
        let before = std::mem::replace(known, rule);
        if before != rule {
            for (name, account) in
                self.accounts.iter_mut().filter(|(name, _)| name.domain == *domain && name.kind == kind)
            {
                account.set_bounds(bounds_of(name, &limits));
            }
        }
        matches!(rule, Rule::Limited(_)) && before != rule
    }

    /// All that were met were asked for. Those that are not among the used ones any more, and have no account, are forgotten.
    pub(super) fn end_asking(
        &mut self,
        at: Duration,
        generation: u64,
        failed: bool,
        used: BTreeSet<(&Domain, &str)>,
    ) {
        (self.asked, self.failed, self.generation) = (Some(at), failed.then_some(at), generation);
        let accounts = self.accounts.keys().map(|name| (&name.domain, name.kind.as_str()));
        let used: BTreeSet<(&Domain, &str)> = used.into_iter().chain(accounts).collect();
        self.rules.retain(|domain, rules| {
            rules.retain(|kind, _| used.contains(&(domain, kind.as_str())));
            !rules.is_empty()
        });
        let is_unknown = |rule: &Rule| *rule == Rule::Unknown;
        self.unknown = self.rules.values().any(|rules| rules.values().any(is_unknown));
    }

    /// What a job of a type, with this key, has to pass.
    pub(super) fn passage(&self, domain: &Domain, kind: &str, key: Option<&str>) -> Passage {
        let limits = match self.rules.get(domain).and_then(|rules| rules.get(kind)) {
            None | Some(Rule::Unknown) => return Passage::Unknown,
            Some(Rule::Free) => return Passage::Free,
            Some(Rule::Limited(limits)) => limits,
        };
        if !limits.apply_to(key.is_some()) {
            return Passage::Free;
        }
        let name = |key: Option<&str>| LimitName {
            domain: domain.clone(),
            kind: kind.to_owned(),
            key: key.map(str::to_owned),
        };
        let whole = (!limits.whole.is_none()).then(|| name(None));
        let of_key = key.filter(|_| !limits.per_key.is_none()).map(|key| name(Some(key)));
        Passage::Limited(Gate { life: self.life, names: whole.into_iter().chain(of_key).collect() })
    }

    /// How many jobs may be claimed behind a gate.
    pub(super) fn available(&self, gate: &Gate, at: Duration) -> u32 {
        let of = |name| self.accounts.get(name).map_or(0, |account: &Account| account.available(at));
        gate.names.iter().map(of).min().unwrap_or(u32::MAX)
    }

    /// Keeps slots and starts for a claim.
    pub(super) fn allot(&mut self, gate: &Gate, count: u32, at: Duration) {
        for name in gate.names.iter() {
            if let Some(account) = self.accounts.get_mut(name) {
                account.allot(count, at);
            }
        }
    }

    /// More could be used behind a gate than there is: of the first limit that has too little. Says how many are to be
    /// had for that, at most: none where it is known that there are none, for now.
    pub(super) fn want(&mut self, gate: &Gate, count: u32, at: Duration) -> u32 {
        let lacks =
            |name: &&LimitName| self.accounts.get(*name).is_none_or(|account| account.available(at) == 0);
        let Some(name) = gate.names.iter().find(lacks).cloned() else { return 0 };
        let bounds = self.bounds(&name);
        let account = self.accounts.entry(name.clone()).or_insert_with(|| {
            self.by_id.insert(name.id(), name.clone());
            Account::new(bounds)
        });
        account.want(count, at)
    }

    fn bounds(&self, name: &LimitName) -> Bounds {
        match self.rules.get(&name.domain).and_then(|rules| rules.get(&name.kind)) {
            Some(Rule::Limited(limits)) => bounds_of(name, limits),
            Some(Rule::Free | Rule::Unknown) | None => Bounds::default(),
        }
    }

    /// A claim brought fewer than were allotted.
    pub(super) fn put_back(&mut self, gate: &Gate, count: u32, at: Duration) {
        self.of_gate(gate, |account| account.put_back(count, at));
    }

    /// A job is out of hand, and its end is written.
    pub(super) fn free(&mut self, gate: &Gate, count: u32, at: Duration) {
        self.of_gate(gate, |account| account.free(count, at));
    }

    /// A job is in hand for which nobody had reserved anything, or not of all that limits it: that came later. Says what
    /// it is under now, if that is more than before.
    pub(super) fn take_up(&mut self, of: &LimitName, before: Option<&Gate>, at: Duration) -> Option<Gate> {
        let Passage::Limited(gate) = self.passage(&of.domain, &of.kind, of.key.as_deref()) else {
            return None;
        };
        let before = before.filter(|before| before.life == self.life);
        let had = before.map_or(&[][..], |before| &before.names);
        let new: Vec<&LimitName> = gate.names.iter().filter(|name| !had.contains(name)).collect();
        if new.is_empty() {
            return None;
        }
        for name in &new {
            let name = *name;
            let bounds = self.bounds(name);
            let account = self.accounts.entry(name.clone()).or_insert_with(|| {
                self.by_id.insert(name.id(), name.clone());
                Account::new(bounds)
            });
            account.take_up(at);
        }
        Some(Gate { life: self.life, names: had.iter().chain(new).cloned().collect() })
    }

    /// What may still be used: nobody knows what became of it.
    pub(super) fn lose(&mut self, gate: Gate, count: u32) {
        if count > 0 && gate.life == self.life {
            self.lost.push((gate, count));
        }
    }

    /// What is lost so far. Whoever then looks through all that names us, and gives it back, may free it.
    pub(super) fn lost(&self) -> usize {
        self.lost.len()
    }

    pub(super) fn free_lost(&mut self, count: usize, at: Duration) {
        let found: Vec<_> = self.lost.drain(..count.min(self.lost.len())).collect();
        found.into_iter().for_each(|(gate, count)| self.free(&gate, count, at));
    }

    fn of_gate(&mut self, gate: &Gate, mut change: impl FnMut(&mut Account)) {
        if gate.life != self.life {
            return;
        }
        for name in gate.names.iter() {
            self.accounts.get_mut(name).into_iter().for_each(&mut change);
        }
    }

    /// The node lives on under another incarnation, which has nothing yet.
    pub(super) fn begin_life(&mut self) {
        self.life += 1;
        self.accounts.clear();
        self.by_id.clear();
        self.lost.clear();
    }

    /// Nothing more is wanted: what is held is to be given back.
    pub(super) fn want_nothing(&mut self) {
        self.accounts.values_mut().for_each(Account::want_nothing);
    }

    /// Somebody wrote to a document.
    pub(super) fn tell(&mut self, id: &str) {
        let account = self.by_id.get(id).and_then(|name| self.accounts.get_mut(name));
        account.into_iter().for_each(Account::tell);
    }

    pub(super) fn tell_all(&mut self) {
        self.accounts.values_mut().for_each(Account::tell);
    }

    /// How long until an account is to be balanced; none if there is nothing to do.
    pub(super) fn next_balance(&self, at: Duration) -> Option<Duration> {
        self.accounts.values().map(|account| account.due_at().saturating_sub(at)).min()
    }

    /// The accounts to be balanced now, those first that are due for longest where they are many. Those that are of no use
    /// any more are closed.
    pub(super) fn balanced_now(&mut self, at: Duration, most: usize) -> Vec<LimitName> {
        let by_id = &mut self.by_id;
        self.accounts.retain(|name, account| {
            let stays = !account.is_idle(at);
            if !stays {
                by_id.remove(&name.id());
            }
            stays
        });
        let due = self.accounts.iter().map(|(name, account)| (account.due_at(), name));
        let mut due: Vec<_> = due.filter(|(due_at, _)| *due_at <= at).collect();
        if due.len() > most {
            due.sort();
        }
        due.into_iter().take(most).map(|(_, name)| name.clone()).collect()
    }

    pub(super) fn account(&mut self, name: &LimitName) -> Option<&mut Account> {
        self.accounts.get_mut(name)
    }

    /// Whether there is a place in line left.
    pub(super) fn may_queue(&self) -> bool {
        self.accounts.values().filter(|account| account.is_in_line()).count() < MOST_LINES
    }
}

fn bounds_of(name: &LimitName, limits: &TypeLimits) -> Bounds {
    if name.key.is_some() { limits.per_key } else { limits.whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_accounts_those_come_first_that_wait_for_longest() {
        let mut limits = Limits::default();
        let at = Duration::from_secs(100);
        let name = |key: &str| LimitName {
            domain: Domain::default(),
            kind: "t".to_owned(),
            key: Some(key.to_owned()),
        };
        for key in ["a", "b", "c"] {
            let mut account = Account::new(Bounds { concurrency: Some(1), ..Bounds::default() });
            account.want(1, at);
            if key != "c" {
                account.failed(false, at - Duration::from_secs(2));
            }
            limits.accounts.insert(name(key), account);
        }
        assert_eq!(limits.balanced_now(at, 1), [name("c")]);
        assert_eq!(limits.balanced_now(at, 3).len(), 3);
    }
}
