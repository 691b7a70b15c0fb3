//! The next instants of a schedule, in UTC and in local time, with a note on each that a change of the clocks touched.

use jiff::Timestamp;
use jiff::civil::DateTime;
use rota_model::timer::preview::Occurrence;

use crate::calendar::{Calendar, Rule, missing};
use crate::pattern::{Pattern, local_clock};
use crate::zone::Stretch;

impl Calendar {
    /// The first instants from one on, at most as many as may fire.
    pub fn preview(&self, from: Timestamp, count: u32) -> Vec<Occurrence> {
        let count = self.max_executions.map_or(count, |most| most.min(count));
        let instants = self.instants(from, Timestamp::MAX).take(usize::try_from(count).unwrap_or(usize::MAX));
        instants.map(|at| self.occurrence(at)).collect()
    }

    fn occurrence(&self, at: Timestamp) -> Occurrence {
        let local = at.to_zoned(self.zone.time_zone().clone());
        Occurrence {
            at,
            local: local.timestamp().display_with_offset(local.offset()).to_string(),
            zone: self.zone.name().to_owned(),
            note: self.note(at),
        }
    }

    /// How a change of the clocks touched an instant of this schedule.
    fn note(&self, at: Timestamp) -> Option<String> {
        let stretch = self.zone.stretch(at.as_second())?;
        match &self.rule {
            Rule::Every(_) => None,
            Rule::Once(once) => {
                once.missing.map(|local| moved(local, &stretch)).or_else(|| doubled(at, &stretch))
            }
            Rule::Pattern(pattern) => {
                doubled(at, &stretch).or_else(|| self.note_about_gap(pattern, at, &stretch))
            }
        }
    }

    /// Right behind a gap in which something would have been due.
    fn note_about_gap(&self, pattern: &Pattern, at: Timestamp, stretch: &Stretch) -> Option<String> {
        let local = missing(pattern, stretch)?;
        let is_first = at.as_second() == stretch.start
            || self.previous_before(at).is_none_or(|before| before.as_second() < stretch.start);
        match self.fires_after_gap(pattern, stretch) {
            true if at.as_second() == stretch.start => Some(moved(local, stretch)),
            false if is_first => Some(left_out(local, stretch)),
            _ => None,
        }
    }
}

fn moved(local: i64, stretch: &Stretch) -> String {
    let clock = local_clock(local);
    format!("{} does not exist on {}: {}; due right after", time(clock), clock.date(), change(stretch))
}

fn left_out(local: i64, stretch: &Stretch) -> String {
    let clock = local_clock(local);
    format!("{} does not exist on {}: {}; left out before this", time(clock), clock.date(), change(stretch))
}

/// A local time that the clocks show twice.
fn doubled(at: Timestamp, stretch: &Stretch) -> Option<String> {
    let local = at.as_second() + stretch.offset;
    let lies_in = |range: Option<(i64, i64)>| range.is_some_and(|(start, end)| (start..end).contains(&local));
    let (which, from, to) = if lies_in(stretch.repeated()) {
        ("second", stretch.start + stretch.before, stretch.start + stretch.offset)
    } else if lies_in(stretch.repeated_later()) {
        ("first", stretch.end + stretch.offset, stretch.end + stretch.after)
    } else {
        return None;
    };
    let clock = local_clock(local);
    let change = change_between(from, to);
    Some(format!("{} comes twice on {}: {change}; this is the {which}", time(clock), clock.date()))
}

fn change(stretch: &Stretch) -> String {
    change_between(stretch.start + stretch.before, stretch.start + stretch.offset)
}

fn change_between(before: i64, after: i64) -> String {
    let (before, after) = (local_clock(before), local_clock(after));
    let way = if after < before { "go back" } else { "go" };
    if before.date() == after.date() {
        return format!("clocks {way} from {} to {}", time(before), time(after));
    }
    let (from, to) = (before.date(), after.date());
    format!("clocks {way} from {from} {} to {to} {}", time(before), time(after))
}

/// `02:30`, with seconds where there are any.
fn time(clock: DateTime) -> String {
    let form = if clock.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    clock.strftime(form).to_string()
}
