//! Changes as they happen: what the page follows without a reload.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use futures::StreamExt as _;
use rota_model::node::NodeRole;
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Stage, stage, stage_of};
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

/// The next events, each by its kind and document.
async fn events(stream: &mut BodyDataStream) -> Vec<(String, Value)> {
    let chunk = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("an event");
    let text = String::from_utf8(chunk.expect("the stream goes on").unwrap().to_vec()).unwrap();
    assert!(text.ends_with("\n\n"), "events come whole: {text}");
    let event = |text: &str| {
        let (kind, data) = text.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((kind.to_owned(), serde_json::from_str(data).unwrap()))
    };
    text.split("\n\n").filter_map(event).collect()
}

/// The documents of the next events of a kind, until one satisfies.
async fn until(stream: &mut BodyDataStream, kind: &str, satisfied: impl Fn(&Value) -> bool) -> Value {
    loop {
        let found = events(stream).await.into_iter().find(|(of, data)| of == kind && satisfied(data));
        if let Some((_, document)) = found {
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

/// What a program sees of the queue in numbers: at once, and whenever they change.
#[tokio::test]
async fn a_listener_hears_how_many_jobs_there_are() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/events").await;
    let none = until(&mut stream, "counts", |_| true).await;
    assert_eq!(none, json!({"total": 0, "byStatus": {}, "byType": {}}));
    let later = json!({"jobName": "later", "input": {"type": "noop"}, "runAt": 4_102_444_799_000_i64});
    stage.post("/api/v1/domains/red/jobs", later).await;
    stage.post("/api/v1/domains/blue/jobs", json!({"jobName": "b", "input": {"type": "noop"}})).await;
    let one = until(&mut stream, "counts", |counts| counts["total"] == 1).await;
    let expected = json!({"total": 1, "byStatus": {"QUEUED": 1}, "byType": {"noop": {"QUEUED": 1}}});
    assert_eq!(one, expected);
    assert_eq!(stage.get("/api/v1/domains/red/jobs/counts").await.body, expected);
    let mut second = listen(&stage, "/api/v1/domains/red/events").await;
    assert_eq!(until(&mut second, "counts", |_| true).await, expected, "who comes later is told, too");
}

/// A job that is gone cannot be told of: who listens looks again.
#[tokio::test]
async fn a_deleted_job_means_looking_again() {
    let stage = stage().await;
    let later = json!({"jobName": "later", "input": {"type": "noop"}, "runAt": 4_102_444_799_000_i64});
    let job = stage.post("/api/v1/domains/red/jobs", later).await.body;
    let mut stream = listen(&stage, "/api/v1/domains/red/events").await;
    until(&mut stream, "counts", |counts| counts["total"] == 1).await;
    let path = format!("/api/v1/domains/red/jobs/{}", job["jobId"].as_str().unwrap());
    assert_eq!(stage.call("DELETE", &path, Some(KEY), None).await.status, 204);
    until(&mut stream, "reload", |_| true).await;
}

/// One stream carries both for who may see both, so that a browser needs only one.
#[tokio::test]
async fn nodes_come_with_a_domain_for_administrators_alone() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/events?nodes=true").await;
    let (mut nodes, mut counts) = (0, 0);
    while nodes == 0 || counts == 0 {
        let heard = events(&mut stream).await;
        nodes += heard.iter().filter(|(kind, _)| kind == "node").count();
        counts += heard.iter().filter(|(kind, _)| kind == "counts").count();
    }
    assert_eq!(stage.get("/api/v1/observer").await.body["listeners"], 1);
    drop(stream);
    assert_eq!(stage.get("/api/v1/observer").await.body["listeners"], 0);
    let bob = stage.user("bob", "red", rota_model::user::Role::Admin).await;
    let refused = stage.call("GET", "/api/v1/domains/red/events?nodes=true", Some(&bob), None).await;
    assert_eq!(refused.status, 403);
    assert_eq!(stage.call("GET", "/api/v1/observer", Some(&bob), None).await.status, 403);
}

/// However much happens, a listener hears of it four times a second at most.
#[tokio::test]
async fn a_listener_is_told_four_times_a_second_at_most() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/events").await;
    let job = || json!({"jobName": "j", "input": {"type": "noop"}});
    let steady = async {
        loop {
            stage.post("/api/v1/domains/red/jobs", job()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let listen = async {
        until(&mut stream, "job", |_| true).await;
        let mut told = vec![tokio::time::Instant::now()];
        while told.len() < 9 {
            events(&mut stream).await;
            told.push(tokio::time::Instant::now());
        }
        told
    };
    let told = tokio::select! {
        told = listen => told,
        () = steady => unreachable!(),
    };
    // Measured where they are read, which may be a moment after they were told.
    let least = Duration::from_millis(4 * 250 - 100);
    assert!(told.windows(5).all(|five| five[4] - five[0] >= least), "{told:?}");
}

/// Asking such a node again helps nobody, so it must not say that it would.
#[tokio::test]
async fn a_node_that_does_not_observe_says_so_for_good() {
    let stage = stage_of(vec![NodeRole::Web, NodeRole::Processor], true).await;
    let paths = [
        "/api/v1/events",
        "/api/v1/domains/red/events",
        "/api/v1/domains/red/events?nodes=true",
        "/api/v1/observer",
    ];
    for path in paths {
        let refused = stage.get(path).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["type"]),
            (404, &json!("urn:rota:problem:not-found"))
        );
        assert!(refused.body["detail"].as_str().unwrap().contains("ask a node that has the role"), "{path}");
        assert!(!refused.headers.contains_key(header::RETRY_AFTER), "{path}");
    }
    assert_eq!(
        stage.get("/api/v1/domains/red/jobs/counts").await.status,
        200,
        "what is asked once, it answers"
    );
}

/// However much happens to one tenant, another's listeners hear nothing of it, not even that there is something to read.
#[tokio::test]
async fn a_flood_of_one_tenant_leaves_the_room_of_another_quiet() {
    let stage = stage().await;
    let mut red = listen(&stage, "/api/v1/domains/red/events").await;
    until(&mut red, "counts", |_| true).await;
    let mut blue = listen(&stage, "/api/v1/domains/blue/events").await;
    let flood = async {
        loop {
            stage.post("/api/v1/domains/blue/jobs", json!({"jobName": "j", "input": {"type": "noop"}})).await;
        }
    };
    // Both rooms are told in turn: when one hears of it a second time, the other was told of the first, if at all.
    let twice = async {
        until(&mut blue, "reload", |_| true).await;
        until(&mut blue, "reload", |_| true).await;
    };
    tokio::select! {
        () = twice => {}
        () = flood => {}
    }
    while let Ok(Some(chunk)) = tokio::time::timeout(Duration::from_millis(10), red.next()).await {
        let text = String::from_utf8(chunk.unwrap().to_vec()).unwrap();
        assert!(!text.contains("event:"), "it is told of what others do: {text}");
    }
}
