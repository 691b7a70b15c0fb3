//! The files of the page. They are in the binary; nothing is loaded from elsewhere, and the browser is told so.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, kind, content.
const FILES: [(&str, &str, &str); 13] = [
    ("/", HTML, include_str!("../page/index.html")),
    ("/style.css", CSS, include_str!("../page/style.css")),
    ("/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/address.js", SCRIPT, include_str!("../page/address.js")),
    ("/api.js", SCRIPT, include_str!("../page/api.js")),
    ("/hub.js", SCRIPT, include_str!("../page/hub.js")),
    ("/job.js", SCRIPT, include_str!("../page/job.js")),
    ("/jobs.js", SCRIPT, include_str!("../page/jobs.js")),
    ("/nodes.js", SCRIPT, include_str!("../page/nodes.js")),
    ("/queue.js", SCRIPT, include_str!("../page/queue.js")),
    ("/rows.js", SCRIPT, include_str!("../page/rows.js")),
    ("/stream.js", SCRIPT, include_str!("../page/stream.js")),
    ("/worker.js", SCRIPT, include_str!("../page/worker.js")),
];

pub(crate) fn routes() -> Router<Arc<App>> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { file(kind, content) }))
    })
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let mut response = content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
