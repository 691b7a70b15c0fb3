//! The nodes as an administrator sees and tells them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod stage;

use axum::http::header;
use serde_json::{Value, json};
use stage::{Stage, stage, stage_with};

const NODES: &str = "/api/v1/nodes";
const JOBS: &str = "/api/v1/domains/default/jobs";

async fn node(stage: &Stage) -> Value {
    stage.get(NODES).await.body["items"][0].clone()
}

fn path(node: &Value, verb: &str) -> String {
    format!("{NODES}/{}/{verb}", node["id"].as_str().unwrap())
}

/// Looks until the node has heard: who takes no part in the work has no sections.
async fn until_heard(stage: &Stage, rests: bool) -> Value {
    loop {
        let node = node(stage).await;
        if node["sections"].as_array().is_none_or(Vec::is_empty) == rests {
            return node;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_is_paused_and_resumed() {
    let stage = stage().await;
    let first = node(&stage).await;
    let paused = stage.post(&path(&first, "pause"), json!({})).await;
    assert_eq!((paused.status.as_u16(), &paused.body["wanted"]), (200, &json!("PAUSE")), "{}", paused.body);
    assert!(paused.headers.contains_key(header::ETAG));
    until_heard(&stage, true).await;
    let job = json!({"jobName": "waits", "input": {"type": "noop"}});
    let made = stage.post(JOBS, job).await;
    let job = format!("{JOBS}/{}", made.body["jobId"].as_str().unwrap());
    assert_eq!(stage.get(&format!("{job}?wait=5s")).await.body["status"], "QUEUED");
    let resumed = stage.call("POST", &path(&first, "resume"), Some(rota_testkit::process::KEY), None).await;
    assert_eq!((resumed.status.as_u16(), resumed.body.get("wanted")), (200, None));
    assert_eq!(stage.get(&format!("{job}?wait=30s")).await.body["status"], "SUCCESSFUL");
}

#[tokio::test(start_paused = true)]
async fn a_deep_ping_says_whether_jobs_are_run() {
    let stage = stage().await;
    let well = stage.get("/api/deep_ping").await;
    assert_eq!((well.status.as_u16(), &well.body["status"]), (200, &json!("okay")), "{}", well.body);
    stage.post(&path(&node(&stage).await, "pause"), json!({})).await;
    until_heard(&stage, true).await;
    let rests = stage.get("/api/deep_ping").await;
    assert_eq!((rests.status.as_u16(), &rests.body["status"]), (200, &json!("partial_success")));
    assert_eq!(rests.body["checks"][0], json!({"name": "store", "status": "okay"}));
    assert!(rests.body["checks"][1]["detail"].as_str().unwrap().contains("no node runs jobs"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_drained_gives_back_what_it_runs() {
    let stage = stage().await;
    let first = node(&stage).await;
    let endless = json!({"jobName": "long", "input": {"type": "wait", "payload": {"millis": 600_000_000}}});
    let made = stage.post(JOBS, endless).await;
    let job = format!("{JOBS}/{}", made.body["jobId"].as_str().unwrap());
    while stage.get(&job).await.body["status"] != "STARTED" {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let drained = stage.post(&path(&first, "drain"), json!({})).await;
    assert_eq!(drained.body["wanted"], "DRAIN", "{}", drained.body);
    while stage.get(&job).await.body["status"] != "QUEUED" {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(stage.get(&job).await.body["lost"], 0, "it was given back");
    while until_heard(&stage, true).await["running"] != 0 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_told_says_why() {
    let stage = stage_with(false).await;
    let fixed = node(&stage).await;
    assert_eq!(fixed["controllable"], false);
    for verb in ["pause", "resume", "drain"] {
        let refused = stage.post(&path(&fixed, verb), json!({})).await;
        assert_eq!(refused.status, 403, "{verb}: {}", refused.body);
        assert!(refused.body["detail"].as_str().unwrap().contains("node_control"), "{}", refused.body);
        let nobody =
            stage.post(&format!("{NODES}/11111111-1111-7111-8111-111111111111/{verb}"), json!({})).await;
        assert_eq!(nobody.status, 404);
        assert_eq!(stage.post(&format!("{NODES}/n/{verb}"), json!({})).await.status, 404);
    }
    let stage = self::stage().await;
    let alive = node(&stage).await;
    stage.stop.cancel();
    while node(&stage).await["status"] != "TERMINATED" {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let late = stage.post(&path(&alive, "pause"), json!({})).await;
    assert_eq!(late.status, 409, "{}", late.body);
}
