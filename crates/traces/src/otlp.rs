//! Spans as a collector reads them, in the names of OpenTelemetry's conventions.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as wire;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as WireKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use rota_engine::traces::{Span, SpanKind, SpanValue};

/// Who says all this.
#[derive(Clone, Debug)]
pub struct Service {
    /// The id of the node.
    pub instance: String,
    /// Its name.
    pub node: String,
    pub version: String,
}

pub(crate) fn resource(service: &Service) -> Resource {
    let attributes = [
        ("service.name", "rota"),
        ("service.version", &service.version),
        ("service.instance.id", &service.instance),
        ("rota.node.name", &service.node),
    ];
    let attributes = attributes.map(|(name, text)| attribute(name, SpanValue::Text(text.to_owned())));
    Resource { attributes: attributes.into(), ..Resource::default() }
}

pub(crate) fn request(resource: &Resource, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope { name: "rota".to_owned(), ..InstrumentationScope::default() };
    let spans = spans.into_iter().map(span).collect();
    let scope_spans = wire::ScopeSpans { scope: Some(scope), spans, ..wire::ScopeSpans::default() };
    let of_resource = wire::ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![scope_spans],
        ..wire::ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }
}

fn span(span: Span) -> wire::Span {
    let began = u64::try_from(span.began.0).unwrap_or(0).saturating_mul(1_000_000);
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let kind = match span.kind {
        SpanKind::Server => WireKind::Server,
        SpanKind::Consumer => WireKind::Consumer,
    };
    let status = span.error.map(|message| wire::Status { message, code: StatusCode::Error.into() });
    wire::Span {
        trace_id: span.place.trace_id.to_vec(),
        span_id: span.place.span_id.0.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        name: span.name,
        kind: kind.into(),
        start_time_unix_nano: began,
        end_time_unix_nano: began.saturating_add(took),
        attributes: span.attributes.into_iter().map(|(name, value)| attribute(name, value)).collect(),
        status,
        ..wire::Span::default()
    }
}

fn attribute(name: &str, value: SpanValue) -> KeyValue {
    let value = match value {
        SpanValue::Text(text) => Value::StringValue(text),
        SpanValue::Number(number) => Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
