//! Jobs as a caller submits and changes them: twins, batches, cancel, requeue, delete.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod stage;

use axum::body::Body;
use axum::http::{Request, header};
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Answer, Stage, stage};

const JOBS: &str = "/api/v1/domains/default/jobs";
const BATCH: &str = "/api/v1/domains/default/jobs/batch";
const DELETE: &str = "/api/v1/domains/default/jobs/delete";
/// The end of the year 2099.
const LATER: i64 = 4_102_444_799_000;

fn waiting(name: &str) -> Value {
    json!({"jobName": name, "input": {"type": "noop"}, "runAt": LATER})
}

fn etag(answer: &Answer) -> String {
    answer.headers[header::ETAG].to_str().unwrap().to_owned()
}

async fn made(stage: &Stage, job: Value) -> (String, Answer) {
    let made = stage.post(JOBS, job).await;
    assert_eq!(made.status, 201, "{}", made.body);
    (format!("{JOBS}/{}", made.body["jobId"].as_str().unwrap()), made)
}

/// A job that runs until it is stopped.
async fn running(stage: &Stage) -> String {
    let endless = json!({"jobName": "long", "input": {"type": "wait", "payload": {"millis": 600_000}}});
    let (path, _) = made(stage, endless).await;
    while stage.get(&path).await.body["status"] != "STARTED" {
        tokio::task::yield_now().await;
    }
    path
}

async fn count(stage: &Stage) -> usize {
    stage.get(JOBS).await.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_unique_twin_is_answered_with_the_job_that_is_there() {
    let stage = stage().await;
    let invoice = |name: &str| {
        let mut job = waiting(name);
        job["unique"] = json!({"key": "invoice-1", "while": "queued"});
        job
    };
    let (path, first) = made(&stage, invoice("first")).await;
    let twin = stage.post(JOBS, invoice("second")).await;
    assert_eq!(twin.status, 200, "{}", twin.body);
    assert_eq!((&twin.body["jobId"], &twin.body["jobName"]), (&first.body["jobId"], &json!("first")));
    assert_eq!(twin.headers[header::LOCATION], path);
    assert_eq!(etag(&twin), etag(&first));
    assert_eq!(stage.call("DELETE", &path, Some(KEY), None).await.status, 204);
    let (_, third) = made(&stage, invoice("third")).await;
    assert_ne!(third.body["jobId"], first.body["jobId"]);
}

#[tokio::test]
async fn an_idempotency_key_stands_in_the_header_or_in_the_body() {
    let stage = stage().await;
    let send = |header_key: Option<&str>, body_key: Option<&str>| {
        let mut job = waiting("once");
        if let Some(key) = body_key {
            job["idempotencyKey"] = json!(key);
        }
        let mut request = Request::post(JOBS)
            .header(header::AUTHORIZATION, format!("Bearer {KEY}"))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = header_key {
            request = request.header("Idempotency-Key", key);
        }
        stage.send(request.body(Body::from(job.to_string())).unwrap())
    };
    let first = send(Some("order-1"), None).await;
    for (header_key, body_key) in [(None, Some("order-1")), (Some("order-1"), Some("order-1"))] {
        let again = send(header_key, body_key).await;
        assert_eq!((again.status.as_u16(), &again.body["jobId"]), (201, &first.body["jobId"]));
    }
    let both = send(Some("order-1"), Some("order-2")).await;
    assert_eq!(both.status, 422);
    assert_eq!(both.body["errors"][0]["pointer"], "/idempotencyKey", "{}", both.body);
    assert_eq!(send(Some(""), None).await.status, 422);
    assert_eq!(count(&stage).await, 1);
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let stage = stage().await;
    let jobs: Vec<_> = (0..1_200).map(|nth| waiting(&format!("job {nth}"))).collect();
    let answer = stage.post(BATCH, json!({"jobs": jobs})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1_200);
    for nth in [0, 1, 600, 1_199] {
        let path = format!("{JOBS}/{}", items[nth]["jobId"].as_str().unwrap());
        let job = stage.get(&path).await.body;
        assert_eq!(job["jobName"], format!("job {nth}"));
        assert_eq!(job["jobNumber"], items[nth]["jobNumber"]);
    }
}

#[tokio::test]
async fn in_a_batch_each_job_has_its_own_keys() {
    let stage = stage().await;
    let keyed = |name: &str, field: &str, value: Value| {
        let mut job = waiting(name);
        job[field] = value;
        job
    };
    let jobs = json!({"jobs": [
        keyed("a", "idempotencyKey", json!("one")),
        keyed("a", "idempotencyKey", json!("one")),
        keyed("b", "idempotencyKey", json!("one")),
        keyed("c", "unique", json!({"key": "u"})),
        keyed("d", "unique", json!({"key": "u"})),
    ]});
    for round in 0..2 {
        let answer = stage.post(BATCH, jobs.clone()).await;
        let items = answer.body["items"].as_array().unwrap().clone();
        assert_eq!(items[0]["jobId"], items[1]["jobId"], "{round}");
        assert_eq!(items[2]["problem"]["status"], 409, "{round}: {}", items[2]);
        assert_eq!(items[3]["jobId"], items[4]["jobId"], "{round}");
        assert_eq!(count(&stage).await, 2, "{round}");
    }
}

#[tokio::test]
async fn a_job_that_waits_or_runs_can_be_cancelled_and_requeued_when_it_has_ended() {
    let stage = stage().await;
    for path in [made(&stage, waiting("queued")).await.0, running(&stage).await] {
        let early = stage.post(&format!("{path}/requeue"), json!({})).await;
        assert_eq!(early.status, 409, "{}", early.body);
        assert!(early.body["detail"].as_str().unwrap().contains("only what has ended"), "{}", early.body);
        let cancelled = stage.call("POST", &format!("{path}/cancel"), Some(KEY), None).await;
        assert_eq!((cancelled.status.as_u16(), &cancelled.body["status"]), (200, &json!("FAILED")));
        assert!(cancelled.body["result"]["cancelled"].is_string(), "{}", cancelled.body);
        assert_eq!(etag(&cancelled), etag(&stage.get(&path).await));
        assert_eq!(stage.call("POST", &format!("{path}/cancel"), Some(KEY), None).await.status, 409);
        let again = stage.call("POST", &format!("{path}/requeue"), Some(KEY), None).await;
        assert_eq!(again.status, 200, "{}", again.body);
        assert_eq!((&again.body["status"], &again.body["attempt"]), (&json!("QUEUED"), &json!(1)));
        assert!(again.body["history"][0]["result"]["cancelled"].is_string(), "{}", again.body);
    }
}

#[tokio::test]
async fn a_requeue_asks_whose_the_unique_key_is() {
    let stage = stage().await;
    let mut job = waiting("unique");
    job["unique"] = json!({"key": "k"});
    let (old, _) = made(&stage, job.clone()).await;
    stage.post(&format!("{old}/cancel"), json!({})).await;
    let (_, new) = made(&stage, job).await;
    let refused = stage.post(&format!("{old}/requeue"), json!({})).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body["detail"].as_str().unwrap().contains(new.body["jobId"].as_str().unwrap()));
}

#[tokio::test]
async fn what_runs_is_not_deleted_and_what_is_deleted_is_gone() {
    let stage = stage().await;
    let path = running(&stage).await;
    let refused = stage.call("DELETE", &path, Some(KEY), None).await;
    assert_eq!(refused.status, 409);
    assert!(refused.body["detail"].as_str().unwrap().contains("cancel it first"), "{}", refused.body);
    stage.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(stage.call("DELETE", &path, Some(KEY), None).await.status, 204);
    for (method, path) in [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/cancel")),
        ("POST", format!("{path}/requeue")),
    ] {
        assert_eq!(stage.call(method, &path, Some(KEY), None).await.status, 404, "{method} {path}");
    }
}

#[tokio::test]
async fn a_change_that_was_decided_on_another_version_is_refused() {
    let stage = stage().await;
    let (path, first) = made(&stage, waiting("versions")).await;
    let (cancel, requeue, old) = (format!("{path}/cancel"), format!("{path}/requeue"), etag(&first));
    for stale in ["\"0\"", "nonsense", "W/\"1\""] {
        assert_eq!(stage.change_on("POST", &cancel, stale).await.status, 412, "{stale}");
        assert_eq!(stage.change_on("DELETE", &path, stale).await.status, 412, "{stale}");
    }
    let cancelled = stage.change_on("POST", &cancel, &format!("\"0\", {old}")).await;
    assert_eq!(cancelled.status, 200, "one of several: {}", cancelled.body);
    assert_eq!(stage.change_on("POST", &requeue, &old).await.status, 412);
    assert_eq!(stage.change_on("POST", &requeue, &etag(&cancelled)).await.status, 200);
    assert_eq!(stage.change_on("DELETE", &path, &old).await.status, 412);
    assert_eq!(stage.change_on("DELETE", &path, "*").await.status, 204);
    assert_eq!(stage.change_on("DELETE", &path, &old).await.status, 404);
}

#[tokio::test]
async fn jobs_are_deleted_by_the_filter_of_the_list() {
    let stage = stage().await;
    let delete = async |body: Value| stage.post(DELETE, body).await;
    for nth in 0..5 {
        made(&stage, waiting(&format!("old {}", nth % 2))).await;
    }
    let running = running(&stage).await;
    for (pointer, body) in [
        ("", json!({})),
        ("", json!({"all": false})),
        ("", json!({"status": null, "limit": 5})),
        ("/all", json!({"all": true, "status": "FAILED"})),
        ("/limit", json!({"all": true, "limit": 0})),
        ("/text", json!({"text": "!"})),
        ("/cursor", json!({"all": true, "cursor": "x"})),
        ("/status", json!({"status": "TIRED"})),
    ] {
        let refused = delete(body.clone()).await;
        assert_eq!(refused.status, 422, "{body}: {}", refused.body);
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body}: {}", refused.body);
    }
    assert_eq!(count(&stage).await, 6, "nothing that is refused deletes anything");
    assert_eq!(delete(json!({"name": "old 1"})).await.body, json!({"deleted": 2}));
    assert_eq!(delete(json!({"type": "noop", "limit": 2})).await.body, json!({"deleted": 2, "more": true}));
    assert_eq!(delete(json!({"status": "SUCCESSFUL"})).await.body, json!({"deleted": 0}));
    assert_eq!(delete(json!({"createdBefore": 1})).await.body, json!({"deleted": 0}));
    assert_eq!(delete(json!({"all": true})).await.body, json!({"deleted": 1}));
    assert_eq!(count(&stage).await, 1, "what runs is left alone");
    assert_eq!(stage.get(&running).await.body["status"], "STARTED");
}

#[tokio::test]
async fn what_would_be_misunderstood_is_refused() {
    let stage = stage().await;
    let path = running(&stage).await;
    let refused = stage.post(DELETE, json!({"status": "STARTED"})).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(refused.body["errors"][0]["pointer"], "/status");
    assert_eq!(stage.get(&path).await.body["status"], "STARTED");
    // One name for many jobs would name none of them.
    let request = Request::post(BATCH)
        .header(header::AUTHORIZATION, format!("Bearer {KEY}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", "order-1");
    let body = json!({"jobs": [waiting("one")]}).to_string();
    let refused = stage.send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body["detail"].as_str().unwrap().contains("\"idempotencyKey\""), "{}", refused.body);
    assert_eq!(count(&stage).await, 1);
}
