//! What follows `@every` and `@at`: a span, and a point in time.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use super::ExpressionError;

/// The longest span: ten years of 365 days.
pub(super) const MAX_SPAN_SECONDS: i64 = 3_650 * 86_400;

/// An instant, or what the clock on the wall shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Instant(Timestamp),
    Local(DateTime),
}

/// `90s`, `1h30m`, `1d 12h`.
pub(super) fn span(text: &str) -> Result<SignedDuration, ExpressionError> {
    let refuse = || {
        let detail =
            "after @every must stand a span of whole seconds from 1s to 3650d, such as 90s, 5m, 1h30m or 7d";
        ExpressionError::at(text, detail)
    };
    let mut seconds = 0i64;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at_checked(digits).ok_or_else(refuse)?;
        let unit = match tail.bytes().next() {
            Some(b's') => 1,
            Some(b'm') => 60,
            Some(b'h') => 3_600,
            Some(b'd') => 86_400,
            _ => return Err(refuse()),
        };
        let number: i64 = number.parse().map_err(|_| refuse())?;
        let part = number.checked_mul(unit).ok_or_else(refuse)?;
        seconds = seconds.checked_add(part).ok_or_else(refuse)?;
        rest = tail.get(1..).unwrap_or_default().trim_start();
    }
    if !(1..=MAX_SPAN_SECONDS).contains(&seconds) {
        return Err(refuse());
    }
    Ok(SignedDuration::from_secs(seconds))
}

/// RFC 3339, or the same without an offset.
pub(super) fn moment(text: &str) -> Result<Moment, ExpressionError> {
    // What would otherwise be read without it.
    if text.contains('[') {
        let detail =
            "a time zone in brackets is no part of the expression; give it as time_zone, or with --zone";
        return Err(ExpressionError::at(text, detail));
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(Moment::Instant(instant));
    }
    let local = text.parse::<DateTime>().ok().filter(|_| text.contains(['T', 't']));
    local.map(Moment::Local).ok_or_else(|| {
        let detail = "after @at must stand an instant such as 2030-01-31T08:00:00Z, or a local time such as 2030-01-31T08:00";
        ExpressionError::at(text, detail)
    })
}
