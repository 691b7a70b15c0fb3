//! Whose turn it is. Domains with due work take turns, by their weights; within a domain its types take turns; and of a type
//! the most urgent jobs come first. So a single job is next when a slot frees, whatever waits elsewhere.
//!
//! What waits where is read now and then, and remembered: each lane with the earliest instant at which one of its jobs is
//! due. A lane that is empty by now costs a claim one look in vain; a lane that is not known yet is found with the next look.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::{Job, Lane};
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::cursor::Cursor;
use rota_store::jobs::{LanePage, Share};
use tokio::time::Instant;

use super::LOOK_AGAIN;
use super::turns::Turns;

/// A claim asks so many lanes at most.
const MOST_LANES: usize = 256;
/// While there is something to claim, a look is made no sooner than this after the last one, and not before so many times
/// as long as that took.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
const LOOK_SHARE: u32 = 10;

/// How long the weights of domains are believed.
const WEIGHTS_HOLD: Duration = Duration::from_secs(10);

/// A lane as it is written; none for jobs that have none.
type Place = Option<String>;
/// Who takes turns in the first place; none for jobs without a lane.
type Tenant = Option<Domain>;

#[derive(Default)]
pub(super) struct Lanes {
    /// The types that the node runs; lanes of others are not remembered.
    types: Vec<String>,
    known: BTreeMap<Place, Known>,
    /// The earliest of them.
    next_due: Option<UnixMillis>,
    tenants: Turns<Tenant>,
    kinds: BTreeMap<Tenant, Turns<String>>,
    weights: BTreeMap<Domain, u32>,
    /// How many jobs were expected: what is expected while somebody looks or claims is not forgotten for what that found.
    expected: u64,
    /// Whether something may wait where nobody looked yet.
    stale: bool,
    /// When the last look ended, and how long it took.
    looked: Option<(Instant, Duration)>,
    weighed: Option<Instant>,
    /// How far the look through all lanes has come.
    position: Option<Cursor>,
}

/// What is known of a lane.
struct Known {
    tenant: Tenant,
    kind: String,
    /// When the first of its jobs is due.
    run_at: UnixMillis,
    /// How many jobs had been expected when the last one was expected here.
    expected: u64,
}

/// A look that is under way.
pub(super) struct Look {
    pub(super) position: Option<Cursor>,
    began: Instant,
    expected: u64,
}

/// The lanes with due work, by domain and type; of each type the most urgent first.
type Due<'a> = BTreeMap<Tenant, BTreeMap<String, Vec<&'a Place>>>;

/// From where a claim takes how much.
pub(super) struct Plan {
    pub(super) shares: Vec<Share>,
    /// Whether these are all the lanes that have due work.
    pub(super) is_whole: bool,
    /// The share of each, in the order in which they were asked.
    parts: Vec<(Tenant, Vec<(String, usize)>)>,
    asked: Vec<Place>,
    expected: u64,
}

impl Lanes {
    pub(super) fn new(types: Vec<String>) -> Self {
        Self { types, ..Self::default() }
    }

    /// Something may wait where nobody looked yet.
    pub(super) fn tell(&mut self) {
        self.stale = true;
    }

    /// A job was stored that waits.
    pub(super) fn expect(&mut self, job: &Job) {
        self.expected += 1;
        let expected = self.expected;
        let Some(lane) = self.learn(&job.lane, job.run_at) else { return };
        lane.expected = expected;
        self.next_due = self.next_due.into_iter().chain([job.run_at]).min();
    }

    /// A job waits there from then on. None if the node does not run it.
    fn learn(&mut self, place: &Place, run_at: UnixMillis) -> Option<&mut Known> {
        if !self.known.contains_key(place) {
            let (tenant, kind) = taker(place);
            if tenant.is_some() && !self.types.contains(&kind) {
                return None;
            }
            self.known.insert(place.clone(), Known { tenant, kind, run_at, expected: 0 });
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
        let since = ended.elapsed();
        let pause = if self.is_due(now) { LOOK_PAUSE.max(took * LOOK_SHARE) } else { Duration::ZERO };
        since >= pause.max(LOOK_AGAIN) || since >= pause && (self.stale || self.position.is_some())
    }

    /// What is told from now on is for a look after this one, through all lanes.
    pub(super) fn begin_look(&mut self) -> Look {
        self.stale &= self.position.is_some();
        Look { position: self.position.clone(), began: Instant::now(), expected: self.expected }
    }

    /// What was seen takes the place of what was known about that part of the lanes.
    pub(super) fn end_look(&mut self, look: &Look, page: LanePage) {
        let LanePage { lanes, next } = page;
        let behind = look
            .position
            .as_ref()
            .map(|cursor| -> Place { cursor.key.first().and_then(|lane| Some(lane.as_str()?.to_owned())) });
        let to = next.as_ref().and_then(|_| lanes.last()).map(|(place, _)| place.clone());
        self.known.retain(|place, known| {
            known.expected > look.expected
                || behind.as_ref().is_some_and(|behind| place <= behind)
                || to.as_ref().is_some_and(|to| place > to)
        });
        for (place, run_at) in lanes {
            self.learn(&place, run_at);
        }
        self.position = next;
        self.looked = Some((Instant::now(), look.began.elapsed()));
        self.find_next_due();
    }

    /// Whether there is more to see before it is known that nothing is due.
    pub(super) fn goes_on(&self, now: UnixMillis) -> bool {
        self.position.is_some() && !self.is_due(now)
    }

    fn find_next_due(&mut self) {
        self.next_due = self.known.values().map(|known| known.run_at).min();
    }

    /// Whether the weights of domains matter and were not read for a while.
    pub(super) fn wants_weights(&self) -> bool {
        let mut tenants = self.known.values().map(|known| &known.tenant);
        let first = tenants.next();
        let several = tenants.any(|tenant| Some(tenant) != first);
        several && self.weighed.is_none_or(|at| at.elapsed() >= WEIGHTS_HOLD)
    }

    /// Those that were read; if they could not be, the old ones hold for a while longer.
    pub(super) fn set_weights(&mut self, weights: Option<BTreeMap<Domain, u32>>) {
        self.weights = weights.unwrap_or_else(|| std::mem::take(&mut self.weights));
        self.weighed = Some(Instant::now());
    }

    /// From where to take this many jobs. First each one's share, the one whose turn it is first; then, for
    /// what those do not use, whatever there is, in the same order.
    pub(super) fn plan(&self, now: UnixMillis, room: usize) -> Plan {
        let due = self.due(now);
        let is_alone = due.len() == 1 && due.values().all(|kinds| kinds.len() == 1);
        let of = |tenant: &Tenant, kind: &String, place: &Place, limit| {
            let types = if tenant.is_some() { vec![kind.clone()] } else { self.types.clone() };
            Share { lane: place.clone(), types, limit }
        };
        let (mut shares, mut rest) = (Vec::new(), Vec::new());
        let (mut parts, mut asked) = (Vec::new(), Vec::new());
        for (tenant, part) in self.tenants.share(due.keys(), room, |tenant| self.weight(tenant)) {
            let Some(kinds) = due.get(&tenant) else { continue };
            let unknown = Turns::default();
            let turns = self.kinds.get(&tenant).unwrap_or(&unknown);
            let limits = turns.share(kinds.keys(), part, |_| 1);
            for (kind, limit) in &limits {
                let places = kinds.get(kind).map_or(&[][..], Vec::as_slice);
                if !is_alone && *limit > 0 {
                    shares.extend(places.first().map(|place| of(&tenant, kind, place, *limit)));
                }
                rest.extend(places.iter().map(|place| of(&tenant, kind, place, room)));
                asked.extend(places.iter().map(|place| (*place).clone()));
            }
            parts.push((tenant, limits));
        }
        let is_whole = rest.len() <= MOST_LANES;
        shares.extend(rest.into_iter().take(MOST_LANES));
        asked.truncate(MOST_LANES);
        Plan { shares, is_whole, parts, asked, expected: self.expected }
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

    /// This is what was claimed by a plan. If that was less than there was room for, nothing is left that is due where it
    /// asked; whether something waits there for its time is to be seen.
    pub(super) fn took(&mut self, plan: &Plan, claimed: &[Versioned<Job>], is_short: bool) {
        let mut had: BTreeMap<Tenant, BTreeMap<String, usize>> = BTreeMap::new();
        for job in claimed {
            let (tenant, kind) = taker(&job.document.lane);
            *had.entry(tenant).or_default().entry(kind).or_default() += 1;
        }
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
            for place in &plan.asked {
                if self.known.get(place).is_some_and(|known| known.expected <= plan.expected) {
                    self.known.remove(place);
                    self.stale = true;
                }
            }
            self.find_next_due();
        }
    }

    fn weight(&self, tenant: &Tenant) -> u32 {
        weight_in(&self.weights, tenant)
    }
}

fn weight_in(weights: &BTreeMap<Domain, u32>, tenant: &Tenant) -> u32 {
    tenant.as_ref().and_then(|domain| weights.get(domain)).copied().unwrap_or(1)
}

/// Domain and type of a lane. Whatever has none takes turns as one more domain.
fn taker(place: &Place) -> (Tenant, String) {
    let lane: Option<Lane> = place.as_ref().and_then(|lane| lane.parse().ok());
    lane.map_or_else(Default::default, |lane| (Some(lane.domain), lane.kind))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a surprise is a failure of the test")]
    use rota_store::collection::JOBS;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000);

    fn lanes() -> Lanes {
        Lanes::new(vec!["mail".to_owned(), "report".to_owned()])
    }

    fn page(seen: &[(&str, i64)], is_last: bool) -> LanePage {
        let lanes = seen.iter().map(|(lane, at)| (Some((*lane).to_owned()), UnixMillis(*at))).collect();
        let last = seen.last().filter(|_| !is_last);
        LanePage { lanes, next: last.map(|(lane, _)| Cursor::behind_id(lane, &JOBS)) }
    }

    fn look(lanes: &mut Lanes, seen: &[(&str, i64)], is_last: bool) {
        let look = lanes.begin_look();
        lanes.end_look(&look, page(seen, is_last));
    }

    fn asked(lanes: &Lanes, room: usize) -> Vec<(String, usize)> {
        let shares = lanes.plan(NOW, room).shares.into_iter();
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
        assert_eq!(asked(&lanes, 4), named(&expected));
        assert_eq!(lanes.next_after(NOW), Some(UnixMillis(9_000)));
        look(&mut lanes, &[("a|5|mail", 1), ("a|9|mail", 1)], true);
        assert_eq!(asked(&lanes, 4), named(&[("a|9|mail", 4), ("a|5|mail", 4)]));
        look(&mut lanes, &[("a|5|unknown", 1)], true);
        assert_eq!((asked(&lanes, 4), lanes.is_due(NOW)), (Vec::new(), false));
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
        let plan = lanes.plan(NOW, 4);
        lanes.expect(&job("b|5|mail"));
        lanes.took(&plan, &[], true);
        assert_eq!(asked(&lanes, 4), named(&[("b|5|mail", 4)]), "the other was found empty");
        let look = lanes.begin_look();
        lanes.expect(&job("a|5|report"));
        lanes.end_look(&look, page(&[], true));
        assert_eq!(asked(&lanes, 4), named(&[("a|5|report", 4)]));
        assert!(lanes.is_due(NOW));
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
