//! A schedule in plain words.

use jiff::{SignedDuration, Timestamp};
use rota_model::timer::{DstGap, DstOverlap};

use crate::calendar::{Calendar, Rule};
use crate::days::{Days, OfMonth, OfWeek, members};
use crate::pattern::{Pattern, bit, highest, local_clock};
use crate::preview::time;

/// As many times of day are listed one by one.
const MAX_LISTED_TIMES: u32 = 6;
const ALL_HOURS: u64 = 0xff_ffff;
const ALL_SIXTY: u64 = 0xfff_ffff_ffff_ffff;
const ALL_MONTHS: u64 = 0x1ffe;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Calendar {
    /// When it is due, and what changes of the clocks do to it, in sentences; and whether that is over, as seen from now.
    pub fn explain(&self, now: Timestamp) -> String {
        let mut sentences = vec![self.explain_rule()];
        sentences.extend(self.explain_changes(now));
        sentences.extend(self.explain_window());
        sentences.extend(self.why_never(now));
        sentences.join(" ")
    }

    fn explain_rule(&self) -> String {
        let zone = self.zone.name();
        match &self.rule {
            Rule::Pattern(pattern) => format!("{}, {}, in {zone}.", times(pattern), days(pattern)),
            Rule::Every(span) => {
                let since = self.start.map_or("1970-01-01T00:00:00Z".to_owned(), |start| start.to_string());
                format!("Every {}, counted from {since}, whatever the clocks show.", span_in_words(*span))
            }
            Rule::Once(once) => {
                let local = once.at.to_zoned(self.zone.time_zone().clone());
                let missing = once.missing.map(|local| time(local_clock(local)));
                let missing = missing.map(|wanted| format!(", since {wanted} does not exist there that day"));
                let again = once.again.map(|_| ", and again when the clocks show it again".to_owned());
                let remark = missing.or(again).unwrap_or_default();
                format!("Once, on {} in {zone}{remark}.", local.strftime("%Y-%m-%d at %H:%M:%S"))
            }
        }
    }

    /// What becomes of local times that do not exist or come twice; nothing where clocks never change.
    fn explain_changes(&self, now: Timestamp) -> Option<String> {
        let Rule::Pattern(pattern) = &self.rule else { return None };
        if !self.zone.changes() {
            return None;
        }
        // An hour more or less is nothing to what is the same in every hour.
        if pattern.is_rhythm && pattern.hours == ALL_HOURS && self.zone.changes_by_hours(now) {
            return Some("When clocks change it goes on by elapsed time.".to_owned());
        }
        let gap = match self.gap {
            DstGap::Next if !pattern.is_rhythm => "is due right after the change",
            DstGap::Next | DstGap::Skip => "is left out",
        };
        let overlap = match self.overlap {
            _ if pattern.is_rhythm => "is due both times",
            DstOverlap::First => "is due the first time",
            DstOverlap::Second => "is due the second time",
            DstOverlap::Both => "is due both times",
        };
        Some(format!("A time that the clocks jump over {gap}; one that they show twice {overlap}."))
    }

    fn explain_window(&self) -> Option<String> {
        let from = self.start.map(|start| format!("from {start} on"));
        let until = self.stop.map(|stop| format!("before {stop}"));
        let most = self.max_executions.map(|most| match most {
            1 => "once at most".to_owned(),
            most => format!("{most} times at most"),
        });
        let parts: Vec<_> = [from, until, most].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("Only {}.", parts.join(", ")))
    }
}

/// `7 days`, `1 hour and 30 minutes`; `day` for a single one.
fn span_in_words(span: SignedDuration) -> String {
    let seconds = span.as_secs();
    let units = [
        (seconds / 86_400, "day"),
        (seconds / 3_600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let units: Vec<_> = units.into_iter().filter(|(number, _)| *number > 0).collect();
    if let [(1, unit)] = units.as_slice() {
        return (*unit).to_owned();
    }
    listed(units.into_iter().map(|(number, unit)| match number {
        1 => format!("1 {unit}"),
        number => format!("{number} {unit}s"),
    }))
}

fn times(pattern: &Pattern) -> String {
    let Pattern { seconds, minutes, hours, .. } = *pattern;
    let number = seconds.count_ones() * minutes.count_ones() * hours.count_ones();
    if !pattern.is_rhythm && number <= MAX_LISTED_TIMES {
        return format!("At {}", listed(clock_times(pattern)));
    }
    if seconds == bit(0) {
        return match step_of(minutes, 60) {
            Some(step) => format!("Every {}{}", stepped("minute", step), within_hours(pattern)),
            None => format!("At {} of {}", counted("minute", minutes), of_hours(hours)),
        };
    }
    let in_minutes = match step_of(minutes, 60) {
        Some(step) => format!("every {}{}", nth("minute", step), within_hours(pattern)),
        None => format!("{} of {}", counted("minute", minutes), of_hours(hours)),
    };
    match step_of(seconds, 60) {
        Some(step) if minutes == ALL_SIXTY => {
            format!("Every {}{}", stepped("second", step), within_hours(pattern))
        }
        Some(step) => format!("Every {} of {in_minutes}", stepped("second", step)),
        None => format!("At {} of {in_minutes}", counted("second", seconds)),
    }
}

/// The hours of a rhythm that goes on evenly in them: from its first time to its last where they follow one another.
fn within_hours(pattern: &Pattern) -> String {
    let hours = pattern.hours;
    if hours == ALL_HOURS {
        return String::new();
    }
    if runs(hours).count() > 1 {
        return format!(" in {}", of_hours(hours));
    }
    let (first, last) = (hours.trailing_zeros(), highest(hours));
    let (from, to) = (pattern.minutes.trailing_zeros(), highest(pattern.minutes));
    format!(" from {first:02}:{from:02} to {last:02}:{to:02}")
}

fn of_hours(hours: u64) -> String {
    match step_of(hours, 24) {
        Some(1) => "every hour".to_owned(),
        Some(step) => format!("every {} from 0 on", nth("hour", step)),
        None => counted("hour", hours),
    }
}

/// `minute`, `15 minutes`.
fn stepped(unit: &str, step: u32) -> String {
    if step == 1 { unit.to_owned() } else { format!("{step} {unit}s") }
}

/// `minute`, `2nd minute`.
fn nth(unit: &str, step: u32) -> String {
    if step == 1 { unit.to_owned() } else { format!("{} {unit}", ordinal(step)) }
}

fn clock_times(pattern: &Pattern) -> Vec<String> {
    let shows_seconds = pattern.seconds != bit(0);
    let mut times = Vec::new();
    for hour in members(pattern.hours) {
        for minute in members(pattern.minutes) {
            let to_the_second = members(pattern.seconds).map(|second| match shows_seconds {
                true => format!("{hour:02}:{minute:02}:{second:02}"),
                false => format!("{hour:02}:{minute:02}"),
            });
            times.extend(to_the_second);
        }
    }
    times
}

/// The step of a set that goes evenly through all of a dial, from 0 on; a single number is no step.
fn step_of(set: u64, dial: u32) -> Option<u32> {
    let number = Some(set.count_ones()).filter(|number| *number > 1)?;
    let step = dial.checked_div(number).filter(|step| step * number == dial)?;
    (0..number).all(|nth| set & bit(nth * step) != 0).then_some(step)
}

fn days(pattern: &Pattern) -> String {
    let Days { of_month, of_week, either } = &pattern.days;
    let by_month = (!of_month.is_every()).then(|| dates(of_month));
    let by_week = (!of_week.is_every()).then(|| weekdays(of_week));
    let days = match (by_month, by_week) {
        (Some(days), None) | (None, Some(days)) if !either => format!("on {days}"),
        (Some(dates), Some(weekdays)) if *either => format!("on {dates} and on {weekdays}, whichever it is"),
        (Some(dates), Some(weekdays)) => format!("on {dates} if it is one of {weekdays}"),
        // Neither restricts anything; or either is enough, and one of them is every day.
        _ => "every day".to_owned(),
    };
    match pattern.months {
        ALL_MONTHS => days,
        some => format!("{days}, in {}", listed(names(some, 1, &MONTHS))),
    }
}

fn dates(of_month: &OfMonth) -> String {
    let mut parts = Vec::new();
    if of_month.dates != 0 {
        parts.push(format!("{} of the month", counted("day", of_month.dates)));
    }
    parts.extend(
        members(of_month.nearest).map(|date| format!("the weekday nearest to the {}", ordinal(date))),
    );
    parts.extend(members(of_month.before_last).map(|back| match back {
        0 => "the last day of the month".to_owned(),
        1 => "the day before the last of the month".to_owned(),
        back => format!("the day {back} days before the last of the month"),
    }));
    if of_month.last_weekday {
        parts.push("the last weekday of the month".to_owned());
    }
    if let Some(date) = of_month.at_latest {
        parts.push(format!("day {date} of the month, or the last of a shorter one"));
    }
    listed(parts)
}

fn weekdays(of_week: &OfWeek) -> String {
    let mut parts = Vec::new();
    if of_week.weekdays != 0 {
        parts.extend(names(of_week.weekdays, 0, &WEEKDAYS));
    }
    for (nth, set) in (1..).zip(of_week.nth) {
        parts.extend(
            names_one_by_one(set, 0, &WEEKDAYS).map(|day| format!("the {} {day} of the month", ordinal(nth))),
        );
    }
    parts.extend(
        names_one_by_one(of_week.last, 0, &WEEKDAYS).map(|day| format!("the last {day} of the month")),
    );
    listed(parts)
}

/// `minute 5`, `minutes 0, 7 and 14`.
fn counted(what: &str, set: u64) -> String {
    let plural = if set.count_ones() == 1 { "" } else { "s" };
    format!("{what}{plural} {}", listed(in_runs(set, |number| number.to_string())))
}

fn names(set: u64, first: usize, names: &'static [&str]) -> Vec<String> {
    in_runs(set, |number| name(number, first, names))
}

fn names_one_by_one(set: u64, first: usize, names: &'static [&str]) -> impl Iterator<Item = String> {
    members(set).map(move |number| name(number, first, names))
}

fn name(number: u32, first: usize, names: &[&str]) -> String {
    let nth = usize::try_from(number).ok().and_then(|number| number.checked_sub(first));
    nth.and_then(|nth| names.get(nth)).map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

/// A set as runs of numbers that follow one another.
fn runs(set: u64) -> impl Iterator<Item = (u32, u32)> {
    let starts = members(set & !(set << 1));
    let ends = members(set & !(set >> 1));
    starts.zip(ends)
}

/// Three and more that follow one another as `a to c`, all others one by one.
fn in_runs(set: u64, written: impl Fn(u32) -> String) -> Vec<String> {
    let parts = runs(set).flat_map(|(low, high)| match high - low {
        0 => [Some(written(low)), None],
        1 => [Some(written(low)), Some(written(high))],
        _ => [Some(format!("{} to {}", written(low), written(high))), None],
    });
    parts.flatten().collect()
}

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<_> = parts.into_iter().collect();
    match parts.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
