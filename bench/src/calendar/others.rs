//! Three cron crates, each asked in the way that suits it best. One that does not understand an expression as Rota does is left out
//! of that case.

use std::hint::black_box;
use std::str::FromStr as _;

use chrono::{DateTime, TimeZone, Utc};
use jiff::Timestamp;

use super::{Contender, FROM};

type Make = fn(&str, &str) -> Option<Contender<'static>>;

pub(super) const OTHERS: [(&str, Make); 4] = [
    ("croner with jiff", croner_jiff),
    ("croner with chrono", croner_chrono),
    ("cronexpr", cronexpr),
    ("cron", cron),
];

fn croner_jiff(expression: &str, zone: &str) -> Option<Contender<'static>> {
    let cron = croner::Cron::from_str(expression).ok()?;
    let zone = jiff::tz::TimeZone::get(zone).ok()?;
    let from = Timestamp::from_second(FROM).ok()?.to_zoned(zone);
    Some(Box::new(move |count| cron.iter_after(from.clone()).take(count).map(black_box).count()))
}

fn croner_chrono(expression: &str, zone: &str) -> Option<Contender<'static>> {
    let cron = croner::Cron::from_str(expression).ok()?;
    let from = DateTime::from_timestamp(FROM, 0)?;
    if zone == "UTC" {
        return Some(Box::new(move |count| cron.iter_after(from).take(count).map(black_box).count()));
    }
    let from = from.with_timezone(&zone.parse::<chrono_tz::Tz>().ok()?);
    Some(Box::new(move |count| cron.iter_after(from).take(count).map(black_box).count()))
}

fn cronexpr(expression: &str, zone: &str) -> Option<Contender<'static>> {
    let cron = cronexpr::parse_crontab(&format!("{expression} {zone}")).ok()?;
    Some(Box::new(move |count| {
        let from = cronexpr::MakeTimestamp::from_second(FROM).unwrap();
        cron.iter_after(from).unwrap().take(count).map(black_box).count()
    }))
}

fn cron(expression: &str, zone: &str) -> Option<Contender<'static>> {
    let cron = cron::Schedule::from_str(&format!("0 {expression}")).ok()?;
    let from = DateTime::from_timestamp(FROM, 0)?;
    if zone == "UTC" {
        return Some(after(cron, from.with_timezone(&Utc)));
    }
    Some(after(cron, from.with_timezone(&zone.parse::<chrono_tz::Tz>().ok()?)))
}

fn after<Z: TimeZone + 'static>(cron: cron::Schedule, from: DateTime<Z>) -> Contender<'static> {
    Box::new(move |count| cron.after(&from).take(count).map(black_box).count())
}
