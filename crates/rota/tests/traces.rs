//! A request is followed through Rota: from whoever submitted a job to what its handler calls. Spans arrive at a real collector.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use rota_testkit::receiver::{AUTHORITY, Receiver};
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SUBMITTER: &str = "00f067aa0ba902b7";
const SERVER: i32 = 2;
const CONSUMER: i32 = 5;
const ERROR: i32 = 2;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn traceparent() -> String {
    format!("00-{TRACE}-{SUBMITTER}-01")
}

/// Submits a job as a program in the middle of a trace does, and gives what it was answered.
fn submit(rota: &Rota, body: &Value) -> Value {
    let (address, body) = (rota.url.trim_start_matches("http://"), body.to_string());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/v1/domains/default/jobs HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\ntraceparent: {}\r\nconnection: close\r\n\r\n{body}",
        body.len(),
        traceparent()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201"), "{answer}");
    serde_json::from_str(body).unwrap()
}

fn ended(home: &Home, job: &Value) -> Value {
    let output = home.run(&["job", "wait", job["jobId"].as_str().unwrap()]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", complaint(&output)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What came from now until Rota stopped.
fn spans(rota: Rota, collector: &Receiver) -> Vec<Span> {
    let (status, _) = rota.interrupt();
    assert!(status.success(), "{status}");
    let requests = collector.so_far();
    let read = requests.iter().map(|request| ExportTraceServiceRequest::decode(&request.body[..]).unwrap());
    let of_resources = read.flat_map(|request| request.resource_spans);
    of_resources.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |any: &Any| match any {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let of = span.attributes.iter();
    of.map(|pair| (pair.key.clone(), text(pair.value.as_ref().unwrap().value.as_ref().unwrap()))).collect()
}

#[test]
fn a_request_is_followed_from_its_sender_to_what_the_job_calls() {
    let (home, collector, called) = (home(), Receiver::start(&[200]), Receiver::start(&[503, 200]));
    fs::write(home.path().join("rota.toml"), "[http]\nallow_hosts = [\"127.0.0.1\"]\n").unwrap();
    let rota = home.up_with(&["--traces-endpoint", &collector.url]);
    let job = submit(
        &rota,
        &json!({"jobName": "call", "attempts": 2, "backoff": {"delayMs": 1},
            "input": {"type": "http", "payload": {"url": called.url}}}),
    );
    let done = ended(&home, &job);
    assert_eq!((&done["status"], &done["attempt"]), (&json!("SUCCESSFUL"), &json!(2)), "{done}");
    let told: Vec<_> = [called.next(), called.next()]
        .iter()
        .map(|request| request.header("traceparent").unwrap().to_owned())
        .collect();

    let all = spans(rota, &collector);
    let of_trace: Vec<_> = all.iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let [server] = of_trace.iter().filter(|span| span.kind == SERVER).collect::<Vec<_>>()[..] else {
        panic!("{of_trace:?}")
    };
    assert_eq!((server.name.as_str(), hex(&server.parent_span_id).as_str()), ("submit a job", SUBMITTER));
    assert_eq!(attributes(server)["http.response.status_code"], "201");
    assert!(server.status.is_none());
    let stored = format!("00-{TRACE}-{}-01", hex(&server.span_id));
    assert_eq!(done["traceparent"], json!(stored), "the job stands below the request that handed it in");

    let attempts: Vec<_> = of_trace.iter().filter(|span| span.kind == CONSUMER).collect();
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    for (nth, span) in attempts.iter().enumerate() {
        assert_eq!((span.name.as_str(), &span.parent_span_id), ("process http", &server.span_id));
        let of = attributes(span);
        assert_eq!(
            (&of["messaging.message.id"], &of["rota.domain"]),
            (&job["jobId"].as_str().unwrap().to_owned(), &"default".to_owned())
        );
        assert_eq!(of["rota.job.attempt"], (nth + 1).to_string());
        assert_eq!(
            told[nth],
            format!("00-{TRACE}-{}-01", hex(&span.span_id)),
            "what is called stands below the attempt"
        );
        assert!(span.start_time_unix_nano >= server.start_time_unix_nano / 1_000_000 * 1_000_000);
    }
    let failed = attempts[0].status.as_ref().unwrap();
    assert!(failed.code == ERROR && failed.message.contains("503"), "{failed:?}");
    assert!(attempts[1].status.is_none());
}

#[test]
fn without_a_collector_the_trace_is_handed_on_as_it_came() {
    let home = home();
    fs::write(home.path().join("rota.toml"), "[exec]\nprograms = { show = \"/usr/bin/env\" }\n").unwrap();
    let rota = home.up();
    let exec = |payload: Value| json!({"jobName": "env", "input": {"type": "exec", "payload": payload}});
    for (payload, shown) in [
        (json!({"program": "show"}), traceparent()),
        (json!({"program": "show", "env": {"TRACEPARENT": "mine"}}), "mine".to_owned()),
    ] {
        let job = submit(&rota, &exec(payload));
        assert_eq!(job["traceparent"], json!(traceparent()));
        let said = ended(&home, &job)["result"]["stdout"].as_str().unwrap().to_owned();
        assert!(said.lines().any(|line| line == format!("TRACEPARENT={shown}")), "{said}");
    }
}

/// A collector that is not there costs nothing but its spans.
#[test]
fn a_collector_that_is_away_holds_nobody_up() {
    let home = home();
    let rota = home.up_with(&["--traces-endpoint", "http://127.0.0.1:1"]);
    for _ in 0..20 {
        let job = json(&home.run(&["job", "submit", "noop", "--wait"]));
        assert_eq!(job["status"], "SUCCESSFUL");
    }
    let (status, took) = rota.interrupt();
    assert!(status.success() && took.as_secs() < 8, "{status} after {took:?}");
}

#[test]
fn an_address_that_is_none_is_refused_at_the_start() {
    let refused = home().run(&["up", "--traces-endpoint", "ftp://collector.example"]);
    assert_eq!(code(&refused), 2);
    assert!(
        complaint(&refused)
            .contains("traces.endpoint: 'ftp://collector.example' is not an http or https address"),
        "{}",
        complaint(&refused)
    );
}

#[test]
fn a_collector_by_https_is_believed_if_the_system_believes_it() {
    let (home, collector) = (home(), Receiver::start_secure(&[200]));
    let authority = home.path().join("authority.pem");
    fs::write(&authority, AUTHORITY).unwrap();
    let mut up = home.command();
    up.args(["up", "--listen", "127.0.0.1:0", "--traces-endpoint", &collector.url]);
    let rota = Rota::start({
        up.env("ROTA_BOOTSTRAP_KEY", KEY).env("SSL_CERT_FILE", &authority);
        up
    });
    ended(&home, &submit(&rota, &json!({"jobName": "j", "input": {"type": "noop"}})));
    let names: Vec<_> = spans(rota, &collector).into_iter().map(|span| span.name).collect();
    assert!(names.contains(&"process noop".to_owned()), "{names:?}");
}
