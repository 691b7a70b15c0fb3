//! `rota metric` and retention, with the real program on the real store.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

use std::process::Output;
use std::time::Duration;

use rota_testkit::process::{Home, KEY, code, complaint, json};
use serde_json::Value;

fn rota(home: &Home, arguments: &[&str]) -> Output {
    home.command().env("ROTA_API_KEY", KEY).args(arguments).output().unwrap()
}

fn run_jobs(home: &Home, count: usize) {
    for _ in 0..count {
        assert_eq!(code(&rota(home, &["job", "submit", "noop", "--wait"])), 0);
    }
}

/// All that was stored of a metric, of whichever run.
fn total(home: &Home, name: &str) -> i64 {
    let flags = ["metric", "list", "--name", name, "--since", "1h", "--all", "--output", "json"];
    let listed = json(&rota(home, &flags));
    let buckets = listed["items"].as_array().unwrap().iter();
    let entries = buckets.flat_map(|bucket| bucket["metrics"][name].as_object().unwrap().values().cloned());
    entries.map(|sample| sample["value"].as_i64().unwrap()).sum()
}

fn until_total(home: &Home, name: &str, expected: i64) {
    for _ in 0..600 {
        if total(home, name) >= expected {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{name} is {} and not {expected}", total(home, name));
}

fn ended(home: &Home) -> i64 {
    let listed = json(&rota(home, &["job", "list", "--status", "SUCCESSFUL", "--all", "--output", "json"]));
    i64::try_from(listed["items"].as_array().unwrap().len()).unwrap()
}

#[test]
fn figures_outlive_the_process_and_are_counted_once() {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    for life in 1..=3 {
        let node = home.up();
        run_jobs(&home, life);
        let status = node.terminate();
        assert!(status.success(), "{status}");
    }
    let node = home.up();
    until_total(&home, "jobsProcessed", ended(&home));
    assert_eq!(total(&home, "jobsProcessed"), ended(&home));
    let table = rota(&home, &["metric", "list", "--name", "runTime", "--since", "10m", "--output", "table"]);
    let shown = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(shown.starts_with("BUCKET") && shown.contains("microseconds"), "{shown}");
    drop(node);
}

#[test]
fn a_domain_is_changed_in_part() {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let _node = home.up();
    let set = |flags: &[&str]| -> Value {
        json(&rota(&home, &[&["domain", "set", "default", "--output", "json"], flags].concat()))
    };
    set(&["--weight", "3"]);
    let kept = set(&["--keep-jobs", "30d", "--keep-logs", "forever"]);
    assert_eq!(
        (&kept["weight"], &kept["keep_jobs"], &kept["keep_logs"]),
        (&3.into(), &"30d".into(), &"forever".into())
    );
    assert_eq!(set(&["--keep-jobs", "forever"])["keep_jobs"], "forever");
    let nothing = rota(&home, &["domain", "set", "default"]);
    assert_eq!(code(&nothing), 2, "{}", complaint(&nothing));
    assert!(complaint(&nothing).contains("--keep-jobs"), "{}", complaint(&nothing));
}
