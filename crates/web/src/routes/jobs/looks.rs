//! What people ask about the queue beside its documents: how many jobs there are, and why one of them waits.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobCounts, Waiting};

use crate::app::App;
use crate::extract::PathOf;
use crate::problem::Problem;

/// How many jobs there are, by status and type.
///
/// The totals are kept, not counted: the answer takes no longer where there are millions.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/jobs/counts", tag = "jobs",
    security(("api_key" = ["viewer"])), params(("domain" = Domain, Path)),
    responses((status = 200, description = "The queue in numbers", body = JobCounts),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn counts(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
) -> Result<Json<JobCounts>, Problem> {
    Ok(Json(app.observer.counts(&domain).await?))
}

/// Why a job is not running.
///
/// One reason, the first that applies. Nodes tell how busy they are every other second, so it may be some seconds old.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/jobs/{jobId}/waiting", tag = "jobs",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path)),
    responses((status = 200, description = "What holds it up; `NOT_WAITING` if it runs or has ended", body = Waiting),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn waiting(
    State(app): State<Arc<App>>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
) -> Result<Json<Waiting>, Problem> {
    let found = app.observer.why_waiting(&domain, id).await?;
    Ok(Json(found.ok_or_else(|| Problem::not_found("job"))?))
}
