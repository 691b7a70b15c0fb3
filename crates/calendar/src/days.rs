//! Which days of a month match: the fields for the day of the month and the day of the week, and how they go together.
//!
//! The rule is that of Debian's cron: if both fields are restricted, either is enough; if one of them begins with `*`
//! (or is `?`), both must match. So `0 0 13 * 5` is every 13th and every Friday, and `0 0 */2 * 1` the Mondays with an odd
//! date.

use crate::pattern::{bit, highest};

/// The days 1, 8, 15, 22 and 29 as seen from day 0.
const EVERY_SEVENTH: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
const ALL_WEEKDAYS: u64 = 0x7f;
const ALL_DAYS: u64 = 0xffff_fffe;

/// Days of the month are bits 1 to 31, days of the week bits 0 (Sunday) to 6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) of_month: OfMonth,
    pub(crate) of_week: OfWeek,
    /// Either of the two is enough.
    pub(crate) either: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfMonth {
    /// `15`, `1-5`, `*/2`.
    pub(crate) dates: u64,
    /// `L` is bit 0, `L-3` bit 3: so many days before the last.
    pub(crate) before_last: u64,
    /// `15W`: the weekday nearest to the 15th, in the same month.
    pub(crate) nearest: u64,
    /// `LW`: the last day from Monday to Friday.
    pub(crate) last_weekday: bool,
    /// This date, or the last day of a month that is shorter.
    pub(crate) at_latest: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfWeek {
    /// `1-5`.
    pub(crate) weekdays: u64,
    /// `5#2`: sets of weekdays, for the first, second … fifth of the month.
    pub(crate) nth: [u64; 5],
    /// `5L`: the last Friday.
    pub(crate) last: u64,
}

impl Days {
    /// The matching days of a month, whose first day is given by its number since 1970.
    pub(crate) fn of(&self, year: i16, month: u32, first: i64) -> u64 {
        let length = month_length(year, month);
        let whole = ALL_DAYS & ((bit(length) << 1) - 1);
        let by_week = self.of_week.weekdays != ALL_WEEKDAYS;
        if !by_week && !self.either && self.of_month.is_plain() {
            return self.of_month.dates & whole;
        }
        let first_weekday = weekday(first);
        let of_month = self.of_month.days(length, first_weekday) & whole;
        let of_week = if by_week { self.of_week.days(length, first_weekday) & whole } else { whole };
        if self.either { of_month | of_week } else { of_month & of_week }
    }
}

impl OfMonth {
    pub(crate) fn every() -> Self {
        Self { dates: ALL_DAYS, ..Self::default() }
    }

    pub(crate) fn is_every(&self) -> bool {
        self.dates == ALL_DAYS
    }

    /// Dates alone: the same in every month that has them.
    fn is_plain(&self) -> bool {
        let special = self.before_last | self.nearest;
        special == 0 && !self.last_weekday && self.at_latest.is_none()
    }

    fn days(&self, length: u32, first_weekday: u32) -> u64 {
        let mut days = self.dates;
        if self.is_plain() {
            return days;
        }
        for back in members(self.before_last).filter(|back| *back < length) {
            days |= bit(length - back);
        }
        for date in members(self.nearest).filter(|date| *date <= length) {
            days |= bit(nearest_weekday(date, length, first_weekday));
        }
        if self.last_weekday {
            days |= bit(nearest_weekday(length, length, first_weekday));
        }
        if let Some(date) = self.at_latest {
            days |= bit(date.min(length));
        }
        days
    }
}

impl OfWeek {
    pub(crate) fn every() -> Self {
        Self { weekdays: ALL_WEEKDAYS, ..Self::default() }
    }

    pub(crate) fn is_every(&self) -> bool {
        self.weekdays == ALL_WEEKDAYS
    }

    fn days(&self, length: u32, first_weekday: u32) -> u64 {
        let mut days = 0;
        let whole = (bit(length) << 1) - 1;
        for weekday in 0..7 {
            let first = 1 + (weekday + 7 - first_weekday) % 7;
            let all = (EVERY_SEVENTH << first) & whole;
            if self.weekdays & bit(weekday) != 0 {
                days |= all;
            }
            if self.last & bit(weekday) != 0 {
                days |= bit(highest(all));
            }
            for (nth, set) in (0..).zip(self.nth) {
                if set & bit(weekday) != 0 {
                    days |= bit(first + 7 * nth);
                }
            }
        }
        days
    }
}

/// The numbers in a set, in order.
pub(crate) fn members(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |number| set & bit(*number) != 0)
}

/// The day from Monday to Friday that is nearest to a date, without leaving the month.
fn nearest_weekday(date: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + date - 1) % 7 {
        6 if date == 1 => 3,
        6 => date - 1,
        0 if date == length => date - 2,
        0 => date + 1,
        _ => date,
    }
}

/// The day of the week of a day since 1970, which began on a Thursday; Sunday is 0.
fn weekday(day: i64) -> u32 {
    u32::try_from((day + 4).rem_euclid(7)).unwrap_or_default()
}

pub(crate) fn month_length(year: i16, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
