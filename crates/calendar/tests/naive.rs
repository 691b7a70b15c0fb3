//! The calendar beside a search that looks at every minute of some days, at random expressions, zones and times around
//! changes of the clocks. The search shares nothing with the calendar but jiff's offsets.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::civil::Date;
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

/// A field as text, and what it means: numbers, and days that depend on their month.
#[derive(Clone, Debug, Default)]
struct Field {
    text: String,
    numbers: BTreeSet<i64>,
    days: Vec<Day>,
}

/// A day that one must look at a month to know.
#[derive(Clone, Copy, Debug)]
enum Day {
    BeforeLast(i64),
    NearestWeekday(i64),
    LastWeekday,
    Nth { weekday: i64, nth: i64 },
    LastOf { weekday: i64 },
}

impl Field {
    fn new(text: impl Into<String>, numbers: impl IntoIterator<Item = i64>) -> Self {
        Self { text: text.into(), numbers: numbers.into_iter().collect(), days: Vec::new() }
    }

    fn day(text: String, day: Day) -> Self {
        Self { text, days: vec![day], ..Self::default() }
    }

    fn is_wild(&self) -> bool {
        self.text.contains(['*', '/'])
    }

    fn is_open(&self) -> bool {
        self.text.starts_with(['*', '?'])
    }

    /// A list of several.
    fn list(parts: Vec<Field>) -> Self {
        let text = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(",");
        let days = parts.iter().flat_map(|part| part.days.clone()).collect();
        Self { text, numbers: parts.into_iter().flat_map(|part| part.numbers).collect(), days }
    }
}

impl Day {
    /// Counts days of the month one by one, where the calendar computes.
    fn is(self, date: Date) -> bool {
        let weekday = |date: Date| i64::from(date.weekday().to_sunday_zero_offset());
        let works = |date: &Date| (1..=5).contains(&weekday(*date));
        let month: Vec<_> =
            (1..=date.days_in_month()).map(|day| date.with().day(day).build().unwrap()).collect();
        let of_week = |wanted: i64| month.iter().filter(move |day| weekday(**day) == wanted);
        let found = match self {
            Day::BeforeLast(back) => month.iter().rev().nth(usize::try_from(back).unwrap()),
            Day::LastWeekday => month.iter().rfind(|day| works(day)),
            Day::Nth { weekday, nth } => of_week(weekday).nth(usize::try_from(nth - 1).unwrap()),
            Day::LastOf { weekday } => of_week(weekday).next_back(),
            Day::NearestWeekday(wanted) => {
                let exists = wanted <= i64::from(date.days_in_month());
                let distance = |day: &&Date| (i64::from(day.day()) - wanted).abs();
                month.iter().filter(|day| exists && works(day)).min_by_key(distance)
            }
        };
        found == Some(&date)
    }
}

/// A number, by its name where there is one.
type Write = fn(i64, bool) -> String;

fn plain(number: i64, _: bool) -> String {
    number.to_string()
}

fn month_name(number: i64, by_name: bool) -> String {
    let names = ["Jan", "FEB", "mar", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    if by_name { names[usize::try_from(number - 1).unwrap()].to_owned() } else { number.to_string() }
}

fn weekday_name(number: i64, by_name: bool) -> String {
    let names = ["SUN", "Mon", "tue", "WED", "THU", "FRI", "SAT"];
    if by_name { names[usize::try_from(number).unwrap()].to_owned() } else { number.to_string() }
}

/// What every field may hold, and lists of it.
fn field(low: i64, high: i64, write: Write) -> impl Strategy<Value = Field> {
    let all = move |step: i64| {
        let text = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
        Field::new(text, (low..=high).filter(|number| (number - low) % step == 0))
    };
    prop_oneof![
        2 => Just(all(1)),
        2 => (2..=high).prop_map(all),
        4 => prop::collection::vec(part(low, high, write), 1..4).prop_map(Field::list),
    ]
}

/// One number, a range, a range with a step, or a step from one on.
fn part(low: i64, high: i64, write: Write) -> impl Strategy<Value = Field> {
    let range = move |one: i64, other: i64, step: i64| {
        (one.min(other)..=one.max(other)).step_by(usize::try_from(step).unwrap())
    };
    let one = move |number, by_name| Field::new(write(number, by_name), [number]);
    let from_one_on = move |number: i64, step: i64, by_name| {
        Field::new(format!("{}/{step}", write(number, by_name)), range(number, high, step))
    };
    let ends = move |one: i64, other: i64, by_name| {
        format!("{}-{}", write(one.min(other), by_name), write(one.max(other), by_name))
    };
    let number = low..=high;
    prop_oneof![
        4 => (number.clone(), any::<bool>()).prop_map(move |(number, by_name)| one(number, by_name)),
        1 => (number.clone(), number.clone(), any::<bool>())
            .prop_map(move |(one, other, by_name)| Field::new(ends(one, other, by_name), range(one, other, 1))),
        1 => (number.clone(), number.clone(), 1..=high, any::<bool>()).prop_map(move |(one, other, step, by_name)| {
            Field::new(format!("{}/{step}", ends(one, other, by_name)), range(one, other, step))
        }),
        1 => (number, 1..=high, any::<bool>())
            .prop_map(move |(number, step, by_name)| from_one_on(number, step, by_name)),
    ]
}

/// Days of the month, among them those that depend on it.
fn dates() -> impl Strategy<Value = Field> {
    let special = prop_oneof![
        Just(Field::day("L".to_owned(), Day::BeforeLast(0))),
        Just(Field::day("lw".to_owned(), Day::LastWeekday)),
        (0i64..=30).prop_map(|back| Field::day(format!("L-{back}"), Day::BeforeLast(back))),
        (1i64..=31).prop_map(|date| Field::day(format!("{date}W"), Day::NearestWeekday(date))),
    ];
    open_or_listed(1..=31, field(1, 31, plain).boxed(), special.boxed(), part(1, 31, plain).boxed())
}

/// Days of the week, among them those that depend on the month.
fn weekdays() -> impl Strategy<Value = Field> {
    let weekday = (0i64..=6, any::<bool>());
    let special = prop_oneof![
        (weekday.clone(), 1i64..=5).prop_map(|((weekday, by_name), nth)| {
            Field::day(format!("{}#{nth}", weekday_name(weekday, by_name)), Day::Nth { weekday, nth })
        }),
        weekday.prop_map(|(weekday, by_name)| {
            Field::day(format!("{}L", weekday_name(weekday, by_name)), Day::LastOf { weekday })
        }),
        Just(Field::new("7", [0])),
        (1i64..=6).prop_map(|first| Field::new(format!("{first}-7"), (first..=6).chain([0]))),
    ];
    open_or_listed(
        0..=6,
        field(0, 6, weekday_name).boxed(),
        special.boxed(),
        part(0, 6, weekday_name).boxed(),
    )
}

fn open_or_listed(
    all: RangeInclusive<i64>,
    usual: BoxedStrategy<Field>,
    special: BoxedStrategy<Field>,
    part: BoxedStrategy<Field>,
) -> impl Strategy<Value = Field> {
    let listed = prop::collection::vec(prop_oneof![2 => special, 1 => part], 1..4);
    prop_oneof![1 => Just(Field::new("?", all)), 3 => usual, 3 => listed.prop_map(Field::list)]
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
    let month = prop_oneof![3 => Just(Field::new("*", 1..=12)), 1 => field(1, 12, month_name)];
    let gap = prop::sample::select(DstGap::ALL);
    let overlap = prop::sample::select(DstOverlap::ALL);
    (field(0, 59, plain), field(0, 23, plain), dates(), month, weekdays(), gap, overlap).prop_map(
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
        let is_one = |field: &Field| field.days.iter().any(|day| day.is(clock.date()));
        let date = || has(&self.date, clock.day()) || is_one(&self.date);
        let weekday = || has(&self.weekday, clock.weekday().to_sunday_zero_offset()) || is_one(&self.weekday);
        let open = self.date.is_open() || self.weekday.is_open();
        has(&self.minute, clock.minute())
            && has(&self.hour, clock.hour())
            && has(&self.month, clock.month())
            && if open { date() && weekday() } else { date() || weekday() }
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

        let calendar = match Calendar::of(&schedule) {
            Ok(calendar) => calendar,
            Err(refused) => {
                prop_assert!(expected.is_empty(), "{schedule:?} is refused and has {expected:?}");
                prop_assert!(refused.to_string().contains("can never fire"), "{schedule:?}: {refused}");
                return Ok(());
            }
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
