//! The next instants of a schedule, in UTC and in local time, with a note on each that a change of the clocks touched.

use jiff::Timestamp;
use jiff::civil::DateTime;
use rota_model::timer::DstGap;
use rota_model::timer::preview::Occurrence;

use crate::calendar::{Calendar, Rule, missing, second_from};
use crate::pattern::{Pattern, local_clock};
use crate::zone::Stretch;

impl Calendar {
    /// The first instants from one on, at most as many as may fire.
    pub fn preview(&self, from: Timestamp, count: u32) -> Vec<Occurrence> {
        let count = self.max_executions.map_or(count, |most| most.min(count));
        let instants = self.instants(from, Timestamp::MAX).take(usize::try_from(count).unwrap_or(usize::MAX));
        let mut since = second_from(self.start.map_or(from, |start| start.max(from)));
        let mut occurrences = Vec::new();
        for at in instants {
            occurrences.push(self.occurrence(since, at));
            since = at.as_second() + 1;
        }
        occurrences
    }

    /// Why a preview from this instant on is empty; nothing if it is not.
    pub fn why_never(&self, from: Timestamp) -> Option<String> {
        if self.first_from(from, &mut None).is_some() {
            return None;
        }
        let last = self.previous_before(from).map(|last| format!("; the last time was {last}"));
        let reason = match (&self.rule, self.stop) {
            (_, Some(stop)) => format!("; it stops at {stop}"),
            (Rule::Pattern(_), None) if self.gap == DstGap::Skip => {
                "; the clocks jump over every later time, and dst_gap is skip".to_owned()
            }
            _ => String::new(),
        };
        Some(format!("Never due from {from} on{reason}{}.", last.unwrap_or_default()))
    }

    fn occurrence(&self, since: i64, at: Timestamp) -> Occurrence {
        let local = at.to_zoned(self.zone.time_zone().clone());
        Occurrence {
            at,
            local: local.timestamp().display_with_offset(local.offset()).to_string(),
            zone: self.zone.name().to_owned(),
            note: self.note(since, at),
        }
    }

    /// How changes of the clocks touched an instant of this schedule, or left out what was due since the one before.
    fn note(&self, since: i64, at: Timestamp) -> Option<String> {
        let stretch = self.zone.stretch(at.as_second())?;
        let notes = match &self.rule {
            Rule::Every(_) => return None,
            Rule::Once(once) => [once.missing.map(|local| moved(local, &stretch)), doubled(at, &stretch)],
            Rule::Pattern(pattern) => {
                let touched = doubled(at, &stretch).or_else(|| self.moved_here(pattern, at, &stretch));
                [self.left_out_between(pattern, since, at.as_second()), touched]
            }
        };
        let notes: Vec<_> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join(". "))
    }

    fn moved_here(&self, pattern: &Pattern, at: Timestamp, stretch: &Stretch) -> Option<String> {
        let stands_for_it = at.as_second() == stretch.start && self.fires_after_gap(pattern, stretch);
        stands_for_it.then(|| missing(pattern, stretch)).flatten().map(|local| moved(local, stretch))
    }

    /// What would have been due in a gap that ended from one second on and not after another.
    fn left_out_between(&self, pattern: &Pattern, since: i64, until: i64) -> Option<String> {
        let following = |stretch: &Stretch| {
            let next = self.next_worth_looking(pattern, stretch).filter(|next| *next <= until)?;
            self.zone.stretch(next)
        };
        let stretches = std::iter::successors(self.zone.stretch(since), following);
        let mut left_out = stretches
            .filter(|stretch| stretch.start >= since && !self.fires_after_gap(pattern, stretch))
            .filter_map(|stretch| missing(pattern, &stretch).map(|local| (local, stretch)));
        let (local, stretch) = left_out.next()?;
        let more = match left_out.count() {
            0 => String::new(),
            1 => ", and on 1 more day".to_owned(),
            more => format!(", and on {more} more days"),
        };
        Some(format!("{}; left out before this{more}", does_not_exist(local, &stretch)))
    }
}

fn moved(local: i64, stretch: &Stretch) -> String {
    format!("{}; due right after", does_not_exist(local, stretch))
}

fn does_not_exist(local: i64, stretch: &Stretch) -> String {
    let clock = local_clock(local);
    format!("{} does not exist on {}: {}", time(clock), clock.date(), change(stretch))
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
pub(crate) fn time(clock: DateTime) -> String {
    let form = if clock.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    clock.strftime(form).to_string()
}
