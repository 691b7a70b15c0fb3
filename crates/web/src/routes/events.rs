//! Changes as they happen, as server-sent events. The observer reads them once for all who listen; here they are only
//! written out. A listener gets the newest state of each document and no more than four updates a second. Who missed
//! something is told to `reload`.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use rota_engine::observer::{Listener, Moment, Topic};
use rota_model::domain::Domain;
use rota_model::user::{Rights, Role};
use serde::Deserialize;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{PathOf, QueryOf};
use crate::problem::{Kind, Problem};

/// How long a quiet stream goes on before its key is looked at again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// After so many quiet whiles something is sent: whoever stands between closes streams on which nothing comes.
const QUIET_AT_MOST: u32 = 3;

const LISTENING: &str = ": listening\n\n";
const STILL_THERE: &str = ":\n\n";
const RELOAD: &str = "event: reload\ndata: {}\n\n";

/// One event; a stream is one after the other, and does not end by itself.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it stands in the contract alone")]
pub(crate) struct StreamEvent {
    /// What it is about.
    #[schema(example = "job")]
    event: String,
    /// Where to go on after an interruption, where that is possible.
    id: Option<String>,
    /// A document, as JSON text.
    #[schema(content_media_type = "application/json")]
    data: String,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Further {
    /// Changes of nodes, too, as `node` with the document; for administrators of the installation.
    #[serde(default)]
    nodes: bool,
}

/// Changes of the domain's jobs: `job` with the document, `counts` with the queue in numbers, or `reload` if more changed
/// than is told.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/events", tag = "events",
    security(("api_key" = ["viewer"])), params(("domain" = Domain, Path), Further),
    responses((status = 200, description = "A stream that does not end", body = StreamEvent,
            content_type = "text/event-stream"),
        (status = 404, description = "No such domain, or a node without the role of observer", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_domain(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(domain): PathOf<Domain>,
    QueryOf(Further { nodes }): QueryOf<Further>,
) -> Result<Response, Problem> {
    if nodes && !caller.rights.installation {
        return Err(Problem::new(Kind::FORBIDDEN, "nodes are for the administrator of the installation"));
    }
    let mut topics = vec![Topic::Queue(domain.clone())];
    topics.extend(nodes.then_some(Topic::Nodes));
    let may_see = move |rights: &Rights| {
        rights.role_in(&domain) >= Some(Role::Viewer) && (rights.installation || !nodes)
    };
    stream_of(app, topics, caller, may_see)
}

/// Changes of nodes: `node` with the document, or `reload`.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", security(("api_key" = ["installation"])),
    responses((status = 200, description = "A stream that does not end", body = StreamEvent,
            content_type = "text/event-stream"),
        (status = 404, description = "A node without the role of observer", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_installation(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    stream_of(app, vec![Topic::Nodes], caller, |rights| rights.installation)
}

/// One who listens over HTTP.
struct Ear<M> {
    app: Arc<App>,
    listener: Listener,
    caller: Caller,
    may_see: M,
    quiet: u32,
}

impl<M: Fn(&Rights) -> bool> Ear<M> {
    /// What to send next; none once the caller may no longer see it, or nobody tells any more.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let heard = self.listener.next(ASK_AGAIN).await?;
            if !self.app.accounts.still(&self.caller, &self.may_see).await.unwrap_or(false) {
                return None;
            }
            self.quiet += 1;
            match heard.as_slice() {
                [] if self.quiet < QUIET_AT_MOST => continue,
                [] => self.quiet = 0,
                [only] => {
                    self.quiet = 0;
                    return Some(Bytes::from_owner(only.shown(written)));
                }
                several => {
                    self.quiet = 0;
                    let texts: Vec<_> = several.iter().map(|moment| moment.shown(written)).collect();
                    return Some(texts.concat().into());
                }
            }
            return Some(Bytes::from_static(STILL_THERE.as_bytes()));
        }
    }
}

/// There is nothing to hear on a node without the role, now or later: asking it again helps nobody.
pub(super) fn must_observe(app: &App) -> Result<(), Problem> {
    if app.observer.is_on() {
        return Ok(());
    }
    let detail = "this node has no events, since it is no observer: ask a node that has the role of one";
    Err(Problem::new(Kind::NOT_FOUND, detail))
}

/// What changed, until the process stops or the caller may no longer see it.
fn stream_of(
    app: Arc<App>,
    topics: Vec<Topic>,
    caller: Caller,
    may_see: impl Fn(&Rights) -> bool + Send + Sync + 'static,
) -> Result<Response, Problem> {
    must_observe(&app)?;
    let (stop, listener) = (app.stop.clone(), app.observer.listen(topics));
    let ear = Ear { app, listener, caller, may_see, quiet: 0 };
    let texts = stream::unfold(ear, |mut ear| async move { Some((ear.next().await?, ear)) });
    let opened = stream::once(async { Bytes::from_static(LISTENING.as_bytes()) });
    let texts = opened.chain(texts).take_until(stop.cancelled_owned()).map(Ok::<_, Infallible>);
    let mut response = Response::new(Body::from_stream(texts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn written(moment: &Moment) -> String {
    let mut text = String::new();
    for said in moment.said() {
        // JSON as we write it has no line breaks.
        let _ = write!(text, "event: {}\ndata: {}\n\n", said.kind, said.json);
    }
    if moment.is_incomplete() {
        text.push_str(RELOAD);
    }
    text
}
