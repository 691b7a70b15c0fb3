//! `rota log` and what it shows, with the real program on the real store.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};
use std::time::Duration;

use rota_testkit::process::{Home, KEY, code, complaint, json};
use serde_json::{Value, json};

fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    fs::write(home.path().join("rota.toml"), "[exec]\nprograms = { sh = \"/bin/sh\" }\n").unwrap();
    home
}

fn rota(home: &Home, arguments: &[&str]) -> Output {
    home.command().env("ROTA_API_KEY", KEY).args(arguments).output().unwrap()
}

/// Submits a program and gives the id of its job.
fn submit(home: &Home, script: &str, further: &[&str]) -> String {
    let payload = json!({"program": "sh", "args": ["-c", script]}).to_string();
    let flags = [&["job", "submit", "exec", "--attempts", "1", "--payload", &payload], further].concat();
    let job: Value = serde_json::from_slice(&rota(home, &flags).stdout).unwrap();
    job["jobId"].as_str().unwrap().to_owned()
}

/// Lists until so many lines are there, oldest first.
fn lines(home: &Home, flags: &[&str], count: usize) -> Vec<Value> {
    for _ in 0..500 {
        let listed =
            json(&rota(home, &[&["log", "list", "--limit", "1000", "--output", "json"], flags].concat()));
        let mut items = listed["items"].as_array().unwrap().clone();
        if items.len() >= count {
            items.reverse();
            return items;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{count} lines are not there: {flags:?}");
}

fn said(lines: &[Value]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (line["level"].as_str().unwrap(), line["title"].as_str().unwrap())).collect()
}

#[test]
fn what_a_program_prints_is_the_log_of_its_job_and_outlives_the_process() {
    let home = home();
    let node = home.up();
    let script = "echo one; sleep 0.1; echo two >&2; head -c 1048576 /dev/zero | tr '\\0' x; echo; exit 3";
    let id = submit(&home, script, &["--wait"]);
    let found = lines(&home, &["--job", &id], 4);
    let told = said(&found);
    assert_eq!(told[..2], [("INFO", "one"), ("WARN", "two")]);
    assert!(told[2].1.ends_with('…') && found[2]["message"].as_str().unwrap().ends_with('…'));
    assert_eq!(told[3], ("ERROR", "attempt 1 of 1 failed; it ended as FAILED"));
    assert!(found[3]["message"].as_str().unwrap().contains("exit code 3"));
    assert!(!home.log().contains("two"), "what handlers say does not stand in the log of the process");
    let binary = submit(&home, "printf '\\377\\000\\001\\n'; echo after", &["--wait"]);
    assert_eq!(
        said(&lines(&home, &["--job", &binary], 2)),
        [("INFO", "\u{fffd}\u{fffd} "), ("INFO", "after")]
    );

    assert_eq!(said(&lines(&home, &["--level", "error", "--since", "10m"], 1)).len(), 1);
    assert_eq!(
        said(&lines(&home, &["--text", "TW*"], 2)),
        [told[1], told[3]],
        "it is quoted as the reason, too"
    );
    let (status, _) = node.interrupt();
    assert!(status.success());
    let _node = home.up();
    assert_eq!(lines(&home, &["--job", &id], 4), found);
    let of_nodes = lines(&home, &["--installation"], 1);
    let told = said(&of_nodes);
    let stops = told.iter().position(|(_, title)| title.starts_with("this node stops"));
    assert!(stops.is_some(), "what it said last was stored: {told:?}");
    let lasting = json(&rota(&home, &["node", "list", "--output", "json"]));
    let name = lasting["items"][0]["name"].as_str().unwrap();
    let joined = lines(&home, &["--installation", "--node", name, "--text", "joined fleet"], 2);
    assert_eq!(said(&joined)[0], ("INFO", "this node joined the fleet"));
}

#[test]
fn a_tail_shows_lines_as_they_are_said_and_ends_with_the_job() {
    let home = home();
    let _node = home.up();
    let gate = home.path().join("gate");
    let payload = json!({
        "program": "sh",
        "args": ["-c", "echo first; while [ ! -e \"$0\" ]; do sleep 0.01; done; echo last", gate]
    });
    let job = json(&rota(&home, &["job", "submit", "exec", "--payload", &payload.to_string()]));
    let id = job["jobId"].as_str().unwrap();
    let mut command = home.command();
    command.env("ROTA_API_KEY", KEY).args(["log", "tail", "--job", id, "--output", "ndjson"]);
    let mut tail = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&output.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["title"], "first", "while the job runs");
    fs::write(&gate, "").unwrap();
    assert_eq!(next()["title"], "last");
    assert!(output.next().is_none(), "there is nothing else");
    assert!(tail.wait().unwrap().success());

    let told = rota(&home, &["log", "tail", "--job", id, "--output", "table"]);
    let text = String::from_utf8(told.stdout).unwrap();
    let ends: Vec<_> = text.lines().map(|line| line.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(ends, ["first", "last"], "{text}");
    assert!(text.contains("Z INFO  ") && !text.contains('\u{1b}'), "{text}");
    let unknown = rota(&home, &["log", "tail", "--job", "018f0000-0000-7000-8000-000000000001"]);
    assert_eq!(code(&unknown), 3, "{}", complaint(&unknown));
}

#[test]
fn the_level_that_is_kept_is_a_setting() {
    let home = home();
    let _node = home.up_with(&["--log-level", "debug"]);
    let id = submit(&home, "echo hello", &["--wait"]);
    let told = lines(&home, &["--job", &id], 3);
    let expected = [("DEBUG", "its handler begins"), ("INFO", "hello"), ("DEBUG", "it ended as SUCCESSFUL")];
    assert_eq!(said(&told), expected);
    let refused = home.run(&["up", "--log-level", "loud"]);
    assert_eq!(code(&refused), 2);
    assert!(complaint(&refused).contains("log_level must be one of debug"), "{}", complaint(&refused));
}
