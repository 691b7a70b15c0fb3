//! Every error as RFC 9457 `application/problem+json`: a stable `type`, a title, and a detail that says what to do.
//! The types are described in `docs/problems.md`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rota_engine::desk::{ChangeError, SubmitError};
use rota_engine::fleet::FleetError;
use rota_engine::registry::{InTheWay, Several, TypeError};
use rota_model::check::{FieldError, Invalid};
use rota_model::job::Refusal;
use rota_store::StoreError;
use serde::Serialize;

/// What a caller is told when something is refused or fails.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Stable; described in the documentation.
    #[serde(rename = "type")]
    #[schema(example = "urn:rota:problem:invalid")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened and what to do about it.
    pub detail: String,
    /// The fields at fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The jobs that wait and are in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Box<ThoseInTheWay>>,
    /// The timers that are in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timers: Option<Box<ThoseInTheWay>>,
}

/// Jobs or timers that are in the way of what was asked.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ThoseInTheWay {
    pub count: u64,
    /// The first of them, 20 at most.
    pub ids: Vec<String>,
}

impl ThoseInTheWay {
    /// None if there are none.
    fn of<T: ToString>(found: &Several<T>) -> Option<Box<Self>> {
        let ids = found.ids.iter().map(ToString::to_string).collect();
        (found.count > 0).then(|| Box::new(Self { count: found.count, ids }))
    }

    /// How many of what, and which.
    fn told(&self, of: &str) -> String {
        let several = if self.count == 1 { format!("1 {of}") } else { format!("{} {of}s", self.count) };
        let more = if self.count > self.ids.len() as u64 { " and more" } else { "" };
        format!("{several} ({}{more})", self.ids.join(", "))
    }
}

/// The kinds there are: name, title, status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub &'static str, pub &'static str, pub StatusCode);

impl Kind {
    pub const UNREADABLE: Kind = Kind("unreadable", "The request cannot be read", StatusCode::BAD_REQUEST);
    pub const UNAUTHENTICATED: Kind = Kind("unauthenticated", "Not signed in", StatusCode::UNAUTHORIZED);
    pub const FORBIDDEN: Kind = Kind("forbidden", "Not allowed", StatusCode::FORBIDDEN);
    pub const NOT_FOUND: Kind = Kind("not-found", "Not found", StatusCode::NOT_FOUND);
    pub const METHOD: Kind = Kind("method-not-allowed", "Method not allowed", StatusCode::METHOD_NOT_ALLOWED);
    pub const CONFLICT: Kind = Kind("conflict", "Conflict", StatusCode::CONFLICT);
    pub const CHANGED: Kind = Kind("changed", "Changed meanwhile", StatusCode::PRECONDITION_FAILED);
    pub const TOO_SLOW: Kind = Kind("too-slow", "The request took too long", StatusCode::REQUEST_TIMEOUT);
    pub const TOO_LARGE: Kind = Kind("too-large", "The request is too large", StatusCode::PAYLOAD_TOO_LARGE);
    pub const MEDIA_TYPE: Kind =
        Kind("media-type", "The body is not JSON", StatusCode::UNSUPPORTED_MEDIA_TYPE);
    pub const INVALID: Kind = Kind("invalid", "The request is refused", StatusCode::UNPROCESSABLE_ENTITY);
    pub const UNAVAILABLE: Kind = Kind("unavailable", "Try again later", StatusCode::SERVICE_UNAVAILABLE);
    pub const INTERNAL: Kind = Kind("internal", "Something went wrong", StatusCode::INTERNAL_SERVER_ERROR);

    pub const ALL: [Kind; 13] = [
        Kind::UNREADABLE,
        Kind::UNAUTHENTICATED,
        Kind::FORBIDDEN,
        Kind::NOT_FOUND,
        Kind::METHOD,
        Kind::CONFLICT,
        Kind::CHANGED,
        Kind::TOO_SLOW,
        Kind::TOO_LARGE,
        Kind::MEDIA_TYPE,
        Kind::INVALID,
        Kind::UNAVAILABLE,
        Kind::INTERNAL,
    ];
}

impl Problem {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let Kind(name, title, status) = kind;
        Self {
            kind: format!("urn:rota:problem:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            errors: Vec::new(),
            jobs: None,
            timers: None,
        }
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(Kind::NOT_FOUND, format!("there is no such {what}, or it is not yours to see"))
    }

    /// Jobs or timers are in the way of what was asked.
    fn in_the_way(found: &InTheWay, why: &str, otherwise: &str) -> Self {
        let (jobs, timers) = (ThoseInTheWay::of(&found.jobs), ThoseInTheWay::of(&found.timers));
        let told = [
            jobs.as_ref().map(|jobs| jobs.told("waiting job")),
            timers.as_ref().map(|timers| timers.told("timer")),
        ];
        let told = told.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let problem = Self::new(Kind::CONFLICT, format!("{why}: {told}; {otherwise}"));
        Self { jobs, timers, ..problem }
    }

    /// Somebody else wrote since the caller looked.
    pub fn changed() -> Self {
        Self::new(Kind::CHANGED, "the document changed since you read it: read it again and decide anew")
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let mut problem = Problem::new(Kind::INVALID, invalid.to_string());
        problem.errors = invalid.0;
        problem
    }
}

/// What the caller can do about it is told; what only an operator can do is logged.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { why, .. } => Problem::new(Kind::INVALID, why),
            StoreError::Unavailable { .. } => {
                tracing::warn!(%error, "the store did not answer as it should");
                let detail = "the store cannot be reached at the moment, and nothing happened; try again";
                Problem::new(Kind::UNAVAILABLE, detail)
            }
            StoreError::Unknown { .. } => {
                tracing::warn!(%error, "the store did not answer as it should");
                let detail = "the store did not answer in time: it may have happened, or not. Look before you repeat it; \
                    a submission under an idempotency key is safe to repeat";
                Problem::new(Kind::UNAVAILABLE, detail)
            }
            StoreError::Damaged { .. } => {
                tracing::error!(%error, "the store holds what cannot be understood");
                Problem::new(
                    Kind::INTERNAL,
                    "a stored document cannot be read; the log of the node says which",
                )
            }
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Invalid(invalid) => invalid.into(),
            SubmitError::Store(error) => error.into(),
            SubmitError::Busy => Problem::new(Kind::UNAVAILABLE, error.to_string()),
            SubmitError::KeyReused(_) | SubmitError::Deleted(_) => {
                Problem::new(Kind::CONFLICT, format!("{error}; use a new key"))
            }
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let conflict = |detail: String| Problem::new(Kind::CONFLICT, detail);
        match error {
            ChangeError::Missing => Problem::not_found("job"),
            ChangeError::Changed => Problem::changed(),
            ChangeError::Refused(Refusal::Illegal(step)) => conflict(format!(
                "the job is {}: only what waits or runs can be cancelled, and only what has ended requeued",
                step.from
            )),
            ChangeError::Refused(refusal) => conflict(format!("{refusal}; look again")),
            ChangeError::Running => {
                conflict("the job is running: cancel it first, then delete it".to_owned())
            }
            ChangeError::KeyMoved(other) => conflict(format!(
                "its unique key belongs to job {other} by now: submit it anew instead, which finds that job or makes another"
            )),
            ChangeError::Store(error) => error.into(),
            ChangeError::Busy => Problem::new(Kind::UNAVAILABLE, error.to_string()),
        }
    }
}

impl From<TypeError> for Problem {
    fn from(error: TypeError) -> Self {
        match error {
            TypeError::Invalid(invalid) => invalid.into(),
            TypeError::Missing => Problem::not_found("job type"),
            TypeError::Changed => Problem::changed(),
            TypeError::Misfits(found) => Problem::in_the_way(
                &found,
                "the new schema would refuse payloads of this type",
                "let jobs end or cancel them, change or delete timers, or force it (force=true, --force): what waits \
                 then runs all the same",
            ),
            TypeError::Waiting(found) => Problem::in_the_way(
                &found,
                "no node runs this type, and there is work of it",
                "cancel or delete them, or force it (force=true, --force): then they wait on",
            ),
            TypeError::BuiltIn | TypeError::TooMany => Problem::new(Kind::CONFLICT, error.to_string()),
            TypeError::Busy => Problem::new(Kind::UNAVAILABLE, error.to_string()),
            TypeError::Store(error) => error.into(),
        }
    }
}

impl From<FleetError> for Problem {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::Missing => Problem::not_found("node"),
            FleetError::Terminated => {
                Problem::new(Kind::CONFLICT, format!("{error}; `GET /api/v1/nodes` shows who does"))
            }
            FleetError::Forbidden => {
                Problem::new(Kind::FORBIDDEN, format!("{error}: see its setting node_control"))
            }
            FleetError::Store(error) => error.into(),
            FleetError::Busy => Problem::new(Kind::UNAVAILABLE, error.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rota\""));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
