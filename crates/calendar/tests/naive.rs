//! The calendar beside a search that looks at every minute of some days, at random expressions, zones and times around
//! changes of the clocks. The search shares nothing with the calendar but jiff's offsets.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rota_calendar::{Calendar, Zone};
use rota_model::timer::{DstGap, DstOverlap, Schedule};

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Africa/Cairo",
    "America/Havana",
    "Asia/Kathmandu",
    "Antarctica/Troll",
    "America/St_Johns",
];
const MINUTE: i64 = 60;
/// How much is looked at on both sides of what is compared, so that what comes twice is seen twice.
const MARGIN: usize = 2 * 24 * 60;
const DAYS: usize = 4;

/// A field as text, and the numbers it means.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    numbers: BTreeSet<i64>,
}

impl Field {
    fn is_wild(&self) -> bool {
        self.text.contains(['*', '/'])
    }
}

fn field(low: i64, high: i64) -> impl Strategy<Value = Field> {
    let all = move |step: i64| {
        let text = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
        Field { text, numbers: (low..=high).filter(|number| (number - low) % step == 0).collect() }
    };
    prop_oneof![
        2 => Just(all(1)),
        2 => (2..=high).prop_map(all),
        3 => prop::collection::btree_set(low..=high, 1..4).prop_map(|numbers| {
            let text = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            Field { text, numbers }
        }),
        1 => (low..=high, low..=high).prop_map(|(one, other)| {
            let (low, high) = (one.min(other), one.max(other));
            Field { text: format!("{low}-{high}"), numbers: (low..=high).collect() }
        }),
    ]
}

#[derive(Clone, Debug)]
struct Wanted {
    minute: Field,
    hour: Field,
    date: Field,
    month: Field,
    weekday: Field,
    gap: DstGap,
    overlap: DstOverlap,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let month = prop_oneof![3 => Just(Field { text: "*".to_owned(), numbers: (1..=12).collect() }), 1 => field(1, 12)];
    let gap = prop::sample::select(DstGap::ALL);
    let overlap = prop::sample::select(DstOverlap::ALL);
    (field(0, 59), field(0, 23), field(1, 31), month, field(0, 6), gap, overlap).prop_map(
        |(minute, hour, date, month, weekday, gap, overlap)| Wanted {
            minute,
            hour,
            date,
            month,
            weekday,
            gap,
            overlap,
        },
    )
}

impl Wanted {
    fn schedule(&self, zone: &str) -> Schedule {
        let Wanted { minute, hour, date, month, weekday, .. } = self;
        let cron = format!("{} {} {} {} {}", minute.text, hour.text, date.text, month.text, weekday.text);
        let mut schedule = Schedule::new(cron);
        schedule.time_zone = zone.to_owned();
        schedule.dst_gap = self.gap;
        schedule.dst_overlap = self.overlap;
        schedule
    }

    fn matches(&self, local: i64) -> bool {
        let clock = TimeZone::UTC.to_datetime(Timestamp::from_second(local).unwrap());
        let has = |field: &Field, number: i8| field.numbers.contains(&i64::from(number));
        let date = has(&self.date, clock.day());
        let weekday = has(&self.weekday, clock.weekday().to_sunday_zero_offset());
        let open = self.date.text.starts_with('*') || self.weekday.text.starts_with('*');
        has(&self.minute, clock.minute())
            && has(&self.hour, clock.hour())
            && has(&self.month, clock.month())
            && if open { date && weekday } else { date || weekday }
    }

    /// Looks at every minute. `locals` are what the clocks show, minute after minute.
    fn search(&self, first: i64, locals: &[i64]) -> Vec<i64> {
        let is_rhythm = self.minute.is_wild() || self.hour.is_wild();
        let is_due = |nth: usize| {
            let local = locals[nth];
            let regular = self.matches(local)
                && (is_rhythm
                    || match self.overlap {
                        DstOverlap::First => !locals[nth - MARGIN..nth].contains(&local),
                        DstOverlap::Second => !locals[nth + 1..nth + MARGIN].contains(&local),
                        DstOverlap::Both => true,
                    });
            let mut jumped_over = (locals[nth - 1] + MINUTE..local).step_by(60);
            regular
                || (!is_rhythm && self.gap == DstGap::Next && jumped_over.any(|local| self.matches(local)))
        };
        let compared = MARGIN..locals.len() - MARGIN;
        compared.filter(|nth| is_due(*nth)).map(|nth| first + i64::try_from(nth).unwrap() * MINUTE).collect()
    }
}

/// A minute near a change of the zone's clocks, if they ever change after a certain time.
fn near_a_change(zone: &Zone, from: i64, before_it: i64) -> i64 {
    let from = Timestamp::from_second(from).unwrap();
    let change = zone.time_zone().following(from).next().map_or(from, |change| change.timestamp());
    change.as_second().div_euclid(MINUTE) * MINUTE - before_it * MINUTE
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_calendar_finds_what_a_search_minute_by_minute_finds(
        wanted in wanted(),
        zone in prop::sample::select(&ZONES[..]),
        from in 0i64..4_000_000_000,
        before_it in 0i64..4 * 24 * 60,
    ) {
        let schedule = wanted.schedule(zone);
        let zone = Zone::named(zone).unwrap();
        let start = near_a_change(&zone, from, before_it);
        let first = start - i64::try_from(MARGIN).unwrap() * MINUTE;
        let minutes = (0..DAYS * 24 * 60 + 2 * MARGIN).map(|nth| first + i64::try_from(nth).unwrap() * MINUTE);
        let offset = |at: i64| i64::from(zone.time_zone().to_offset(Timestamp::from_second(at).unwrap()).seconds());
        let locals: Vec<_> = minutes.map(|at| at + offset(at)).collect();
        let expected = wanted.search(first, &locals);

        let Ok(calendar) = Calendar::of(&schedule) else {
            prop_assert!(expected.is_empty(), "{schedule:?} is refused and has {expected:?}");
            return Ok(());
        };
        let begin = Timestamp::from_second(start).unwrap();
        let end = begin + SignedDuration::from_hours(24 * i64::try_from(DAYS).unwrap());
        let found: Vec<_> = calendar.instants(begin, end).map(Timestamp::as_second).collect();
        prop_assert_eq!(&found, &expected, "{:?}", &schedule);
        prop_assert_eq!(calendar.count(begin, end), expected.len() as u64, "{:?}", &schedule);
        let back = std::iter::successors(calendar.previous_before(end), |at| calendar.previous_before(*at));
        let mut back: Vec<_> = back.take_while(|at| *at >= begin).map(Timestamp::as_second).collect();
        back.reverse();
        prop_assert_eq!(&back, &expected, "{:?}", &schedule);
        let mut at = begin - SignedDuration::from_nanos(1);
        for next in expected {
            at = calendar.next_after(at).unwrap();
            prop_assert_eq!(at.as_second(), next);
        }
    }
}
