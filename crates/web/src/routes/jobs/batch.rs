//! Many jobs in one call: each is taken or refused on its own, and answered in the order given.
//!
//! The text is cut into jobs first, so that one that cannot be read is in nobody's way. Each is then read straight into its
//! type; only where that fails it is read a second time, to say which field is at fault.

use std::fmt;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use rota_engine::desk::MAX_BATCH;
use rota_model::check::{Checker, Invalid, MAX_BODY_BYTES};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::NewJob;
use rota_model::json_text;
use rota_model::object_only::object_only;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::app::App;
use crate::extract::{JsonText, PathOf, decode};
use crate::problem::{Kind, Problem};
use crate::routes::jobs::trace::Tracked;

/// The size of a batch; each of its jobs may have as much as a job that comes alone.
pub const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// A text of this size takes milliseconds to read: it is read where nobody waits for the thread.
const LARGE_BYTES: usize = 256 * 1024;

/// Jobs to be submitted together, as the contract describes them; how they are read stands in [`cut`].
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJobs)]
#[expect(dead_code, reason = "it stands in the contract alone")]
pub struct NewJobs {
    #[schema(min_items = 1, max_items = 10_000)]
    jobs: Vec<NewJob>,
}

/// What became of the jobs, in the order given.
#[derive(Serialize, utoipa::ToSchema)]
pub struct BatchAnswer {
    pub items: Vec<BatchItem>,
}

/// What became of one job.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum BatchItem {
    /// It is on disk, or was before: under the same idempotency key, or as the twin that holds its unique key.
    #[serde(rename_all = "camelCase")]
    #[schema(title = "Accepted")]
    Accepted {
        #[schema(value_type = String, format = "uuid")]
        job_id: JobId,
        job_number: u64,
        /// True where it was there before; left out where it was made just now.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[schema(required = false)]
        existing: bool,
    },
    /// It was not taken. The pointers of its errors begin at the job.
    #[schema(title = "Refused")]
    Refused { problem: Problem },
}

/// Submits up to 10,000 jobs.
///
/// They may have 16 MiB together and 1 MiB each. Those that are accepted are on disk when the answer comes.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/jobs/batch", tag = "jobs",
    security(("api_key" = ["operator"])),
    params(("domain" = Domain, Path),
        ("traceparent" = Option<String>, Header,
            description = "W3C trace context of the jobs that have none; what is none is ignored")),
    request_body = NewJobs,
    responses((status = 200, description = "What became of each, in the order given", body = BatchAnswer),
        (status = "default", description = "Refused as a whole, or the store took none of them", body = Problem,
            content_type = "application/problem+json")))]
pub(crate) async fn submit_batch(
    State(app): State<Arc<App>>,
    PathOf(domain): PathOf<Domain>,
    headers: HeaderMap,
    JsonText(text): JsonText<MAX_BATCH_BYTES>,
) -> Result<Json<BatchAnswer>, Problem> {
    if headers.contains_key("idempotency-key") {
        let detail = "a batch takes no Idempotency-Key: give each job its own \"idempotencyKey\" instead";
        return Err(Problem::new(Kind::INVALID, detail));
    }
    let read = if text.len() > LARGE_BYTES {
        let read = tokio::task::spawn_blocking(move || read_all(&text)).await;
        read.map_err(|error| Problem::new(Kind::INTERNAL, error.to_string()))??
    } else {
        read_all(&text)?
    };
    let tracked = Tracked::begin(&app.desk, &headers, None);
    let mut refused = Vec::with_capacity(read.len());
    let mut jobs = Vec::with_capacity(read.len());
    for job in read {
        refused.push(match job {
            Ok(mut job) => {
                tracked.place(&mut job);
                jobs.push(job);
                None
            }
            Err(problem) => Some(problem),
        });
    }
    let mut submitted = app.desk.submit_all(&domain, jobs).await.into_iter();
    let items = refused.into_iter().filter_map(|refused| match refused {
        Some(problem) => Some(BatchItem::Refused { problem }),
        None => submitted.next().map(|answer| match answer {
            Ok(job) => {
                BatchItem::Accepted { job_id: job.job_id, job_number: job.job_number, existing: !job.is_new }
            }
            Err(error) => BatchItem::Refused { problem: error.into() },
        }),
    });
    let items: Vec<BatchItem> = items.collect();
    let reached = must_have_reached_the_store(&items);
    let told = reached.as_ref().map(|()| StatusCode::OK.as_u16());
    tracked.end(&app.desk, "submit a batch", &domain, items.len(), told);
    reached?;
    Ok(Json(BatchAnswer { items }))
}

/// Where the store took nothing because it is away, the whole call failed: who looks at nothing but the status must not take
/// it for a success.
fn must_have_reached_the_store(items: &[BatchItem]) -> Result<(), Problem> {
    let mut failed = None;
    for item in items {
        match item {
            BatchItem::Accepted { .. } => return Ok(()),
            BatchItem::Refused { problem } if problem.status >= 500 => failed = Some(problem),
            BatchItem::Refused { .. } => {}
        }
    }
    failed.map_or(Ok(()), |problem| Err(problem.clone()))
}

fn read_all(text: &[u8]) -> Result<Vec<Result<NewJob, Problem>>, Problem> {
    Ok(cut(text)?.into_iter().map(|job| read(job.get())).collect())
}

/// One job. The text is JSON, as far as its grammar goes.
fn read(text: &str) -> Result<NewJob, Problem> {
    if text.len() > MAX_BODY_BYTES {
        let detail = format!("a job may have {MAX_BODY_BYTES} bytes at most; it has {}", text.len());
        return Err(Problem::new(Kind::TOO_LARGE, detail));
    }
    if let Some(fault) = json_text::refusal(text.as_bytes()) {
        return Err(fault.into());
    }
    let read = object_only(&mut serde_json::Deserializer::from_str(text));
    read.or_else(|_: serde_json::Error| decode(text.as_bytes()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut<'a> {
    #[serde(borrow, deserialize_with = "pieces")]
    jobs: Pieces<'a>,
}

/// As many jobs as are taken, and how many there were.
struct Pieces<'a> {
    texts: Vec<&'a RawValue>,
    count: usize,
}

/// The texts of the jobs. Only a body that is no batch at all is refused as a whole.
fn cut(body: &[u8]) -> Result<Vec<&RawValue>, Problem> {
    let mut input = serde_json::Deserializer::from_slice(body);
    let read = object_only(&mut input).and_then(|batch: Cut<'_>| input.end().map(|()| batch));
    let Pieces { texts, count } = match read {
        Ok(batch) => batch.jobs,
        Err(error) => return Err(fault_of_batch(body, &error)),
    };
    let mut check = Checker::new();
    check.range("/jobs", count, 1..=MAX_BATCH);
    check.finish()?;
    Ok(texts)
}

/// Why a body is no batch, with the place.
fn fault_of_batch(body: &[u8], error: &serde_json::Error) -> Problem {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        #[serde(rename = "jobs")]
        _jobs: Vec<IgnoredAny>,
    }
    match decode::<Shape>(body) {
        Err(problem) => problem,
        Ok(_) => Invalid::one("/jobs", error.to_string()).into(),
    }
}

fn pieces<'de, D: Deserializer<'de>>(input: D) -> Result<Pieces<'de>, D::Error> {
    struct Jobs;

    impl<'de> Visitor<'de> for Jobs {
        type Value = Pieces<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of jobs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces<'de>, A::Error> {
            let (mut texts, mut count) = (Vec::new(), 0);
            while texts.len() < MAX_BATCH
                && let Some(text) = list.next_element()?
            {
                texts.push(text);
            }
            count += texts.len();
            // What is too many is counted, so that it can be told, and not kept.
            while list.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(Pieces { texts, count })
        }
    }

    input.deserialize_seq(Jobs)
}
