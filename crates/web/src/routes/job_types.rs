//! The types of jobs: those that are built in, and those that a domain defines for itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rota_engine::registry::Seen;
use rota_model::domain::Domain;
use rota_model::job_type::{JobTypeSettings, JobTypeView};
use rota_store::collection::JOB_TYPES;
use rota_store::cursor::Cursor;
use rota_store::seam::Version;
use serde::Deserialize;

use crate::app::App;
use crate::extract::{JsonBody, PathOf, QueryOf};
use crate::problem::Problem;
use crate::routes::etag;
use crate::routes::list::{List, PageQuery};

/// Every type of which a domain may submit jobs, by name: built in, or defined by the domain.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/job-types", tag = "job-types",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), PageQuery),
    responses((status = 200, description = "By name", body = List<JobTypeView>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    QueryOf(page): QueryOf<PageQuery>,
) -> Result<Json<List<JobTypeView>>, Problem> {
    let (limit, after) = (page.limit()?, page.cursor()?);
    let after = after.as_ref().map(|cursor| cursor.id_in(&JOB_TYPES)).transpose()?;
    let mut types = app.desk.types().list(&domain).await?.into_iter().map(|seen| seen.view);
    let is_next = |view: &JobTypeView| after.is_none_or(|after| view.job_type.kind.as_str() > after);
    let items: Vec<_> = types.by_ref().filter(is_next).take(limit).collect();
    let last = items.last().filter(|_| types.next().is_some());
    let next = last.map(|last| Cursor::behind_id(&last.job_type.kind, &JOB_TYPES));
    Ok(Json(List::new(items, next.as_ref())))
}

/// What a type means in a domain, and which nodes run it. What the domain defined has an `ETag`, for `If-Match`.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/job-types/{type}", tag = "job-types",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), ("type" = String, Path)),
    responses((status = 200, description = "The type", body = JobTypeView),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathOf((domain, kind)): PathOf<(Domain, String)>,
) -> Result<Response, Problem> {
    answer(&app, &domain, &kind, StatusCode::OK).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Force {
    /// Go on although jobs that wait are in the way.
    #[serde(default)]
    force: bool,
}

/// Defines a type of the domain, or replaces what the domain said of it.
///
/// Under the name of a built-in type both schemas hold. A change whose schema would refuse jobs that wait in the queue is
/// refused, and names them, unless it is forced; those jobs then run all the same.
#[utoipa::path(put, path = "/api/v1/domains/{domain}/job-types/{type}", tag = "job-types",
    security(("api_key" = ["admin"])),
    params(("domain" = Domain, Path), ("type" = String, Path), Force,
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the type as you know it")),
    request_body = JobTypeSettings,
    responses((status = 200, description = "As it is now", body = JobTypeView),
        (status = 201, description = "It is there", body = JobTypeView),
        (status = 409, description = "Jobs that wait do not fit: `jobs` names them", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    PathOf((domain, kind)): PathOf<(Domain, String)>,
    QueryOf(Force { force }): QueryOf<Force>,
    headers: HeaderMap,
    JsonBody(settings): JsonBody<JobTypeSettings>,
) -> Result<Response, Problem> {
    let on = decided_on(&app, &domain, &kind, &headers).await?;
    let job_type = settings.into_type(domain.clone(), kind.clone())?;
    let put = app.desk.types().put(&domain, job_type, on, force).await?;
    let status = if put.is_new { StatusCode::CREATED } else { StatusCode::OK };
    answer(&app, &domain, &kind, status).await
}

/// Deletes what the domain defined. A built-in type of that name means itself again.
///
/// If jobs of the type wait and no node runs it, it is refused, and names them, unless it is forced; they then wait on.
#[utoipa::path(delete, path = "/api/v1/domains/{domain}/job-types/{type}", tag = "job-types",
    security(("api_key" = ["admin"])),
    params(("domain" = Domain, Path), ("type" = String, Path), Force,
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the type as you know it")),
    responses((status = 204, description = "It is gone"),
        (status = 409, description = "It is built in, or jobs wait: `jobs` names them", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    PathOf((domain, kind)): PathOf<(Domain, String)>,
    QueryOf(Force { force }): QueryOf<Force>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let on = decided_on(&app, &domain, &kind, &headers).await?;
    app.desk.types().delete(&domain, &kind, on, force).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn answer(app: &App, domain: &Domain, kind: &str, status: StatusCode) -> Result<Response, Problem> {
    let found = app.desk.types().get(domain, kind).await?;
    let Seen { view, version } = found.ok_or_else(|| Problem::not_found("job type"))?;
    Ok(match version {
        Some(version) => (status, etag::of(version), Json(view)).into_response(),
        None => (status, Json(view)).into_response(),
    })
}

/// The version that the caller decided on, if it is the one that is there; none for who does not care.
async fn decided_on(
    app: &App,
    domain: &Domain,
    kind: &str,
    headers: &HeaderMap,
) -> Result<Option<Version>, Problem> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(None);
    }
    let own = app.desk.types().own(domain, kind).await?.ok_or_else(Problem::changed)?;
    etag::must_match(headers, own.version)?;
    Ok(etag::binds(headers).then_some(own.version))
}
