//! From one exchange to the next, where the operator allows it. Each is checked like the first.

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, LOCATION};
use rota_engine::handler::Context;
use rota_model::time::UnixMillis;
use url::Url;

use crate::http::CallError;
use crate::http::exchange::{Answer, Ask, Exchanger};
use crate::http::headers::{TRACEPARENT, for_a_stranger, of_rota};
use crate::http::payload::{Call, callable, shown};
use crate::http::settings::HttpSettings;

/// The last answer of the call. One that the job accepts ends it, even if it leads elsewhere.
pub(super) async fn follow(
    exchanger: &Exchanger,
    settings: &HttpSettings,
    job: &Context,
    call: &Call,
    now: impl Fn() -> UnixMillis,
) -> Result<Answer, CallError> {
    let mut call = call.clone();
    let mut among_friends = true;
    for hop in 0..=settings.follow_redirects {
        let mut rota = of_rota(job, settings.signing_secret.as_ref(), &call.body, now());
        let mut headers = call.headers.clone();
        if headers.contains_key(TRACEPARENT) {
            rota.remove(TRACEPARENT);
        }
        headers.extend(rota);
        if !among_friends {
            for_a_stranger(&mut headers);
        }
        let ask = Ask { method: &call.method, url: &call.url, headers, body: call.body.clone() };
        let answer = exchanger.ask(ask).await?;
        if call.accepts(answer.status) || settings.follow_redirects == 0 {
            return Ok(answer);
        }
        let Some(next) = next(&call.url, &answer)? else { return Ok(answer) };
        if hop == settings.follow_redirects {
            let why = format!("{call} led to more than {hop} redirects");
            return Err(CallError::Refused(why));
        }
        // Once with a stranger, always: whoever sends us back may have chosen where to.
        among_friends &= next.origin() == call.url.origin();
        turn(&mut call, answer.status);
        call.url = next;
    }
    Err(CallError::Refused(format!("{call} led nowhere")))
}

/// Where the answer leads, if it leads anywhere.
fn next(url: &Url, answer: &Answer) -> Result<Option<Url>, CallError> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = answer.headers.get(LOCATION) else { return Ok(None) };
    let refused =
        |why: String| CallError::Refused(format!("the redirect of {} is not followed: {why}", shown(url)));
    let location = location.to_str().ok().and_then(|location| url.join(location).ok());
    let next = location.ok_or_else(|| refused("it cannot be read".to_owned()))?;
    let next = callable(next.as_str()).map_err(refused)?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(refused("it leads from https to http".to_owned()));
    }
    Ok(Some(next))
}

/// What browsers do: 303 means to look elsewhere, and so do 301 and 302 to a POST.
fn turn(call: &mut Call, status: u16) {
    let looks = match status {
        303 => call.method != Method::HEAD,
        301 | 302 => call.method == Method::POST,
        _ => false,
    };
    if looks {
        call.method = Method::GET;
        call.body = Bytes::new();
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
            call.headers.remove(name);
        }
    }
}
