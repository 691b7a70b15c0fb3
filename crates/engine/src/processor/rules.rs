//! What the types limit that a node has met: those of which something waits here, or is in hand.
//!
//! A type that is met for the first time is read, together with all others of that moment, and what is not known yet waits for
//! it. After that it is read again only if there is a reason: somebody was heard to write to it, or the list of all types
//! that limit something, which is looked at every few seconds, says otherwise. So tenants that limit nothing cost nothing,
//! however many they are; and a node hears of a limit that comes, whether or not it has room for more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job_type::TypeLimits;

use super::Processor;
use crate::flaws::Flaw;
use crate::patience::{Complaint, STORE_PAUSE};
use crate::registry::{Listed, Told, id_of};

/// How often the list is looked at: hints may be lost.
const LIST_AGAIN: Duration = Duration::from_secs(3);

/// What a type limits, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    Unknown,
    Free,
    Limited(TypeLimits),
}

impl Rule {
    fn of(limits: TypeLimits) -> Self {
        if limits.is_none() { Rule::Free } else { Rule::Limited(limits) }
    }
}

#[derive(Default)]
pub(super) struct Rules {
    /// By domain and type.
    known: BTreeMap<Domain, BTreeMap<String, Rule>>,
    /// Those that are to be read.
    doubted: BTreeSet<(Domain, String)>,
    /// When the list was last looked at, and when something could not be read.
    listed: Option<Duration>,
    failed: Option<Duration>,
    complaint: Complaint,
}

impl Rules {
    /// A type has work.
    pub(super) fn meet(&mut self, domain: &Domain, kind: &str) {
        if self.known.get(domain).is_some_and(|rules| rules.contains_key(kind)) {
            return;
        }
        self.known.entry(domain.clone()).or_default().insert(kind.to_owned(), Rule::Unknown);
        self.doubted.insert((domain.clone(), kind.to_owned()));
    }

    pub(super) fn get(&self, domain: &Domain, kind: &str) -> Rule {
        self.known.get(domain).and_then(|rules| rules.get(kind)).copied().unwrap_or(Rule::Unknown)
    }

    /// A type as it was read. Says what was known of it before; none if nobody wants to know any more.
    pub(super) fn set(&mut self, domain: &Domain, kind: &str, limits: TypeLimits) -> Option<Rule> {
        self.doubted.remove(&(domain.clone(), kind.to_owned()));
        let known = self.known.get_mut(domain).and_then(|rules| rules.get_mut(kind))?;
        Some(std::mem::replace(known, Rule::of(limits)))
    }

    /// Somebody wrote to types; to those of the installation, in the name of all domains.
    fn hear(&mut self, told: &Told) {
        let is_told = |domain: &Domain, kind: &String| match told {
            Told::All => true,
            Told::Some(ids) => ids.contains(&id_of(domain, kind)) || ids.contains(&format!(":{kind}")),
        };
        if !told.is_empty() {
            self.doubt(|domain, kind, _| is_told(domain, kind));
        }
    }

    /// Where the list says otherwise, the type itself is asked: a list may lag.
    fn compare(&mut self, listed: &Listed, at: Duration) {
        self.listed = Some(at);
        self.doubt(|domain, kind, rule| {
            let own = (Some(domain.clone()), kind.clone());
            let limits = listed.get(&own).or_else(|| listed.get(&(None, kind.clone())));
            rule != Rule::of(limits.copied().unwrap_or_default())
        });
    }

    fn doubt(&mut self, is_doubtful: impl Fn(&Domain, &String, Rule) -> bool) {
        for (domain, rules) in &self.known {
            let doubtful = rules.iter().filter(|(kind, rule)| is_doubtful(domain, kind, **rule));
            self.doubted.extend(doubtful.map(|(kind, _)| (domain.clone(), kind.clone())));
        }
    }

    /// Whether there is something to be read.
    pub(super) fn are_in_doubt(&self) -> bool {
        !self.doubted.is_empty()
    }

    fn may_ask(&self, at: Duration) -> bool {
        !self.known.is_empty() && self.failed.is_none_or(|failed| at >= failed + STORE_PAUSE)
    }

    /// Whether something is to be read before anything is claimed.
    fn has_doubts(&self, at: Duration, was_told: bool) -> bool {
        self.may_ask(at) && (was_told || !self.doubted.is_empty())
    }

    fn wants_list(&self, at: Duration) -> bool {
        self.may_ask(at) && self.listed.is_none_or(|listed| at >= listed + LIST_AGAIN)
    }

    /// How long until there is something to ask; none if nothing was met.
    pub(super) fn next(&self, at: Duration) -> Option<Duration> {
        let listed = self.listed.map_or(Duration::ZERO, |listed| listed + LIST_AGAIN);
        let due = if self.doubted.is_empty() { listed } else { Duration::ZERO };
        let pause = self.failed.map_or(Duration::ZERO, |failed| failed + STORE_PAUSE);
        (!self.known.is_empty()).then(|| due.max(pause).saturating_sub(at))
    }

    /// What was in doubt was asked for. Those that nobody uses any more are forgotten.
    pub(super) fn end_asking(&mut self, at: Duration, failed: bool, used: &BTreeSet<(&Domain, &str)>) {
        self.failed = failed.then_some(at);
        self.known.retain(|domain, rules| {
            rules.retain(|kind, _| used.contains(&(domain, kind.as_str())));
            !rules.is_empty()
        });
        self.doubted.retain(|(domain, kind)| used.contains(&(domain, kind.as_str())));
    }
}

impl Processor {
    /// Asks what those types limit of which it is not known, or in doubt. While the store does not say, what is known holds,
    /// and what is not known waits.
    pub(super) async fn resolve_doubts(&self) {
        let at = self.surroundings.elapsed();
        if !self.hands().lanes.limits.rules.has_doubts(at, self.registry.was_told()) {
            return;
        }
        let _one_at_a_time = self.asking.lock().await;
        let told = self.registry.take_told();
        let types: Vec<_> = {
            let rules = &mut self.hands().lanes.limits.rules;
            rules.hear(&told);
            rules.doubted.iter().cloned().collect()
        };
        if types.is_empty() {
            return;
        }
        let read = self.registry.limits_of(&types).await;
        let (mut failed, mut begins) = (read.is_err(), false);
        let mut hands = self.hands();
        for ((domain, kind), limits) in types.iter().zip(read.unwrap_or_default()) {
            match limits {
                Ok(limits) => begins |= hands.lanes.limits.set_rule(domain, kind, limits),
                Err(error) => {
                    let (title, why) =
                        ("cannot read what a type limits", format!("{domain}, {kind}: {error}"));
                    self.journal().complain(&mut hands.lanes.limits.rules.complaint, title, why);
                    failed = true;
                }
            }
        }
        if begins && !self.surroundings.has(Flaw::ComesUncounted) {
            hands.take_up(self.surroundings.elapsed());
        }
        hands.end_asking(at, failed);
        drop(hands);
        // What waited for it may be claimed, or is to be counted.
        self.slots.notify_one();
        self.limits_wanted.notify_one();
    }

    /// Looks at the list of all that is limited, if it is time for that.
    pub(super) async fn look_at_list(&self) {
        let at = self.surroundings.elapsed();
        if !self.hands().lanes.limits.rules.wants_list(at) {
            return;
        }
        match self.registry.limited().await {
            Ok(listed) => self.hands().lanes.limits.rules.compare(&listed, at),
            Err(error) => {
                let rules = &mut self.hands().lanes.limits.rules;
                rules.failed = Some(at);
                let title = "cannot list what types limit; trying again";
                self.journal().complain(&mut rules.complaint, title, error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a surprise is a failure of the test")]
    use rota_model::job_type::Bounds;

    use super::*;

    const AT: Duration = Duration::from_secs(100);

    fn limits(concurrency: u32) -> TypeLimits {
        let whole = Bounds { concurrency: Some(concurrency), starts_per_second: None };
        TypeLimits { whole, ..TypeLimits::default() }
    }

    fn domain(nth: u32) -> Domain {
        format!("tenant-{nth}").parse().unwrap()
    }

    /// A thousand tenants of which one limits something.
    fn met() -> Rules {
        let mut rules = Rules::default();
        (0..1_000).for_each(|nth| rules.meet(&domain(nth), "mail"));
        assert!(rules.has_doubts(AT, false) && rules.doubted.len() == 1_000, "all are read once");
        for nth in 0..1_000 {
            rules.set(&domain(nth), "mail", if nth == 7 { limits(1) } else { TypeLimits::default() });
        }
        rules
    }

    fn doubted(rules: &Rules) -> Vec<&str> {
        rules.doubted.iter().map(|(domain, _)| domain.as_str()).collect()
    }

    #[test]
    fn tenants_that_limit_nothing_are_read_once() {
        let mut rules = met();
        let listed = Listed::from([((Some(domain(7)), "mail".to_owned()), limits(1))]);
        for tick in 1..10 {
            let at = AT + LIST_AGAIN * tick;
            assert!(rules.wants_list(at));
            rules.compare(&listed, at);
            assert!(!rules.has_doubts(at, false) && !rules.wants_list(at));
            assert_eq!(rules.next(at), Some(LIST_AGAIN));
        }
    }

    #[test]
    fn where_the_list_says_otherwise_the_type_is_asked() {
        let mut rules = met();
        let of = |nth| (Some(domain(nth)), "mail".to_owned());
        rules.compare(&Listed::from([(of(8), limits(2))]), AT);
        assert_eq!(doubted(&rules), ["tenant-7", "tenant-8"], "one comes, one goes");
        assert_eq!(rules.get(&domain(7), "mail"), Rule::Limited(limits(1)), "what is known holds meanwhile");
        rules.set(&domain(7), "mail", limits(1));
        rules.set(&domain(8), "mail", limits(2));
        rules.compare(&Listed::from([(of(7), limits(1)), (of(8), limits(3))]), AT);
        assert_eq!(doubted(&rules), ["tenant-8"], "it changed");
        let mut rules = met();
        rules.compare(&Listed::from([((None, "mail".to_owned()), limits(2))]), AT);
        assert_eq!(rules.doubted.len(), 1_000, "the installation limits it for all");
    }

    #[test]
    fn what_is_told_of_is_asked_and_what_failed_is_left_alone_for_a_moment() {
        let mut rules = met();
        rules.hear(&Told::Some(BTreeSet::from(["tenant-3:mail".to_owned(), "tenant-3:other".to_owned()])));
        assert_eq!(doubted(&rules), ["tenant-3"]);
        let three = domain(3);
        rules.end_asking(AT, true, &BTreeSet::from([(&three, "mail")]));
        assert!(!rules.has_doubts(AT, true) && rules.has_doubts(AT + STORE_PAUSE, false));
        rules.end_asking(AT, false, &BTreeSet::new());
        assert!(rules.next(AT).is_none(), "nobody uses them any more");
        let mut rules = met();
        rules.hear(&Told::All);
        assert_eq!(rules.doubted.len(), 1_000);
    }
}
