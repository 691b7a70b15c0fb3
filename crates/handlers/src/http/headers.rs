//! Which headers a job may give, and those that Rota sets.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rota_engine::handler::Context;
use rota_model::time::UnixMillis;
use serde_json::{Map, Value};

use crate::http::signature::Secret;

/// They say how a message travels, which is for the connection to say.
const OF_THE_CONNECTION: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const OF_ROTA: [&str; 2] = ["idempotency-key", "user-agent"];
/// Where the call stands in a trace; a job may give another.
pub(super) const TRACEPARENT: &str = "traceparent";
const PREFIX_OF_ROTA: &str = "rota-";
const USER_AGENT: &str = concat!("rota/", env!("CARGO_PKG_VERSION"));

/// By which one may be known to a server, and so not for another one.
const PERSONAL: [&str; 3] = ["authorization", "cookie", "rota-signature"];

/// What the job gives, or what is wrong with it.
pub(super) fn given(headers: Option<&Map<String, Value>>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers.into_iter().flatten() {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
        check(name.as_str())?;
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        let value = value.ok_or_else(|| format!("the value of the header {name} cannot be sent"))?;
        if map.insert(name.clone(), value).is_some() {
            return Err(format!("the header {name} is given twice"));
        }
    }
    Ok(map)
}

fn check(name: &str) -> Result<(), String> {
    if OF_THE_CONNECTION.contains(&name) {
        return Err(format!("the header {name} belongs to the connection and cannot be given"));
    }
    if OF_ROTA.contains(&name) || name.starts_with(PREFIX_OF_ROTA) {
        return Err(format!("the header {name} is set by Rota and cannot be given"));
    }
    Ok(())
}

/// What Rota tells the receiver of itself and the job.
pub(super) fn of_rota(job: &Context, secret: Option<&Secret>, body: &[u8], now: UnixMillis) -> HeaderMap {
    let id = job.job_id.to_string();
    let said = [
        ("user-agent", Some(USER_AGENT.to_owned())),
        ("rota-job-epoch", Some(job.epoch.to_string())),
        ("rota-attempt", Some(job.attempt.to_string())),
        ("rota-signature", secret.and_then(|secret| secret.sign(now, job.job_id, job.epoch, body))),
        (TRACEPARENT, job.traceparent.map(|place| place.to_string())),
        ("idempotency-key", Some(id.clone())),
        ("rota-job-id", Some(id)),
    ];
    let header = |(name, value): (&'static str, Option<String>)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value?).ok()?))
    };
    said.into_iter().filter_map(header).collect()
}

/// Takes out what is not for a stranger's eyes.
pub(super) fn for_a_stranger(headers: &mut HeaderMap) {
    for name in PERSONAL {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(headers: &Value) -> Result<HeaderMap, String> {
        super::given(headers.as_object())
    }

    #[test]
    fn what_belongs_to_others_cannot_be_given() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "TE",
            "Rota-Job-Id",
            "rota-x",
            "Idempotency-Key",
            "User-Agent",
            "Proxy-Authorization",
            "Expect",
        ] {
            assert!(given(&json!({name: "x"})).unwrap_err().contains("cannot be given"), "{name}");
        }
        assert_eq!(given(&json!({"Authorization": "Bearer x"})).unwrap()["authorization"], "Bearer x");
    }

    #[test]
    fn nothing_is_smuggled_in() {
        for headers in [
            json!({"x": "a\r\nhost: evil"}),
            json!({"x": "a\nb"}),
            json!({"x": "a\u{0}b"}),
            json!({"x\r\nhost": "evil"}),
            json!({"x y": "z"}),
            json!({"": "z"}),
            json!({"X-A": "1", "x-a": "2"}),
        ] {
            assert!(given(&headers).is_err(), "{headers}");
        }
    }
}
