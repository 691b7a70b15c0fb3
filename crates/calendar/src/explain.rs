//! A schedule in plain words.

use rota_model::timer::{DstGap, DstOverlap};

use crate::calendar::{Calendar, Rule};
use crate::days::{Days, OfMonth, OfWeek, members};
use crate::pattern::{Pattern, bit};

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
    /// When it is due, and what changes of the clocks do to it, in sentences.
    pub fn explain(&self) -> String {
        let mut sentences = vec![self.explain_rule()];
        sentences.extend(self.explain_changes());
        sentences.extend(self.explain_window());
        sentences.join(" ")
    }

    fn explain_rule(&self) -> String {
        let zone = self.zone.name();
        match &self.rule {
            Rule::Pattern(pattern) => format!("{}, {}, in {zone}.", times(pattern), days(pattern)),
            Rule::Every(span) => {
                let since = self.start.map_or("1970-01-01T00:00:00Z".to_owned(), |start| start.to_string());
                format!("Every {span:#}, counted from {since}, whatever the clocks show.")
            }
            Rule::Once(once) => {
                let local = once.at.to_zoned(self.zone.time_zone().clone());
                let again =
                    if once.again.is_some() { ", and again when the clocks show it again" } else { "" };
                format!("Once, on {} in {zone}{again}.", local.strftime("%Y-%m-%d at %H:%M:%S"))
            }
        }
    }

    /// What becomes of local times that do not exist or come twice; nothing where clocks never change.
    fn explain_changes(&self) -> Option<String> {
        let Rule::Pattern(pattern) = &self.rule else { return None };
        if !self.zone.changes() {
            return None;
        }
        if pattern.is_rhythm {
            return Some("When clocks change it goes on by elapsed time.".to_owned());
        }
        let gap = match self.gap {
            DstGap::Next => "is due right after the change",
            DstGap::Skip => "is left out",
        };
        let overlap = match self.overlap {
            DstOverlap::First => "is due the first time",
            DstOverlap::Second => "is due the second time",
            DstOverlap::Both => "is due both times",
        };
        Some(format!("A time that the clocks jump over {gap}; one that they show twice {overlap}."))
    }

    fn explain_window(&self) -> Option<String> {
        let from = self.start.map(|start| format!("from {start} on"));
        let until = self.stop.map(|stop| format!("before {stop}"));
        let most = self.max_executions.map(|most| format!("{most} times at most"));
        let parts: Vec<_> = [from, until, most].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("Only {}.", parts.join(", ")))
    }
}

fn times(pattern: &Pattern) -> String {
    let Pattern { seconds, minutes, hours, .. } = *pattern;
    let number = seconds.count_ones() * minutes.count_ones() * hours.count_ones();
    if !pattern.is_rhythm && number <= MAX_LISTED_TIMES {
        return format!("At {}", listed(clock_times(pattern)));
    }
    let of_hours = match (hours == ALL_HOURS, step_of(hours, 24)) {
        (true, _) => String::new(),
        (false, Some(step)) => format!(" of every {} hour from 0 on", ordinal(step)),
        (false, None) => format!(" of {}", counted("hour", hours)),
    };
    let in_hours = of_hours.replacen(" of ", " in ", 1);
    if seconds != bit(0) {
        let minutes = match minutes {
            ALL_SIXTY => String::new(),
            some => format!(" of {}", counted("minute", some)),
        };
        return match step_of(seconds, 60) {
            Some(1) => format!("Every second{minutes}{in_hours}"),
            Some(step) => format!("Every {step} seconds{minutes}{in_hours}"),
            None => format!("At {}{minutes}{of_hours}", counted("second", seconds)),
        };
    }
    match step_of(minutes, 60) {
        Some(1) => format!("Every minute{in_hours}"),
        Some(step) if step < 60 => format!("Every {step} minutes{in_hours}"),
        _ if hours == ALL_HOURS => format!("At {} of every hour", counted("minute", minutes)),
        _ => format!("At {}{of_hours}", counted("minute", minutes)),
    }
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

/// The step of a set that goes evenly through all of a dial, from 0 on.
fn step_of(set: u64, dial: u32) -> Option<u32> {
    let number = set.count_ones();
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
    format!("{what}{plural} {}", listed(runs(set).map(|run| in_run(run, |number| number.to_string()))))
}

fn names(set: u64, first: usize, names: &'static [&str]) -> Vec<String> {
    runs(set).map(|run| in_run(run, |number| name(number, first, names))).collect()
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

fn in_run((low, high): (u32, u32), written: impl Fn(u32) -> String) -> String {
    match high - low {
        0 => written(low),
        1 => format!("{}, {}", written(low), written(high)),
        _ => format!("{} to {}", written(low), written(high)),
    }
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
