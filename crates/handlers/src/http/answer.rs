//! What an answer means for the job: its result, another attempt, or its end.

use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use rota_engine::handler::HandlerError;
use rota_model::time::UnixMillis;
use serde_json::{Map, Value, json};

use crate::http::exchange::Answer;
use crate::http::payload::Call;

/// Nobody else decides that a job rests for longer.
const MAX_REST: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of the body is told with an error, in characters.
const MAX_TOLD: usize = 300;
const MAX_HEADER_CHARS: usize = 2 * 1024;
/// What nests deeper is kept as text: a document has its limits.
const MAX_NESTING: usize = 16;

/// What the handler returns.
pub(super) type Verdict = Result<Map<String, Value>, HandlerError>;

pub(super) fn judge(call: &Call, answer: Answer, took: Duration, now: UnixMillis) -> Verdict {
    if call.accepts(answer.status) {
        return Ok(result(answer, took));
    }
    let why = format!("{call} answered {}{}", answer.status, told(&answer));
    Err(match (answer.status, rest(&answer.headers)) {
        (429 | 503, Some(rest)) => HandlerError::RetryAt { at: now.plus(rest), why },
        (429 | 500.. | ..300, _) => HandlerError::Failed(why),
        _ => HandlerError::Fatal(why),
    })
}

fn result(answer: Answer, took: Duration) -> Map<String, Value> {
    let headers: Map<_, _> = [CONTENT_TYPE, LOCATION]
        .into_iter()
        .filter_map(|name| Some((name.to_string(), text_of(&answer.headers, &name)?.into())))
        .collect();
    let mut result = Map::new();
    result.insert("status".to_owned(), json!(answer.status));
    result.insert("headers".to_owned(), headers.into());
    result.insert("body".to_owned(), body(&answer));
    if answer.truncated {
        result.insert("truncated".to_owned(), json!(true));
    }
    result.insert("tookMillis".to_owned(), json!(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    result
}

/// JSON if it says so and is, and a document can hold it; otherwise text.
fn body(answer: &Answer) -> Value {
    let kind = text_of(&answer.headers, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let json = (is_json && !answer.truncated).then(|| serde_json::from_slice(&answer.body).ok()).flatten();
    json.filter(|json| fits(json, MAX_NESTING)).unwrap_or_else(|| text(answer).into())
}

/// Whatever it is, as text. What was cut in the middle of a character ends before it.
fn text(answer: &Answer) -> String {
    let whole = match std::str::from_utf8(&answer.body) {
        Err(error) if answer.truncated && error.error_len().is_none() => error.valid_up_to(),
        _ => answer.body.len(),
    };
    String::from_utf8_lossy(answer.body.get(..whole).unwrap_or_default()).replace('\0', "\u{fffd}")
}

fn fits(json: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match json {
        Value::String(text) => !text.contains('\0'),
        Value::Array(items) => items.iter().all(|item| fits(item, below)),
        Value::Object(fields) => fields.iter().all(|(name, item)| !name.contains('\0') && fits(item, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn text_of(headers: &HeaderMap, name: &hyper::header::HeaderName) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(name)?.as_bytes());
    Some(value.chars().take(MAX_HEADER_CHARS).collect())
}

/// The beginning of the body on one line, and where a redirect would have led.
fn told(answer: &Answer) -> String {
    let location = text_of(&answer.headers, &LOCATION).filter(|_| (300..400).contains(&answer.status));
    let location =
        location.map(|to| format!(" and leads to {to}, which is not followed")).unwrap_or_default();
    let text = text(answer);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line: String = line.chars().filter(|c| !c.is_control()).take(MAX_TOLD + 1).collect();
    if line.is_empty() {
        return location;
    }
    if line.chars().count() > MAX_TOLD {
        line.pop();
        line.push('…');
    }
    format!("{location}: {line}")
}

/// How long the server asks us to wait, if it says so in seconds.
fn rest(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = seconds.bytes().all(|digit| digit.is_ascii_digit()).then_some(seconds)?;
    // More digits than a number holds are more than a day, too.
    let seconds = if seconds.is_empty() { return None } else { seconds.parse().unwrap_or(u64::MAX) };
    Some(Duration::from_secs(seconds).min(MAX_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Answer {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Answer { status, headers: headers.collect(), body: body.to_vec(), truncated: false }
    }

    fn judged(answer: Answer) -> Verdict {
        let payload = json!({"url": "http://example.com/x?key=secret"});
        let call = Call::read(payload.as_object().unwrap()).unwrap();
        judge(&call, answer, Duration::from_millis(7), UnixMillis(1_000))
    }

    #[test]
    fn a_status_decides_whether_it_is_tried_again() {
        for status in [500, 502, 503, 504, 429, 599] {
            assert!(matches!(judged(answer(status, &[], b"")), Err(HandlerError::Failed(_))), "{status}");
        }
        for status in [400, 401, 404, 410, 422, 301, 304] {
            assert!(matches!(judged(answer(status, &[], b"")), Err(HandlerError::Fatal(_))), "{status}");
        }
    }

    #[test]
    fn a_server_says_when_to_come_back() {
        let at = |status, after| match judged(answer(status, &[("retry-after", after)], b"")) {
            Err(HandlerError::RetryAt { at, .. }) => Some(at.0),
            _ => None,
        };
        assert_eq!((at(429, "2"), at(503, "0")), (Some(3_000), Some(1_000)));
        assert_eq!(at(429, "99999999999999999999999"), Some(1_000 + 86_400_000));
        assert_eq!((at(429, "soon"), at(429, ""), at(429, "-1"), at(400, "2")), (None, None, None, None));
    }

    #[test]
    fn an_error_tells_the_beginning_of_the_body_and_no_secret() {
        let why = judged(answer(400, &[], &b"no\r\n\x07such thing ".repeat(100))).unwrap_err().to_string();
        assert!(why.starts_with("GET http://example.com/x answered 400: no such thing no"), "{why}");
        assert!(why.ends_with('…') && !why.contains("secret"), "{why}");
        let why = judged(answer(302, &[("location", "http://b/")], b"")).unwrap_err().to_string();
        assert!(why.ends_with("answered 302 and leads to http://b/, which is not followed"), "{why}");
    }

    #[test]
    fn a_body_is_json_or_text() {
        let body =
            |kind, body: &[u8]| judged(answer(200, &[("content-type", kind)], body)).unwrap()["body"].clone();
        assert_eq!(body("application/json; charset=utf-8", br#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(body("application/problem+json", b"[1]"), json!([1]));
        assert_eq!(body("application/json", b"{oops"), json!("{oops"));
        assert_eq!(body("text/plain", b"1"), json!("1"));
        assert_eq!(body("image/png", b"\x89P\0"), json!("\u{fffd}P\u{fffd}"));
        assert!(body("application/json", "[".repeat(17).as_bytes()).is_string());
        let deep = "[".repeat(17) + &"]".repeat(17);
        assert_eq!(body("application/json", deep.as_bytes()), json!(deep));
        assert!(body("application/json", br#"["\u0000"]"#).is_string());
    }
}
