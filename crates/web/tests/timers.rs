//! What a schedule comes to, over HTTP.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use rota_model::user::Role;
use serde_json::{Value, json};
use stage::stage;

const PREVIEW: &str = "/api/v1/domains/default/timers/preview";

fn nightly() -> Value {
    json!({"cron": "30 2 * * *", "time_zone": "Europe/Berlin"})
}

#[tokio::test]
async fn a_schedule_is_previewed_in_utc_and_in_local_time() {
    let stage = stage().await;
    let request = json!({"schedule": nightly(), "from": "2026-10-24T00:00:00+02:00", "count": 3});
    let answer = stage.post(PREVIEW, request).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let twice = "02:30 comes twice on 2026-10-25: clocks go back from 03:00 to 02:00; this is the first";
    assert_eq!(
        answer.body,
        json!({"items": [
            {"at": "2026-10-24T00:30:00Z", "local": "2026-10-24T02:30:00+02:00", "zone": "Europe/Berlin"},
            {"at": "2026-10-25T00:30:00Z", "local": "2026-10-25T02:30:00+02:00", "zone": "Europe/Berlin", "note": twice},
            {"at": "2026-10-26T01:30:00Z", "local": "2026-10-26T02:30:00+01:00", "zone": "Europe/Berlin"},
        ]})
    );
}

#[tokio::test]
async fn policies_windows_and_the_number_of_executions_count() {
    let stage = stage().await;
    let mut schedule = nightly();
    schedule["dst_overlap"] = json!("both");
    schedule["stop_time"] = json!("2026-10-26T00:00:00Z");
    let from = "2026-10-25T00:00:00Z";
    let both = stage.post(PREVIEW, json!({"schedule": schedule, "from": from})).await;
    let instants = |body: &Value| {
        let items = body["items"].as_array().unwrap();
        items.iter().map(|one| one["at"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(instants(&both.body), ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    schedule["max_executions"] = json!(1);
    let once = stage.post(PREVIEW, json!({"schedule": schedule, "from": from})).await;
    assert_eq!(instants(&once.body), ["2026-10-25T00:30:00Z"]);
}

/// Without `from` it begins now, which in a test is where its clock stands; without `count` it shows ten.
#[tokio::test]
async fn it_begins_now_and_shows_ten_unless_told_otherwise() {
    let stage = stage().await;
    let answer = stage.post(PREVIEW, json!({"schedule": {"cron": "* * * * *"}})).await;
    let items = answer.body["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["zone"]), (10, &json!("UTC")));
    let first: jiff::Timestamp = items[0]["at"].as_str().unwrap().parse().unwrap();
    let wait = first.duration_since(stage.surroundings.now().to_date());
    assert!((0..=60).contains(&wait.as_secs()), "{first}");
}

#[tokio::test]
async fn what_is_refused_is_named_with_its_field() {
    let stage = stage().await;
    for (request, pointer, words) in [
        (
            json!({"schedule": {"cron": "0 25 * * *"}}),
            "/schedule/cron",
            "hour field, \"25\": must be from 0 to 23",
        ),
        (json!({"schedule": {"cron": "0 0 30 2 *"}}), "/schedule/cron", "can never fire"),
        (
            json!({"schedule": {"cron": "0 9 * * MON–FRI"}}),
            "/schedule/cron",
            "day-of-week field, \"MON–FRI\": cannot be read; allowed are",
        ),
        (
            json!({"schedule": {"cron": "@daily", "dst_gpa": "skip"}}),
            "/schedule/dst_gpa",
            "is not known; did you mean dst_gap?",
        ),
        (
            json!({"schedule": {"cron": "@daily", "x/y": 1}}),
            "/schedule/x~1y",
            "is not known; known are cron, start_time",
        ),
        (
            json!({"schedule": {"cron": "@daily"}, "from": "0001-01-01T00:00:00Z"}),
            "/from",
            "must be from 1970-01-01T00:00:00Z to 2999-12-31T23:59:59.999Z",
        ),
        (
            json!({"schedule": {"cron": "@daily", "stop_time": "1969-01-01T00:00:00Z"}}),
            "/schedule/stop_time",
            "must be from 1970-01-01T00:00:00Z",
        ),
        (json!({"schedule": {"cron": "x".repeat(201)}}), "/schedule/cron", "must have 1 to 200 characters"),
        (
            json!({"schedule": {"cron": "@daily", "time_zone": "Europe/Berln"}}),
            "/schedule/time_zone",
            "did you mean Europe/Berlin?",
        ),
        (
            json!({"schedule": {"cron": "@daily", "dst_gap": "later"}}),
            "/schedule/dst_gap",
            "must be one of next, skip",
        ),
        (
            json!({"schedule": {"cron": "@yearly", "start_time": "2026-01-02T00:00:00Z", "stop_time": "2026-12-01T00:00:00Z"}}),
            "/schedule/stop_time",
            "can never fire",
        ),
        (json!({"schedule": {"cron": "@daily"}, "count": 1_001}), "/count", "must be from 1 to 1000"),
        (json!({"schedule": {"cron": "@daily"}, "from": "9999-01-01T00:00:00Z"}), "/from", "2999"),
        (json!({"schedule": {"cron": "@daily"}, "form": 1}), "/form", "known are schedule, from, count"),
        (json!({}), "", "schedule"),
    ] {
        let answer = stage.post(PREVIEW, request.clone()).await;
        assert_eq!(answer.status, 422, "{request} {}", answer.body);
        let error = &answer.body["errors"][0];
        assert_eq!(answer.body["errors"].as_array().unwrap().len(), 1, "{}", answer.body);
        assert_eq!(error["pointer"], pointer, "{request} {}", answer.body);
        assert!(error["detail"].as_str().unwrap().contains(words), "{request} {}", answer.body);
    }
}

#[tokio::test]
async fn what_is_never_due_again_says_so() {
    let stage = stage().await;
    let schedule = json!({"cron": "30 2 * 3 0L", "time_zone": "Europe/Berlin", "dst_gap": "skip"});
    let answer = stage.post(PREVIEW, json!({"schedule": schedule, "from": "2026-01-01T00:00:00Z"})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["items"], json!([]));
    let note = answer.body["note"].as_str().unwrap();
    assert!(
        note.starts_with("Never due from 2026-01-01T00:00:00Z on; the clocks jump over every later time"),
        "{note}"
    );
}

#[tokio::test]
async fn every_field_at_fault_is_named() {
    let stage = stage().await;
    let request = json!({"schedule": {"cron": "* * * *", "time_zone": "Nowhere"}, "count": 0});
    let answer = stage.post(PREVIEW, request).await;
    let errors = answer.body["errors"].as_array().unwrap();
    let pointers: Vec<_> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/count", "/schedule/cron", "/schedule/time_zone"]);
}

#[tokio::test]
async fn a_viewer_may_look_and_a_stranger_may_not() {
    let stage = stage().await;
    let viewer = stage.user("vera", "red", Role::Viewer).await;
    let request = json!({"schedule": {"cron": "@daily"}});
    let red = "/api/v1/domains/red/timers/preview";
    assert_eq!(stage.call("POST", red, Some(&viewer), Some(request.clone())).await.status, 200);
    assert_eq!(stage.call("POST", PREVIEW, Some(&viewer), Some(request.clone())).await.status, 404);
    assert_eq!(stage.call("POST", red, None, Some(request)).await.status, 401);
}
