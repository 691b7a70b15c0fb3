//! Who is listened to, for how long, and stopping. Whoever says nothing, or says it too slowly, is not waited for: a place is for those
//! who want something. There are fewer places than files that may be open, so that work goes on however many knock.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rota_model::check::MAX_BODY_BYTES;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::access::guard;
use crate::app::App;
use crate::problem::{Kind, Problem};
use crate::{contract, page};

/// How long requests under way may take when the process stops.
const GRACE: Duration = Duration::from_millis(300);
/// How long the head of a request may take, the wait for it on an open connection included.
const HEAD: Duration = Duration::from_secs(60);
/// How long to wait before another connection is taken when one could not be.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How many connections are open at once at most, however many files may be.
const MOST_CONNECTIONS: u64 = 20_000;

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
    // Made once: it would be copied, with all its routes, for each connection.
    let router: Router = router(app).with_state(());
    let open = GracefulShutdown::new();
    tokio::select! {
        () = stop.cancelled() => {}
        () = take_all(&listener, &router, &open) => {}
    }
    drop(listener);
    let _ = timeout(GRACE, open.shutdown()).await;
    Ok(())
}

async fn take_all(listener: &TcpListener, router: &Router, open: &GracefulShutdown) {
    let places = Arc::new(Semaphore::new(places()));
    loop {
        let Ok(place) = take_place(&places).await else { return };
        let stream = TokioIo::new(accept(listener).await);
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(stream, service);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            // Whoever went, or said what is no request, needs no answer.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn take_place(
    places: &Arc<Semaphore>,
) -> Result<tokio::sync::OwnedSemaphorePermit, tokio::sync::AcquireError> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Ok(place);
    }
    tracing::warn!("as many connections are open as may be; others wait");
    Arc::clone(places).acquire_owned().await
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_about_one(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot take a connection; trying again in a second");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether it is the fault of whoever wanted to connect, and concerns nobody else.
fn is_about_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Three quarters of the files that may be open are for connections.
fn places() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((files / 4 * 3).clamp(1, MOST_CONNECTIONS)).unwrap_or(1)
}
