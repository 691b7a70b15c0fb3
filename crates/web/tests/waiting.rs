//! Why a job waits, and how many there are: what people ask about a queue.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod stage;

use std::time::Duration;

use rota_model::user::Role;
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Stage, stage};

const NEVER: i64 = 4_102_444_799_000;

async fn submit(stage: &Stage, job: Value) -> String {
    let made = stage.post("/api/v1/domains/red/jobs", job).await;
    assert_eq!(made.status, 201, "{}", made.body);
    format!("/api/v1/domains/red/jobs/{}", made.body["jobId"].as_str().unwrap())
}

/// Asks until the reason is this one.
async fn reason(stage: &Stage, job: &str, wanted: &str) -> Value {
    let asked = async {
        loop {
            let told = stage.get(&format!("{job}/waiting")).await;
            assert_eq!(told.status, 200, "{}", told.body);
            if told.body["reason"] == wanted {
                return told.body;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap()
}

#[tokio::test]
async fn a_job_says_why_it_does_not_run() {
    let stage = stage().await;
    let later = json!({"jobName": "later", "input": {"type": "noop"}, "runAt": NEVER});
    let later = submit(&stage, later).await;
    let told = reason(&stage, &later, "TIME").await;
    assert_eq!((&told["until"], &told["others"]), (&json!(NEVER), &json!(0)));
    assert_eq!(told["detail"], "It is to run at 2099-12-31T23:59:59Z.");

    let put = stage.call("PUT", "/api/v1/domains/red/job-types/unheard", Some(KEY), Some(json!({}))).await;
    assert!(put.status.is_success(), "{}", put.body);
    let unheard = submit(&stage, json!({"jobName": "u", "input": {"type": "unheard"}})).await;
    let told = reason(&stage, &unheard, "NO_NODE").await;
    assert_eq!(told["detail"], "No node that lives runs unheard: start one that does.");

    let wait =
        |millis: u64| json!({"jobName": "w", "input": {"type": "wait", "payload": {"millis": millis}}});
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(submit(&stage, wait(600_000)).await);
    }
    let fifth = submit(&stage, wait(1)).await;
    let told = reason(&stage, &fifth, "NO_SLOT").await;
    assert_eq!(told["detail"], "All slots of the nodes that run wait are taken.");
    assert_eq!(
        reason(&stage, &running[0], "NOT_WAITING").await["detail"],
        "It does not wait: it is STARTED."
    );

    let id = stage.get("/api/v1/nodes").await.body["items"][0]["id"].as_str().unwrap().to_owned();
    stage.call("POST", &format!("/api/v1/nodes/{id}/pause"), Some(KEY), None).await;
    let told = reason(&stage, &fifth, "NODES_REST").await;
    assert_eq!(told["detail"], "All nodes that run wait are paused: it begins when one of them is resumed.");
}

#[tokio::test]
async fn a_limit_that_is_reached_is_told() {
    let stage = stage().await;
    let limits = json!({"concurrency": 1});
    let put = stage.call("PUT", "/api/v1/domains/red/job-types/wait", Some(KEY), Some(limits)).await;
    assert!(put.status.is_success(), "{}", put.body);
    let wait = || json!({"jobName": "w", "input": {"type": "wait", "payload": {"millis": 600_000}}});
    submit(&stage, wait()).await;
    let second = submit(&stage, wait()).await;
    let told = reason(&stage, &second, "LIMIT").await;
    assert_eq!(told["detail"], "As many jobs of its type run at once as may: 1.");
}

#[tokio::test]
async fn between_attempts_the_failure_is_told() {
    let stage = stage().await;
    let job = json!({
        "jobName": "f", "input": {"type": "wait", "payload": {"millis": 600_000}}, "timeoutMs": 20, "attempts": 3,
        "backoff": {"kind": "fixed", "delayMs": 600_000},
    });
    let made = stage.post("/api/v1/domains/red/jobs", job).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("/api/v1/domains/red/jobs/{}", made.body["jobId"].as_str().unwrap());
    let told = reason(&stage, &path, "BETWEEN_ATTEMPTS").await;
    let detail = told["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("Attempt 1 of 3 failed: it took longer than its 20 ms. The next one is at"),
        "{detail}"
    );
}

/// What belongs to another domain is not there, and is not counted.
#[tokio::test]
async fn nobody_learns_of_another_domain() {
    let stage = stage().await;
    let job = submit(&stage, json!({"jobName": "later", "input": {"type": "noop"}, "runAt": NEVER})).await;
    let blue = stage.user("bob", "blue", Role::Viewer).await;
    let foreign = stage.call("GET", &format!("{job}/waiting"), Some(&blue), None).await;
    assert_eq!(foreign.status, 404);
    let through_own = job.replace("/red/", "/blue/");
    let through_own = stage.call("GET", &format!("{through_own}/waiting"), Some(&blue), None).await;
    assert_eq!(through_own.status, 404);
    let counts = stage.call("GET", "/api/v1/domains/blue/jobs/counts", Some(&blue), None).await;
    assert_eq!((counts.status.as_u16(), &counts.body["total"]), (200, &json!(0)));
    assert_eq!(stage.call("GET", "/api/v1/domains/red/jobs/counts", Some(&blue), None).await.status, 404);
}
