//! The program of the guide, for real: it is Rota, it runs a type of its own, and what its handler says arrives.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rota_testkit::process::{Home, Rota, code, complaint, json};
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../../docs/guides/handlers.md");
const CODE: &str = include_str!("../src/main.rs");
const PATIENCE: Duration = Duration::from_secs(20);

/// An inbox, and the program that looks into it.
struct Stage {
    home: Home,
    _rota: Rota,
}

fn stage() -> Stage {
    let home = Home::new(env!("CARGO_BIN_EXE_await-file"));
    fs::create_dir(home.path().join("inbox")).unwrap();
    let rota = home.up();
    Stage { home, _rota: rota }
}

impl Stage {
    fn put(&self, name: &str, content: &str) {
        fs::write(self.home.path().join("inbox").join(name), content).unwrap();
    }

    fn submit(&self, payload: &Value, flags: &[&str]) -> Output {
        let payload = payload.to_string();
        let all = [&["job", "submit", "await-file", "--payload", &payload], flags].concat();
        self.home.run(&all)
    }

    fn submitted(&self, payload: &Value, flags: &[&str]) -> String {
        json(&self.submit(payload, flags))["jobId"].as_str().unwrap().to_owned()
    }

    /// The job, once it is as it is waited for.
    fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = now() + PATIENCE;
        loop {
            let job = json(&self.home.run(&["job", "show", id]));
            if is_so(&job) {
                return job;
            }
            assert!(now() < end, "{job}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the real program runs in real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn what_the_handler_returns_and_says_is_kept() {
    let stage = stage();
    stage.put("a.csv", "1,2\n");
    let done = json(&stage.submit(&json!({"name": "a.csv", "looks": 3}), &["--wait"]));
    assert_eq!((&done["status"], &done["result"]), (&json!("SUCCESSFUL"), &json!({"bytes": 4})));
    let id = done["jobId"].as_str().unwrap();
    let end = now() + PATIENCE;
    loop {
        let lines = json(&stage.home.run(&["log", "list", "--job", id])).to_string();
        if lines.contains("a.csv is there, after 0 looks") {
            break;
        }
        assert!(now() < end, "{lines}");
    }
}

#[test]
fn a_failure_is_tried_again_and_progress_is_seen_meanwhile() {
    let stage = stage();
    let flags = ["--attempts", "1000", "--backoff", "10ms"];
    let id = stage.submitted(&json!({"name": "late.csv", "looks": 8}), &flags);
    let running = stage.until(&id, |job| job["progress"]["message"].is_string());
    assert_eq!(running["progress"]["message"], "late.csv is not there yet", "{running}");
    stage.until(&id, |job| job["attempt"].as_u64() >= Some(2));
    stage.put("late.csv", "x");
    let done = json(&stage.home.run(&["job", "wait", &id]));
    assert_eq!((&done["status"], &done["result"]), (&json!("SUCCESSFUL"), &json!({"bytes": 1})));
    let history = done["history"].to_string();
    assert!(history.contains("\"RETRY\"") && history.contains("late.csv did not come"), "{history}");
}

#[test]
fn a_job_that_is_cancelled_stops() {
    let stage = stage();
    let id = stage.submitted(&json!({"name": "never.csv", "looks": 1000}), &[]);
    stage.until(&id, |job| job["progress"]["message"].is_string());
    let cancelled = stage.home.run(&["job", "cancel", &id]);
    assert_eq!(code(&cancelled), 0, "{}", complaint(&cancelled));
    let ended = stage.until(&id, |job| job["status"] == "FAILED");
    assert!(ended["result"]["cancelled"].is_string(), "{ended}");
}

#[test]
fn what_does_not_fit_is_refused_and_what_cannot_be_is_not_tried_again() {
    let stage = stage();
    let refused = stage.submit(&json!({"name": "../secret", "looks": 1}), &[]);
    assert!(
        code(&refused) == 2 && complaint(&refused).contains("/input/payload/name"),
        "{}",
        complaint(&refused)
    );
    fs::create_dir(stage.home.path().join("inbox/folder")).unwrap();
    let failed = stage.submit(&json!({"name": "folder", "looks": 1}), &["--wait"]);
    let job: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((code(&failed), &job["status"], &job["attempt"]), (1, &json!("FAILED"), &json!(1)), "{job}");
    assert!(job["result"].to_string().contains("folder is no file"), "{job}");
}

/// The blocks of a language, in order.
fn blocks(language: &str) -> Vec<String> {
    let (mut blocks, mut lines) = (Vec::new(), GUIDE.lines());
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(language) {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
        }
    }
    blocks
}

#[test]
fn the_guide_shows_this_code() {
    let (_, shown) = CODE.split_once("// guide: begin\n").unwrap();
    let (shown, _) = shown.split_once("\n// guide: end").unwrap();
    assert_eq!(blocks("rust"), [shown], "copy what lies between the marks into docs/guides/handlers.md");
}

#[test]
fn every_command_of_the_guide_works() {
    let blocks = blocks("bash");
    let [start, commands] = &blocks[..] else { panic!("{blocks:?}") };
    assert_eq!(start, "mkdir -p inbox\ncargo run --release --package await-file -- up");
    let stage = stage();
    let programs = stage.home.path().join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_await-file"), programs.join("await-file")).unwrap();
    let mut shell = Command::new("bash");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    shell.env("PATH", path).env("XDG_CONFIG_HOME", stage.home.path().join("config"));
    shell.args(["-euo", "pipefail", "-c", commands]).current_dir(stage.home.path());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", complaint(&output));
    for expected in ["\"bytes\": 12", "\"status\": \"SUCCESSFUL\""] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}
