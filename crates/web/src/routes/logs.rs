//! What nodes and handlers said: searched, or followed as it is stored.
//!
//! - [`filter`]: what a search is narrowed to
//! - [`stream`]: lines as server-sent events

mod filter;
mod stream;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use rota_model::domain::Domain;
use rota_model::log::LogLine;
use rota_model::user::{Rights, Role};

use crate::access::Caller;
use crate::app::App;
use crate::extract::{PathOf, QueryOf};
use crate::problem::Problem;
use crate::routes::events::StreamEvent;
use crate::routes::list::{self, List};
use filter::LogsQuery;

/// What was said about the jobs of a domain, newest first; with `follow`, what is being said.
///
/// Lines of nodes that are about no job belong to the installation and are not among them.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/logs", tag = "logs",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), LogsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "With `follow`: go on behind this line")),
    responses((status = 200, description = "A page of lines; with `follow` a stream of events `log`, each with a line and \
            its `logId` as the id of the event, which does not end",
            content((List<LogLine> = "application/json"), (StreamEvent = "text/event-stream"))),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_domain(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(domain): PathOf<Domain>,
    headers: HeaderMap,
    QueryOf(query): QueryOf<LogsQuery>,
) -> Result<Response, Problem> {
    let of = domain.clone();
    let may_see = move |rights: &Rights| rights.role_in(&of) >= Some(Role::Viewer);
    answer(app, caller, &headers, query, Some(domain), may_see).await
}

/// What was said in the whole installation: about the jobs of all domains, and by the nodes about themselves.
#[utoipa::path(get, path = "/api/v1/logs", tag = "logs", security(("api_key" = ["installation"])),
    params(LogsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "With `follow`: go on behind this line")),
    responses((status = 200, description = "A page of lines; with `follow` a stream of events `log`, each with a line and \
            its `logId` as the id of the event, which does not end",
            content((List<LogLine> = "application/json"), (StreamEvent = "text/event-stream"))),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn of_installation(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    QueryOf(query): QueryOf<LogsQuery>,
) -> Result<Response, Problem> {
    answer(app, caller, &headers, query, None, |rights| rights.installation).await
}

async fn answer(
    app: Arc<App>,
    caller: Caller,
    headers: &HeaderMap,
    query: LogsQuery,
    domain: Option<Domain>,
    may_see: impl Fn(&Rights) -> bool + Send + Sync + 'static,
) -> Result<Response, Problem> {
    if query.follow {
        let (filter, start) = query.into_following(domain, headers)?;
        let follower = app.logbook.follow(filter, start);
        return Ok(stream::of(app, follower, caller, may_see).into_response());
    }
    let (limit, after) = (list::limit(query.limit)?, list::cursor(query.cursor.as_deref())?);
    let filter = query.into_filter(domain)?;
    let (lines, next) = app.logbook.search(&filter, limit, after).await?;
    Ok(Json(List::new(lines, next.as_ref())).into_response())
}
