//! What a person writes for a schedule, read and checked.
//!
//! - five fields, minute first, or six, second first: see [`field`] for what each may hold
//! - `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`
//! - `@every 90s`: a span, by elapsed time
//! - `@at 2030-01-31T08:00:00Z`, or without an offset for a local time: once
//!
//! What is refused is told with the field, the part of it that is at fault and what is allowed. An expression that can
//! never fire, such as the 30th of February, is refused too.

mod fault;
mod field;
mod moment;

pub use fault::{ExpressionError, shortened};
pub use field::Field;

use std::str::FromStr;

use jiff::SignedDuration;

use crate::days::Days;
use crate::pattern::Pattern;
pub(crate) use moment::Moment;

/// A schedule as it was written, ready to be given a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pattern(Pattern),
    Every(SignedDuration),
    At(Moment),
}

const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let text = text.trim();
        if text.starts_with('@') {
            return named(text);
        }
        let pattern = pattern(text)?;
        // Weekdays and dates repeat every 400 years: what is not found from here is never found.
        match pattern.at_or_after(0) {
            Some(_) => Ok(Self(Kind::Pattern(pattern))),
            None => Err(ExpressionError::never()),
        }
    }
}

fn named(text: &str) -> Result<Expression, ExpressionError> {
    let (name, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    let rest = rest.trim_matches([' ', '\t']);
    let name = name.to_ascii_lowercase();
    let nickname = NICKNAMES.into_iter().find(|(known, _)| *known == name);
    match (name.as_str(), nickname) {
        (_, Some((_, meaning))) if rest.is_empty() => meaning.parse(),
        (_, Some((known, _))) => Err(ExpressionError::at(rest, format!("nothing may follow {known}"))),
        ("@every", _) => moment::span(rest).map(|span| Expression(Kind::Every(span))),
        ("@at", _) => moment::moment(rest).map(|moment| Expression(Kind::At(moment))),
        _ => {
            let known = NICKNAMES.map(|(known, _)| known).join(", ");
            Err(ExpressionError::at(
                text,
                format!("must be one of {known}, @every 90s, @at 2030-01-31T08:00"),
            ))
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, ExpressionError> {
    let parts: Vec<_> = text.split([' ', '\t']).filter(|part| !part.is_empty()).collect();
    misplaced(&parts)?;
    let (second, rest) = match parts.as_slice() {
        [second, rest @ ..] if rest.len() == 5 => (*second, rest),
        all => ("0", all),
    };
    let [minute, hour, date, month, weekday] = rest else {
        return Err(ExpressionError::number_of_fields(parts.len()));
    };
    let (minutes, hours) = (field::numbers(Field::Minute, minute)?, field::numbers(Field::Hour, hour)?);
    let (of_month, of_week) = (field::of_month(date)?, field::of_week(weekday)?);
    Ok(Pattern {
        seconds: field::numbers(Field::Second, second)?.set,
        is_rhythm: minutes.has_wildcard || hours.has_wildcard,
        minutes: minutes.set,
        hours: hours.set,
        months: field::numbers(Field::Month, month)?.set,
        days: Days { of_month, of_week, either: !is_open(date) && !is_open(weekday) },
    })
}

/// What other crons know and this one has elsewhere: the zone in front, the year at the end.
fn misplaced(parts: &[&str]) -> Result<(), ExpressionError> {
    if let Some(zone) = parts.first().filter(|part| part.starts_with("TZ=") || part.starts_with("CRON_TZ=")) {
        let detail = "the time zone is no part of the expression; give it as time_zone, or with --zone";
        return Err(ExpressionError::at(zone, detail));
    }
    match parts {
        [.., year] if parts.len() == 6 && field::is_year(year) => {
            let detail =
                "there is no field for the year; give start_time and stop_time, or --start and --stop";
            Err(ExpressionError::at(year, detail))
        }
        _ => Ok(()),
    }
}

/// A field that begins like this restricts nothing for the rule about days, even if a step follows.
fn is_open(field: &str) -> bool {
    field.starts_with(['*', '?'])
}
