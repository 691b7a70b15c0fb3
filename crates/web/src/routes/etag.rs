//! `ETag` on documents, `If-Match` on changes.

use axum::http::{HeaderMap, header};
use rota_store::seam::Version;

use crate::problem::Problem;

/// The headers of a document's answer.
pub(crate) fn of(version: Version) -> [(header::HeaderName, String); 1] {
    [(header::ETAG, text(version))]
}

fn text(version: Version) -> String {
    format!("\"{}\"", version.0)
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
