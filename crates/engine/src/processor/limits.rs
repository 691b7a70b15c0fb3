//! What limits the jobs of this node (rule 9): which limits there are, and what the node has of each.
//!
//! A node claims no more from a lane than it has slots and starts for. Slots are reserved in the limit's document before
//! that, and given back when they are not used; starts are taken from it in small portions. Here is what the node knows of
//! its own part, [`balance`](super::balance) brings it in line with the documents; what types limit, [`rules`](super::rules) know. What is limited by nothing meets none
//! of this.
//!
//! ```text
//!   rules: what types limit          accounts: what we have of each limit
//!        │                                │  held ≥ used
//!   lane ─▶ gate (the limits of a job) ─▶ allot ─▶ claim ─▶ in hand ─▶ free
//!                                              └── answer lost ──▶ lost ──▶ free, once all that names us was looked through
//! ```
//!
//! - [`account`]: what the node has of one limit; [`accounts`]: all of them

mod account;
mod accounts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::Incarnation;
use rota_model::job_type::{Bounds, TypeLimits};
use rota_model::limit::LimitName;

use super::rules::{Rule, Rules};

pub(super) use account::{Account, Part};
use accounts::Accounts;

/// In so many lines a node stands at a time at most.
const MOST_LINES: usize = 64;

#[derive(Default)]
pub(super) struct Limits {
    pub(super) rules: Rules,
    accounts: Accounts,
    /// How often a rule came that may limit what runs, or is being claimed.
    pub(super) came: u32,
    /// Which life of the node it is: what another one used is not to be freed here.
    life: u32,
    /// For whom is broken on purpose: the name of its first life.
    first: Option<Incarnation>,
    /// What claims were for whose answers were lost, and jobs that we let go of though they may still name us.
    lost: Vec<(Gate, u32)>,
    /// How many of them were lost by when: those for which a look is waited for that certainly finds what names us.
    sought: Option<(usize, Duration)>,
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
    /// What a type limits, as it was read; what is met without a rule goes on waiting for one. Says whether it may
    /// limit what it did not limit before: some of it may run.
    pub(super) fn set_rule(&mut self, domain: &Domain, kind: &str, limits: TypeLimits) -> bool {
        let Some(before) = self.rules.set(domain, kind, limits) else { return false };
        let rule = self.rules.get(domain, kind);
        if before != rule {
            self.accounts.change_all(Some((domain, kind)), |name, account| {
                account.set_bounds(limits.bounds(name));
            });
        }
        let comes = matches!(rule, Rule::Limited(_)) && before != rule;
        self.came = self.came.wrapping_add(u32::from(comes));
        comes
    }

    /// What was in doubt was asked for. Types that are not among the used ones any more, and have no account, are forgotten.
    pub(super) fn end_asking(&mut self, at: Duration, failed: bool, used: BTreeSet<(&Domain, &str)>) {
        let used = used.into_iter().chain(self.accounts.types()).collect();
        self.rules.end_asking(at, failed, &used);
    }

    /// What a job of a type, with this key, has to pass.
    pub(super) fn passage(&self, domain: &Domain, kind: &str, key: Option<&str>) -> Passage {
        let limits = match self.rules.get(domain, kind) {
            Rule::Unknown => return Passage::Unknown,
            Rule::Free => return Passage::Free,
            Rule::Limited(limits) => limits,
        };
        let names: Arc<[LimitName]> = limits.of(domain, kind, key).map(|(name, _)| name).collect();
        if names.is_empty() {
            return Passage::Free;
        }
        Passage::Limited(Gate { life: self.life, names })
    }

    /// How many jobs may be claimed behind a gate.
    pub(super) fn available(&self, gate: &Gate, at: Duration) -> u32 {
        let of = |name| self.accounts.get(name).map_or(0, |account: &Account| account.available(at));
        gate.names.iter().map(of).min().unwrap_or(u32::MAX)
    }

    /// Keeps slots and starts for a claim.
    pub(super) fn allot(&mut self, gate: &Gate, count: u32, at: Duration) {
        for name in gate.names.iter() {
            self.accounts.change(name, |account| account.allot(count, at));
        }
    }

    /// More could be used behind a gate than there is: of the first limit that has too little. Says how many are to be
    /// had for that, at most: none where it is known that there are none, for now.
    pub(super) fn want(&mut self, gate: &Gate, count: u32, at: Duration) -> u32 {
        let lacks =
            |name: &&LimitName| self.accounts.get(name).is_none_or(|account| account.available(at) == 0);
        let Some(name) = gate.names.iter().find(lacks).cloned() else { return 0 };
        let bounds = self.bounds(&name);
        self.accounts.open(&name, || Account::new(bounds), |account| account.want(count, at)).unwrap_or(0)
    }

    fn bounds(&self, name: &LimitName) -> Bounds {
        match self.rules.get(&name.domain, &name.kind) {
            Rule::Limited(limits) => limits.bounds(name),
            Rule::Free | Rule::Unknown => Bounds::default(),
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
            let bounds = self.bounds(name);
            self.accounts.open(name, || Account::new(bounds), |account| account.take_up(at));
        }
        Some(Gate { life: self.life, names: had.iter().chain(new).cloned().collect() })
    }

    /// What may still be used: nobody knows what became of it.
    pub(super) fn lose(&mut self, gate: Gate, count: u32) {
        if count > 0 && gate.life == self.life {
            self.lost.push((gate, count));
        }
    }

    /// How much was lost so long ago that whoever begins now to look through all that names us, by a search that lags so far
    /// behind, misses none of it. When that was given back, the slots may be freed.
    pub(super) fn lost(&mut self, at: Duration, lag: Duration) -> usize {
        if self.lost.is_empty() {
            return 0;
        }
        let (count, since) = *self.sought.get_or_insert((self.lost.len(), at));
        if at >= since + lag { count } else { 0 }
    }

    pub(super) fn free_lost(&mut self, count: usize, at: Duration) {
        self.sought = None;
        let found: Vec<_> = self.lost.drain(..count.min(self.lost.len())).collect();
        found.into_iter().for_each(|(gate, count)| self.free(&gate, count, at));
    }

    fn of_gate(&mut self, gate: &Gate, mut change: impl FnMut(&mut Account)) {
        if gate.life != self.life {
            return;
        }
        for name in gate.names.iter() {
            self.accounts.change(name, &mut change);
        }
    }

    /// The name that the node had when it first held something.
    pub(super) fn first_name(&mut self, name: Incarnation) -> Incarnation {
        *self.first.get_or_insert(name)
    }

    /// The node lives on under another incarnation, which has nothing yet.
    pub(super) fn begin_life(&mut self) {
        self.life += 1;
        self.accounts = Accounts::default();
        self.lost.clear();
        self.sought = None;
    }

    /// Nothing more is wanted: what is held is to be given back.
    pub(super) fn want_nothing(&mut self) {
        self.accounts.change_all(None, |_, account| account.want_nothing());
    }

    /// Somebody wrote to a document.
    pub(super) fn tell(&mut self, id: &str) {
        if let Some(name) = self.accounts.named(id) {
            self.accounts.change(&name, Account::tell);
        }
    }

    pub(super) fn tell_all(&mut self) {
        self.accounts.change_all(None, |_, account| account.tell());
    }

    /// How long until an account is to be balanced; none if there is nothing to do.
    pub(super) fn next_balance(&self, at: Duration) -> Option<Duration> {
        self.accounts.next_due().map(|due_at| due_at.saturating_sub(at))
    }

    /// The accounts to be balanced now, those first that are due for longest where they are many. Those that are of no use
    /// any more are closed.
    pub(super) fn balanced_now(&mut self, at: Duration, most: usize) -> Vec<LimitName> {
        self.accounts.due(at, most)
    }

    /// Changes what the node has of one limit, if it has an account.
    pub(super) fn of_account<R>(
        &mut self,
        name: &LimitName,
        change: impl FnOnce(&mut Account) -> R,
    ) -> Option<R> {
        self.accounts.change(name, change)
    }

    /// Whether there is a place in line left.
    pub(super) fn may_queue(&self) -> bool {
        self.accounts.in_line() < MOST_LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_secs(100);

    fn name(key: &str) -> LimitName {
        LimitName { domain: Domain::default(), kind: "t".to_owned(), key: Some(key.to_owned()) }
    }

    fn wanting(keys: impl IntoIterator<Item = String>) -> Limits {
        let mut limits = Limits::default();
        for key in keys {
            let new = || Account::new(Bounds { concurrency: Some(1), ..Bounds::default() });
            limits.accounts.open(&name(&key), new, |account| account.want(1, AT));
        }
        limits
    }

    #[test]
    fn what_is_lost_is_free_when_a_search_that_lags_cannot_have_missed_it() {
        let (mut limits, lag) = (Limits::default(), Duration::from_secs(2));
        let gate = Gate { life: 0, names: Arc::new([]) };
        assert_eq!(limits.lost(AT, lag), 0);
        limits.lose(gate.clone(), 1);
        assert_eq!(limits.lost(AT, Duration::ZERO), 1, "where nothing lags, it is sought at once");
        assert_eq!(limits.lost(AT + lag / 2, lag), 0);
        limits.lose(gate, 1);
        assert_eq!(limits.lost(AT + lag, lag), 1, "what was lost since is not among them");
        limits.free_lost(1, AT + lag);
        assert_eq!(limits.lost(AT + lag, lag), 0);
        assert_eq!(limits.lost(AT + lag * 2, lag), 1);
        limits.begin_life();
        assert_eq!(limits.lost(AT + lag * 3, lag), 0);
    }

    #[test]
    fn of_many_accounts_those_come_first_that_wait_for_longest() {
        let mut limits = wanting(["a", "b", "c"].map(str::to_owned));
        for key in ["a", "b"] {
            limits.of_account(&name(key), |account| account.failed(false, AT - Duration::from_secs(2)));
        }
        assert_eq!(limits.balanced_now(AT, 1), [name("c")]);
        assert_eq!(limits.balanced_now(AT, 3).len(), 3);
    }

    #[test]
    fn accounts_are_due_when_they_say_so_and_closed_when_they_are_of_no_use() {
        let mut limits = wanting((0..1_000).map(|nth| nth.to_string()));
        assert_eq!(limits.next_balance(AT), Some(Duration::ZERO));
        while let [first, ..] = limits.balanced_now(AT, 256).as_slice() {
            limits.of_account(first, |account| account.failed(false, AT));
        }
        assert!(limits.next_balance(AT).is_some_and(|wait| !wait.is_zero()), "all were put off");
        limits.tell(&name("7").id());
        limits.of_account(&name("8"), |account| account.want(2, AT));
        let later = AT + Duration::from_secs(60);
        for _ in 0..4 {
            assert_eq!(limits.balanced_now(later, 256), []);
        }
        assert_eq!((limits.accounts.len(), limits.next_balance(later)), (0, None));
    }
}
