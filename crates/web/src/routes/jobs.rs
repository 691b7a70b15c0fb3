//! The queue.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use rota_engine::desk::Submitted;
use rota_model::check::Invalid;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::time::UnixMillis;
use rota_store::jobs::JobFilter;
use rota_store::limits::MAX_WORDS;
use rota_store::words::Words;
use serde::Deserialize;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{JsonBody, PathOf, QueryOf};
use crate::problem::{Kind, Problem};
use crate::routes::etag;
use crate::routes::list::{self, List};

/// The longest a single call waits; who wants to wait longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Submits a job. When the answer comes, the job is on disk.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path),
        ("Idempotency-Key" = Option<String>, Header,
            description = "The same key with the same body gives the job that was made first")),
    request_body = NewJob,
    responses((status = 201, description = "The job is on disk", body = Job),
        (status = 409, description = "The idempotency key was used for something else", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    headers: HeaderMap,
    JsonBody(mut submission): JsonBody<NewJob>,
) -> Result<impl IntoResponse, Problem> {
    submission.idempotency_key = idempotency_key(&headers)?.or(submission.idempotency_key);
    let (Submitted::New(job) | Submitted::Again(job) | Submitted::Twin(job)) =
        app.desk.submit(&domain, submission).await?;
    let place = format!("/api/v1/domains/{domain}/jobs/{}", job.document.job_id);
    Ok((StatusCode::CREATED, etag::of(job.version), [(header::LOCATION, place)], Json(job.document)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let refused = || Problem::new(Kind::INVALID, "the header Idempotency-Key must be printable ASCII");
    key.to_str().map(|key| Some(key.to_owned())).map_err(|_| refused())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Wait for the job to end, this long at most: `30s`, `500ms`.
    #[param(example = "30s")]
    wait: Option<String>,
}

/// One job; with `wait`, once it has ended or the time is up.
#[utoipa::path(get, path = "/api/v1/domains/{domain}/jobs/{jobId}", tag = "jobs",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path), ("jobId" = uuid::Uuid, Path), Wait),
    responses((status = 200, description = "The job", body = Job),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf((domain, id)): PathOf<(Domain, JobId)>,
    QueryOf(query): QueryOf<Wait>,
) -> Result<impl IntoResponse, Problem> {
    let patience = query.wait.as_deref().map(parse_wait).transpose()?.unwrap_or_default();
    let found = tokio::select! {
        found = app.desk.wait(&domain, id, patience) => found?,
        // Who waits while the process stops is told how things stand now.
        () = app.stop.cancelled() => app.desk.get(&domain, id).await?,
    };
    // The key may have been revoked while its holder waited.
    let permitted = app.accounts.still(&caller, |rights| rights.role_in(&domain).is_some()).await?;
    let job = found.filter(|_| permitted).ok_or_else(|| Problem::not_found("job"))?;
    Ok((etag::of(job.version), Json(job.document)))
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

/// What a list of jobs is narrowed to.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    #[param(inline)]
    status: Option<JobStatus>,
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    section: Option<u32>,
    /// Words that stand in the job's name or error, all of them, in any case; `word*` is a beginning. A job may be
    /// found by its words about a second later than it changed.
    #[param(example = "disk full")]
    text: Option<String>,
    /// Unix milliseconds; later than this.
    created_after: Option<i64>,
    /// Unix milliseconds; earlier than this.
    created_before: Option<i64>,
    /// How many, 50 if left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
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
    let text = query.text.map(searched).transpose()?;
    let filter = JobFilter {
        status: query.status,
        kind: query.kind,
        name: query.name,
        section: query.section,
        text,
        created_after: query.created_after.map(UnixMillis),
        created_before: query.created_before.map(UnixMillis),
    };
    let (jobs, next) = app.desk.list(&domain, &filter, limit, after).await?;
    Ok(Json(List::new(jobs, next.as_ref())))
}

fn searched(text: String) -> Result<String, Invalid> {
    match Words::parse(&text).0.len() {
        1..=MAX_WORDS => Ok(text),
        0 => Err(Invalid::one("/text", "must hold a word to search for: letters or digits")),
        count => Err(Invalid::one("/text", format!("may hold {MAX_WORDS} words at most; these are {count}"))),
    }
}
