//! Spans: which piece of work caused which, and how long each took, for whoever follows a request through many programs.
//!
//! Nothing is recorded unless somebody listens. Whoever does must not hold anybody up: what it cannot take at once is lost.

use std::sync::Arc;
use std::time::Duration;

use rota_model::time::UnixMillis;
use rota_model::trace::{SpanId, TraceParent};

use crate::surroundings::Surroundings;

/// Takes spans that have ended. It must not wait.
pub trait SpanSink: Send + Sync + 'static {
    fn take(&self, span: Span);
}

/// Where spans go, if anywhere.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<dyn SpanSink>>);

/// How a piece of work stands to the one that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// It answers a request.
    Server,
    /// It works on what was left for it.
    Consumer,
}

/// A piece of work that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub name: String,
    pub kind: SpanKind,
    pub place: TraceParent,
    /// What caused it; none at the beginning of a trace.
    pub parent: Option<SpanId>,
    pub began: UnixMillis,
    pub took: Duration,
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// What went wrong, if anything did.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    Text(String),
    Number(u64),
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl Traces {
    pub fn to(sink: Arc<dyn SpanSink>) -> Self {
        Self(Some(sink))
    }

    /// Whether somebody listens.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a piece of work below another, or a trace of its own. None if nobody wants to know of it.
    pub fn begin(
        &self,
        kind: SpanKind,
        parent: Option<TraceParent>,
        surroundings: &Surroundings,
    ) -> Option<OpenSpan> {
        let sink = Arc::clone(self.0.as_ref()?);
        if parent.is_some_and(|parent| !parent.is_sampled()) {
            return None;
        }
        let id = SpanId(surroundings.random_bytes());
        let place = match parent {
            Some(parent) => parent.child(id),
            None => TraceParent::root(surroundings.random_bytes(), id),
        };
        let (began, since) = (surroundings.now(), surroundings.elapsed());
        Some(OpenSpan { sink, kind, place, parent: parent.map(|parent| parent.span_id), began, since })
    }
}

/// A piece of work under way.
pub struct OpenSpan {
    sink: Arc<dyn SpanSink>,
    kind: SpanKind,
    pub place: TraceParent,
    parent: Option<SpanId>,
    began: UnixMillis,
    since: Duration,
}

impl OpenSpan {
    /// It is over, with what is to be known of it.
    pub fn end(
        self,
        name: String,
        attributes: Vec<(&'static str, SpanValue)>,
        error: Option<String>,
        surroundings: &Surroundings,
    ) {
        let took = surroundings.elapsed().saturating_sub(self.since);
        let Self { sink, kind, place, parent, began, .. } = self;
        sink.take(Span { name, kind, place, parent, began, took, attributes, error });
    }
}
