//! Jobs and nodes from the command line: submitting in every way, lists, changes, and what each way to be wrong exits with.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::process::Output;

use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use serde_json::{Value, json};

const NOBODY: &str = "11111111-1111-7111-8111-111111111111";

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

/// As the administrator; each start of Rota has another address, under which no key is kept.
fn run(home: &Home, line: &str) -> Output {
    home.command().env("ROTA_API_KEY", KEY).args(line.split(' ')).output().unwrap()
}

fn id(job: &Value) -> String {
    job["jobId"].as_str().unwrap().to_owned()
}

/// A job that runs until it is stopped.
fn running(home: &Home) -> String {
    let id = id(&json(&run(home, r#"job submit wait --payload {"millis":600000}"#)));
    while json(&run(home, &format!("job show {id}")))["status"] != "STARTED" {}
    id
}

#[test]
fn a_job_carries_what_was_asked_of_it() {
    let home = home();
    let _rota = home.up();
    let line = "job submit noop --name n --priority 9 --run-at +1h --expires +2h --attempts 3 --timeout 30s --backoff 5s \
                --backoff-factor 3 --backoff-max 1m --unique k --unique-while queued --unique-for 10m";
    let job = json(&run(&home, line));
    assert_eq!(
        (&job["priority"], &job["attempts"], &job["timeoutMs"]),
        (&json!(9), &json!(3), &json!(30_000))
    );
    assert_eq!(job["backoff"], json!({"delayMs": 5_000, "factor": 3, "maxDelayMs": 60_000}));
    assert_eq!(job["unique"], json!({"key": "k", "while": "queued", "forMs": 600_000}));
    let (created, run_at) = (job["metadata"]["createdAt"].as_i64().unwrap(), job["runAt"].as_i64().unwrap());
    assert!((created + 3_590_000..=created + 3_600_000).contains(&run_at), "{job}");
    assert_eq!(job["expiresAt"].as_i64().unwrap() - run_at, 3_600_000);

    let twin = run(&home, "job submit noop --unique k");
    assert_eq!(json(&twin)["jobId"], job["jobId"]);
    assert!(complaint(&twin).contains("is there already"), "{}", complaint(&twin));
    let once = json(&run(&home, "job submit noop --idempotency-key order-1"));
    assert_eq!(json(&run(&home, "job submit noop --idempotency-key order-1"))["jobId"], once["jobId"]);
    assert_eq!(code(&run(&home, "job submit noop --idempotency-key order-1 --priority 3")), 4);

    for (words, line) in [
        ("/attempts", "job submit noop --attempts 0"),
        ("/timeoutMs", "job submit noop --timeout 8d"),
        ("/expiresAt", "job submit noop --run-at +2h --expires +1h"),
        ("/backoff/factor", "job submit noop --backoff-factor 11"),
        ("/unique/key", "job submit noop --unique="),
        ("from 1970", "job submit noop --run-at 9999-12-31T23:59:59Z"),
        ("must be from 1970", "job submit noop --run-at 253402300799000"),
        ("days at most", "job submit noop --run-at +40000d"),
    ] {
        let refused = run(&home, line);
        assert_eq!(code(&refused), 2, "{line}: {}", complaint(&refused));
        assert!(complaint(&refused).contains(words), "{line}: {}", complaint(&refused));
    }
}

#[test]
fn jobs_are_cancelled_requeued_and_deleted() {
    let home = home();
    let _rota = home.up();
    let (long, later) = (running(&home), id(&json(&run(&home, "job submit noop --run-at +1h"))));
    assert_eq!(code(&run(&home, &format!("job delete {long}"))), 4, "it runs");
    assert_eq!(code(&run(&home, &format!("job requeue {later}"))), 4, "it waits");
    let both = json(&run(&home, &format!("job cancel {long} {later}")));
    assert!(both["items"].as_array().unwrap().iter().all(|job| job["status"] == "FAILED"), "{both}");
    let again = run(&home, &format!("job cancel {long} {NOBODY}"));
    assert_eq!(code(&again), 4, "the first that failed decides");
    assert!(complaint(&again).contains("2 of 2 jobs are as they were"), "{}", complaint(&again));
    let waited = run(&home, &format!("job wait {later}"));
    assert_eq!(code(&waited), 1);
    assert!(complaint(&waited).ends_with("is FAILED: cancelled by a person"), "{}", complaint(&waited));
    assert_eq!(json(&run(&home, &format!("job requeue {later}")))["attempt"], 1);
    assert_eq!(json(&run(&home, &format!("job wait {later}")))["status"], "SUCCESSFUL");
    let late = run(&home, &format!("job wait {} --timeout 0s", running(&home)));
    assert_eq!(code(&late), 1);
    assert_eq!(json(&run(&home, &format!("job delete {long} {later}"))), json!({"deleted": 2}));
    for verb in ["show", "cancel", "requeue", "delete", "wait"] {
        assert_eq!(code(&run(&home, &format!("job {verb} {long}"))), 3, "{verb}");
    }
}

#[test]
fn jobs_are_deleted_by_filter_when_that_is_meant() {
    let home = home();
    let _rota = home.up();
    let long = running(&home);
    while json(&run(&home, "job list --status SUCCESSFUL"))["items"] == json!([]) {}
    for name in ["a", "a", "b"] {
        json(&run(&home, &format!("job submit noop --run-at +1h --name {name}")));
    }
    for line in ["job delete", "job delete --all", "job delete --name a"] {
        assert_eq!(code(&run(&home, line)), 2, "{line}");
    }
    let count = || json(&run(&home, "job list"))["items"].as_array().unwrap().len();
    assert_eq!(count(), 5, "with the first job");
    assert_eq!(json(&run(&home, "job delete --older-than 7d --yes")), json!({"deleted": 0}));
    assert_eq!(json(&run(&home, "job delete --name a --yes")), json!({"deleted": 2}));
    assert_eq!(json(&run(&home, "job delete --all --yes")), json!({"deleted": 2}));
    let left = json(&run(&home, "job list"));
    assert_eq!((count(), id(&left["items"][0])), (1, long), "what runs is left alone");
}

#[test]
fn lists_are_narrowed_in_every_way() {
    let home = home();
    let _rota = home.up();
    let job = json(&run(&home, "job submit noop --run-at +1h --name here"));
    let count = |filter: &str| {
        let list = json(&run(&home, &format!("job list --name here {filter}")));
        list["items"].as_array().unwrap().len()
    };
    let section = job["section"].as_u64().unwrap();
    let created = job["metadata"]["createdAt"].as_i64().unwrap();
    for (expected, filter) in [
        (1, "--status queued".to_owned()),
        (0, "--status failed".to_owned()),
        (1, "--type noop".to_owned()),
        (1, format!("--section {section}")),
        (0, format!("--section {}", section + 1)),
        (1, format!("--created-after {}", created - 1)),
        (0, format!("--created-after {created}")),
        (1, format!("--created-before {}", created + 1)),
        (0, format!("--created-before {created}")),
        (0, "--older-than 1h".to_owned()),
        (1, "--limit 1".to_owned()),
    ] {
        assert_eq!(count(&filter), expected, "{filter}");
    }
}

fn up(home: &Home, more: &[&str]) -> Rota {
    let mut up = home.command();
    up.args(["up", "--listen", "127.0.0.1:0", "--name", "node_1"]).args(more).arg("--data").arg(home.data());
    up.env("ROTA_BOOTSTRAP_KEY", KEY);
    Rota::start(up)
}

#[test]
fn a_node_is_paused_resumed_and_drained() {
    let home = home();
    let rota = up(&home, &["--grace", "200ms"]);
    assert_eq!(json(&run(&home, "node pause node_1"))["wanted"], "PAUSE");
    let node = || json(&run(&home, "node list"))["items"][0].clone();
    while node()["sections"].as_array().is_some_and(|sections| !sections.is_empty()) {}
    let waits = id(&json(&run(&home, "job submit noop")));
    assert_eq!(code(&run(&home, &format!("job wait {waits} --timeout 1s"))), 1);
    rota.kill();
    let rota = up(&home, &["--grace", "200ms"]);
    assert_eq!(node()["wanted"], "PAUSE", "it lasts over a restart");
    let node_id = node()["id"].as_str().unwrap().to_owned();
    assert_eq!(json(&run(&home, &format!("node resume {node_id}"))).get("wanted"), None);
    assert_eq!(json(&run(&home, &format!("job wait {waits}")))["status"], "SUCCESSFUL");

    let long = running(&home);
    let drained = json(&run(&home, "node drain node_1 --wait"));
    assert_eq!((&drained["wanted"], &drained["running"]), (&json!("DRAIN"), &json!(0)));
    let job = json(&run(&home, &format!("job show {long}")));
    assert_eq!((&job["status"], &job["lost"]), (&json!("QUEUED"), &json!(0)), "it was given back");
    assert_eq!(code(&run(&home, "node drain nobody")), 3);
    rota.kill();
    let _rota = up(&home, &["--node-control", "false"]);
    assert_eq!(node().get("wanted"), None, "a drain ends with the next start");
    let refused = run(&home, "node pause node_1");
    assert_eq!(code(&refused), 6, "{}", complaint(&refused));
    assert!(complaint(&refused).contains("node_control"), "{}", complaint(&refused));
}

/// The place in which the settings stand does not matter.
#[test]
fn what_a_node_allows_stands_in_its_settings() {
    let home = home();
    std::fs::write(
        home.path().join("rota.toml"),
        "node_control = false\ngrace = \"1s\"\ndurability = \"50ms\"\n",
    )
    .unwrap();
    let rota = up(&home, &[]);
    assert!(rota.banner.contains("on disk within 50 ms"), "{}", rota.banner);
    assert_eq!(json(&run(&home, "node list"))["items"][0]["controllable"], false);
    rota.kill();
    for (name, value) in [("ROTA_GRACE", "long"), ("ROTA_DURABILITY", "soon"), ("ROTA_NODE_CONTROL", "maybe")]
    {
        let refused =
            home.command().env(name, value).args(["up", "--listen", "127.0.0.1:0"]).output().unwrap();
        assert_eq!(code(&refused), 2, "{name}: {}", complaint(&refused));
    }
}
