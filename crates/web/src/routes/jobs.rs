//! The queue: jobs are submitted, looked up, waited for and listed.
//!
//! - [`batch`]: many at once
//! - [`changes`]: cancel, requeue, delete
//! - [`looks`]: how many there are, and why one waits
//! - [`filter`]: what a list or a delete is narrowed to
//! - [`trace`]: a submission as traces know it

pub mod batch;
pub mod changes;
mod filter;
pub mod looks;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use rota_engine::desk::Submitted;
use rota_model::check::Invalid;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use serde::Deserialize;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{JsonBody, PathOf, QueryOf};
use crate::problem::{Kind, Problem};
use crate::routes::etag;
use crate::routes::list::{self, List};
use filter::JobsQuery;
use trace::Tracked;

/// The longest a single call waits; who wants to wait longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Submits a job. When the answer comes, the job is on disk.
///
/// A job with a unique key that another job holds is not made: the answer is that other job, with status 200.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path),
        ("Idempotency-Key" = Option<String>, Header,
            description = "The same key with the same body gives the job that was made first; \
                `idempotencyKey` in the body is the same"),
        ("traceparent" = Option<String>, Header,
            description = "W3C trace context; what is none is ignored. `traceparent` in the body goes before it")),
    request_body = NewJob,
    responses((status = 201, description = "The job is on disk", body = Job),
        (status = 200, description = "A twin: the job that holds the unique key", body = Job),
        (status = 409, description = "The idempotency key was used for something else", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    headers: HeaderMap,
    JsonBody(mut submission): JsonBody<NewJob>,
) -> Result<impl IntoResponse, Problem> {
    submission.idempotency_key = idempotency_key(&headers, submission.idempotency_key)?;
    let tracked = Tracked::begin(&app.desk, &headers, submission.traceparent.as_deref());
    tracked.place(&mut submission);
    let answer = match app.desk.submit(&domain, submission).await {
        Ok(Submitted::New(job) | Submitted::Again(job)) => Ok((StatusCode::CREATED, job)),
        Ok(Submitted::Twin(job)) => Ok((StatusCode::OK, job)),
        Err(error) => Err(Problem::from(error)),
    };
    let told = answer.as_ref().map(|(status, _)| status.as_u16());
    tracked.end(&app.desk, "submit a job", &domain, 1, told);
    let (status, job) = answer?;
    let place = format!("/api/v1/domains/{domain}/jobs/{}", job.document.job_id);
    Ok((status, etag::of(job.version), [(header::LOCATION, place)], Json(job.document)))
}

/// The caller's name for a submission, from the header or from the body.
fn idempotency_key(headers: &HeaderMap, in_body: Option<String>) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(in_body) };
    let refused = || Problem::new(Kind::INVALID, "the header Idempotency-Key must be printable ASCII");
    let key = key.to_str().map_err(|_| refused())?;
    if in_body.is_some_and(|other| other != key) {
        let detail = "must be the same as the header Idempotency-Key: send one of the two";
        return Err(Invalid::one("/idempotencyKey", detail).into());
    }
    Ok(Some(key.to_owned()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Wait for the job to end, this long at most: `30s`, `500ms`.
    #[param(example = "30s", pattern = "^[0-9]+(ms|s)$")]
    wait: Option<String>,
}

/// One job; with `wait`, once it has ended or the time is up.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/jobs/{jobId}", tag = "jobs",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path), Wait,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the document as you know it")),
    responses((status = 200, description = "The job", body = Job),
        (status = 304, description = "It is as you know it"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
    QueryOf(query): QueryOf<Wait>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let patience = query.wait.as_deref().map(parse_wait).transpose()?.unwrap_or_default();
    let found = tokio::select! {
        found = app.desk.wait(&domain, id, patience) => found?,
        // Who waits while the process stops is told how things stand now.
        () = app.stop.cancelled() => app.desk.get(&domain, id).await?,
    };
    // The key may have been revoked while its holder waited.
    let permitted = app.accounts.still(&caller, |rights| rights.role_in(&domain).is_some()).await?;
    let job = found.filter(|_| permitted).ok_or_else(|| Problem::not_found("job"))?;
    Ok(etag::answer(&headers, job.version, &job.document))
}

fn parse_wait(text: &str) -> Result<Duration, Invalid> {
    let refused = || Invalid::one("/wait", "must be from 0 to 60 seconds, such as 30s or 500ms");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| refused())?;
    let span = match unit {
        "s" => Duration::from_secs(number),
        "ms" => Duration::from_millis(number),
        _ => return Err(refused()),
    };
    if span <= MAX_WAIT { Ok(span) } else { Err(refused()) }
}

/// The jobs of a domain, newest first.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/jobs", tag = "jobs",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), JobsQuery),
    responses((status = 200, description = "A page of jobs", body = List<Job>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    QueryOf(query): QueryOf<JobsQuery>,
) -> Result<Json<List<Job>>, Problem> {
    let (limit, after) = (list::limit(query.limit)?, list::cursor(query.cursor.as_deref())?);
    let filter = query.into_filter()?;
    let (jobs, next) = app.desk.list(&domain, &filter, limit, after).await?;
    Ok(Json(List::new(jobs, next.as_ref())))
}
