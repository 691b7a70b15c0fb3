//! Where a job stands in a trace is taken from the header or from the job, and kept with it.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use axum::body::Body;
use axum::http::{Request, header};
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Answer, Stage, stage};

const JOBS: &str = "/api/v1/domains/default/jobs";
const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

async fn submit(stage: &Stage, path: &str, headers: &[&str], body: &Value) -> Answer {
    let mut request = Request::post(path).header(header::AUTHORIZATION, format!("Bearer {KEY}"));
    for value in headers {
        request = request.header("traceparent", *value);
    }
    let request = request.header(header::CONTENT_TYPE, "application/json");
    stage.send(request.body(Body::from(body.to_string())).unwrap()).await
}

fn job() -> Value {
    json!({"jobName": "x", "input": {"type": "noop"}})
}

fn job_at(place: &str) -> Value {
    json!({"jobName": "x", "input": {"type": "noop"}, "traceparent": place})
}

#[tokio::test]
async fn the_header_is_kept_with_the_job_and_the_jobs_own_word_goes_before_it() {
    let stage = stage().await;
    for (headers, body, kept) in [
        (&[ONE][..], job(), json!(ONE)),
        (&[ONE], job_at(OTHER), json!(OTHER)),
        (&[], job_at(ONE), json!(ONE)),
        (&[], job(), Value::Null),
        // The specification asks to ignore what is none, and what is there twice.
        (&["00-0-0-01"], job(), Value::Null),
        (&[ONE, OTHER], job(), Value::Null),
    ] {
        let answer = submit(&stage, JOBS, headers, &body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["traceparent"]), (201, &kept), "{headers:?} {body}");
        let id = answer.body["jobId"].as_str().unwrap();
        assert_eq!(stage.get(&format!("{JOBS}/{id}?wait=10s")).await.body["traceparent"], kept);
    }
}

#[tokio::test]
async fn what_is_no_traceparent_in_a_job_is_refused() {
    let stage = stage().await;
    for bad in ["", "00", &ONE.to_uppercase(), &ONE.replacen("00", "ff", 1)] {
        let answer = submit(&stage, JOBS, &[ONE], &job_at(bad)).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["errors"][0]["pointer"]),
            (422, &json!("/traceparent"))
        );
    }
}

#[tokio::test]
async fn the_jobs_of_a_batch_share_the_header() {
    let stage = stage().await;
    let batch = json!({"jobs": [job(), job_at(OTHER), job_at("no")]});
    let items = submit(&stage, &format!("{JOBS}/batch"), &[ONE], &batch).await.body["items"].clone();
    for (nth, kept) in [(0, ONE), (1, OTHER)] {
        let id = items[nth]["jobId"].as_str().unwrap();
        assert_eq!(stage.get(&format!("{JOBS}/{id}")).await.body["traceparent"], kept);
    }
    assert_eq!(items[2]["problem"]["errors"][0]["pointer"], "/traceparent");
}

/// Who repeats a request does so in a span of its own.
#[tokio::test]
async fn a_repeat_from_elsewhere_in_the_trace_is_the_same_submission() {
    let stage = stage().await;
    let named = |place: &str| {
        let mut job = job_at(place);
        job["idempotencyKey"] = json!("order-1");
        job
    };
    let first = submit(&stage, JOBS, &[], &named(ONE)).await;
    let again = submit(&stage, JOBS, &[], &named(OTHER)).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201), "{}", again.body);
    assert_eq!((&again.body["jobId"], &again.body["traceparent"]), (&first.body["jobId"], &json!(ONE)));
}
