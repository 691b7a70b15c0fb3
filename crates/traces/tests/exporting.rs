//! Spans go out to a real receiver, in the form that collectors read; and nobody waits for one that is away.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use rota_engine::traces::{SpanKind, SpanValue};
use rota_model::trace::TraceParent;
use rota_testkit::receiver::{AUTHORITY, Receiver, Request};
use rota_testkit::surroundings::surroundings;
use rota_traces::{Exporter, Service};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PATIENCE: Duration = Duration::from_secs(10);

fn exporter(url: &str) -> Exporter {
    let service = Service { instance: "i".to_owned(), node: "n".to_owned(), version: "1".to_owned() };
    Exporter::start(url.parse().unwrap(), &service, Some(trust_in(AUTHORITY))).unwrap()
}

/// Believes this authority alone.
fn trust_in(authority: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    config.with_root_certificates(roots).with_no_client_auth()
}

fn tell(exporter: &Exporter, name: &str, parent: Option<TraceParent>, error: Option<&str>) {
    let surroundings = surroundings();
    let span = exporter.traces().begin(SpanKind::Consumer, parent, &surroundings).unwrap();
    let attributes = vec![("a", SpanValue::Number(7))];
    span.end(name.to_owned(), attributes, error.map(str::to_owned), &surroundings);
}

fn names(request: &Request) -> Vec<String> {
    let read = ExportTraceServiceRequest::decode(&request.body[..]).unwrap();
    read.resource_spans[0].scope_spans[0].spans.iter().map(|span| span.name.clone()).collect()
}

#[tokio::test]
async fn spans_arrive_as_they_were_told() {
    let receiver = Receiver::start(&[200]);
    let exporter = exporter(&format!("{}/otlp", receiver.url));
    let parent: TraceParent = PARENT.parse().unwrap();
    tell(&exporter, "good", Some(parent), None);
    tell(&exporter, "bad", None, Some("no"));
    exporter.finish(PATIENCE).await;

    let request = receiver.next();
    assert_eq!(request.line, "POST /otlp/v1/traces HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(names(&request), ["good", "bad"]);
    let read = ExportTraceServiceRequest::decode(&request.body[..]).unwrap();
    let resource = format!("{:?}", read.resource_spans[0].resource);
    assert!(resource.contains("service.name") && resource.contains("service.instance.id"), "{resource}");
    let spans = &read.resource_spans[0].scope_spans[0].spans;
    assert_eq!(
        (&spans[0].trace_id[..], &spans[0].parent_span_id[..]),
        (&parent.trace_id[..], &parent.span_id.0[..])
    );
    assert!(spans[0].status.is_none() && spans[1].parent_span_id.is_empty());
    let status = spans[1].status.as_ref().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "no"));
    assert!(spans[0].start_time_unix_nano <= spans[0].end_time_unix_nano);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_collector_is_asked_again_and_a_refusal_is_final() {
    let receiver = Receiver::start(&[503, 200, 400, 200]);
    let exporter = exporter(&receiver.url);
    tell(&exporter, "first", None, None);
    assert_eq!(
        (names(&receiver.next()), names(&receiver.next())),
        (vec!["first".to_owned()], vec!["first".to_owned()])
    );
    tell(&exporter, "refused", None, None);
    assert_eq!(names(&receiver.next()), ["refused"]);
    tell(&exporter, "next", None, None);
    assert_eq!(names(&receiver.next()), ["next"]);
    exporter.finish(PATIENCE).await;
    assert!(receiver.so_far().is_empty());
}

/// Twice as many as the queue holds are told to a collector that takes connections and says nothing.
#[tokio::test]
async fn nobody_waits_for_a_collector_that_hangs() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = exporter(&format!("http://{}", silent.local_addr().unwrap()));
    for nth in 0..20_000 {
        tell(&exporter, &nth.to_string(), None, None);
    }
    let given_up = tokio::time::timeout(PATIENCE, exporter.finish(Duration::from_millis(50))).await;
    assert!(given_up.is_ok(), "the end is bounded");
}

/// Whoever began the trace does not want it recorded.
#[tokio::test]
async fn what_is_not_sampled_is_not_told() {
    let (receiver, surroundings) = (Receiver::start(&[200]), surroundings());
    let exporter = exporter(&receiver.url);
    let quiet = PARENT.replace("-01", "-00").parse().unwrap();
    assert!(exporter.traces().begin(SpanKind::Server, Some(quiet), &surroundings).is_none());
    exporter.finish(PATIENCE).await;
    assert!(receiver.so_far().is_empty());
}

/// A collector by https gets them, once it has proven who it is; without anybody to believe there is no beginning.
#[tokio::test]
async fn a_collector_may_be_asked_to_prove_itself() {
    let receiver = Receiver::start_secure(&[200]);
    assert!(receiver.url.starts_with("https://127.0.0.1:"), "{}", receiver.url);
    let exporter = exporter(&receiver.url);
    tell(&exporter, "secret", None, None);
    exporter.finish(PATIENCE).await;
    assert_eq!(names(&receiver.next()), ["secret"]);

    let service = Service { instance: "i".to_owned(), node: "n".to_owned(), version: "1".to_owned() };
    let nobody = Exporter::start(receiver.url.parse().unwrap(), &service, None);
    assert!(nobody.is_err_and(|error| error.to_string().contains("whose certificates to believe")));
    let strangers = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let strangers = strangers.with_safe_default_protocol_versions().unwrap();
    let strangers = strangers.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let wary = Exporter::start(receiver.url.parse().unwrap(), &service, Some(strangers)).unwrap();
    tell(&wary, "not for strangers", None, None);
    wary.finish(PATIENCE).await;
    assert!(receiver.so_far().is_empty());
}
