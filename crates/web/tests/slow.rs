//! Whoever says nothing, or says it too slowly, is not waited for; who says too much before it says what it wants, is not heard.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::time::Duration;

use rota_testkit::process::KEY;
use stage::{Stage, stage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anybody is waited for.
const FOR_EVER: Duration = Duration::from_secs(600);

async fn connect(stage: &Stage) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(rota_web::server::serve(listener, stage.app.clone()));
    TcpStream::connect(address).await.unwrap()
}

/// What is answered until the connection is closed.
async fn heard(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    tokio::time::timeout(FOR_EVER, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_not_waited_for() {
    let stage = stage().await;
    let mut stream = connect(&stage).await;
    stream.write_all(b"GET /api/ping HTTP/1.1\r\nX").await.unwrap();
    let answer = heard(&mut stream).await;
    assert!(!answer.contains("pong"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_kept_for_who_wants_nothing() {
    let stage = stage().await;
    let mut stream = connect(&stage).await;
    stream.write_all(b"GET /api/ping HTTP/1.1\r\nhost: rota\r\n\r\n").await.unwrap();
    let answer = heard(&mut stream).await;
    assert!(answer.ends_with("pong"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_answered_and_stores_nothing() {
    let stage = stage().await;
    let mut stream = connect(&stage).await;
    let head = format!(
        "POST /api/v1/domains/default/jobs HTTP/1.1\r\nhost: rota\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"jobName\""
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = heard(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("urn:rota:problem:too-slow"), "{answer}");
    assert_eq!(stage.get("/api/v1/domains/default/jobs").await.body["items"], serde_json::json!([]));
}

/// Such a request is refused before anybody knows what it asks for, by status alone. Whoever comes next is served.
#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let stage = stage().await;
    let long = "x".repeat(70_000);
    let many: String = (0..101).map(|nth| format!("x-{nth}: y\r\n")).collect();
    for (status, request) in [
        (414, format!("GET /api/ping?{long} HTTP/1.1\r\nhost: rota\r\n\r\n")),
        (431, format!("GET /api/ping HTTP/1.1\r\nhost: rota\r\n{many}\r\n")),
    ] {
        let mut stream = connect(&stage).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = heard(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "with no body, as docs/problems.md says: {answer}");
    }
    assert_eq!(stage.get("/api/ping").await.body, "pong");
}
