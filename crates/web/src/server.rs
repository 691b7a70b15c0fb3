//! Listening and stopping.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::{Router, middleware};
use rota_model::check::MAX_BODY_BYTES;
use tokio::net::TcpListener;

use crate::access::guard;
use crate::app::App;
use crate::problem::{Kind, Problem};
use crate::{contract, page};

/// How long requests under way may take when the process stops.
const GRACE: Duration = Duration::from_millis(300);

/// Every route, behind its guard.
pub fn router(app: Arc<App>) -> Router {
    let (api, _) = contract::routes().split_for_parts();
    api.route_layer(from_fn_with_state(Arc::clone(&app), guard))
        .merge(page::routes())
        .method_not_allowed_fallback(|| async {
            Problem::new(
                Kind::METHOD,
                "this path is there, but not for this method; see /api/v1/openapi.json",
            )
        })
        .fallback(|| async {
            Problem::new(Kind::NOT_FOUND, "there is no such path; see /api/v1/openapi.json")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn(careful_headers))
        .with_state(app)
}

/// What every answer says: it is what it says it is, and nobody keeps a copy.
async fn careful_headers(request: axum::extract::Request, next: middleware::Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Serves until the app is stopped; requests under way may finish within a moment.
pub async fn serve(listener: TcpListener, app: Arc<App>) -> io::Result<()> {
    let stop = app.stop.clone();
    let stopped = stop.clone().cancelled_owned();
    // Made once: a bare router would be copied, with all its routes, for each connection.
    let service = router(app).into_make_service();
    let serving = axum::serve(listener, service).with_graceful_shutdown(stopped);
    tokio::select! {
        served = serving.into_future() => served,
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        } => Ok(()),
    }
}
