//! Changes as they happen: what the page follows without a reload.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use futures::StreamExt as _;
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Stage, stage};
use tower::ServiceExt as _;

async fn listen(stage: &Stage, path: &str) -> BodyDataStream {
    listen_as(stage, path, KEY).await
}

async fn listen_as(stage: &Stage, path: &str, key: &str) -> BodyDataStream {
    let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {key}"));
    let response = stage.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    response.into_body().into_data_stream()
}

/// The documents of the next events of a kind, until one satisfies.
async fn until(stream: &mut BodyDataStream, kind: &str, satisfied: impl Fn(&Value) -> bool) -> Value {
    let wanted = format!("event: {kind}\n");
    loop {
        let chunk = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("an event");
        let text = String::from_utf8(chunk.expect("the stream goes on").unwrap().to_vec()).unwrap();
        let Some(data) = text.strip_prefix(&wanted).and_then(|rest| rest.trim().strip_prefix("data: "))
        else {
            continue;
        };
        let document: Value = serde_json::from_str(data).unwrap();
        if satisfied(&document) {
            return document;
        }
    }
}

#[tokio::test]
async fn a_listener_sees_a_job_of_its_domain_to_its_end_and_no_other() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/events").await;
    let job = |name: &str| json!({"jobName": name, "input": {"type": "wait", "payload": {"millis": 400}}});
    stage.post("/api/v1/domains/blue/jobs", job("elsewhere")).await;
    stage.post("/api/v1/domains/red/jobs", job("here")).await;
    let seen = until(&mut stream, "job", |job| job["status"] != "SUCCESSFUL").await;
    assert_eq!(seen["jobName"], "here");
    let ended = until(&mut stream, "job", |job| job["status"] == "SUCCESSFUL").await;
    assert_eq!((&ended["jobId"], &ended["domain"]), (&seen["jobId"], &json!("red")));
}

#[tokio::test]
async fn a_listener_sees_heartbeats_and_the_stream_ends_with_the_process() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/events").await;
    let node = until(&mut stream, "node", |_| true).await;
    assert_eq!(node["status"], "ACTIVE");
    stage.stop.cancel();
    let rest = tokio::time::timeout(Duration::from_secs(20), stream.collect::<Vec<_>>()).await;
    assert!(rest.is_ok(), "it ends");
}

/// More changes at once than anybody reads one by one: the listener is told to look again.
#[tokio::test]
async fn a_flood_becomes_one_reload() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/events").await;
    let flood = async {
        loop {
            stage.post("/api/v1/domains/red/jobs", json!({"jobName": "j", "input": {"type": "noop"}})).await;
        }
    };
    tokio::select! {
        _ = until(&mut stream, "reload", |_| true) => {}
        () = flood => {}
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_key_it_was_opened_with() {
    let stage = stage().await;
    let bob = stage.user("bob", "red", rota_model::user::Role::Viewer).await;
    let mut stream = listen_as(&stage, "/api/v1/domains/red/events", &bob).await;
    let gone = stage.call("DELETE", "/api/v1/users/local:bob", Some(KEY), None).await;
    assert_eq!(gone.status, 204);
    stage.post("/api/v1/domains/red/jobs", json!({"jobName": "secret", "input": {"type": "noop"}})).await;
    let to_its_end = async {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.unwrap();
            assert!(!String::from_utf8_lossy(&chunk).contains("secret"), "it tells what it must not");
        }
    };
    // One limit for all of it: a stream that goes on says now and then that it is alive.
    tokio::time::timeout(Duration::from_secs(20), to_its_end).await.expect("it ends");
}
