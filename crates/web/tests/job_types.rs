//! The registry of job types over HTTP: who may, what is refused and why, and that nothing of it reaches another domain.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use axum::body::Body;
use axum::http::{Request, header};
use rota_model::ids::TimerId;
use rota_model::timer::Timer;
use rota_model::user::Role;
use rota_store::access::Recorder;
use rota_store::timers::TimerKey;
use rota_testkit::process::KEY;
use serde_json::{Map, Value, json};
use stage::{Answer, Stage, stage};

const TYPES: &str = "/api/v1/domains/red/job-types";
const INVOICE: &str = "/api/v1/domains/red/job-types/invoice";
const JOBS: &str = "/api/v1/domains/red/jobs";

async fn put(stage: &Stage, path: &str, body: Value) -> Answer {
    stage.call("PUT", path, Some(KEY), Some(body)).await
}

async fn delete(stage: &Stage, path: &str) -> u16 {
    stage.call("DELETE", path, Some(KEY), None).await.status.as_u16()
}

/// A change that was decided on a version.
async fn put_on(stage: &Stage, path: &str, body: &Value, version: &str) -> u16 {
    let request = Request::put(path).header(header::AUTHORIZATION, format!("Bearer {KEY}"));
    let request = request.header(header::IF_MATCH, version).header(header::CONTENT_TYPE, "application/json");
    stage.send(request.body(Body::from(body.to_string())).unwrap()).await.status.as_u16()
}

async fn submit(stage: &Stage, path: &str, kind: &str, payload: Value) -> Answer {
    stage.post(path, json!({"jobName": "a", "input": {"type": kind, "payload": payload}})).await
}

fn needs(field: &str) -> Value {
    json!({"schema": {"type": "object", "required": [field]}})
}

#[tokio::test]
async fn a_type_is_defined_shown_changed_and_deleted() {
    let stage = stage().await;
    let listed = stage.get(TYPES).await.body;
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(names, ["noop", "talk", "wait"]);
    let wait = stage.get(&format!("{TYPES}/wait")).await;
    assert_eq!((&wait.body["builtIn"], &wait.body["runBy"]), (&json!(true), &json!(["n"])));
    assert!(
        wait.body["schema"]["properties"]["millis"].is_object() && !wait.headers.contains_key(header::ETAG)
    );

    assert_eq!(stage.get(INVOICE).await.status, 404);
    let made =
        put(&stage, INVOICE, json!({"schema": needs("n")["schema"], "attempts": 2, "timeoutMs": 500})).await;
    assert_eq!((made.status.as_u16(), &made.body["runBy"]), (201, &json!([])), "{}", made.body);
    assert_eq!((&made.body["domain"], &made.body["builtIn"]), (&json!("red"), &json!(false)));
    let version = made.headers[header::ETAG].to_str().unwrap().to_owned();
    assert_eq!(stage.get(INVOICE).await.headers[header::ETAG], version);

    assert_eq!(
        submit(&stage, JOBS, "invoice", json!({})).await.body["errors"][0]["pointer"],
        "/input/payload"
    );
    let job = submit(&stage, JOBS, "invoice", json!({"n": 1})).await.body;
    assert_eq!(
        (&job["attempts"], &job["timeoutMs"], &job["status"]),
        (&json!(2), &json!(500), &json!("QUEUED"))
    );
    let other = submit(&stage, "/api/v1/domains/blue/jobs", "invoice", json!({"n": 1})).await;
    assert_eq!(other.status, 422, "each domain has its own");
    assert_eq!(stage.get("/api/v1/domains/blue/job-types/invoice").await.status, 404);

    assert_eq!(put_on(&stage, INVOICE, &needs("n"), &version).await, 200);
    assert_eq!(put_on(&stage, INVOICE, &needs("n"), &version).await, 412);
    assert_eq!(put_on(&stage, &format!("{TYPES}/other"), &needs("n"), "*").await, 412, "there is none");
    assert_eq!(stage.change_on("DELETE", INVOICE, &version).await.status, 412);

    let page = stage.get(&format!("{TYPES}?limit=2")).await.body;
    assert_eq!((&page["items"][0]["type"], &page["items"][1]["type"]), (&json!("invoice"), &json!("noop")));
    let page = stage.get(&format!("{TYPES}?limit=2&cursor={}", page["next"].as_str().unwrap())).await.body;
    assert_eq!((&page["items"][1]["type"], page.get("next")), (&json!("wait"), None));
}

#[tokio::test]
async fn what_waits_is_in_the_way_of_a_change_unless_it_is_forced() {
    let stage = stage().await;
    put(&stage, INVOICE, json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..25 {
        let job = submit(&stage, JOBS, "invoice", json!({})).await;
        ids.push(job.body["jobId"].as_str().unwrap().to_owned());
    }
    let refused = put(&stage, INVOICE, needs("n")).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(refused.body["type"], "urn:rota:problem:conflict");
    assert_eq!(refused.body["jobs"]["count"], 25);
    let named = refused.body["jobs"]["ids"].as_array().unwrap();
    assert!(named.len() == 20 && named.iter().all(|id| ids.iter().any(|known| id == known)));
    assert!(refused.body["detail"].as_str().unwrap().contains("force=true"), "{}", refused.body);
    assert_eq!(stage.get(INVOICE).await.body.get("schema"), None, "nothing was changed");
    assert_eq!(put(&stage, &format!("{INVOICE}?force=true"), needs("n")).await.status, 200);
    assert_eq!(submit(&stage, JOBS, "invoice", json!({})).await.status, 422);

    let refused = stage.call("DELETE", INVOICE, Some(KEY), None).await;
    assert_eq!((refused.status.as_u16(), &refused.body["jobs"]["count"]), (409, &json!(25)));
    assert_eq!(delete(&stage, &format!("{INVOICE}?force=true")).await, 204);
    assert_eq!(delete(&stage, INVOICE).await, 404);
    let left = stage.get(&format!("{JOBS}?status=QUEUED")).await.body;
    assert_eq!(left["items"].as_array().unwrap().len(), 25, "they wait on");
    assert_eq!(delete(&stage, &format!("{TYPES}/wait")).await, 409, "it is built in");
}

#[tokio::test]
async fn what_a_timer_makes_is_in_the_way_too_and_is_named() {
    let stage = stage().await;
    put(&stage, INVOICE, json!({})).await;
    let key = TimerKey { domain: "red".parse().unwrap(), uuid: TimerId::derived(&["nightly"]) };
    let timer = json!({"task": {"type": "invoice"}, "schedule": {"cron": "30 2 * * *"}});
    let timer: Timer = serde_json::from_value(timer).unwrap();
    Recorder::new(stage.store.clone()).timers().create(&key, timer).await.unwrap();
    let refused = put(&stage, INVOICE, needs("n")).await;
    assert_eq!(refused.status, 409);
    assert_eq!(refused.body["timers"], json!({"count": 1, "ids": [key.uuid.to_string()]}));
    assert_eq!(refused.body.get("jobs"), None);
    let told = refused.body["detail"].as_str().unwrap();
    assert!(told.contains(&format!("1 timer ({})", key.uuid)), "{told}");
    assert_eq!(delete(&stage, INVOICE).await, 409);
    assert_eq!(put(&stage, &format!("{INVOICE}?force=true"), needs("n")).await.status, 200);
}

#[tokio::test]
async fn only_administrators_of_the_domain_change_types_and_viewers_see_them() {
    let stage = stage().await;
    for (name, role, expected) in
        [("vera", Role::Viewer, 403), ("otto", Role::Operator, 403), ("anna", Role::Admin, 201)]
    {
        let key = stage.user(name, "red", role).await;
        let path = format!("{TYPES}/{name}");
        let made = stage.call("PUT", &path, Some(&key), Some(json!({}))).await;
        assert_eq!(made.status, expected, "{name}");
        assert_eq!(stage.call("GET", TYPES, Some(&key), None).await.status, 200, "{name}");
        let there = stage.call("PUT", "/api/v1/domains/blue/job-types/x", Some(&key), Some(json!({}))).await;
        assert_eq!(there.status, 404, "{name}: another domain is not there");
        let there = stage.call("GET", "/api/v1/domains/blue/job-types", Some(&key), None).await;
        assert_eq!(there.status, 404, "{name}");
    }
}

/// Many definitions, each of which leads to the next.
fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
    let next = |nth: usize| link(json!({"$ref": format!("#/$defs/d{nth}")}));
    let mut defs: Map<String, Value> = (0..count).map(|nth| (format!("d{nth}"), next(nth + 1))).collect();
    defs.insert(format!("d{count}"), json!({}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"not": inner}))
}

#[tokio::test]
async fn whatever_is_wrong_with_a_type_is_told_and_nothing_is_stored() {
    let stage = stage().await;
    let schema = |schema: Value| json!({"schema": schema});
    let bomb = |pattern: &str| schema(json!({"properties": {"a": {"pattern": pattern}}}));
    let twice = |next: Value| json!({"allOf": [next, next]});
    let bad = [
        ("no schema", "/schema/type", schema(json!({"type": "objekt"}))),
        ("no object", "/schema", schema(json!(true))),
        ("a list", "/schema", schema(json!([]))),
        ("too large", "/schema", schema(json!({"description": "x".repeat(64 * 1024)}))),
        ("too deep", "/schema", schema(nested(21))),
        ("another place", "/schema/$ref", schema(json!({"$ref": "http://127.0.0.1:1/schema.json"}))),
        ("a file", "/schema/$ref", schema(json!({"$ref": "file:///etc/passwd"}))),
        ("a loop", "/schema", schema(json!({"$ref": "#"}))),
        ("a loop by way of others", "/schema", schema(json!({"anyOf": [{"allOf": [{"$ref": "#"}]}]}))),
        ("doubling", "/schema", schema(chain(60, twice))),
        ("a long chain", "/schema", schema(chain(90, |next| json!({"not": {"not": {"not": next}}})))),
        ("very many references", "/schema", schema(chain(500, |next| json!({"properties": {"a": next}})))),
        ("a pattern that is none", "/schema", bomb("(")),
        ("a pattern that takes room", "/schema", bomb("(a{1000}){1000}")),
        ("a pattern that looks around", "/schema", bomb("(?=a)b")),
        ("no attempts", "/attempts", json!({"attempts": 0})),
        ("a long time", "/timeoutMs", json!({"timeoutMs": 604_800_001_u64})),
        ("a backoff", "/backoff/factor", json!({"backoff": {"delayMs": 1, "factor": 11}})),
        ("nothing at once", "/concurrency", json!({"concurrency": 0})),
        ("too many at once", "/perKey/concurrency", json!({"perKey": {"concurrency": 100_001}})),
        ("no rate", "/startsPerSecond", json!({"startsPerSecond": 0})),
        ("a rate backwards", "/perKey/startsPerSecond", json!({"perKey": {"startsPerSecond": -1}})),
        ("an unknown limit", "/perKey/rate", json!({"perKey": {"rate": 1}})),
        ("no object", "/perKey", json!({"perKey": [1, 2]})),
        ("unknown field", "/atempts", json!({"atempts": 3})),
        ("wrong kind", "/attempts", json!({"attempts": "many"})),
    ];
    for (what, pointer, body) in bad {
        let answer = put(&stage, INVOICE, body).await;
        assert_eq!(answer.status, 422, "{what}: {}", answer.body);
        let found = answer.body["errors"][0]["pointer"].as_str().unwrap();
        assert!(found.starts_with(pointer), "{what}: {}", answer.body);
        assert_eq!(stage.get(INVOICE).await.status, 404, "{what}");
    }
    let limited = json!({
        "concurrency": 20, "startsPerSecond": 0.5, "perKey": {"concurrency": 1, "startsPerSecond": 7.0}
    });
    let answer = put(&stage, &format!("{TYPES}/limited"), limited.clone()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let shown = stage.get(&format!("{TYPES}/limited")).await.body;
    for field in ["concurrency", "startsPerSecond", "perKey"] {
        assert_eq!(shown[field], limited[field], "{field}");
    }
    for name in ["a%0Ab", &"x".repeat(201), &"%F0%9F%9A%80".repeat(200)] {
        let answer = put(&stage, &format!("{TYPES}/{name}"), json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["errors"][0]["pointer"]),
            (422, &json!("/type")),
            "{name}"
        );
        assert_eq!(stage.get(&format!("{TYPES}/{name}")).await.status, 404, "{name}");
        assert_eq!(delete(&stage, &format!("{TYPES}/{name}")).await, 404, "{name}");
    }
    assert_eq!(put(&stage, &format!("{INVOICE}?forse=true"), json!({})).await.status, 422);
    assert_eq!(stage.get("/api/ping").await.body, "pong");
}

/// As long a chain as is taken is compiled and followed on the stack that a request has.
#[tokio::test]
async fn the_longest_way_through_a_schema_fits_the_stack() {
    let stage = stage().await;
    let deep = chain(99, |next| json!({"properties": {"a": {"allOf": [{"not": {"not": next}}]}}}));
    let made = put(&stage, INVOICE, json!({"schema": deep})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let flat = chain(99, |next| json!({"not": {"not": next}}));
    let flat = put(&stage, &format!("{TYPES}/flat"), json!({"schema": flat})).await;
    assert_eq!(flat.status, 201, "{}", flat.body);
    let payload = (0..19).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_eq!(submit(&stage, JOBS, "invoice", payload.clone()).await.status, 201);
    assert_eq!(submit(&stage, JOBS, "flat", payload).await.status, 201);
}

/// Matching is linear: what would take others for ever is answered at once.
#[tokio::test]
async fn a_pattern_that_explodes_elsewhere_does_not_here() {
    let stage = stage().await;
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    assert_eq!(put(&stage, INVOICE, json!({"schema": schema})).await.status, 201);
    let long = format!("{}!", "a".repeat(100_000));
    let refused = submit(&stage, JOBS, "invoice", json!({"a": long})).await;
    assert_eq!(refused.body["errors"][0]["pointer"], "/input/payload/a");
    assert!(refused.body.to_string().len() < 5_000, "the payload is not sent back");
}

#[tokio::test]
async fn a_batch_says_what_was_there_before() {
    let stage = stage().await;
    let job = json!({"jobName": "a", "input": {"type": "noop"}, "idempotencyKey": "k"});
    let batch = json!({"jobs": [job]});
    let first = stage.post(&format!("{JOBS}/batch"), batch.clone()).await.body;
    assert_eq!(first["items"][0].get("existing"), None);
    let again = stage.post(&format!("{JOBS}/batch"), batch).await.body;
    assert_eq!(
        (&again["items"][0]["existing"], &again["items"][0]["jobId"]),
        (&json!(true), &first["items"][0]["jobId"])
    );
}
