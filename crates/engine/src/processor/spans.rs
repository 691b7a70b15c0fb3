//! Each attempt as a span below that of whoever submitted the job.

use rota_model::job::Job;
use rota_model::trace::TraceParent;

use super::Processor;
use super::brake::Stop;
use super::run::{Outcome, fault_of, shortened};
use crate::handler::HandlerError;
use crate::traces::{OpenSpan, SpanKind, SpanValue};

/// One attempt, as traces know it.
pub(super) struct Attempt {
    span: OpenSpan,
    name: String,
    attributes: Vec<(&'static str, SpanValue)>,
}

impl Processor {
    /// Begins the span of an attempt, and says where its handler stands: in that span, or where the job stood already.
    pub(super) fn trace(&self, job: &Job) -> (Option<Attempt>, Option<TraceParent>) {
        let given = job.reserved.traceparent.as_deref().and_then(|text| text.parse().ok());
        let traces = self.surroundings.traces();
        let Some(span) = traces.begin(SpanKind::Consumer, given, &self.surroundings) else {
            return (None, given);
        };
        let place = span.place;
        let attributes = vec![
            ("messaging.system", "rota".to_owned().into()),
            ("messaging.operation.type", "process".to_owned().into()),
            ("messaging.destination.name", job.input.kind.clone().into()),
            ("messaging.message.id", job.job_id.to_string().into()),
            ("rota.domain", job.domain.to_string().into()),
            ("rota.job.name", job.job_name.clone().into()),
            ("rota.job.attempt", u64::from(job.attempt).into()),
            ("rota.job.epoch", job.epoch.into()),
            ("rota.node.id", self.node().to_string().into()),
        ];
        (Some(Attempt { span, name: format!("process {}", job.input.kind), attributes }), Some(place))
    }

    pub(super) fn end_trace(&self, attempt: Attempt, outcome: &Outcome) {
        let Attempt { span, name, attributes } = attempt;
        span.end(name, attributes, trouble(outcome), &self.surroundings);
    }
}

/// What went wrong with an attempt, if anything did.
fn trouble(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ended(Ok(result)) => fault_of(result),
        Outcome::Ended(Err(HandlerError::Stopped)) => Some(stopped(Stop::Release)),
        Outcome::Ended(Err(error)) => Some(shortened(error.to_string())),
        Outcome::TimedOut => Some("it took too long".to_owned()),
        Outcome::Expired => Some("it expired before it could begin".to_owned()),
        Outcome::Stopped(why) | Outcome::NotBegun(why) => Some(stopped(*why)),
    }
}

fn stopped(why: Stop) -> String {
    let said = match why {
        Stop::Release => "it was given back before it had ended",
        Stop::NotOurs => "it was cancelled, or runs elsewhere by now",
        Stop::LeaseOver => "its node could not be sure any more that the job is its own",
    };
    said.to_owned()
}
