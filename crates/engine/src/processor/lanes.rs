//! Whose turn it is. Domains with due work take turns, by their weights; within a domain its types take turns, each limit
//! key of a type for itself; and of these the most urgent jobs come first. So a single job is next when a slot frees,
//! whatever waits elsewhere. What its limits hold up is passed over, and costs nobody anything.
//!
//! What waits where is read now and then, and remembered: each lane with the earliest instant at which one of its jobs is
//! due. A lane that is empty by now costs a claim one look in vain; a lane that is not known yet is found with the next look.
//!
//! - [`look`]: reading where jobs wait
//! - [`plan`]: from where a claim takes how much
//! - [`taken`]: what each has had of it, for its weight

mod look;
mod plan;
mod taken;

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::{Job, Lane};
use rota_model::limit::LimitName;
use rota_model::time::UnixMillis;
use tokio::time::Instant;

use super::LOOK_AGAIN;
use super::limits::{Limits, Passage};
use super::turns::Turns;

use look::Crowd;
pub(super) use look::{Look, PAGE};
pub(super) use plan::Plan;

/// While there is something to claim, a look is made no sooner than this after the last one, and not before so many times
/// as long as that took.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
const LOOK_SHARE: u32 = 10;

/// How many lanes are known by what is submitted; whoever comes beyond that is found by looking.
const MOST_EXPECTED: usize = 10_000;

/// How long nothing is tried while limits hold something up, if nobody tells of anything: who waits says so now and then.
const HELD_UP_REST: Duration = Duration::from_millis(150);

/// A lane as it is written; none for jobs that have none.
type Place = Option<String>;
/// Who takes turns in the first place; none for jobs without a lane.
type Tenant = Option<Domain>;
/// Who takes turns within a domain: a type, or a type with a limit key.
type Kind = (String, Option<String>);

#[derive(Default)]
pub(super) struct Lanes {
    /// The types that the node runs; lanes of others are not remembered.
    types: Vec<String>,
    known: BTreeMap<Place, Known>,
    /// The earliest of them.
    next_due: Option<UnixMillis>,
    tenants: Turns<Tenant>,
    kinds: BTreeMap<Tenant, Turns<Kind>>,
    weights: BTreeMap<Domain, u32>,
    /// How many jobs were expected: what is expected while somebody looks or claims is not forgotten for what that found.
    expected: u64,
    /// Whether something may wait where nobody looked yet.
    stale: bool,
    /// Whether a look was begun that did not end: what it was for is still to be seen.
    is_looking: bool,
    /// When the last look ended, and how long it took.
    looked: Option<(Instant, Duration)>,
    weighed: Option<Instant>,
    /// How far the look through all lanes has come.
    position: Option<String>,
    /// The types with more keys than are known at a time, by their lanes; and with which of them the last round was.
    crowds: BTreeMap<String, Crowd>,
    went_round: Option<String>,
    /// Whether anything can be limited here.
    has_limits: bool,
    /// Whether limits hold something up.
    holds_up: bool,
    pub(super) limits: Limits,
}

/// What is known of a lane.
struct Known {
    tenant: Tenant,
    kind: Kind,
    /// Whether its limits let nothing through, when it was last asked for.
    is_held_up: bool,
    /// When the first of its jobs is due.
    run_at: UnixMillis,
    /// How many jobs had been expected when the last one was expected here.
    expected: u64,
}

/// The lanes with due work, by domain and type; of each type the most urgent first.
type Due<'a> = BTreeMap<Tenant, BTreeMap<Kind, Vec<&'a Place>>>;

impl Lanes {
    pub(super) fn new(types: Vec<String>, has_limits: bool) -> Self {
        Self { types, has_limits, ..Self::default() }
    }

    /// Something may wait where nobody looked yet.
    pub(super) fn tell(&mut self) {
        self.stale = true;
    }

    /// A job was stored that waits.
    pub(super) fn expect(&mut self, job: &Job) {
        self.expected += 1;
        let expected = self.expected;
        if self.known.len() >= MOST_EXPECTED && !self.known.contains_key(&job.lane) {
            return self.tell();
        }
        let Some(lane) = self.learn(&job.lane, job.run_at) else { return };
        lane.expected = expected;
        self.next_due = self.next_due.into_iter().chain([job.run_at]).min();
    }

    /// A job waits there from then on. None if the node does not run it.
    fn learn(&mut self, place: &Place, run_at: UnixMillis) -> Option<&mut Known> {
        if !self.known.contains_key(place) {
            let (tenant, kind) = taker(place);
            if tenant.is_some() && !self.types.contains(&kind.0) {
                return None;
            }
            if let Some(domain) = tenant.as_ref().filter(|_| self.has_limits) {
                self.limits.rules.meet(domain, &kind.0);
            }
            let known = Known { tenant, kind, is_held_up: false, run_at, expected: 0 };
            self.known.insert(place.clone(), known);
        }
        let known = self.known.get_mut(place)?;
        known.run_at = known.run_at.min(run_at);
        Some(known)
    }

    /// Whether a job waits that is due, as far as is known.
    pub(super) fn is_due(&self, now: UnixMillis) -> bool {
        self.next_due.is_some_and(|due| due <= now)
    }

    /// When the next job is due of those that wait for their time.
    pub(super) fn next_after(&self, now: UnixMillis) -> Option<UnixMillis> {
        self.known.values().map(|known| known.run_at).filter(|due| *due > now).min()
    }

    /// Whether to look before claiming: often enough to miss nobody for long, and not so often that it takes the time away.
    pub(super) fn wants_look(&self, now: UnixMillis) -> bool {
        let Some((ended, took)) = self.looked else { return true };
        let (since, share) = (ended.elapsed(), LOOK_PAUSE.max(took * LOOK_SHARE));
        let pause = if self.is_due(now) { share } else { Duration::ZERO };
        let has_more = self.stale || self.is_looking || self.position.is_some();
        // Of many keys some more can always be seen: that alone is no haste, even where all that are known are held up.
        let goes_round = !self.crowds.is_empty() && since >= share;
        since >= pause.max(LOOK_AGAIN) || since >= pause && has_more || goes_round
    }

    /// How long nothing may be looked at, if nobody tells of anything.
    pub(super) fn rest(&self) -> Duration {
        if self.holds_up { HELD_UP_REST } else { LOOK_AGAIN }
    }

    /// Whether there is more to see before it is known that nothing is due.
    pub(super) fn goes_on(&self, now: UnixMillis) -> bool {
        self.position.is_some() && !self.is_due(now)
    }

    fn find_next_due(&mut self) {
        let open = self.known.values().filter(|known| !known.is_held_up);
        self.next_due = open.map(|known| known.run_at).min();
    }

    fn due(&self, now: UnixMillis) -> Due<'_> {
        let mut due = Due::new();
        // Backwards, so that of each type the most urgent comes first.
        for (place, known) in self.known.iter().rev().filter(|(_, known)| known.run_at <= now) {
            let kinds = due.entry(known.tenant.clone()).or_default();
            kinds.entry(known.kind.clone()).or_default().push(place);
        }
        due
    }

    /// What types limit was asked for.
    pub(super) fn end_asking<'a>(
        &mut self,
        at: Duration,
        failed: bool,
        in_hand: impl Iterator<Item = &'a LimitName>,
    ) {
        let waiting = self.known.values();
        let waiting = waiting.filter_map(|known| Some((known.tenant.as_ref()?, known.kind.0.as_str())));
        let used = waiting.chain(in_hand.map(|of| (&of.domain, of.kind.as_str()))).collect();
        self.limits.end_asking(at, failed, used);
    }

    /// A job is about to be in hand. Says what it is, where that may be limited.
    pub(super) fn meet(&mut self, job: &Job) -> Option<LimitName> {
        if !self.has_limits {
            return None;
        }
        self.limits.rules.meet(&job.domain, &job.input.kind);
        let (domain, kind, key) = (job.domain.clone(), job.input.kind.clone(), job.limit_key.clone());
        Some(LimitName { domain, kind, key })
    }

    /// Whether something limits a job, as far as is known.
    pub(super) fn is_limited(&self, job: &Job) -> bool {
        let key = job.limit_key.as_deref();
        matches!(self.limits.passage(&job.domain, &job.input.kind, key), Passage::Limited(_))
    }
}

/// Domain and type of a lane, and its key. Whatever has none takes turns as one more domain.
fn taker(place: &Place) -> (Tenant, Kind) {
    let lane: Option<Lane> = place.as_ref().and_then(|lane| lane.parse().ok());
    lane.map_or_else(Default::default, |lane| (Some(lane.domain), (lane.kind, lane.key)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a surprise is a failure of the test")]
    use rota_model::job_type::{Bounds, TypeLimits};
    use rota_store::jobs::LanePage;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000);
    const AT: Duration = Duration::from_secs(100);

    fn lanes() -> Lanes {
        Lanes::new(vec!["mail".to_owned(), "report".to_owned()], false)
    }

    fn page(seen: &[(&str, i64)], is_last: bool) -> LanePage {
        let lanes = seen.iter().map(|(lane, at)| (Some((*lane).to_owned()), UnixMillis(*at))).collect();
        let last = seen.last().filter(|_| !is_last);
        LanePage { lanes, next: last.map(|(lane, _)| (*lane).to_owned()) }
    }

    fn look(lanes: &mut Lanes, seen: &[(&str, i64)], is_last: bool) {
        let look = lanes.begin_look();
        lanes.end_look(&look, page(seen, is_last));
    }

    fn asked(lanes: &mut Lanes, room: usize) -> Vec<(String, usize)> {
        let shares = lanes.plan(NOW, room, AT).shares.into_iter();
        shares.map(|share| (share.lane.unwrap_or_default(), share.limit)).collect()
    }

    fn named(shares: &[(&str, usize)]) -> Vec<(String, usize)> {
        shares.iter().map(|(lane, limit)| ((*lane).to_owned(), *limit)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_has_its_share_and_then_what_others_leave() {
        let mut lanes = lanes();
        look(&mut lanes, &[("a|5|mail", 1), ("a|9|mail", 1), ("b|0|report", 1), ("c|5|mail", 9_000)], true);
        let expected =
            [("a|9|mail", 2), ("b|0|report", 2), ("a|9|mail", 4), ("a|5|mail", 4), ("b|0|report", 4)];
        assert_eq!(asked(&mut lanes, 4), named(&expected));
        assert_eq!(lanes.next_after(NOW), Some(UnixMillis(9_000)));
        look(&mut lanes, &[("a|5|mail", 1), ("a|9|mail", 1)], true);
        assert_eq!(asked(&mut lanes, 4), named(&[("a|9|mail", 4), ("a|5|mail", 4)]));
        look(&mut lanes, &[("a|5|unknown", 1)], true);
        assert_eq!((asked(&mut lanes, 4), lanes.is_due(NOW)), (Vec::new(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_in_pages_is_put_together_and_forgotten_page_by_page() {
        let mut lanes = lanes();
        let known = |lanes: &Lanes| lanes.known.keys().flatten().cloned().collect::<Vec<_>>();
        look(&mut lanes, &[("a|5|mail", 1), ("b|5|mail", 1)], false);
        look(&mut lanes, &[("c|5|mail", 1), ("d|5|mail", 1)], true);
        assert_eq!(known(&lanes), ["a|5|mail", "b|5|mail", "c|5|mail", "d|5|mail"]);
        assert!(!lanes.wants_look(NOW));
        look(&mut lanes, &[("b|5|mail", 1)], false);
        assert_eq!(known(&lanes), ["b|5|mail", "c|5|mail", "d|5|mail"]);
        tokio::time::advance(LOOK_AGAIN / 2).await;
        assert!(lanes.wants_look(NOW), "there is more to see");
        look(&mut lanes, &[], true);
        assert_eq!(known(&lanes), ["b|5|mail"], "nothing is left behind it");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_expected_meanwhile_is_not_forgotten() {
        let mut lanes = lanes();
        look(&mut lanes, &[("a|5|mail", 1), ("b|5|mail", 1)], true);
        let plan = lanes.plan(NOW, 4, AT);
        lanes.expect(&job("b|5|mail"));
        lanes.took(&plan, &[], true, AT);
        assert_eq!(asked(&mut lanes, 4), named(&[("b|5|mail", 4)]), "the other was found empty");
        let look = lanes.begin_look();
        lanes.expect(&job("a|5|report"));
        lanes.end_look(&look, page(&[], true));
        assert_eq!(asked(&mut lanes, 4), named(&[("a|5|report", 4)]));
        assert!(lanes.is_due(NOW));
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_keys_some_are_known_at_a_time_and_all_have_their_turn() {
        let all: Vec<String> = (0..1_000).map(|nth| format!("a|5|mail\u{1f}{nth:04}")).collect();
        let mut store: Vec<&str> = all.iter().map(String::as_str).collect();
        store.extend(["a|5|report", "b|5|mail"]);
        let mut lanes = lanes();
        let mut seen = std::collections::BTreeSet::new();
        let read = |behind: Option<&str>| {
            let mut behind: Vec<_> =
                store.iter().filter(|lane| behind.is_none_or(|last| **lane > last)).collect();
            let is_last = behind.len() <= PAGE;
            behind.truncate(PAGE);
            page(&behind.into_iter().map(|lane| (*lane, 1)).collect::<Vec<_>>(), is_last)
        };
        for round in 0..8 {
            let mut pages = 0;
            loop {
                let look = lanes.begin_look();
                lanes.end_look(&look, read(look.behind.as_deref()));
                pages += 1;
                if lanes.position.is_none() {
                    break;
                }
            }
            assert_eq!(pages, 2, "the others are found behind the first keys");
            let round_look = lanes.begin_round().unwrap();
            lanes.end_look(&round_look, read(round_look.behind.as_deref()));
            assert!(lanes.known.len() <= 2 * PAGE + 2, "{} are known", lanes.known.len());
            assert!(lanes.known.contains_key(&Some("b|5|mail".to_owned())), "round {round}");
            seen.extend(lanes.known.keys().flatten().cloned());
        }
        assert_eq!(seen.len(), store.len());
        look(&mut lanes, &[("a|5|mail", 1), ("a|5|mail\u{1f}0001", 1)], true);
        assert!(lanes.begin_round().is_none() && lanes.known.len() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_somebody_broke_off_is_made_again() {
        let mut lanes = lanes();
        look(&mut lanes, &[], true);
        lanes.tell();
        let broken_off = lanes.begin_look();
        drop(broken_off);
        assert!(lanes.wants_look(NOW), "what it was for is still to be seen");
        look(&mut lanes, &[], true);
        assert!(!lanes.wants_look(NOW));
    }

    #[tokio::test(start_paused = true)]
    async fn many_keys_that_are_all_held_up_are_no_reason_for_haste() {
        let mut lanes = Lanes::new(vec!["mail".to_owned()], true);
        let keys: Vec<String> = (0..PAGE).map(|nth| format!("a|5|mail\u{1f}{nth:04}")).collect();
        let first: Vec<_> = keys.iter().map(|lane| (lane.as_str(), 1)).collect();
        look(&mut lanes, &first, false);
        look(&mut lanes, &[], true);
        assert!(lanes.begin_round().is_some(), "there are more keys than are known");
        look(&mut lanes, &first, false);
        look(&mut lanes, &[], true);
        assert_eq!(asked(&mut lanes, 4), [], "nobody knows yet what limits them");
        assert!(!lanes.is_due(NOW));
        assert!(!lanes.wants_look(NOW), "it was looked at just now");
        tokio::time::advance(LOOK_PAUSE).await;
        assert!(lanes.wants_look(NOW), "there are others whose turn it is to be known");
    }

    fn limited(concurrency: u32) -> Lanes {
        let mut lanes = Lanes::new(vec!["mail".to_owned(), "report".to_owned()], true);
        look(&mut lanes, &[("a|5|mail", 1), ("a|9|mail", 1), ("b|5|report", 1)], true);
        assert_eq!(asked(&mut lanes, 4), [], "nothing is known of what they limit");
        let whole = Bounds { concurrency: Some(concurrency), starts_per_second: None };
        let limits = TypeLimits { whole, ..TypeLimits::default() };
        let domain = |name: &str| name.parse::<Domain>().unwrap();
        lanes.limits.set_rule(&domain("a"), "mail", limits);
        lanes.limits.set_rule(&domain("b"), "report", TypeLimits::default());
        lanes.end_asking(AT, false, std::iter::empty());
        lanes
    }

    /// Has as many slots written for the node as it can get.
    fn reserve(lanes: &mut Lanes) {
        use rota_model::ids::{Incarnation, NodeId};
        use rota_model::limit::Limit;
        use rota_store::seam::Version;
        let node = NodeId::derived(&["one"]);
        for name in lanes.limits.balanced_now(AT, 10) {
            let mut limit = Limit::new(name.clone(), NOW, node);
            let who = (Incarnation::derived(&["one"]), node);
            lanes.limits.of_account(&name, |account| {
                let part = account.settle(&mut limit, None, who, (AT, 1), true);
                account.written(&part, Version(1), AT);
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_up_is_passed_over_and_no_more_is_asked_for_than_there_are_slots() {
        let mut lanes = limited(3);
        assert_eq!(asked(&mut lanes, 8), named(&[("b|5|report", 4), ("b|5|report", 8)]));
        assert!(lanes.is_due(NOW), "somebody else has work");
        reserve(&mut lanes);
        let plan = lanes.plan(NOW, 8, AT);
        let shares = plan.shares.iter().filter(|share| share.lane.as_deref() == Some("a|9|mail"));
        assert_eq!(shares.map(|share| share.limit).sum::<usize>(), 3);
        assert!(!plan.shares.iter().any(|share| share.lane.as_deref() == Some("a|5|mail")), "it comes later");
        lanes.took(&plan, &[], true, AT);
        let again = asked(&mut lanes, 8);
        assert_eq!(again, named(&[("a|5|mail", 3)]), "what was not brought is free again");
        assert_eq!(asked(&mut lanes, 8), [], "it is taken");
        assert!(!lanes.is_due(NOW), "nobody waits for what is held up");
    }

    fn job(lane: &str) -> Job {
        use rota_model::ids::{JobId, NodeId};
        use rota_model::job::NewJob;
        use rota_model::job::submission::Place;
        let node = NodeId::derived(&["one"]);
        let place = Place {
            domain: Domain::default(),
            job_id: JobId::derived(&[lane]),
            job_number: 1,
            sections: 64,
            accepted_by: node,
        };
        let job = NewJob::new("a job", "mail", serde_json::json!({})).into_job(place, NOW);
        Job { lane: Some(lane.to_owned()), ..job }
    }
}
