//! What is written on the command line, read into checked types. What cannot be read is refused here, before
//! anything is sent.

use std::io::Read;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{Span, SpanRelativeTo, Timestamp};
use rota_model::check::{Invalid, MAX_BODY_BYTES};
use rota_model::domain::Domain;
use rota_model::job::{JobStatus, Scope};
use rota_model::json_text;
use rota_model::keep::Keep;
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use rota_model::user::{Role, UserId};
use serde_json::Value;

use crate::exit::Failure;

/// What some editors write in front of a text to say that it is UTF-8. It is no part of the text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// Long enough for anything, and short enough to be added to the time.
const MAX_SPAN: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

pub(crate) fn domain(text: &str) -> Result<Domain, String> {
    text.parse().map_err(details)
}

pub(crate) fn user_id(text: &str) -> Result<UserId, String> {
    text.parse().map_err(details)
}

/// The faults without the places: on a command line the flag is the place.
fn details(invalid: Invalid) -> String {
    let details: Vec<_> = invalid.0.into_iter().map(|error| error.detail).collect();
    details.join("; ")
}

/// A role in a domain, written `default=operator`.
pub(crate) fn grant(text: &str) -> Result<(Domain, Role), String> {
    let (name, role) = text.split_once('=').ok_or("write a domain and a role, such as default=operator")?;
    Ok((domain(name)?, role.parse().map_err(details)?))
}

pub(crate) fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|name| name.parse().map_err(details))
}

pub(crate) fn status() -> impl TypedValueParser<Value = JobStatus> {
    let named =
        |name: String| JobStatus::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(&name));
    PossibleValuesParser::new(JobStatus::ALL.map(JobStatus::as_str))
        .try_map(move |name| named(name).ok_or("is no status of a job"))
}

/// A level of the log, in any case.
pub(crate) fn named_level(name: &str) -> Result<Level, String> {
    name.to_ascii_uppercase().parse().map_err(details)
}

pub(crate) fn level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(Level::ALL.iter().copied().map(Level::as_str))
        .try_map(|name| named_level(&name))
}

/// An instant, or how long ago: `10m`.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    // Elsewhere a plus leads ahead: here it would mean the contrary.
    if let Ok(span) = span(text)
        && !text.starts_with('+')
    {
        return Ok(Since::Ago(span));
    }
    instant(text).map(Since::At).map_err(|refused| format!("{refused}; or 10m for ten minutes ago"))
}

/// An instant, or how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    At(UnixMillis),
    Ago(Duration),
}

impl Since {
    pub(crate) fn seen_from(self, now: UnixMillis) -> UnixMillis {
        match self {
            Since::At(instant) => instant,
            Since::Ago(span) => {
                UnixMillis(now.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
            }
        }
    }
}

/// How long something is kept.
pub(crate) fn keep(text: &str) -> Result<Keep, String> {
    text.parse().map_err(details)
}

/// A span such as `60s`, `1h 30m` or `30d`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let read = text.parse::<Span>().and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()));
    let usage = "write a number and its unit, such as 500ms, 60s, 5m, 2h or 30d";
    let span = read.ok().and_then(|span| Duration::try_from(span).ok()).ok_or(usage)?;
    if span > MAX_SPAN {
        return Err(format!("must be {} days at most", MAX_SPAN.as_secs() / (24 * 3_600)));
    }
    Ok(span)
}

/// An instant: RFC 3339 or Unix milliseconds.
pub(crate) fn instant(text: &str) -> Result<UnixMillis, String> {
    let usage =
        "write an RFC 3339 date from 1970 to 2999, such as 2030-01-31T08:00:00Z, or Unix milliseconds";
    let read = match text.parse::<i64>() {
        Ok(millis) => Some(UnixMillis(millis)),
        Err(_) => text.parse::<Timestamp>().ok().map(UnixMillis::from),
    };
    let at = read.ok_or(usage)?;
    if (UnixMillis(0)..=UnixMillis::MAX).contains(&at) {
        return Ok(at);
    }
    Err(format!("must be from {} to {}", UnixMillis(0), UnixMillis::MAX))
}

/// An instant, or how long from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    At(UnixMillis),
    In(Duration),
}

impl When {
    pub(crate) fn seen_from(self, now: UnixMillis) -> UnixMillis {
        match self {
            When::At(instant) => instant,
            When::In(span) => now.plus(span),
        }
    }
}

/// An instant, or `+10m` for ten minutes from now.
pub(crate) fn when(text: &str) -> Result<When, String> {
    match text.strip_prefix('+') {
        Some(ahead) => span(ahead).map(When::In),
        None => instant(text).map(When::At).map_err(|refused| format!("{refused}; or +10m from now")),
    }
}

/// How long twins are kept away.
pub(crate) fn scope() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(["queued", "running", "unfinished"]).map(|name| match name.as_str() {
        "queued" => Scope::Queued,
        "running" => Scope::Running,
        _ => Scope::Unfinished,
    })
}

/// A payload: JSON as it stands, `@file`, or `-` for the standard input.
pub(crate) fn payload(given: &str, stdin: impl Read) -> Result<Value, Failure> {
    object("payload", EXAMPLE, given, stdin)
}

/// A JSON Schema, given in the same ways.
pub(crate) fn schema(given: &str, stdin: impl Read) -> Result<Value, Failure> {
    object("schema", r#"{"type": "object"}"#, given, stdin)
}

fn object(what: &str, example: &str, given: &str, stdin: impl Read) -> Result<Value, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => std::fs::read(path)
            .map_err(|error| Failure::refused(format!("the {what} file {path} cannot be read: {error}")))?,
        None if given == "-" => read_all(what, stdin)?,
        None => given.as_bytes().to_vec(),
    };
    let text = text.strip_prefix(BOM).unwrap_or(&text);
    let value = json_text::parse(text).map_err(|fault| {
        Failure::refused(format!(
            "the {what} cannot be used: {fault}; it must be a JSON object, such as {example}"
        ))
    })?;
    if value.is_object() {
        return Ok(value);
    }
    Err(Failure::refused(format!("the {what} must be a JSON object, such as {example}")))
}

const EXAMPLE: &str = r#"{"millis": 200}"#;

fn read_all(what: &str, stdin: impl Read) -> Result<Vec<u8>, Failure> {
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    let read = stdin.take(limit + 1).read_to_end(&mut text);
    read.map_err(|error| Failure::refused(format!("the standard input cannot be read: {error}")))?;
    if text.len() > MAX_BODY_BYTES {
        return Err(Failure::refused(format!("the {what} has more than {MAX_BODY_BYTES} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use serde_json::json;

    fn payload_without_stdin(given: &str) -> Result<Value, Failure> {
        payload(given, std::io::empty())
    }

    #[test]
    fn a_payload_is_given_directly_in_a_file_or_through_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("payload.json");
        std::fs::write(&path, "{\"millis\": 1}\n").unwrap();
        let at_file = format!("@{}", path.display());
        assert_eq!(payload_without_stdin(r#"{"millis": 1}"#).unwrap(), json!({"millis": 1}));
        assert_eq!(payload_without_stdin(&at_file).unwrap(), json!({"millis": 1}));
        assert_eq!(payload("-", &br#"{"millis": 1}"#[..]).unwrap(), json!({"millis": 1}));
        std::fs::write(&path, "\u{feff}{\"millis\": 1}\n").unwrap();
        assert_eq!(payload_without_stdin(&at_file).unwrap(), json!({"millis": 1}), "marked as UTF-8");
    }

    #[test]
    fn a_payload_that_is_no_json_object_is_refused_with_a_sentence() {
        for given in ["", "{", "millis", "[1]", "7", "{\"n\": 12345678901234567890123}", "@no/such/file.json"]
        {
            let failure = payload_without_stdin(given).unwrap_err();
            assert_eq!(failure.exit, Exit::Refused, "{given}");
            assert!(failure.message.starts_with("the payload"), "{}", failure.message);
        }
        let message = payload_without_stdin("{\"a\":\n x}").unwrap_err().message;
        assert!(message.contains("line 2, column 2"), "{message}");
        assert!(payload("-", std::io::repeat(b' ')).is_err());
    }

    #[test]
    fn instants_are_dates_or_milliseconds() {
        assert_eq!(instant("1893456000000"), Ok(UnixMillis(1_893_456_000_000)));
        assert_eq!(instant("2030-01-01T00:00:00Z"), Ok(UnixMillis(1_893_456_000_000)));
        assert_eq!(instant("2030-01-01T01:00:00+01:00"), Ok(UnixMillis(1_893_456_000_000)));
        for text in ["", "tomorrow", "2030-01-01", "2030-01-01T00:00:00", "-1", "99999999999999999"] {
            assert!(instant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_instant_may_be_counted_from_now() {
        let seen = |text| when(text).map(|when| when.seen_from(UnixMillis(1_000)).0);
        assert_eq!(seen("+10m"), Ok(601_000));
        assert_eq!(seen("1893456000000"), Ok(1_893_456_000_000));
        for text in ["+", "+10", "10m", "+-5s"] {
            assert!(when(text).is_err(), "{text}");
        }
        assert!(when("soon").unwrap_err().ends_with("or +10m from now"));
    }

    #[test]
    fn an_instant_may_be_counted_back_from_now() {
        let seen = |text| since(text).map(|since| since.seen_from(UnixMillis(601_000)).0);
        assert_eq!((seen("10m"), seen("1893456000000")), (Ok(1_000), Ok(1_893_456_000_000)));
        for text in ["", "+10m", "yesterday"] {
            assert!(seen(text).unwrap_err().ends_with("ten minutes ago"), "{text}");
        }
        assert_eq!(named_level("warn"), Ok(Level::Warn));
        assert!(named_level("loud").unwrap_err().contains("DEBUG"));
    }

    #[test]
    fn spans_have_a_unit() {
        let seconds = |text| span(text).map(|span| span.as_secs());
        assert_eq!(seconds("60s"), Ok(60));
        assert_eq!(seconds("5m"), Ok(300));
        assert_eq!(seconds("1h 30m"), Ok(5_400));
        assert_eq!(seconds("30d"), Ok(30 * 86_400));
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "60", "s", "-5s", "2 moons", "1mo", "9999999h"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_grant_is_a_domain_and_a_role() {
        assert_eq!(grant("default=operator"), Ok((Domain::default(), Role::Operator)));
        assert!(grant("default").unwrap_err().contains("default=operator"));
        assert!(grant("default=king").unwrap_err().contains("viewer, operator or admin"));
        assert!(grant("No Such=viewer").unwrap_err().contains("lower case"));
    }
}
