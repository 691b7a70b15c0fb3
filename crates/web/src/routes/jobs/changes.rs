//! What people do to jobs that are there: cancel, requeue, delete. Each may be bound with `If-Match` to the version that was
//! read; who is overtaken then is told so, and nothing is changed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::Job;
use rota_store::seam::Version;
use serde::Serialize;

use super::filter::JobsToDelete;
use crate::app::App;
use crate::extract::{JsonBody, PathOf};
use crate::problem::Problem;
use crate::routes::etag;

/// Ends a job that waits or runs. Its handler is told to stop, and what it still answers is refused.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs/{jobId}/cancel", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the job as you know it")),
    responses((status = 200, description = "It has ended: FAILED, its result says cancelled", body = Job),
        (status = 409, description = "It has ended before", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let on = decided_on(&app, &domain, id, &headers).await?;
    let job = app.desk.cancel(&domain, id, on).await?;
    Ok((etag::of(job.version), Json(job.document)))
}

/// Runs a job once more that has ended: the same id, the next epoch; the result so far is kept in its history.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs/{jobId}/requeue", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the job as you know it")),
    responses((status = 200, description = "It waits again", body = Job),
        (status = 409, description = "It has not ended, or its unique key belongs to another job by now",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn requeue(
    State(app): State<Arc<App>>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let on = decided_on(&app, &domain, id, &headers).await?;
    let job = app.desk.requeue(&domain, id, on).await?;
    Ok((etag::of(job.version), Json(job.document)))
}

/// Deletes a job that does not run.
#[utoipa::path(delete, path = "/api/v1/domains/{domain}/jobs/{jobId}", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the job as you know it")),
    responses((status = 204, description = "It is gone"),
        (status = 409, description = "It is running: cancel it first", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let on = decided_on(&app, &domain, id, &headers).await?;
    app.desk.delete(&domain, id, on).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a delete by filter did.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Deleted {
    pub deleted: u64,
    /// True where it stopped at its limit: there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Deletes the jobs that a filter names, the newest first. What is running is left alone.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs/delete", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path)),
    request_body = JobsToDelete,
    responses((status = 200, description = "So many are gone", body = Deleted),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete_matching(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    JsonBody(which): JsonBody<JobsToDelete>,
) -> Result<Json<Deleted>, Problem> {
    let limit = which.limit;
    let done = app.desk.delete_matching(&domain, &which.into_filter()?, limit).await?;
    Ok(Json(Deleted { deleted: done.deleted, more: done.more }))
}

/// The version that the caller decided on, if it is the one that is there; none for who does not care.
async fn decided_on(
    app: &App,
    domain: &Domain,
    id: JobId,
    headers: &HeaderMap,
) -> Result<Option<Version>, Problem> {
    if !etag::binds(headers) {
        return Ok(None);
    }
    let job = app.desk.get(domain, id).await?.ok_or_else(|| Problem::not_found("job"))?;
    etag::must_match(headers, job.version)?;
    Ok(Some(job.version))
}
