//! `ETag` on documents, `If-None-Match` on reading them, `If-Match` on changes.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rota_store::seam::Version;
use serde::Serialize;

use crate::problem::{Kind, Problem};

/// The headers of a document's answer.
pub(crate) fn of(version: Version) -> [(header::HeaderName, String); 1] {
    [(header::ETAG, text(version))]
}

fn text(version: Version) -> String {
    format!("\"{}\"", version.0)
}

/// A document as it is; for who has this version already, only that it has not changed.
pub(crate) fn answer(headers: &HeaderMap, version: Version, document: &impl Serialize) -> Response {
    if is_known(headers, version) {
        return (StatusCode::NOT_MODIFIED, of(version)).into_response();
    }
    (of(version), Json(document)).into_response()
}

/// Whether `If-None-Match` names this version. Whoever kept it may have marked it as weak on the way.
fn is_known(headers: &HeaderMap, version: Version) -> bool {
    let current = text(version);
    let named = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut named = named.flat_map(|value| value.split(',')).map(str::trim);
    named.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == current)
}

/// Whether a change is bound to certain versions.
pub(crate) fn binds(headers: &HeaderMap) -> bool {
    headers.get(header::IF_MATCH).is_some_and(|wanted| wanted.as_bytes() != b"*")
}

/// Refuses a change that was decided on another version.
pub(crate) fn must_match(headers: &HeaderMap, version: Version) -> Result<(), Problem> {
    let Some(wanted) = headers.get(header::IF_MATCH) else { return Ok(()) };
    let wanted = wanted.to_str().unwrap_or_default();
    let current = text(version);
    if wanted.split(',').map(str::trim).any(|one| one == "*" || one == current) {
        return Ok(());
    }
    Err(Problem::changed())
}

/// Somebody else changed it between the look and the write: what was decided on a version is decided anew.
pub(crate) fn overtaken(headers: &HeaderMap, what: &str) -> Problem {
    if binds(headers) {
        return Problem::changed();
    }
    Problem::new(Kind::CONFLICT, format!("the {what} was changed at the same moment: look again"))
}
