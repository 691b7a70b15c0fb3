//! A process may have only so many files open, and connections are files too. When they run out, somebody waits, and nothing breaks.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rota_testkit::process::{Home, Rota, json};
use serde_json::Value;

/// So many may be open, and three quarters of them are for connections.
const FILES: u32 = 512;
const CONNECTIONS: usize = 384;
/// Too few for as many programs as the node would run at once.
const FEW_FILES: u32 = 128;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn connect(rota: &Rota) -> TcpStream {
    let stream = TcpStream::connect(rota.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET /api/ping HTTP/1.1\r\nhost: rota\r\n\r\n").unwrap();
}

/// Waits for the answer.
fn answer(stream: &mut TcpStream) -> String {
    let mut text = vec![0; 4096];
    let length = stream.read(&mut text).unwrap();
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// As many connections as there are places are served; one more waits until one of them goes.
#[test]
fn there_are_fewer_connections_than_files_and_others_wait() {
    let home = home();
    let rota = home.up_with_few_files(FILES);
    let mut held: Vec<_> = (0..CONNECTIONS).map(|_| connect(&rota)).collect();
    for stream in &mut held {
        ask(stream);
        assert!(answer(stream).ends_with("pong"));
    }
    let mut late = connect(&rota);
    ask(&mut late);
    late.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let waits = late.read(&mut [0; 16]).unwrap_err();
    assert!(matches!(waits.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{waits}");
    assert!(home.log().contains("as many connections are open as may be"), "{}", home.log());
    // Who has a place is served as before.
    ask(&mut held[0]);
    assert!(answer(&mut held[0]).ends_with("pong"));
    drop(held.pop());
    late.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(answer(&mut late).ends_with("pong"));
}

/// More programs at once than there are files for: the jobs fail for want of them, are tried again, and end well.
#[test]
fn a_job_is_not_given_up_for_want_of_files() {
    let home = home();
    fs::write(home.path().join("rota.toml"), "capacity = 64\n[exec]\nprograms = { sh = \"/bin/sh\" }\n")
        .unwrap();
    let _rota = home.up_with_few_files(FEW_FILES);
    let job = r#"{"jobName": "j", "attempts": 1000, "backoff": {"delayMs": 100, "factor": 1}, "input": {"type": "exec", "payload": {"program": "sh", "args": ["-c", "sleep 0.3"]}}}"#;
    fs::write(home.path().join("jobs.ndjson"), format!("{job}\n").repeat(64)).unwrap();
    json(&home.run(&["job", "submit", "--file", "jobs.ndjson"]));
    let all = loop {
        let all = json(&home.run(&["job", "list", "--type", "exec", "--limit", "100"]));
        let all = all["items"].as_array().unwrap().clone();
        let is_over = |job: &Value| !["QUEUED", "STARTED"].contains(&job["status"].as_str().unwrap());
        if all.len() == 64 && all.iter().all(is_over) {
            break all;
        }
    };
    assert!(all.iter().all(|job| job["status"] == "SUCCESSFUL"), "{all:?}");
    let wanted = json(&home.run(&["log", "list", "--text", "too many open files", "--limit", "1"]));
    assert_eq!(
        wanted["items"].as_array().unwrap().len(),
        1,
        "there were too few: otherwise this shows nothing"
    );
}
