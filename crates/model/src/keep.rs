//! How long something is kept: `30d`, `12h`, or `forever`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::check::Invalid;
use crate::time::UnixMillis;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;
/// Less than an hour is a slip of the pen; more than a hundred years is for ever.
const SPANS: RangeInclusive<u64> = HOUR..=100 * 366 * DAY;

/// Written in whole hours or days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Keep {
    Forever,
    For(Duration),
}

impl Keep {
    /// What is older than this instant goes; none if nothing ever does.
    pub fn before(self, now: UnixMillis) -> Option<UnixMillis> {
        match self {
            Keep::Forever => None,
            Keep::For(span) => {
                let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                Some(UnixMillis(now.0.saturating_sub(span)))
            }
        }
    }

    /// The span, unless it is for ever.
    pub fn span(self) -> Option<Duration> {
        match self {
            Keep::Forever => None,
            Keep::For(span) => Some(span),
        }
    }
}

impl FromStr for Keep {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "forever" {
            return Ok(Keep::Forever);
        }
        seconds(text)
            .filter(|seconds| SPANS.contains(seconds))
            .map(|span| Keep::For(Duration::from_secs(span)))
            .ok_or_else(|| {
                Invalid::one(
                    "",
                    "must be forever, or a span of hours or days from 1h to 36600d, such as 12h or 30d",
                )
            })
    }
}

/// One spelling only: digits without a leading zero, and a unit.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('d') {
        Some(days) => (days, DAY),
        None => (text.strip_suffix('h')?, HOUR),
    };
    let plain =
        number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    number.parse::<u64>().ok().filter(|_| plain)?.checked_mul(unit)
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Forever => f.write_str("forever"),
            Keep::For(span) if span.as_secs().is_multiple_of(DAY) => write!(f, "{}d", span.as_secs() / DAY),
            Keep::For(span) => write!(f, "{}h", span.as_secs() / HOUR),
        }
    }
}

impl TryFrom<String> for Keep {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Keep> for String {
    fn from(keep: Keep) -> Self {
        keep.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, hours, written) in
            [("1h", 1, "1h"), ("36h", 36, "36h"), ("48h", 48, "2d"), ("30d", 720, "30d")]
        {
            let keep: Keep = text.parse().unwrap();
            assert_eq!(
                (keep, keep.to_string().as_str()),
                (Keep::For(Duration::from_secs(hours * HOUR)), written)
            );
            assert_eq!(
                keep.before(UnixMillis(0)),
                Some(UnixMillis(-i64::try_from(hours * HOUR * 1_000).unwrap()))
            );
        }
        assert_eq!("forever".parse::<Keep>().unwrap().before(UnixMillis(0)), None);
        assert_eq!("36600d".parse::<Keep>().unwrap().to_string(), "36600d");
        let refused = [
            "", "d", "0d", "-1d", "+1d", "01d", "1", "30", "30 d", "5m", "1w", "36601d", "999999d", "ever",
            "1.5d",
        ];
        for text in refused {
            assert!(text.parse::<Keep>().is_err(), "{text}");
        }
    }
}
