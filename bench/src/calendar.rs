//! Instants of schedules per second, beside the fastest of three cron crates on the same expression in the same run.
//!
//! - [`others`]: `croner`, `cronexpr` and `cron`, each asked in the way that suits it best
//!
//! Rota is asked twice: for one instant after the other through [`Calendar::instants`], as the crates with iterators are, and for
//! each on its own through [`Calendar::next_after`], as a scheduler asks. That nothing is allocated is a test of the crate.

mod others;

use std::time::Duration;

use jiff::Timestamp;
use rota_calendar::Calendar;
use rota_model::timer::Schedule;
use tokio::time::Instant;

use crate::report::{Measurement, percentile};
use others::OTHERS;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs of each case, the contenders in turns; the median is reported
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// How long a contender is measured in each run, in milliseconds
    #[arg(long, default_value_t = 20)]
    millis: u64,
}

/// Not Australia/Lord_Howe, whose clocks change by half an hour: there one of the crates goes on for ever.
const ZONES: [&str; 3] = ["UTC", "Europe/Berlin", "America/New_York"];

/// Expressions that at least two of the crates understand as Rota does, and how many instants of each lie before 2100, where `cron`
/// ends.
const EXPRESSIONS: [(&str, usize); 6] = [
    ("*/15 * * * *", 5_000),
    ("30 2 * * *", 5_000),
    ("0 9 * * MON-FRI", 5_000),
    ("0,30 9-17 1,15 * *", 5_000),
    ("0 0 1 * *", 800),
    ("0 0 L * *", 800),
];

/// Where all begin: 2026-01-01T00:00:00Z.
const FROM: i64 = 1_767_225_600;

pub(crate) fn run(options: &Options) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for zone in ZONES {
        for (expression, instants) in EXPRESSIONS {
            eprintln!("{zone}, {expression}");
            measurements.extend(case(options, zone, expression, instants));
        }
    }
    let summaries = ["in UTC", "in zones"].map(|place| summary(&measurements, place));
    measurements.extend(summaries.into_iter().flatten());
    measurements
}

/// A contender gives as many instants as it is told, and returns how many came.
type Contender<'a> = Box<dyn Fn(usize) -> usize + 'a>;

fn case(options: &Options, zone: &str, expression: &str, instants: usize) -> Vec<Measurement> {
    let mut schedule = Schedule::new(expression);
    schedule.time_zone = zone.to_owned();
    let calendar = Calendar::of(&schedule).unwrap();
    let mut contenders: Vec<(&str, Contender<'_>)> = vec![
        ("in order", Box::new(|count| in_order(&calendar, count))),
        ("one by one", Box::new(|count| one_by_one(&calendar, count))),
    ];
    let others = OTHERS.iter().filter_map(|(name, make)| Some((*name, make(expression, zone)?)));
    contenders.extend(others);
    let mut rates = vec![Vec::new(); contenders.len()];
    for _ in 0..options.runs {
        for ((_, contender), rates) in contenders.iter().zip(&mut rates) {
            rates.push(rate(contender, instants, Duration::from_millis(options.millis)));
        }
    }
    let medians: Vec<_> =
        contenders.iter().zip(&mut rates).map(|((name, _), rates)| (*name, percentile(rates, 0.5))).collect();
    let (own, others) = medians.split_at(2);
    let fastest = others.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    let place = if zone == "UTC" { "in UTC" } else { "in zones" };
    let measured = |(name, value): &(&str, f64)| Measurement {
        bench: "calendar",
        case: format!("{place}, {zone}, {expression}, {name}"),
        value: *value,
        unit: "instants/s",
        against: Some(fastest.0.to_owned()),
        ratio: Some(value / fastest.1),
    };
    own.iter().map(measured).collect()
}

fn in_order(calendar: &Calendar, count: usize) -> usize {
    let from = Timestamp::from_second(FROM).unwrap();
    calendar.instants(from, Timestamp::MAX).take(count).map(std::hint::black_box).count()
}

fn one_by_one(calendar: &Calendar, count: usize) -> usize {
    let from = Timestamp::from_second(FROM).unwrap();
    let instants = std::iter::successors(calendar.next_after(from), |at| calendar.next_after(*at));
    instants.take(count).map(std::hint::black_box).count()
}

fn rate(contender: &Contender<'_>, instants: usize, at_least: Duration) -> f64 {
    let began = Instant::now();
    let mut found = 0;
    while began.elapsed() < at_least {
        found += contender(instants);
    }
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 instants")]
    let found = found as f64;
    found / began.elapsed().as_secs_f64()
}

/// The least ratio of a place: what must hold for every expression holds for this one.
fn summary(measurements: &[Measurement], place: &str) -> Vec<Measurement> {
    let least = |way: &str| {
        let ending = format!(", {way}");
        let of_way =
            measurements.iter().filter(|one| one.case.starts_with(place) && one.case.ends_with(&ending));
        let least = of_way.min_by(|one, other| one.ratio.unwrap().total_cmp(&other.ratio.unwrap())).unwrap();
        Measurement {
            bench: "calendar",
            case: format!("least {place}, {way}"),
            value: least.value,
            unit: least.unit,
            against: least.against.clone(),
            ratio: least.ratio,
        }
    };
    ["in order", "one by one"].map(least).into()
}
