//! From where a claim takes how much: each one's share first, and then whatever there is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::job::Job;
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::jobs::Share;

use super::{Due, Kind, Lanes, Place, Tenant};
use crate::processor::limits::{Gate, Limits, Passage};
use crate::processor::turns::Turns;

/// A claim asks so many lanes at most for what others leave.
const MOST_LANES: usize = 256;

/// The share of each, in the order in which they are asked.
type Parts = Vec<(Tenant, Vec<(Kind, usize)>)>;

pub(in crate::processor) struct Plan {
    pub(in crate::processor) shares: Vec<Share>,
    /// Whether these are all the lanes that have due work and are not held up.
    pub(in crate::processor) is_whole: bool,
    pub(super) parts: Parts,
    pub(super) asked: Vec<Place>,
    pub(super) expected: u64,
    /// What was allotted to lanes that are limited.
    allotted: BTreeMap<Place, Allotted>,
    /// How many rules had come by then: what comes later may limit what it claims.
    pub(in crate::processor) came: u32,
}

/// What a lane that is limited may bring.
struct Allotted {
    gate: Gate,
    count: u32,
}

impl Plan {
    /// The limits that a job is under which was claimed by this plan.
    pub(in crate::processor) fn gate(&self, job: &Job) -> Option<Gate> {
        if self.allotted.is_empty() {
            return None;
        }
        self.allotted.get(&job.lane).map(|allotted| allotted.gate.clone())
    }
}

impl Lanes {
    /// From where to take this many jobs. First each one's share, the one whose turn it is first; then, for what those do
    /// not use, whatever there is, in the same order. What is limited has no more than its limits let through.
    pub(in crate::processor) fn plan(&mut self, now: UnixMillis, room: usize, at: Duration) -> Plan {
        let mut limits = std::mem::take(&mut self.limits);
        let due = self.due(now);
        let parts = self.parts(&due, room);
        let is_alone = due.len() == 1 && due.values().all(|kinds| kinds.len() == 1);
        let mut draft = Draft::new(room, at, is_alone);
        for turn in [Turn::First, Turn::Rest] {
            for (tenant, kinds) in &parts {
                for (kind, share) in kinds {
                    let places = due.get(tenant).and_then(|due| due.get(kind)).map_or(&[][..], Vec::as_slice);
                    let passage = match tenant {
                        Some(domain) if self.has_limits => limits.passage(domain, &kind.0, kind.1.as_deref()),
                        _ => Passage::Free,
                    };
                    let types = if tenant.is_some() { std::slice::from_ref(&kind.0) } else { &self.types };
                    draft.take(turn, &mut limits, &passage, Asked { places, types, share: *share });
                }
            }
        }
        let (plan, held_up) = draft.plan(parts, self.expected, limits.came);
        self.limits = limits;
        self.hold_up(&held_up);
        plan
    }

    fn parts(&self, due: &Due<'_>, room: usize) -> Parts {
        let mut parts = Vec::new();
        for (tenant, part) in self.tenants.share(due.keys(), room, |tenant| self.weight(tenant)) {
            let Some(kinds) = due.get(&tenant) else { continue };
            let unknown = Turns::default();
            let turns = self.kinds.get(&tenant).unwrap_or(&unknown);
            parts.push((tenant, turns.share(kinds.keys(), part, |_| 1)));
        }
        parts
    }

    fn hold_up(&mut self, places: &BTreeSet<Place>) {
        if !self.holds_up && places.is_empty() {
            return;
        }
        self.holds_up = !places.is_empty();
        for (place, known) in &mut self.known {
            known.is_held_up = places.contains(place);
        }
        self.find_next_due();
    }

    /// What was allotted and not used is free again. Says which lanes brought all that they might: there may be more.
    pub(super) fn put_back(
        &mut self,
        plan: &Plan,
        claimed: &[Versioned<Job>],
        at: Duration,
    ) -> BTreeSet<Place> {
        let mut exhausted = BTreeSet::new();
        for (place, Allotted { gate, count }) in &plan.allotted {
            let brought = claimed.iter().filter(|job| job.document.lane == *place).count();
            let left = count.saturating_sub(u32::try_from(brought).unwrap_or(u32::MAX));
            self.limits.put_back(gate, left, at);
            if left == 0 {
                exhausted.insert(place.clone());
            }
        }
        exhausted
    }

    /// A claim by this plan did not happen, or nobody knows: then what it was for is kept until that is known.
    pub(in crate::processor) fn took_nothing(&mut self, plan: &Plan, is_lost: bool, at: Duration) {
        for Allotted { gate, count } in plan.allotted.values() {
            if is_lost {
                self.limits.lose(gate.clone(), *count);
            } else {
                self.limits.put_back(gate, *count, at);
            }
        }
    }
}

/// Whether each has its share, or what is left is handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Rest,
}

/// Whoever has its turn: its lanes, the most urgent first.
struct Asked<'a> {
    places: &'a [&'a Place],
    types: &'a [String],
    share: usize,
}

impl Asked<'_> {
    fn share(&self, place: &Place, limit: usize) -> Share {
        Share { lane: place.clone(), types: self.types.to_vec(), limit }
    }
}

/// A plan in the making.
struct Draft {
    room: usize,
    at: Duration,
    /// Whether there is only one who may have anything.
    is_alone: bool,
    /// How many more slots may be wanted: no more than there is room for.
    wants: u32,
    first: Vec<Share>,
    rest: Vec<Share>,
    allotted: BTreeMap<Place, Allotted>,
    held_up: BTreeSet<Place>,
}

impl Draft {
    fn new(room: usize, at: Duration, is_alone: bool) -> Self {
        let wants = u32::try_from(room).unwrap_or(u32::MAX);
        let (first, rest) = (Vec::new(), Vec::new());
        Self { room, at, is_alone, wants, first, rest, allotted: BTreeMap::new(), held_up: BTreeSet::new() }
    }

    fn take(&mut self, turn: Turn, limits: &mut Limits, passage: &Passage, asked: Asked<'_>) {
        match (passage, turn) {
            (Passage::Unknown, _) => self.hold_up(asked.places),
            (Passage::Free, Turn::First) if self.is_alone || asked.share == 0 => {}
            (Passage::Free, Turn::First) => {
                self.first.extend(asked.places.first().map(|place| asked.share(place, asked.share)));
            }
            (Passage::Free, Turn::Rest) => {
                self.rest.extend(asked.places.iter().map(|place| asked.share(place, self.room)));
            }
            (Passage::Limited(gate), Turn::First) => {
                self.take_limited(turn, limits, gate, &asked, asked.share);
            }
            (Passage::Limited(gate), Turn::Rest) => {
                self.take_limited(turn, limits, gate, &asked, self.room);
                self.want(limits, gate, &asked);
            }
        }
    }

    /// The most urgent lane has what its limits let through; those behind it have their turn when it is empty.
    fn take_limited(&mut self, turn: Turn, limits: &mut Limits, gate: &Gate, asked: &Asked<'_>, most: usize) {
        let available = limits.available(gate, self.at).min(u32::try_from(most).unwrap_or(u32::MAX));
        let Some(place) = asked.places.first().filter(|_| available > 0) else { return };
        limits.allot(gate, available, self.at);
        let allotted = self.allotted.entry((*place).clone());
        allotted.or_insert_with(|| Allotted { gate: gate.clone(), count: 0 }).count += available;
        let share = asked.share(place, available as usize);
        if turn == Turn::First { self.first.push(share) } else { self.rest.push(share) }
    }

    /// More could be used than there is.
    fn want(&mut self, limits: &mut Limits, gate: &Gate, asked: &Asked<'_>) {
        let count = if self.is_alone { self.room } else { asked.share.max(1) };
        let count = self.wants.min(u32::try_from(count).unwrap_or(u32::MAX));
        if count > 0 {
            self.wants -= limits.want(gate, count, self.at).min(count);
        }
        if !asked.places.first().is_some_and(|place| self.allotted.contains_key(*place)) {
            self.hold_up(asked.places);
        }
    }

    fn hold_up(&mut self, places: &[&Place]) {
        self.held_up.extend(places.iter().map(|place| (*place).clone()));
    }

    fn plan(self, parts: Parts, expected: u64, came: u32) -> (Plan, BTreeSet<Place>) {
        let Self { first, mut rest, allotted, held_up, .. } = self;
        let is_whole = rest.len() <= MOST_LANES;
        rest.truncate(MOST_LANES);
        let limited = first.iter().map(|share| &share.lane).filter(|lane| allotted.contains_key(*lane));
        let asked = rest.iter().map(|share| &share.lane).chain(limited).cloned().collect();
        let shares = first.into_iter().chain(rest).collect();
        (Plan { shares, is_whole, parts, asked, expected, allotted, came }, held_up)
    }
}
