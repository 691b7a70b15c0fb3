//! The log over HTTP: each filter, who sees what, and following it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

mod stage;

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use futures::StreamExt as _;
use rota_model::ids::NodeId;
use rota_model::user::Role;
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Stage, stage};
use tower::ServiceExt as _;

/// Runs a job that says these lines, and gives its id once they are stored.
async fn talk(stage: &Stage, domain: &str, lines: Value) -> String {
    let count = lines.as_array().unwrap().len();
    let job = json!({"jobName": "t", "input": {"type": "talk", "payload": {"lines": lines}}});
    let job = stage.post(&format!("/api/v1/domains/{domain}/jobs"), job).await.body;
    let id = job["jobId"].as_str().unwrap().to_owned();
    for _ in 0..1_000 {
        let found = stage.get(&format!("/api/v1/domains/{domain}/logs?job={id}")).await.body;
        if found["items"].as_array().unwrap().len() >= count {
            return id;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the lines of {id} were not stored");
}

async fn titles(stage: &Stage, path: &str) -> Vec<String> {
    let answer = stage.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    let items = answer.body["items"].as_array().unwrap().clone();
    items.iter().map(|line| line["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lines_are_found_by_each_filter() {
    let stage = stage().await;
    let lines = json!([["INFO", "began well"], ["WARN", "disk almost full"], ["ERROR", "disk full"]]);
    let id = talk(&stage, "red", lines).await;
    let other = talk(&stage, "red", json!([["INFO", "another job"]])).await;
    let logs = "/api/v1/domains/red/logs";
    let first = stage.get(&format!("{logs}?job={id}&limit=1")).await.body;
    let line = &first["items"][0];
    assert_eq!(
        (&line["title"], &line["level"], &line["jobId"]),
        (&json!("disk full"), &json!("ERROR"), &json!(id))
    );
    assert_eq!((&line["domain"], &line["origin"]), (&json!("red"), &json!(NodeId::derived(&["n"]))));
    assert!(line["logId"].is_string() && line["metadata"]["createdAt"].is_i64());
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        titles(&stage, &format!("{logs}?job={id}&cursor={next}")).await,
        ["disk almost full", "began well"]
    );

    let all = ["another job", "disk full", "disk almost full", "began well"];
    assert_eq!(titles(&stage, logs).await, all);
    assert_eq!(titles(&stage, &format!("{logs}?level=WARN")).await, all[1..3]);
    assert_eq!(titles(&stage, &format!("{logs}?text=DISK%20alm*")).await, all[2..3]);
    assert_eq!(titles(&stage, &format!("{logs}?job={other}")).await, all[..1]);
    assert_eq!(titles(&stage, &format!("{logs}?node={}", NodeId::derived(&["n"]))).await, all);
    assert_eq!(titles(&stage, &format!("{logs}?node={}", NodeId::derived(&["m"]))).await, [""; 0]);
    let said = line["metadata"]["createdAt"].as_i64().unwrap();
    assert_eq!(titles(&stage, &format!("{logs}?job={id}&after={}", said - 1)).await[0], "disk full");
    assert_eq!(titles(&stage, &format!("{logs}?job={id}&after={said}")).await, [""; 0]);
    assert_eq!(titles(&stage, &format!("{logs}?job={id}&before={}", said + 1)).await, all[1..]);
    assert!(!titles(&stage, &format!("{logs}?before={said}")).await.contains(&all[1].to_owned()));
}

#[tokio::test]
async fn a_tenant_sees_its_own_lines_and_an_administrator_those_of_nodes_too() {
    let stage = stage().await;
    let red = talk(&stage, "red", json!([["INFO", "of red"]])).await;
    talk(&stage, "blue", json!([["INFO", "of blue"]])).await;
    let viewer = stage.user("vera", "blue", Role::Viewer).await;
    let see = async |path: &str| stage.call("GET", path, Some(&viewer), None).await;
    let own = see("/api/v1/domains/blue/logs").await;
    assert_eq!((own.status.as_u16(), own.body["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(see("/api/v1/domains/red/logs").await.status, 404);
    assert_eq!(see("/api/v1/domains/red/logs?follow=true").await.status, 404);
    assert_eq!(see("/api/v1/logs").await.status, 403);
    assert_eq!(see("/api/v1/logs?follow=true").await.status, 403);
    assert_eq!(stage.call("GET", "/api/v1/domains/blue/logs", None, None).await.status, 401);
    let foreign = see(&format!("/api/v1/domains/blue/logs?job={red}")).await;
    assert_eq!(foreign.body["items"], json!([]));
    let all = titles(&stage, "/api/v1/logs").await;
    assert_eq!(all, ["of blue", "of red", "this node joined the fleet"]);
    let of_node = format!("/api/v1/domains/blue/logs?node={}", NodeId::derived(&["n"]));
    assert_eq!(see(&of_node).await.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_place() {
    let stage = stage().await;
    for (query, pointer) in [
        ("limit=0", "/limit"),
        ("limit=1001", "/limit"),
        ("text=%21", "/text"),
        ("follow=true&before=5", "/before"),
        ("follow=true&cursor=abc", "/cursor"),
        ("follow=true&after=5&limit=5", "/limit"),
        ("follow=true&limit=0", "/limit"),
    ] {
        let answer = stage.get(&format!("/api/v1/domains/red/logs?{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {}", answer.body);
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{query}");
    }
    for query in ["level=LOUD", "job=7", "node=n", "follow=perhaps", "after=soon", "cursor=x", "nonsense=1"] {
        let answer = stage.get(&format!("/api/v1/domains/red/logs?{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {}", answer.body);
    }
    let request = Request::get("/api/v1/domains/red/logs?follow=true").header("last-event-id", "seven");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {KEY}"));
    let refused = stage.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body["detail"].as_str().unwrap().contains("Last-Event-ID"), "{}", refused.body);
}

async fn listen(stage: &Stage, path: &str, key: &str, last: Option<&str>) -> BodyDataStream {
    let mut request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {key}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = stage.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    response.into_body().into_data_stream()
}

/// The next so many lines: the id of the event, and the document.
async fn next(stream: &mut BodyDataStream, count: usize) -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    while lines.len() < count {
        let chunk = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("a line");
        let text = String::from_utf8(chunk.expect("the stream goes on").unwrap().to_vec()).unwrap();
        for event in text.split("\n\n").filter(|event| event.starts_with("event: log\n")) {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            lines.push((field("id: ").to_owned(), serde_json::from_str(field("data: ")).unwrap()));
        }
    }
    lines
}

fn said(lines: &[(String, Value)]) -> Vec<&str> {
    lines.iter().map(|(_, line)| line["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_listener_hears_its_domain_and_goes_on_where_it_was() {
    let stage = stage().await;
    let path = "/api/v1/domains/red/logs?follow=true&level=INFO";
    talk(&stage, "red", json!([["INFO", "before"]])).await;
    let mut stream = listen(&stage, path, KEY, None).await;
    // The stream begins when it is first read.
    assert!(stream.next().await.unwrap().unwrap().starts_with(b": listening"));
    let (heard, ()) = tokio::join!(next(&mut stream, 3), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        talk(&stage, "blue", json!([["INFO", "elsewhere"]])).await;
        talk(&stage, "red", json!([["INFO", "one"], ["WARN", "two"]])).await;
        talk(&stage, "red", json!([["INFO", "three"]])).await;
    });
    assert_eq!(said(&heard), ["one", "two", "three"]);
    assert!(heard.iter().all(|(id, line)| line["logId"] == json!(id)));
    drop(stream);
    talk(&stage, "red", json!([["INFO", "four"]])).await;
    let mut stream = listen(&stage, path, KEY, Some(&heard[1].0)).await;
    assert_eq!(said(&next(&mut stream, 2).await), ["three", "four"]);
    let mut stream = listen(&stage, "/api/v1/domains/red/logs?follow=true&limit=2", KEY, None).await;
    assert_eq!(said(&next(&mut stream, 2).await), ["three", "four"]);
    let mut stream = listen(&stage, "/api/v1/logs?follow=true&after=0", KEY, None).await;
    let all = next(&mut stream, 7).await;
    assert_eq!(said(&all)[..3], ["this node joined the fleet", "before", "elsewhere"]);
    stage.stop.cancel();
    let rest = tokio::time::timeout(Duration::from_secs(20), stream.collect::<Vec<_>>()).await;
    assert!(rest.is_ok(), "it ends with the process");
}

#[tokio::test]
async fn a_listener_is_cut_off_with_its_key() {
    let stage = stage().await;
    let bob = stage.user("bob", "red", Role::Viewer).await;
    let mut stream = listen(&stage, "/api/v1/domains/red/logs?follow=true", &bob, None).await;
    assert!(stream.next().await.is_some());
    assert_eq!(stage.call("DELETE", "/api/v1/users/local:bob", Some(KEY), None).await.status, 204);
    talk(&stage, "red", json!([["INFO", "secret"]])).await;
    let to_its_end = async {
        while let Some(chunk) = stream.next().await {
            assert!(
                !String::from_utf8_lossy(&chunk.unwrap()).contains("secret"),
                "it tells what it must not"
            );
        }
    };
    tokio::time::timeout(Duration::from_secs(20), to_its_end).await.expect("it ends");
}

/// Who does not read holds up nobody, and finds everything when it does.
#[tokio::test]
async fn a_slow_listener_holds_nothing_up_and_misses_nothing() {
    let stage = stage().await;
    let mut stream = listen(&stage, "/api/v1/domains/red/logs?follow=true&after=0", KEY, None).await;
    assert!(stream.next().await.is_some());
    for round in 0..4 {
        let lines: Vec<Value> =
            (0..700).map(|nth| json!(["INFO", format!("{}", round * 700 + nth)])).collect();
        let job = json!({"jobName": "t", "input": {"type": "talk", "payload": {"lines": lines}}});
        let job = stage.post("/api/v1/domains/red/jobs", job).await.body;
        let path = format!("/api/v1/domains/red/jobs/{}?wait=20s", job["jobId"].as_str().unwrap());
        assert_eq!(stage.get(&path).await.body["status"], "SUCCESSFUL");
    }
    let heard = next(&mut stream, 2_800).await;
    assert!(said(&heard).into_iter().eq((0..2_800).map(|nth| nth.to_string())));
}
