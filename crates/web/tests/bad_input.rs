//! Whatever is wrong with a job is told, alone and in a batch: nothing of it is stored, and the node lives on.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod stage;

use axum::http::header;
use serde_json::{Value, json};
use stage::{Answer, Stage, stage};

const JOBS: &str = "/api/v1/domains/default/jobs";
const NOBODY: &str = "11111111-1111-7111-8111-111111111111";
const BATCH: &str = "/api/v1/domains/default/jobs/batch";
const JSON: Option<&str> = Some("application/json");
const MIB: usize = 1024 * 1024;

/// What is wrong, the status it gets, the field at fault (empty where none is), and the text of the job.
struct Bad {
    what: &'static str,
    status: u16,
    pointer: &'static str,
    text: String,
}

fn with(field: &str, value: &Value) -> String {
    let mut job = json!({"jobName": "x", "input": {"type": "noop"}});
    job[field] = value.clone();
    job.to_string()
}

fn payload(text: &str) -> String {
    format!(r#"{{"jobName": "x", "input": {{"type": "noop", "payload": {text}}}}}"#)
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// A job that is small as text, and has as many numbers as fit into that.
fn many_numbers() -> String {
    payload(&format!("{{\"a\": [1{}]}}", ",1".repeat(400_000)))
}

/// Jobs that can be cut out of a batch, and are refused.
fn bad_jobs() -> Vec<Bad> {
    let bad = |what, status, pointer, text: &str| Bad { what, status, pointer, text: text.to_owned() };
    let wait = |payload: Value| with("input", &json!({"type": "wait", "payload": payload}));
    vec![
        bad("unknown type", 422, "/input/type", &with("input", &json!({"type": "unheard-of"}))),
        bad("schema: missing", 422, "/input/payload", &wait(json!({}))),
        bad("schema: range", 422, "/input/payload/millis", &wait(json!({"millis": -1}))),
        bad("schema: kind", 422, "/input/payload/millis", &wait(json!({"millis": "many"}))),
        bad("schema: unknown", 422, "/input/payload", &wait(json!({"millis": 1, "colour": "red"}))),
        bad("payload is no object", 422, "/input/payload", &wait(json!("5"))),
        bad("payload too large", 413, "", &payload(&format!("{{\"text\": \"{}\"}}", "x".repeat(MIB)))),
        bad("run-at in the year 9999", 422, "/runAt", &with("runAt", &json!(253_402_300_799_000_i64))),
        bad("run-at before all time", 422, "/runAt", &with("runAt", &json!(i64::MIN))),
        bad(
            "run-at beyond 64 bits",
            422,
            "",
            r#"{"jobName": "x", "input": {"type": "noop"}, "runAt": 99999999999999999999}"#,
        ),
        bad(
            "expires in the year 9999",
            422,
            "/expiresAt",
            &with("expiresAt", &json!(253_402_300_799_000_i64)),
        ),
        bad(
            "nesting: payload",
            422,
            "/input/payload/a/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0",
            &payload(&format!("{{\"a\": {}}}", nested(21))),
        ),
        bad("nesting bomb", 422, "", &payload(&format!("{{\"a\": {}}}", nested(100_000)))),
        bad("nesting bomb instead of a job", 422, "", &nested(100_000)),
        bad("control character in the name", 422, "/jobName", &with("jobName", &json!("a\u{7}b"))),
        bad("line break in the name", 422, "/jobName", &with("jobName", &json!("a\nb"))),
        bad("NUL in the type", 422, "/input/type", &with("input", &json!({"type": "no\0op"}))),
        bad("NUL in the payload", 422, "/input/payload/a", &payload(r#"{"a": "\u0000"}"#)),
        bad(
            "control character in a key",
            422,
            "/idempotencyKey",
            &with("idempotencyKey", &json!("a\u{1b}b")),
        ),
        bad(
            "control character in the unique key",
            422,
            "/unique/key",
            &with("unique", &json!({"key": "\t"})),
        ),
        bad("name too long", 422, "/jobName", &with("jobName", &json!("x".repeat(201)))),
        bad("unknown field", 422, "/attemps", &with("attemps", &json!(3))),
        bad("unknown scope", 422, "/unique/while", &with("unique", &json!({"key": "k", "while": "ever"}))),
        bad("field of the wrong kind", 422, "/priority", &with("priority", &json!("high"))),
        bad("field out of range", 422, "/priority", &with("priority", &json!(11))),
        bad("what would do nothing", 422, "/waitingFor", &with("waitingFor", &json!([NOBODY]))),
        bad("what would do nothing", 422, "/orderKey", &with("orderKey", &json!("k"))),
        bad("no attempts", 422, "/attempts", &with("attempts", &json!(0))),
        bad("backoff", 422, "/backoff/factor", &with("backoff", &json!({"delayMs": 1, "factor": 0}))),
        bad("number that is lost", 422, "", &payload(r#"{"n": 1e400}"#)),
        bad("input is a list", 422, "/input", &with("input", &json!(["noop", {}]))),
        bad("unique is a list", 422, "/unique", &with("unique", &json!(["k"]))),
        bad("no name", 422, "", r#"{"input": {"type": "noop"}}"#),
        bad("a list", 422, "", "[]"),
        bad("a number", 422, "", "7"),
        bad("nothing", 422, "", "null"),
        bad("half a character", 400, "", r#"{"jobName": "\ud800", "input": {"type": "noop"}}"#),
    ]
}

fn must_say_what(problem: &Value, bad: &Bad) {
    assert_eq!(problem["status"], bad.status, "{}: {problem}", bad.what);
    assert!(problem["type"].as_str().unwrap().starts_with("urn:rota:problem:"), "{}", bad.what);
    assert!(!problem["detail"].as_str().unwrap().is_empty(), "{}", bad.what);
    if !bad.pointer.is_empty() {
        assert_eq!(problem["errors"][0]["pointer"], bad.pointer, "{}: {problem}", bad.what);
    }
}

async fn must_live_and_hold(stage: &Stage, count: usize) {
    assert_eq!(stage.get("/api/ping").await.body, "pong");
    assert_eq!(stage.get(JOBS).await.body["items"].as_array().unwrap().len(), count);
    let made = stage.post(JOBS, json!({"jobName": "still here", "input": {"type": "noop"}})).await;
    let path = format!("{JOBS}/{}?wait=30s", made.body["jobId"].as_str().unwrap());
    assert_eq!(stage.get(&path).await.body["status"], "SUCCESSFUL");
}

#[tokio::test]
async fn a_bad_job_alone_is_refused_and_not_stored() {
    let stage = stage().await;
    for bad in bad_jobs() {
        let answer = stage.post_raw(JOBS, JSON, bad.text.clone()).await;
        assert_eq!(answer.status, bad.status, "{}: {}", bad.what, answer.body);
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        must_say_what(&answer.body, &bad);
    }
    must_live_and_hold(&stage, 0).await;
}

#[tokio::test]
async fn a_body_that_is_no_job_is_refused() {
    let stage = stage().await;
    let job = r#"{"jobName": "x", "input": {"type": "noop"}}"#;
    let cases: [(u16, Answer); 6] = [
        (400, stage.post_raw(JOBS, JSON, r#"{"jobName": "#).await),
        (400, stage.post_raw(JOBS, JSON, "").await),
        (400, stage.post_raw(JOBS, JSON, format!("{job} {job}")).await),
        (400, stage.post_raw(JOBS, JSON, vec![b'{', b'"', 0xff, b'"', b'}']).await),
        (415, stage.post_raw(JOBS, Some("text/plain"), job).await),
        (415, stage.post_raw(JOBS, None, job).await),
    ];
    for (status, answer) in cases {
        assert_eq!((answer.status.as_u16(), &answer.body["status"]), (status, &json!(status)));
    }
    must_live_and_hold(&stage, 0).await;
}

#[tokio::test]
async fn a_bad_job_in_a_batch_is_in_nobodys_way() {
    let stage = stage().await;
    let bad = bad_jobs();
    let good = |nth: usize| with("jobName", &json!(format!("good {nth}")));
    let mut texts: Vec<String> =
        bad.iter().enumerate().flat_map(|(nth, bad)| [bad.text.clone(), good(nth)]).collect();
    texts.push(many_numbers());
    let answer = stage.post_raw(BATCH, JSON, format!("{{\"jobs\": [{}]}}", texts.join(", "))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 2 * bad.len() + 1);
    assert!(items[2 * bad.len()]["jobId"].is_string(), "{}", items[2 * bad.len()]);
    for (pair, bad) in items.chunks(2).zip(&bad) {
        must_say_what(&pair[0]["problem"], bad);
        assert!(pair[1]["jobId"].is_string() && pair[1]["jobNumber"].is_u64(), "{}: {}", bad.what, pair[1]);
    }
    must_live_and_hold(&stage, bad.len() + 1).await;
}

#[tokio::test]
async fn a_job_of_many_numbers_is_as_large_as_its_text() {
    let stage = stage().await;
    let answer = stage.post_raw(JOBS, JSON, many_numbers()).await;
    assert_eq!(answer.status, 201, "{}", answer.body["detail"]);
    must_live_and_hold(&stage, 1).await;
}

#[tokio::test]
async fn only_a_body_that_is_no_batch_is_refused_as_a_whole() {
    let stage = stage().await;
    let job = r#"{"jobName": "x", "input": {"type": "noop"}}"#;
    let many = |count: usize| format!("{{\"jobs\": [{}]}}", vec![job; count].join(","));
    let large = payload(&format!("{{\"text\": \"{}\"}}", "x".repeat(MIB - 100)));
    let too_large = format!("{{\"jobs\": [{}]}}", vec![large.as_str(); 17].join(","));
    let cases: Vec<(u16, &str, Answer)> = vec![
        (400, "", stage.post_raw(BATCH, JSON, "").await),
        (400, "", stage.post_raw(BATCH, JSON, format!("{{\"jobs\": [{job}")).await),
        (400, "", stage.post_raw(BATCH, JSON, format!("{{\"jobs\": [{job},]}}")).await),
        (400, "", stage.post_raw(BATCH, JSON, format!("{} 7", many(1))).await),
        (400, "", stage.post_raw(BATCH, JSON, b"{\"jobs\": [\"\xff\"]}".to_vec()).await),
        (413, "", stage.post_raw(BATCH, JSON, too_large).await),
        (415, "", stage.post_raw(BATCH, None, many(1)).await),
        (422, "", stage.post_raw(BATCH, JSON, "[]").await),
        (422, "", stage.post_raw(BATCH, JSON, nested(100_000)).await),
        (422, "", stage.post_raw(BATCH, JSON, "{}").await),
        (422, "/jobs", stage.post_raw(BATCH, JSON, r#"{"jobs": 5}"#).await),
        (422, "/jobs", stage.post_raw(BATCH, JSON, r#"{"jobs": []}"#).await),
        (422, "/jobs", stage.post_raw(BATCH, JSON, many(10_001)).await),
        (422, "/jobs", stage.post_raw(BATCH, JSON, r#"{"jobs": [], "jobs": []}"#).await),
        (422, "/colour", stage.post_raw(BATCH, JSON, format!("{{\"jobs\": [{job}], \"colour\": 1}}")).await),
    ];
    for (nth, (status, pointer, answer)) in cases.into_iter().enumerate() {
        assert_eq!((answer.status.as_u16(), &answer.body["status"]), (status, &json!(status)), "{nth}");
        if !pointer.is_empty() {
            assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{nth}: {}", answer.body);
        }
    }
    must_live_and_hold(&stage, 0).await;
    let large = format!("{{\"jobs\": [{}]}}", [large.as_str(); 3].join(","));
    let taken = stage.post_raw(BATCH, JSON, large).await;
    assert_eq!(taken.status, 200, "three of nearly a MiB each fit: {}", taken.body);
    assert!(taken.body["items"].as_array().unwrap().iter().all(|item| item["jobId"].is_string()));
}

#[tokio::test]
async fn nothing_that_is_asked_makes_the_service_fail() {
    let stage = stage().await;
    let id = "11111111-1111-7111-8111-111111111111";
    let long = "x".repeat(5_000);
    let paths = [
        format!("{JOBS}?name=%00"),
        format!("{JOBS}?name={long}"),
        format!("{JOBS}?type=%0a%1b&name=%ff"),
        format!("{JOBS}?text={long}"),
        format!("{JOBS}?cursor={long}"),
        format!("{JOBS}?section=4294967296"),
        format!("{JOBS}/{id}?wait=99999999999999999999s"),
        format!("{JOBS}/%00"),
        "/api/v1/domains/%00/jobs".to_owned(),
    ];
    for path in paths {
        let answer = stage.get(&path).await;
        assert!(answer.status.as_u16() < 500, "{path}: {} {}", answer.status, answer.body);
    }
    for body in
        ["{}", "[]", "null", r#"{"all": 1}"#, r#"{"name": "\u0000"}"#, r#"{"text": "!"}"#, r#"{"limit": 0}"#]
    {
        for path in [format!("{JOBS}/delete"), format!("{JOBS}/{id}/cancel"), format!("{JOBS}/x/requeue")] {
            let answer = stage.post_raw(&path, JSON, body).await;
            assert!(
                (400..500).contains(&answer.status.as_u16()) || answer.status == 200,
                "{path} {body}: {}",
                answer.body
            );
        }
    }
    must_live_and_hold(&stage, 0).await;
}

/// A fault is told where it is, once, in words that need no other.
#[tokio::test]
async fn a_fault_is_named_by_its_place_alone() {
    let stage = stage().await;
    let spelled = "must have 1 to 63 lower case letters, digits or '-' and begin with a letter or digit";
    let next = "must be the `next` of the page before";
    let user = |id: &str, domain: &str| json!({"id": id, "domains": {domain: "viewer"}});
    for (answer, pointer, detail) in [
        (stage.post("/api/v1/users", user("local:a", "No")).await, "/domains/No", spelled),
        (stage.post("/api/v1/users", user("ab", "red")).await, "/id", "must have 3 to 200 characters"),
        (stage.get(&format!("{JOBS}?cursor=")).await, "/cursor", next),
        (stage.get("/api/v1/users?cursor=x").await, "/cursor", next),
    ] {
        assert_eq!((answer.status.as_u16(), &answer.body["errors"][0]["pointer"]), (422, &json!(pointer)));
        let told = answer.body["errors"][0]["detail"].as_str().unwrap();
        assert!(told.starts_with(detail) && !told.contains("/id") && !told.contains("/domain"), "{told}");
    }
}

/// What is wrong with a query is told as with a body: the parameter, and what is allowed, in words that know nothing of programs.
#[tokio::test]
async fn a_query_is_refused_by_the_parameter_at_fault() {
    let stage = stage().await;
    let logs = "/api/v1/domains/default/logs";
    for (path, pointer, detail) in [
        ("/api/v1/metrics?from=abc".to_owned(), "/from", "must be a whole number; it is \"abc\""),
        ("/api/v1/metrics?to=".to_owned(), "/to", "must be a whole number; it is \"\""),
        (
            "/api/v1/metrics?nmae=x".to_owned(),
            "/nmae",
            "is not known; known are from, to, name, limit, cursor",
        ),
        (format!("{JOBS}?limit=-1"), "/limit", "must be a larger number; it is \"-1\""),
        (format!("{JOBS}?limit=many"), "/limit", "must be a whole number; it is \"many\""),
        (format!("{JOBS}?limit=0"), "/limit", "must be from 1 to 1000; it is 0"),
        (format!("{JOBS}?section=4294967296"), "/section", "must be a smaller number; it is \"4294967296\""),
        (
            format!("{JOBS}?status=DONE"),
            "/status",
            "must be one of QUEUED, STARTED, SUCCESSFUL, FAILED, ERROR; it is \"DONE\"",
        ),
        (format!("{JOBS}?name=a&name=b"), "", "name must be there once"),
        (format!("{JOBS}/{NOBODY}?wait=soon"), "/wait", "must be from 0 to 60 seconds, such as 30s or 500ms"),
        (format!("{logs}?follow=yes"), "/follow", "must be true or false; it is \"yes\""),
        (format!("{logs}?job=7"), "/job", "must be a UUID, such as 0193e5a0-0000-7000-8000-000000000001"),
        ("/api/v1/domains/default/events?nodes=1".to_owned(), "/nodes", "must be true or false; it is \"1\""),
    ] {
        let refused = stage.get(&path).await;
        let told = json!([{"pointer": pointer, "detail": detail}]);
        assert_eq!(
            (refused.status.as_u16(), &refused.body["errors"]),
            (422, &told),
            "{path}: {}",
            refused.body
        );
        assert!(refused.body["detail"].as_str().unwrap().ends_with(&format!(": {detail}")), "{path}");
    }
}

/// Nobody who writes JSON has heard of a `u8`.
#[tokio::test]
async fn a_field_of_the_wrong_kind_is_told_in_plain_words() {
    let stage = stage().await;
    for (body, pointer, detail) in [
        (with("priority", &json!("high")), "/priority", "must be a whole number; it is \"high\""),
        (with("priority", &json!(300)), "/priority", "must be from 0 to 9; it is 300"),
        (with("priority", &json!(-1)), "/priority", "must be from 0 to 9; it is -1"),
        (with("attempts", &json!(2.5)), "/attempts", "must be a whole number; it is 2.5"),
        (with("attempts", &json!(-3)), "/attempts", "must be a larger number; it is -3"),
        (with("jobName", &json!(7)), "/jobName", "must be a text; it is 7"),
        (with("unique", &json!("k")), "/unique", "must be a JSON object; it is \"k\""),
        (
            with("unique", &json!({"key": "k", "while": "ever"})),
            "/unique/while",
            "must be one of queued, running, unfinished; it is \"ever\"",
        ),
        (r#"{"input": {"type": "noop"}}"#.to_owned(), "", "jobName is missing"),
        ("[]".to_owned(), "", "must be a JSON object; it is a list"),
    ] {
        let refused = stage.post_raw(JOBS, JSON, body.clone()).await;
        let told = json!([{"pointer": pointer, "detail": detail}]);
        assert_eq!(
            (refused.status.as_u16(), &refused.body["errors"]),
            (422, &told),
            "{body}: {}",
            refused.body
        );
    }
}
