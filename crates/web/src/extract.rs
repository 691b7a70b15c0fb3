//! Requests, read and checked. What cannot be read or is refused becomes a [`Problem`], with the field at fault.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use rota_model::check::{Invalid, MAX_BODY_BYTES, escape};
use rota_model::json_text::{FaultKind, JsonFault};
use rota_model::object_only::object_only;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use tokio::time::timeout;

use crate::plain_words::in_plain_words;
use crate::problem::{Kind, Problem};
use crate::query;

/// How long a body may take.
const BODY: Duration = Duration::from_secs(60);

/// A JSON body of a known shape.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        decode(&json_text(request, state, MAX_BODY_BYTES).await?).map(JsonBody)
    }
}

/// The text of a JSON body, for a route that reads it by itself and takes more than others.
pub struct JsonText<const MAX_BYTES: usize>(pub Bytes);

impl<S: Send + Sync, const MAX_BYTES: usize> FromRequest<S> for JsonText<MAX_BYTES> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        json_text(request, state, MAX_BYTES).await.map(JsonText)
    }
}

async fn json_text<S: Send + Sync>(
    mut request: Request,
    state: &S,
    max_bytes: usize,
) -> Result<Bytes, Problem> {
    must_be_json(request.headers())?;
    DefaultBodyLimit::max(max_bytes).apply(&mut request);
    let read = timeout(BODY, Bytes::from_request(request, state)).await;
    let too_slow = |_| Problem::new(Kind::TOO_SLOW, "the body took too long: send it again, all at once");
    read.map_err(too_slow)?.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(Kind::TOO_LARGE, format!("this body may have {max_bytes} bytes at most"))
        }
        _ => Problem::new(Kind::UNREADABLE, "the body ended too early"),
    })
}

fn must_be_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    Err(Problem::new(Kind::MEDIA_TYPE, "send the body with the header Content-Type: application/json"))
}

/// A text of a known shape, with the field at fault where it has another.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = rota_model::json_text::parse(bytes)?;
    let mut track = serde_path_to_error::Track::new();
    let read = object_only(serde_path_to_error::Deserializer::new(value, &mut track));
    read.map_err(|error: serde_json::Error| {
        Invalid::one(pointer(&track.path()), in_plain_words(&error.to_string())).into()
    })
}

pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push_str(&format!("/{}", escape(key)));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

impl From<JsonFault> for Problem {
    fn from(fault: JsonFault) -> Self {
        let kind = match fault.kind {
            FaultKind::Unreadable => Kind::UNREADABLE,
            FaultKind::Refused => Kind::INVALID,
        };
        Problem::new(kind, fault.to_string())
    }
}

/// Parts of the path. One that cannot be an id names nothing.
pub struct PathOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| PathOf(value)).map_err(|_| Problem::not_found("thing"))
    }
}

/// The query string. An unknown name is refused: a filter that is ignored shows the wrong things. A fault is told by its name, as a
/// pointer.
pub struct QueryOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(QueryOf(query::read(parts.uri.query().unwrap_or_default())?))
    }
}
