//! A schedule made ready to answer: which instant is next, which was last, how many there are.
//!
//! ```text
//!           gap                       overlap
//! 01:00   02:00│03:00           02:00   03:00│02:00   03:00
//! ──────────────┼───────── … ───────────────────┼──────────────▶ instants
//!    one stretch│   the next               the next│  and so on
//! ```
//!
//! A search goes from stretch to stretch (see [`crate::zone`]). A **rhythm**, with a wildcard or step in hours or minutes,
//! takes every instant at which the clock shows a match: it goes on by elapsed time. A **time of day** follows its policies:
//! what falls into a gap fires at the first instant after it or not at all, what comes twice fires the first time,
//! the second, or both. Several local times that meet in one instant are one instant.
//!
//! Nothing here allocates: a search is arithmetic on a few numbers.

use jiff::{SignedDuration, Timestamp};
use rota_model::timer::{DstGap, DstOverlap};

use crate::instants::Instants;
use crate::pattern::{DAY_SECONDS, Pattern};
use crate::zone::{Stretch, Zone};

/// No clock is further from UTC than this, and none ever jumped further.
const SLACK: i64 = 2 * DAY_SECONDS;

#[derive(Clone, Debug)]
pub struct Calendar {
    pub(crate) rule: Rule,
    pub(crate) zone: Zone,
    pub(crate) gap: DstGap,
    pub(crate) overlap: DstOverlap,
    /// Nothing is due before this.
    pub(crate) start: Option<Timestamp>,
    /// Nothing is due at this instant or after it.
    pub(crate) stop: Option<Timestamp>,
    pub(crate) max_executions: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Pattern(Pattern),
    /// A span, counted from `start`, or from 1970 in UTC.
    Every(SignedDuration),
    Once(Once),
}

/// A single instant, or two where a local time comes twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Once {
    pub(crate) at: Timestamp,
    pub(crate) again: Option<Timestamp>,
    /// The local time that was wanted, if the clocks jump over it.
    pub(crate) missing: Option<i64>,
}

impl Once {
    fn instants(self) -> impl DoubleEndedIterator<Item = Timestamp> {
        [Some(self.at), self.again].into_iter().flatten()
    }
}

/// A stretch that is known already, so that going on is cheaper than beginning.
pub(crate) type Known = Option<Stretch>;

impl Calendar {
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first instant after this one. What has fired so far is for the ledger to say, see [`Calendar::next_due`].
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.first_from(after(at)?, &mut None)
    }

    /// The first instant after this one, if any may fire after so many did.
    pub fn next_due(&self, at: Timestamp, fired_so_far: u32) -> Option<Timestamp> {
        let left = self.max_executions.is_none_or(|most| fired_so_far < most);
        left.then(|| self.next_after(at)).flatten()
    }

    /// The last instant before this one.
    pub fn previous_before(&self, at: Timestamp) -> Option<Timestamp> {
        let at = self.stop.map_or(at, |stop| stop.min(at));
        let found = match &self.rule {
            Rule::Pattern(pattern) => self.last_until(pattern, second_before(at)?),
            Rule::Every(span) => self.last_multiple_before(*span, at),
            Rule::Once(once) => once.instants().rfind(|found| *found < at),
        };
        found.filter(|found| *found < at && self.start.is_none_or(|start| *found >= start))
    }

    /// The instants from one on and before another, in order.
    pub fn instants(&self, from: Timestamp, until: Timestamp) -> Instants<'_> {
        Instants::new(self, from, until)
    }

    /// How many instants there are from one on and before another, without listing them: the work grows with the
    /// months in between, and not at all for spans.
    pub fn count(&self, from: Timestamp, until: Timestamp) -> u64 {
        let from = self.start.map_or(from, |start| start.max(from));
        let until = self.stop.map_or(until, |stop| stop.min(until));
        if from >= until {
            return 0;
        }
        match &self.rule {
            Rule::Pattern(pattern) => self.count_pattern(pattern, second_from(from), second_from(until)),
            Rule::Every(span) => self.count_multiples(*span, from, until),
            Rule::Once(once) => once.instants().filter(|at| (from..until).contains(at)).count() as u64,
        }
    }

    /// The first instant from this one on.
    pub(crate) fn first_from(&self, from: Timestamp, known: &mut Known) -> Option<Timestamp> {
        let from = self.start.map_or(from, |start| start.max(from));
        let found = match &self.rule {
            Rule::Pattern(pattern) => self.first_match(pattern, second_from(from), known),
            Rule::Every(span) => self.first_multiple_from(*span, from),
            Rule::Once(once) => once.instants().find(|at| *at >= from),
        };
        found.filter(|found| self.stop.is_none_or(|stop| *found < stop))
    }

    fn first_match(&self, pattern: &Pattern, from: i64, known: &mut Known) -> Option<Timestamp> {
        let mut from = from;
        let mut stretch = match known.filter(|stretch| stretch.holds(from)) {
            Some(stretch) => stretch,
            None => self.zone.stretch(from)?,
        };
        loop {
            if from == stretch.start && self.fires_after_gap(pattern, &stretch) {
                break;
            }
            let (low, high) = self.local_bounds(pattern, &stretch, from, stretch.end);
            if let Some(found) = pattern.at_or_after(low).filter(|found| *found < high) {
                from = found - stretch.offset;
                break;
            }
            from = self.next_worth_looking(pattern, &stretch)?;
            stretch = self.zone.stretch(from)?;
        }
        *known = Some(stretch);
        Timestamp::from_second(from).ok()
    }

    /// The next change of the clocks; or much later, if no local time matches until then. Yearly patterns do not visit
    /// every change on their way.
    pub(crate) fn next_worth_looking(&self, pattern: &Pattern, stretch: &Stretch) -> Option<i64> {
        if stretch.end == i64::MAX {
            return None;
        }
        let lowest = stretch.end + stretch.offset.min(stretch.after) - DAY_SECONDS;
        let match_ahead = pattern.at_or_after(lowest)?;
        Some(stretch.end.max(match_ahead - SLACK))
    }

    fn last_until(&self, pattern: &Pattern, until: i64) -> Option<Timestamp> {
        let mut until = until;
        loop {
            let stretch = self.zone.stretch(until)?;
            let (low, high) = self.local_bounds(pattern, &stretch, stretch.start, until + 1);
            if let Some(found) = pattern.at_or_before(high - 1).filter(|found| *found >= low) {
                return Timestamp::from_second(found - stretch.offset).ok();
            }
            if self.fires_after_gap(pattern, &stretch) {
                return Timestamp::from_second(stretch.start).ok();
            }
            if stretch.start == i64::MIN {
                return None;
            }
            let highest = stretch.start + stretch.offset.max(stretch.before) + DAY_SECONDS;
            until = (stretch.start - 1).min(pattern.at_or_before(highest)? + SLACK);
        }
    }

    fn count_pattern(&self, pattern: &Pattern, from: i64, until: i64) -> u64 {
        let mut from = from;
        let mut total = 0;
        while from < until
            && let Some(stretch) = self.zone.stretch(from)
        {
            let end = stretch.end.min(until);
            let (low, high) = self.local_bounds(pattern, &stretch, from, end);
            total += pattern.count(low, high);
            if from == stretch.start && self.fires_after_gap(pattern, &stretch) {
                // Unless it is an instant of its own, and counted already.
                total += u64::from(pattern.at_or_after(low) != Some(low));
            }
            from = end;
        }
        total
    }

    /// The local times of a stretch that count in it, for instants from one on and before another.
    fn local_bounds(&self, pattern: &Pattern, stretch: &Stretch, from: i64, until: i64) -> (i64, i64) {
        let low = from.saturating_add(stretch.offset);
        let high = until.saturating_add(stretch.offset);
        if pattern.is_rhythm {
            return (low, high);
        }
        match self.overlap {
            DstOverlap::First => (low.max(stretch.repeated().map_or(i64::MIN, |(_, end)| end)), high),
            DstOverlap::Second => {
                (low, high.min(stretch.repeated_later().map_or(i64::MAX, |(start, _)| start)))
            }
            DstOverlap::Both => (low, high),
        }
    }

    /// Whether the first instant of a stretch stands for local times that the clocks jumped over.
    pub(crate) fn fires_after_gap(&self, pattern: &Pattern, stretch: &Stretch) -> bool {
        !pattern.is_rhythm && self.gap == DstGap::Next && missing(pattern, stretch).is_some()
    }

    fn anchor(&self) -> Timestamp {
        self.start.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn first_multiple_from(&self, span: SignedDuration, from: Timestamp) -> Option<Timestamp> {
        let (ahead, span) = (nanoseconds_between(self.anchor(), from), span.as_nanos());
        self.multiple(ahead.div_euclid(span) + i128::from(ahead.rem_euclid(span) != 0), span)
    }

    fn last_multiple_before(&self, span: SignedDuration, at: Timestamp) -> Option<Timestamp> {
        let (ahead, span) = (nanoseconds_between(self.anchor(), at), span.as_nanos());
        self.multiple((ahead - 1).div_euclid(span), span)
    }

    fn count_multiples(&self, span: SignedDuration, from: Timestamp, until: Timestamp) -> u64 {
        let before = |at| (nanoseconds_between(self.anchor(), at) - 1).div_euclid(span.as_nanos());
        u64::try_from(before(until) - before(from)).unwrap_or_default()
    }

    fn multiple(&self, nth: i128, span: i128) -> Option<Timestamp> {
        let instant = self.anchor().as_nanosecond().checked_add(nth.checked_mul(span)?)?;
        Timestamp::from_nanosecond(instant).ok()
    }
}

/// The first local time that matches and that the clocks jumped over at the beginning of a stretch.
pub(crate) fn missing(pattern: &Pattern, stretch: &Stretch) -> Option<i64> {
    let (start, end) = stretch.gap()?;
    pattern.at_or_after(start).filter(|local| *local < end)
}

fn nanoseconds_between(earlier: Timestamp, later: Timestamp) -> i128 {
    later.as_nanosecond() - earlier.as_nanosecond()
}

/// The next instant that can be told apart from this one.
fn after(at: Timestamp) -> Option<Timestamp> {
    at.checked_add(SignedDuration::from_nanos(1)).ok()
}

/// The first whole second at an instant or after it.
pub(crate) fn second_from(at: Timestamp) -> i64 {
    let whole = at.as_nanosecond().div_euclid(1_000_000_000);
    let begun = at.as_nanosecond().rem_euclid(1_000_000_000) != 0;
    i64::try_from(whole).unwrap_or(i64::MAX) + i64::from(begun)
}

/// The last whole second before an instant.
fn second_before(at: Timestamp) -> Option<i64> {
    i64::try_from((at.as_nanosecond() - 1).div_euclid(1_000_000_000)).ok()
}
