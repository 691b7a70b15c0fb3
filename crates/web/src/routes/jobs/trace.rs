//! A request that hands jobs in, as traces know it: the header `traceparent` of whoever sent it, and a span of our own below
//! that if somebody wants to know of it.

use axum::http::HeaderMap;
use rota_engine::desk::JobDesk;
use rota_engine::traces::{OpenSpan, SpanKind};
use rota_model::domain::Domain;
use rota_model::job::NewJob;
use rota_model::trace::TraceParent;

use crate::problem::Problem;

pub(super) struct Tracked {
    span: Option<OpenSpan>,
    /// Where jobs stand that say nothing of it themselves.
    place: Option<TraceParent>,
}

impl Tracked {
    /// What is no `traceparent`, or more than one, is ignored, as the specification asks.
    pub(super) fn begin(desk: &JobDesk, headers: &HeaderMap, in_body: Option<&str>) -> Self {
        let mut sent = headers.get_all("traceparent").iter();
        let header = match (sent.next(), sent.next()) {
            (Some(only), None) => only.to_str().ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        let parent = in_body.and_then(|text| text.parse().ok()).or(header);
        let surroundings = desk.surroundings();
        let span = surroundings.traces().begin(SpanKind::Server, parent, surroundings);
        let place = span.as_ref().map(|span| span.place).or(header);
        Self { span, place }
    }

    /// What a job says of itself stays as it is.
    pub(super) fn place(&self, job: &mut NewJob) {
        if job.traceparent.is_none() {
            job.traceparent = self.place.as_ref().map(ToString::to_string);
        }
    }

    /// The request is answered.
    pub(super) fn end(
        self,
        desk: &JobDesk,
        name: &str,
        domain: &Domain,
        jobs: usize,
        answer: Result<u16, &Problem>,
    ) {
        let Some(span) = self.span else { return };
        let (status, error) = match answer {
            Ok(status) => (status, None),
            Err(problem) => (problem.status, (problem.status >= 500).then(|| problem.detail.clone())),
        };
        let attributes = vec![
            ("http.request.method", "POST".to_owned().into()),
            ("http.response.status_code", u64::from(status).into()),
            ("messaging.system", "rota".to_owned().into()),
            ("messaging.operation.type", "send".to_owned().into()),
            ("messaging.batch.message_count", (jobs as u64).into()),
            ("rota.domain", domain.to_string().into()),
        ];
        span.end(name.to_owned(), attributes, error, desk.surroundings());
    }
}
