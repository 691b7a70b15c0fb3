//! Changes as they happen, as server-sent events. Changes are gathered for a moment, so that a listener gets the newest
//! state of each document and no more than four updates a second. Who missed something is told to `reload`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::future::{Either, ready};
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use rota_model::domain::Domain;
use rota_model::user::{Rights, Role};
use rota_store::hints::{Changes, News};
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use crate::access::Caller;
use crate::app::App;
use crate::extract::PathOf;
use crate::problem::Problem;

const GATHER: Duration = Duration::from_millis(250);
/// How long a quiet stream goes on before its key is looked at again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// More changes than this in one moment are not sent one by one.
const MAX_AT_ONCE: usize = 100;

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

/// Changes of the domain's jobs: `job` with the document, or `reload`.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/events", tag = "events",
    security(("api_key" = ["viewer"])), params(("domain" = Domain, Path)),
    responses((status = 200, description = "A stream that does not end", body = StreamEvent,
            content_type = "text/event-stream"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_domain(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(domain): PathOf<Domain>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = app.desk.changes();
    let of = domain.clone();
    let may_see = move |rights: &Rights| rights.role_in(&of) >= Some(Role::Viewer);
    stream_of(Arc::clone(&app), changes, caller, may_see, move |ids| {
        let (app, domain) = (Arc::clone(&app), domain.clone());
        async move {
            let jobs = app.desk.get_all(&domain, ids).await.ok()?;
            Some(jobs.iter().map(|job| event("job", job)).collect())
        }
    })
}

/// Changes of nodes: `node` with the document, or `reload`.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", security(("api_key" = ["installation"])),
    responses((status = 200, description = "A stream that does not end", body = StreamEvent,
            content_type = "text/event-stream"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_installation(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = app.fleet.changes();
    stream_of(
        Arc::clone(&app),
        changes,
        caller,
        |rights| rights.installation,
        move |ids| {
            let app = Arc::clone(&app);
            async move {
                let nodes = app.fleet.all().await.ok()?;
                let changed = nodes.iter().filter(|node| ids.contains(&node.id.to_string()));
                Some(changed.map(|node| event("node", node)).collect())
            }
        },
    )
}

/// What changed, looked up and sent, until the process stops or the caller may no longer see it.
fn stream_of<F>(
    app: Arc<App>,
    changes: Changes,
    caller: Caller,
    may_see: impl Fn(&Rights) -> bool + Send + Sync + 'static,
    look_up: impl Fn(Vec<String>) -> F + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    F: Future<Output = Option<Vec<Event>>> + Send + 'static,
{
    let stop = app.stop.clone();
    let moments = stream::unfold((changes, may_see), move |(mut changes, may_see)| {
        let (app, caller) = (Arc::clone(&app), caller.clone());
        async move {
            let moment = gather(&mut changes).await?;
            let permitted = app.accounts.still(&caller, &may_see).await.unwrap_or(false);
            permitted.then_some((moment, (changes, may_see)))
        }
    });
    let events = moments
        .then(move |moment| match moment {
            Moment::Quiet => Either::Left(ready(Vec::new())),
            Moment::TooMuch => Either::Left(ready(vec![reload()])),
            Moment::Of(ids) => {
                Either::Right(look_up(ids).map(|found| found.unwrap_or_else(|| vec![reload()])))
            }
        })
        .flat_map(stream::iter)
        .map(Ok);
    let opened = stream::once(async { Ok(Event::default().comment("listening")) });
    Sse::new(opened.chain(events).take_until(stop.cancelled_owned())).keep_alive(KeepAlive::default())
}

/// What happened within a moment.
enum Moment {
    Quiet,
    Of(Vec<String>),
    /// Too many changed, or hints were lost.
    TooMuch,
}

/// What happens next; after a while of quiet, that it is quiet. None if the store is closed.
async fn gather(changes: &mut Changes) -> Option<Moment> {
    let mut ids = BTreeSet::new();
    let Ok(first) = timeout(ASK_AGAIN, changes.next()).await else { return Some(Moment::Quiet) };
    let mut complete = take(first, &mut ids)?;
    let end = Instant::now() + GATHER;
    // The time is looked at each round: where there is always news, waiting for it never times out.
    while Instant::now() < end {
        let Ok(news) = timeout_at(end, changes.next()).await else { break };
        complete &= take(news, &mut ids)?;
    }
    let few = complete && ids.len() <= MAX_AT_ONCE;
    Some(if few { Moment::Of(ids.into_iter().collect()) } else { Moment::TooMuch })
}

fn take(news: News, ids: &mut BTreeSet<String>) -> Option<bool> {
    match news {
        News::Of(some) if ids.len() <= MAX_AT_ONCE => {
            ids.extend(some.iter().map(|hint| hint.key.id.clone()));
            Some(true)
        }
        News::Of(_) => Some(true),
        News::Lost => Some(false),
        News::Closed => None,
    }
}

fn event(name: &str, document: &impl Serialize) -> Event {
    Event::default().event(name).json_data(document).unwrap_or_else(|_| reload())
}

fn reload() -> Event {
    Event::default().event("reload").data("{}")
}
