//! Which times a local clock must show: the compiled form of an expression, on a timeline without zones.
//!
//! A local time is counted in seconds from 1970-01-01T00:00:00 as the clock on the wall shows it, every day having
//! 86,400 of them. Everything is a set of bits, so a search looks at no second, minute or hour that does not match,
//! and at one word per month. It is bounded: dates and weekdays repeat every 400 years, so what is not found within 400
//! years is never found.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::days::{Days, month_length};

pub(crate) const DAY_SECONDS: i64 = 86_400;
/// After so many months dates fall on the same weekdays again.
const CYCLE_MONTHS: u32 = 400 * 12;

/// Bits stand for the numbers of a field: bit 30 of the minutes is minute 30.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    pub(crate) months: u64,
    pub(crate) days: Days,
    /// A wildcard or step in hours or minutes: it is a rhythm rather than a time of day, and goes on by elapsed time
    /// when clocks change.
    pub(crate) is_rhythm: bool,
}

/// A month in which a search stands: its days that match, and the number of the day before its first.
struct Month {
    year: i16,
    month: u32,
    eve: i64,
    matching: u64,
}

impl Pattern {
    /// The first matching local time at this one or after it.
    pub(crate) fn at_or_after(&self, local: i64) -> Option<i64> {
        let (mut month, day, time) = self.place(local)?;
        if month.matching & bit(day) != 0
            && let Some(time) = self.time_at_or_after(time)
        {
            return Some((month.eve + i64::from(day)) * DAY_SECONDS + time);
        }
        month.matching &= !up_to(day);
        for _ in 0..=CYCLE_MONTHS {
            if month.matching != 0 {
                let day = i64::from(month.matching.trailing_zeros());
                return Some((month.eve + day) * DAY_SECONDS + self.time_at_or_after(0)?);
            }
            month = self.month_after(&month)?;
        }
        None
    }

    /// The last matching local time at this one or before it.
    pub(crate) fn at_or_before(&self, local: i64) -> Option<i64> {
        let (mut month, day, time) = self.place(local)?;
        if month.matching & bit(day) != 0
            && let Some(time) = self.time_at_or_before(time)
        {
            return Some((month.eve + i64::from(day)) * DAY_SECONDS + time);
        }
        month.matching &= up_to(day - 1);
        for _ in 0..=CYCLE_MONTHS {
            if month.matching != 0 {
                let day = i64::from(highest(month.matching));
                return Some((month.eve + day) * DAY_SECONDS + self.time_at_or_before(DAY_SECONDS - 1)?);
            }
            month = self.month_before(&month)?;
        }
        None
    }

    /// How many local times match from one on and before another, by adding up months.
    pub(crate) fn count(&self, from: i64, until: i64) -> u64 {
        let writable = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
        let [from, until] = [from, until].map(|local| local.clamp(*writable.start(), *writable.end()));
        let (Some((first, first_day, first_time)), Some((last, last_day, last_time))) =
            (self.place(from), self.place(until))
        else {
            return 0;
        };
        if from >= until {
            return 0;
        }
        let whole_days = self.matching_days(first, first_day, &last, last_day);
        let begun = if self.matches_day(from) { self.times_before(first_time) } else { 0 };
        let ended = if last.matching & bit(last_day) != 0 { self.times_before(last_time) } else { 0 };
        (whole_days * self.times_of_a_day() + ended).saturating_sub(begun)
    }

    /// The matching days from one on and before another.
    fn matching_days(&self, first: Month, first_day: u32, last: &Month, last_day: u32) -> u64 {
        let mut days = 0;
        let mut month = first;
        month.matching &= !up_to(first_day - 1);
        loop {
            if (month.year, month.month) == (last.year, last.month) {
                return days + u64::from((month.matching & up_to(last_day - 1)).count_ones());
            }
            days += u64::from(month.matching.count_ones());
            match self.month_after(&month) {
                Some(next) => month = next,
                None => return days,
            }
        }
    }

    fn matches_day(&self, local: i64) -> bool {
        self.place(local).is_some_and(|(month, day, _)| month.matching & bit(day) != 0)
    }

    /// The month of a local time, its day and its second of the day; none beyond the years that can be written.
    fn place(&self, local: i64) -> Option<(Month, u32, i64)> {
        let date = Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?).date();
        let (month, day) = (small(date.month()), small(date.day()));
        let eve = local.div_euclid(DAY_SECONDS) - i64::from(day);
        Some((self.month(date.year(), month, eve), day, local.rem_euclid(DAY_SECONDS)))
    }

    fn month(&self, year: i16, month: u32, eve: i64) -> Month {
        let matching = if self.months & bit(month) == 0 { 0 } else { self.days.of(year, month, eve + 1) };
        Month { year, month, eve, matching }
    }

    fn month_after(&self, month: &Month) -> Option<Month> {
        let eve = month.eve + i64::from(month_length(month.year, month.month));
        match month.month {
            12 => Some(self.month(month.year.checked_add(1).filter(|year| *year <= 9999)?, 1, eve)),
            earlier => Some(self.month(month.year, earlier + 1, eve)),
        }
    }

    fn month_before(&self, month: &Month) -> Option<Month> {
        let (year, before) = match month.month {
            1 => (month.year.checked_sub(1).filter(|year| *year >= -9999)?, 12),
            later => (month.year, later - 1),
        };
        Some(self.month(year, before, month.eve - i64::from(month_length(year, before))))
    }

    fn time_at_or_after(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = clock(time);
        if self.hours & bit(hour) != 0 {
            if self.minutes & bit(minute) != 0
                && let Some(second) = lowest_from(self.seconds, second)
            {
                return Some(time_of(hour, minute, second));
            }
            if let Some(minute) = lowest_from(self.minutes, minute + 1) {
                return Some(time_of(hour, minute, self.seconds.trailing_zeros()));
            }
        }
        let hour = lowest_from(self.hours, hour + 1)?;
        Some(time_of(hour, self.minutes.trailing_zeros(), self.seconds.trailing_zeros()))
    }

    fn time_at_or_before(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = clock(time);
        if self.hours & bit(hour) != 0 {
            if self.minutes & bit(minute) != 0
                && let Some(second) = highest_below(self.seconds, second + 1)
            {
                return Some(time_of(hour, minute, second));
            }
            if let Some(minute) = highest_below(self.minutes, minute) {
                return Some(time_of(hour, minute, highest(self.seconds)));
            }
        }
        let hour = highest_below(self.hours, hour)?;
        Some(time_of(hour, highest(self.minutes), highest(self.seconds)))
    }

    /// How many times of a matching day come before this one.
    fn times_before(&self, time: i64) -> u64 {
        let (hour, minute, second) = clock(time);
        let below = |set: u64, number| u64::from((set & (bit(number) - 1)).count_ones());
        let (minutes, seconds) = (u64::from(self.minutes.count_ones()), u64::from(self.seconds.count_ones()));
        let mut times = below(self.hours, hour) * minutes * seconds;
        if self.hours & bit(hour) != 0 {
            times += below(self.minutes, minute) * seconds;
            if self.minutes & bit(minute) != 0 {
                times += below(self.seconds, second);
            }
        }
        times
    }

    fn times_of_a_day(&self) -> u64 {
        u64::from(self.hours.count_ones())
            * u64::from(self.minutes.count_ones())
            * u64::from(self.seconds.count_ones())
    }
}

/// What a clock shows, as seconds of the local timeline.
pub(crate) fn local_seconds(local: DateTime) -> Option<i64> {
    Offset::UTC.to_timestamp(local).ok().map(Timestamp::as_second)
}

/// What a clock shows at this second of the local timeline.
pub(crate) fn local_clock(local: i64) -> DateTime {
    Timestamp::from_second(local).map_or(DateTime::MAX, |at| Offset::UTC.to_datetime(at))
}

pub(crate) fn bit(number: u32) -> u64 {
    1 << (number & 63)
}

/// The bits of this number and of all below it.
fn up_to(number: u32) -> u64 {
    (bit(number) << 1) - 1
}

/// The largest number of a set that is not empty.
pub(crate) fn highest(set: u64) -> u32 {
    63 - set.leading_zeros().min(63)
}

fn lowest_from(set: u64, number: u32) -> Option<u32> {
    let rest = set & !(bit(number) - 1);
    (rest != 0).then(|| rest.trailing_zeros())
}

fn highest_below(set: u64, number: u32) -> Option<u32> {
    let rest = set & (bit(number) - 1);
    (rest != 0).then(|| highest(rest))
}

/// Numbers of dates and clocks are never negative and below 64.
fn small(number: i8) -> u32 {
    u32::from(number.unsigned_abs())
}

/// Hour, minute and second of a second of the day.
fn clock(time: i64) -> (u32, u32, u32) {
    let time = u32::try_from(time).unwrap_or_default();
    (time / 3_600, time / 60 % 60, time % 60)
}

fn time_of(hour: u32, minute: u32, second: u32) -> i64 {
    i64::from(hour * 3_600 + minute * 60 + second)
}
