//! One field of an expression, or what its parts mean.
//!
//! | | |
//! |---|---|
//! | `*` | every one; `?` means the same for days |
//! | `5`, `MON`, `JAN` | one; names of months and weekdays in any case, 7 is Sunday like 0 |
//! | `1-5`, `MON-FRI` | a range; it must not go backwards |
//! | `*/15`, `0-30/10`, `5/10` | every so many, of all, of a range, or from one on |
//! | `1,15,20-25` | a list of any of these |
//! | `L`, `L-3`, `15W`, `LW` | days of the month: the last, three before it, the weekday nearest to the 15th, the last weekday |
//! | `5L`, `5#2` | days of the week: the last Friday of the month, the second |

use std::fmt;
use std::ops::RangeInclusive;

use super::moment::MAX_SPAN_SECONDS;
use super::{ExpressionError, shortened};
use crate::days::{OfMonth, OfWeek};
use crate::pattern::bit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const SUNDAY: u32 = 7;

impl Field {
    /// The numbers that may be written.
    fn range(self) -> RangeInclusive<u32> {
        match self {
            Field::Second | Field::Minute => 0..=59,
            Field::Hour => 0..=23,
            Field::DayOfMonth => 1..=31,
            Field::Month => 1..=12,
            Field::DayOfWeek => 0..=SUNDAY,
        }
    }

    /// The numbers that `*` stands for: Sunday once.
    fn every(self) -> RangeInclusive<u32> {
        match self {
            Field::DayOfWeek => 0..=6,
            other => other.range(),
        }
    }

    /// The number that a name stands for.
    fn named(self, text: &str) -> Option<u32> {
        let (names, first): (&[&str], u32) = match self {
            Field::Month => (&MONTHS, 1),
            Field::DayOfWeek => (&WEEKDAYS, 0),
            _ => return None,
        };
        (first..).zip(names).find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(number, _)| number)
    }

    /// What may stand in the field, for people.
    fn allowed(self) -> &'static str {
        match self {
            Field::Second | Field::Minute => {
                "0 to 59, *, ranges (1-5), steps (*/15) and lists (1,2) of these"
            }
            Field::Hour => "0 to 23, *, ranges (9-17), steps (*/2) and lists (9,17) of these",
            Field::DayOfMonth => {
                "1 to 31, *, ?, ranges (1-5), steps (*/2), L, L-3, 15W, LW, and lists of these"
            }
            Field::Month => {
                "1 to 12 or JAN to DEC, *, ranges (1-6), steps (*/3) and lists (JAN,JUL) of these"
            }
            Field::DayOfWeek => {
                "0 to 7 or SUN to SAT, *, ?, ranges (MON-FRI), steps, 5L (the last), 5#2 (the second), and lists of these"
            }
        }
    }

    /// A number as it may be written: a name if it is to look like this.
    fn written(self, number: u32, like: &str) -> String {
        let names: (&[&str], u32) = match self {
            Field::Month => (&MONTHS, number - 1),
            Field::DayOfWeek => (&WEEKDAYS, number % SUNDAY),
            _ => (&[], 0),
        };
        let name = usize::try_from(names.1).ok().and_then(|nth| names.0.get(nth));
        match name.filter(|_| digits(like).is_none()) {
            Some(name) => (*name).to_owned(),
            None => number.to_string(),
        }
    }

    fn refuse(self, part: &str) -> ExpressionError {
        ExpressionError::in_field(self, part, format!("cannot be read; allowed are {}", self.allowed()))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day-of-month",
            Field::Month => "month",
            Field::DayOfWeek => "day-of-week",
        })
    }
}

/// What a field comes to.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) set: u64,
    /// A `*` or a step stands in it.
    pub(super) has_wildcard: bool,
}

pub(super) fn numbers(field: Field, text: &str) -> Result<Numbers, ExpressionError> {
    let mut numbers = Numbers::default();
    for part in text.split(',') {
        numbers.set |= range(field, part)?;
        numbers.has_wildcard |= part.contains(['*', '/']);
    }
    Ok(numbers)
}

pub(super) fn of_month(text: &str) -> Result<OfMonth, ExpressionError> {
    let field = Field::DayOfMonth;
    let mut days = OfMonth::default();
    if stands_open(field, text)? {
        return Ok(OfMonth::every());
    }
    for part in text.split(',') {
        let upper = part.to_ascii_uppercase();
        if upper == "LW" {
            days.last_weekday = true;
        } else if upper == "L" {
            days.before_last |= bit(0);
        } else if let Some(back) = upper.strip_prefix("L-") {
            days.before_last |= bit(number(field, part, back, 0..=30)?);
        } else if let Some(date) = upper.strip_suffix('W') {
            days.nearest |= bit(number(field, part, date, field.range())?);
        } else {
            days.dates |= range(field, part)?;
        }
    }
    Ok(days)
}

pub(super) fn of_week(text: &str) -> Result<OfWeek, ExpressionError> {
    let field = Field::DayOfWeek;
    let mut days = OfWeek::default();
    if stands_open(field, text)? {
        return Ok(OfWeek::every());
    }
    for part in text.split(',') {
        let upper = part.to_ascii_uppercase();
        if upper == "L" {
            let detail = "must say which day is meant, such as 5L for the last Friday of the month";
            return Err(ExpressionError::in_field(field, part, detail));
        } else if let Some((weekday, nth)) = part.split_once('#') {
            let weekday = bit(number(field, part, weekday, field.range())? % SUNDAY);
            match days.nth.get_mut(nth_of(part, nth)?) {
                Some(set) => *set |= weekday,
                None => return Err(field.refuse(part)),
            }
        } else if let Some(weekday) = upper.strip_suffix('L') {
            days.last |= bit(number(field, part, weekday, field.range())? % SUNDAY);
        } else {
            days.weekdays |= sunday_once(range(field, part)?);
        }
    }
    Ok(days)
}

/// Whether a field of days is left open, by a `?` that stands alone.
fn stands_open(field: Field, text: &str) -> Result<bool, ExpressionError> {
    match text.contains('?') {
        true if text != "?" => Err(ExpressionError::in_field(
            field,
            text,
            "? must stand alone in its field: it is no part of a list or step",
        )),
        open => Ok(open),
    }
}

/// The place of a weekday in a month, counted from 0.
fn nth_of(part: &str, text: &str) -> Result<usize, ExpressionError> {
    match text {
        "1" => Ok(0),
        "2" => Ok(1),
        "3" => Ok(2),
        "4" => Ok(3),
        "5" => Ok(4),
        _ => Err(ExpressionError::in_field(Field::DayOfWeek, part, "after # must stand 1 to 5, such as 5#2")),
    }
}

fn sunday_once(set: u64) -> u64 {
    (set | set >> SUNDAY) & !bit(SUNDAY)
}

/// `*`, one number, a range, each perhaps with a step.
fn range(field: Field, part: &str) -> Result<u64, ExpressionError> {
    let (span, step) = match part.split_once('/') {
        Some((span, step)) => (span, Some(self::step(field, part, step)?)),
        None => (part, None),
    };
    let (low, high) = bounds(field, part, span, step.is_some())?;
    if low > high {
        let advice = past_the_end(field, span, (low, high), step);
        let detail = format!("must not go backwards; to go on past the end write {advice}");
        return Err(ExpressionError::in_field(field, part, detail));
    }
    let stepped = (low..=high).step_by(step.unwrap_or(1));
    Ok(stepped.map(bit).fold(0, |set, number| set | number))
}

/// What a range that goes backwards probably means: `FRI-SUN,MON` for `FRI-MON`.
fn past_the_end(field: Field, span: &str, (low, high): (u32, u32), step: Option<usize>) -> String {
    let (low_text, high_text) = span.split_once('-').unwrap_or((span, span));
    // Sunday is the last day of a week here: a range that goes on begins with Monday.
    let (first, last) = match field {
        Field::DayOfWeek => (1, SUNDAY),
        other => (*other.range().start(), *other.range().end()),
    };
    if let Some(step) = step.filter(|step| *step > 1) {
        let all = (low..=last).chain(first..=high).step_by(step);
        return all.map(|number| field.written(number, low_text)).collect::<Vec<_>>().join(",");
    }
    let range = |(low, high), like| match low == high {
        true => field.written(low, like),
        false => format!("{}-{}", field.written(low, like), field.written(high, like)),
    };
    format!("{},{}", range((low, last), low_text), range((first, high), high_text))
}

fn bounds(field: Field, part: &str, span: &str, stepped: bool) -> Result<(u32, u32), ExpressionError> {
    let every = field.every();
    if span == "*" {
        return Ok((*every.start(), *every.end()));
    }
    if let Some((low, high)) = span.split_once('-') {
        let low = number(field, part, low, field.range())?;
        let high = match number(field, part, high, field.range())? {
            0 if field == Field::DayOfWeek && low > 0 => SUNDAY,
            high => high,
        };
        return Ok((low, high));
    }
    let one = number(field, part, span, field.range())?;
    Ok((one, if stepped { one.max(*every.end()) } else { one }))
}

fn step(field: Field, part: &str, text: &str) -> Result<usize, ExpressionError> {
    let most = *field.range().end();
    let step = digits(text).ok_or_else(|| field.refuse(part))?;
    if (1..=most).contains(&step) {
        return usize::try_from(step).map_err(|_| field.refuse(part));
    }
    let advice = longer_step(field, step).unwrap_or_default();
    Err(ExpressionError::in_field(field, part, format!("a step must be from 1 to {most}{advice}")))
}

/// How to write a step that is longer than its field.
fn longer_step(field: Field, step: u32) -> Option<String> {
    let (unit, seconds) = match field {
        Field::Second => ("s", 1),
        Field::Minute => ("m", 60),
        Field::Hour => ("h", 3_600),
        _ => return None,
    };
    match (field, step) {
        (Field::Second, 60) => Some("; for every minute write * * * * *".to_owned()),
        (Field::Minute, 60) => Some("; for every hour write 0 * * * *".to_owned()),
        (Field::Hour, 24) => Some("; for every day write one hour, such as 0 0 * * *".to_owned()),
        _ if step > 0 && i64::from(step) * seconds <= MAX_SPAN_SECONDS => {
            Some(format!("; for every {step}{unit} of elapsed time write @every {step}{unit}"))
        }
        _ => None,
    }
}

/// One number or name.
fn number(
    field: Field,
    part: &str,
    text: &str,
    allowed: RangeInclusive<u32>,
) -> Result<u32, ExpressionError> {
    let found = field.named(text).or_else(|| digits(text)).ok_or_else(|| field.refuse(part))?;
    if allowed.contains(&found) {
        return Ok(found);
    }
    let (min, max) = (allowed.start(), allowed.end());
    let written = shortened(text);
    Err(ExpressionError::in_field(field, part, format!("must be from {min} to {max}; {written} is not")))
}

/// A year, a range of years or a list of them, by how it begins.
pub(super) fn is_year(text: &str) -> bool {
    let year = text.split([',', '-', '/']).next().and_then(digits);
    year.is_some_and(|year| (1970..=2999).contains(&year))
}

/// A number without a sign; one that is too large for anything stays too large.
fn digits(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}
