//! The type `http` against a real server: what is sent, what comes of the answer, and that a call has bounds.

use std::sync::Arc;

use crate::stage::{
    Answer, GONE, Heard, JOB, NOW, Names, Server, call, job, surroundings, this_address, with,
};
use rota_engine::handler::{Handler as _, HandlerError};
use rota_engine::types::JobTypes;
use rota_handlers::http::{Http, HttpSettings, Secret, Trust};
use rota_model::job::NewJob;
use rota_model::log::Level;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn failed(outcome: Result<impl std::fmt::Debug, HandlerError>) -> String {
    match outcome {
        Err(HandlerError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_says_who_calls_and_why() {
    let answer =
        with(201, "content-type: application/json\r\nlocation: /things/1\r\nx-other: 1\r\n", r#"{"id":1}"#);
    let mut server = Server::start(vec![answer]).await;
    let secret = Secret::new(b"0123456789abcdef").unwrap();
    let settings = HttpSettings { signing_secret: Some(secret), ..this_address() };
    let payload = json!({"url": server.url("/things?a=b#c"), "body": {"a": 1}, "headers": {"Authorization": "Bearer x"}});
    let result = call(settings, payload).await.unwrap();

    let request = server.heard().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("post /things?a=b http/1.1\r\n"), "{head}");
    assert_eq!(body, r#"{"a":1}"#);
    for line in [
        format!("host: {}", server.address),
        "authorization: bearer x".to_owned(),
        "content-type: application/json".to_owned(),
        "content-length: 7".to_owned(),
        format!("rota-job-id: {JOB}"),
        format!("idempotency-key: {JOB}"),
        "rota-job-epoch: 3".to_owned(),
        "rota-attempt: 2".to_owned(),
        format!("user-agent: rota/{}", env!("CARGO_PKG_VERSION")),
        // As `openssl dgst -sha256 -hmac` computes it.
        format!(
            "rota-signature: t={NOW},v1=bb237505858e57b0a0cd088cb12cbd57af3b6dbe9e9249230457a730844840dd"
        ),
    ] {
        assert_eq!(head.lines().filter(|other| *other == line).count(), 1, "{line} in {head}");
    }
    assert_eq!((&result["status"], &result["body"]), (&json!(201), &json!({"id": 1})));
    assert_eq!(result["headers"], json!({"content-type": "application/json", "location": "/things/1"}));
    assert!(result["tookMillis"].is_u64() && !result.contains_key("truncated"), "{result:?}");
}

#[tokio::test]
async fn what_is_not_accepted_is_an_error() {
    let server = Server::start(vec![
        with(500, "", "oh"),
        with(404, "", "nothing here"),
        with(429, "retry-after: 60\r\n", ""),
        with(404, "", "nothing here"),
        with(302, "location: /elsewhere\r\n", ""),
    ])
    .await;
    let payload = json!({"url": server.url("/x")});
    let name = format!("GET {}", server.url("/x"));
    assert_eq!(failed(call(this_address(), payload.clone()).await), format!("{name} answered 500: oh"));
    let fatal = HandlerError::Fatal(format!("{name} answered 404: nothing here"));
    assert_eq!(call(this_address(), payload.clone()).await, Err(fatal));
    let later = call(this_address(), payload.clone()).await.unwrap_err();
    assert!(matches!(later, HandlerError::RetryAt { at, .. } if at.0 == NOW + 60_000), "{later:?}");
    let accepted = json!({"url": server.url("/x"), "accept": ["200-299", 404]});
    assert_eq!(call(this_address(), accepted).await.unwrap()["status"], 404);
    let elsewhere = call(this_address(), payload).await.unwrap_err();
    assert!(matches!(elsewhere, HandlerError::Fatal(_)), "{elsewhere:?}");
}

#[tokio::test]
async fn a_huge_answer_is_cut() {
    let mut server = Server::start(vec![Answer::Endless]).await;
    let result = call(this_address(), json!({"url": server.url("/")})).await.unwrap();
    assert_eq!(result["body"].as_str().unwrap().len(), 64 * 1024);
    assert_eq!(result["truncated"], true);
    assert!(server.heard().await.starts_with("get / "));
    assert_eq!(server.heard().await, GONE);

    let exact = "y".repeat(64 * 1024);
    let server = Server::start(vec![with(200, "", &exact)]).await;
    let result = call(this_address(), json!({"url": server.url("/")})).await.unwrap();
    assert!(result["body"] == exact && !result.contains_key("truncated"));
}

#[tokio::test]
async fn a_slow_or_broken_server_costs_an_attempt_and_no_more() {
    for answer in [Answer::Trickle, Answer::Silence] {
        let mut server = Server::start(vec![answer]).await;
        let why = failed(call(this_address(), json!({"url": server.url("/"), "timeoutMs": 150})).await);
        assert!(why.ends_with("did not answer within 150 ms"), "{why}");
        server.heard().await;
        assert_eq!(server.heard().await, GONE);
    }
    let server = Server::start(vec![Answer::HangUp]).await;
    failed(call(this_address(), json!({"url": server.url("/")})).await);
    let cut_off = Server::start(vec![with(200, "content-length: 9\r\n", "x")]).await;
    failed(call(this_address(), json!({"url": cut_off.url("/")})).await);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let why = failed(call(this_address(), json!({"url": format!("http://{closed}/")})).await);
    assert!(why.contains("cannot connect"), "{why}");
    let why = failed(call(this_address(), json!({"url": "http://unheard-of.example/"})).await);
    assert!(why.contains("has no address"), "{why}");
}

#[tokio::test]
async fn cancelling_stops_the_call() {
    let mut server = Server::start(vec![Answer::Silence]).await;
    let job = job(json!({"url": server.url("/")}));
    let cancelled = job.cancelled.clone();
    let http = Http::new(this_address(), surroundings());
    let running = tokio::spawn(async move { http.run(job).await });
    server.heard().await;
    cancelled.cancel();
    assert_eq!(running.await.unwrap(), Err(HandlerError::Stopped));
    assert_eq!(server.heard().await, GONE);
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let mut server = Server::start(vec![Answer::Silence]).await;
    let job = job(json!({"url": server.url("/")}));
    let http = Http::new(this_address(), surroundings());
    let running = tokio::spawn(async move { http.run(job).await });
    server.heard().await;
    running.abort();
    assert_eq!(server.heard().await, GONE);
}

#[tokio::test]
async fn the_job_is_told_what_was_answered() {
    let server = Server::start(vec![with(200, "", "")]).await;
    let heard = Arc::new(Heard::default());
    let mut job = job(json!({"url": server.url("/a?token=secret")}));
    job.reports = Arc::clone(&heard) as Arc<_>;
    Http::new(this_address(), surroundings()).run(job).await.unwrap();
    let said = heard.0.lock().unwrap();
    let [(Level::Info, line)] = said.as_slice() else { panic!("{said:?}") };
    assert!(line.starts_with(&format!("GET {} answered 200 after ", server.url("/a"))), "{line}");
}

/// Made with `openssl req -x509` and `openssl x509 -req`, for secure.example and 127.0.0.1, and for no other use. The key of
/// the authority was thrown away.
fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("../../fixtures/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../fixtures/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn authority() -> Trust {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(include_bytes!("../../fixtures/authority.pem")).unwrap())
        .unwrap();
    Trust::Only(roots)
}

#[tokio::test]
async fn https_believes_only_who_can_prove_it() {
    let server = Server::start_with(vec![with(200, "", "safe")], Some(acceptor())).await;
    let names = Names::new(&[("secure.example", &[&["127.0.0.1"]]), ("other.example", &[&["127.0.0.1"]])]);
    let https = |trust| Http::with(this_address(), surroundings(), Arc::clone(&names) as Arc<_>, trust);
    let payload = |host: &str| json!({"url": format!("https://{host}:{}/", server.port())});
    for host in ["secure.example", "127.0.0.1"] {
        assert_eq!(https(authority()).run(job(payload(host))).await.unwrap()["body"], "safe");
    }
    for (host, trust) in [("other.example", authority()), ("secure.example", Trust::System)] {
        let why = failed(https(trust).run(job(payload(host))).await);
        assert!(why.contains("no secure connection") || why.contains("no certificate authorities"), "{why}");
    }
}

fn refused(types: &JobTypes, payload: &Value) -> bool {
    types.check(&NewJob::new("x", "http", payload.clone())).is_err()
}

#[test]
fn the_schema_refuses_what_can_be_told_by_its_form() {
    let mut types = JobTypes::default();
    let handler = Arc::new(Http::new(HttpSettings::default(), surroundings()));
    types.add("http", &Http::payload_schema(), handler).unwrap();
    let with = |name: &str, value: Value| json!({"url": "https://example.com/", name: value});
    for (name, value) in [
        ("method", json!("DELETE")),
        ("body", json!(null)),
        ("bodyText", json!("x")),
        ("accept", json!([200, "300-399", 2.04e2])),
        ("timeoutMs", json!(3_600_000)),
        ("headers", json!({"X-A": "b\tc"})),
    ] {
        assert!(!refused(&types, &with(name, value.clone())), "{name}: {value}");
    }
    for (name, value) in [
        ("url", json!("file:///etc/passwd")),
        ("url", json!(7)),
        ("method", json!("TRACE")),
        ("method", json!("get\r\n")),
        ("accept", json!([])),
        ("accept", json!(["2xx"])),
        ("accept", json!([99])),
        ("timeoutMs", json!(0)),
        ("timeoutMs", json!(3_600_001)),
        ("headers", json!({"x": "a\r\nb"})),
        ("headers", json!({"x": "a\n"})),
        ("headers", json!({"x\n": "a"})),
        ("headers", json!({"x y": "a"})),
        ("headers", json!({"x": 1})),
        ("bodytext", json!("x")),
    ] {
        assert!(refused(&types, &with(name, value.clone())), "{name}: {value}");
    }
    assert!(refused(&types, &json!({})));
    assert!(refused(&types, &json!({"url": "http://e.com", "body": 1, "bodyText": "x"})));
}

#[tokio::test]
async fn headers_that_are_not_the_jobs_to_give_end_it() {
    for headers in [json!({"Host": "evil"}), json!({"x": "a\r\nhost: evil"}), json!({"rota-attempt": "9"})] {
        let mut server = Server::start(vec![with(200, "", "")]).await;
        let outcome = call(this_address(), json!({"url": server.url("/"), "headers": headers})).await;
        assert!(matches!(outcome, Err(HandlerError::Fatal(_))), "{outcome:?}");
        assert!(server.heard_nothing());
    }
}
