//! Instants and spans as people read them. Nothing here asks what time it is.

use std::time::Duration;

use rota_model::time::UnixMillis;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// An instant and how far away it is: `2030-01-31T08:00:00Z (3 s ago)`.
pub(crate) fn when(at: UnixMillis, now: UnixMillis) -> String {
    format!("{} ({})", date(at), age(at, now))
}

/// RFC 3339 in UTC, to the second.
pub(crate) fn date(at: UnixMillis) -> String {
    at.to_date().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// How long ago, or how far ahead, in its largest unit.
pub(crate) fn age(at: UnixMillis, now: UnixMillis) -> String {
    if at > now {
        return format!("in {}", largest_unit(at.since(now)));
    }
    match now.since(at) {
        past if past < Duration::from_secs(1) => "just now".to_owned(),
        past => format!("{} ago", largest_unit(past)),
    }
}

fn largest_unit(span: Duration) -> String {
    match millis(span) {
        ms @ ..MINUTE => format!("{} s", ms / SECOND),
        ms @ ..HOUR => format!("{} min", ms / MINUTE),
        ms @ ..DAY => format!("{} h", ms / HOUR),
        ms => format!("{} d", ms / DAY),
    }
}

/// A span in its two largest units.
pub(crate) fn span(span: Duration) -> String {
    match millis(span) {
        ms @ ..SECOND => format!("{ms} ms"),
        ms @ ..MINUTE => format!("{}.{} s", ms / SECOND, ms % SECOND / 100),
        ms @ ..HOUR => format!("{} min {} s", ms / MINUTE, ms % MINUTE / SECOND),
        ms @ ..DAY => format!("{} h {} min", ms / HOUR, ms % HOUR / MINUTE),
        ms => format!("{} d {} h", ms / DAY, ms % DAY / HOUR),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_893_456_000_000);

    #[test]
    fn instants_are_dates_with_their_distance() {
        let at = |distance_ms| when(UnixMillis(NOW.0 - distance_ms), NOW);
        assert_eq!(at(0), "2030-01-01T00:00:00Z (just now)");
        assert_eq!(at(3_999), "2029-12-31T23:59:56Z (3 s ago)");
        assert_eq!(at(125_000), "2029-12-31T23:57:55Z (2 min ago)");
        assert_eq!(at(3 * 3_600_000), "2029-12-31T21:00:00Z (3 h ago)");
        assert_eq!(at(50 * 3_600_000), "2029-12-29T22:00:00Z (2 d ago)");
        assert_eq!(at(-90_000), "2030-01-01T00:01:30Z (in 1 min)");
    }

    #[test]
    fn spans_have_two_units() {
        let shown = |ms| span(Duration::from_millis(ms));
        assert_eq!(shown(203), "203 ms");
        assert_eq!(shown(2_345), "2.3 s");
        assert_eq!(shown(61_000), "1 min 1 s");
        assert_eq!(shown(3_660_000), "1 h 1 min");
        assert_eq!(shown(90_000_000), "1 d 1 h");
    }
}
