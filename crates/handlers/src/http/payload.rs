//! What a job asks for. The schema refuses at the submission what can be told by its form; the rest is told when it runs.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use url::Url;

use crate::http::headers;

const DEFAULT_LIMIT_MS: u64 = 30_000;
const MAX_LIMIT_MS: u64 = 60 * 60 * 1_000;
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const MAX_URL_CHARS: usize = 8 * 1024;
const MAX_HEADERS: usize = 50;
const MAX_HEADER_CHARS: usize = 8 * 1024;
const MAX_ACCEPTED: usize = 100;
const SUCCESS: RangeInclusive<u16> = 200..=299;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "pattern": "^[hH][tT][tT][pP][sS]?://", "maxLength": MAX_URL_CHARS},
            "method": {"enum": METHODS},
            "headers": {
                "type": "object",
                "maxProperties": MAX_HEADERS,
                "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$"},
                "additionalProperties": {
                    "type": "string", "pattern": "^[\\t\\x20-\\x7e]*$", "maxLength": MAX_HEADER_CHARS,
                },
            },
            "body": true,
            "bodyText": {"type": "string"},
            "accept": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_ACCEPTED,
                "items": {"anyOf": [
                    {"type": "integer", "minimum": 100, "maximum": 599},
                    {"type": "string", "pattern": "^[1-5][0-9]{2}(-[1-5][0-9]{2})?$"},
                ]},
            },
            "timeoutMs": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT_MS},
        },
        "not": {"required": ["body", "bodyText"]},
        "additionalProperties": false,
    })
}

/// A payload, read and checked.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    /// What the job gives, and the type of its body.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    accept: Vec<RangeInclusive<u16>>,
    pub(super) limit: Duration,
}

impl Call {
    /// Or what is wrong with the payload.
    pub(super) fn read(payload: &Map<String, Value>) -> Result<Self, String> {
        let url = payload.get("url").and_then(Value::as_str).ok_or("the payload has no url")?;
        let mut headers = headers::given(payload.get("headers").and_then(Value::as_object))?;
        let (body, kind) = body(payload)?;
        if let Some(kind) = kind {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        let method = match payload.get("method").and_then(Value::as_str) {
            Some(method) => method.parse().map_err(|_| format!("'{method}' is no method"))?,
            None if kind.is_some() => Method::POST,
            None => Method::GET,
        };
        let limit = payload.get("timeoutMs").and_then(whole_number).unwrap_or(DEFAULT_LIMIT_MS);
        let limit = Duration::from_millis(limit.min(MAX_LIMIT_MS));
        Ok(Self { method, url: callable(url)?, headers, body, accept: accept(payload.get("accept"))?, limit })
    }

    pub(super) fn accepts(&self, status: u16) -> bool {
        self.accept.iter().any(|range| range.contains(&status))
    }
}

/// Without the query, in which there may be secrets.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, shown(&self.url))
    }
}

/// A URL for people to read.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// A URL that may be called, as far as its form goes. Also for where a redirect leads.
pub(super) fn callable(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the url cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the url must begin with http:// or https://, not {}:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the url must not carry a user or a password: give an authorization header".to_owned());
    }
    Ok(url)
}

/// What is sent, and of which type it is if the job does not say so itself.
fn body(payload: &Map<String, Value>) -> Result<(Bytes, Option<&'static str>), String> {
    if let Some(text) = payload.get("bodyText").and_then(Value::as_str) {
        return Ok((Bytes::from(text.to_owned()), Some("text/plain; charset=utf-8")));
    }
    let Some(body) = payload.get("body") else { return Ok((Bytes::new(), None)) };
    let body = serde_json::to_vec(body).map_err(|error| format!("the body cannot be sent: {error}"))?;
    Ok((Bytes::from(body), Some("application/json")))
}

fn accept(given: Option<&Value>) -> Result<Vec<RangeInclusive<u16>>, String> {
    let Some(given) = given.and_then(Value::as_array) else { return Ok(vec![SUCCESS]) };
    given
        .iter()
        .map(|one| range(one).ok_or_else(|| format!("accept: {one} is no status and no range")))
        .collect()
}

fn range(value: &Value) -> Option<RangeInclusive<u16>> {
    if let Some(code) = whole_number(value) {
        let code = u16::try_from(code).ok()?;
        return Some(code..=code);
    }
    let text = value.as_str()?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

/// JSON Schema takes `1e2` and `5.0` for integers, and so do we.
fn whole_number(value: &Value) -> Option<u64> {
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0)?.to_string().parse().ok();
    value.as_u64().or_else(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: Value) -> Result<Call, String> {
        Call::read(payload.as_object().unwrap())
    }

    #[test]
    fn little_needs_to_be_said() {
        let call = read(json!({"url": "https://example.com/a?token=1"})).unwrap();
        assert_eq!((call.method.as_str(), call.limit.as_secs(), call.body.len()), ("GET", 30, 0));
        assert!(call.accepts(200) && call.accepts(299) && !call.accepts(300) && !call.accepts(199));
        assert_eq!(call.to_string(), "GET https://example.com/a");
    }

    #[test]
    fn a_body_says_how_it_is_sent() {
        let call = read(json!({"url": "http://e.com", "body": {"b": 1, "a": null}})).unwrap();
        assert_eq!((call.method.as_str(), &call.body[..]), ("POST", &br#"{"b":1,"a":null}"#[..]));
        assert_eq!(call.headers["content-type"], "application/json");
        let call = read(json!({"url": "http://e.com", "body": null, "method": "PUT"})).unwrap();
        assert_eq!((call.method.as_str(), &call.body[..]), ("PUT", &b"null"[..]));
        let own = json!({"url": "http://e.com", "bodyText": "<a/>", "headers": {"Content-Type": "text/xml"}});
        let call = read(own).unwrap();
        assert_eq!((&call.body[..], call.headers.get_all("content-type").iter().count()), (&b"<a/>"[..], 1));
        assert_eq!(call.headers["content-type"], "text/xml");
    }

    #[test]
    fn statuses_come_alone_and_in_ranges() {
        let call = read(json!({"url": "http://e.com", "accept": [404, 2e2, "300-302", "410"]})).unwrap();
        for (status, accepted) in
            [(404, true), (200, true), (201, false), (301, true), (303, false), (410, true)]
        {
            assert_eq!(call.accepts(status), accepted, "{status}");
        }
        assert!(read(json!({"url": "http://e.com", "accept": ["299-200"]})).is_err());
    }

    #[test]
    fn a_url_that_cannot_be_called_is_told() {
        for (url, word) in [
            ("ftp://example.com", "http://"),
            ("http://", "read"),
            ("http://me:secret@example.com", "authorization"),
            ("http://me@example.com", "authorization"),
        ] {
            let why = read(json!({"url": url})).unwrap_err();
            assert!(why.contains(word) && !why.contains("secret"), "{why}");
        }
    }
}
