//! Handlers that reach out of Rota, in the real program and with its real settings.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use serde_json::{Value, json};

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn submit(home: &Home, kind: &str, payload: &Value) -> Output {
    let mut command = home.command();
    command.env("ROTA_API_KEY", KEY).args(["job", "submit", kind, "--attempts", "2", "--backoff", "10ms"]);
    command.args(["--wait", "--payload", &payload.to_string()]).output().unwrap()
}

/// Answers every request with its statuses in turn, and tells what it was asked.
fn server(statuses: &'static [u16]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for status in statuses.iter().cycle() {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).unwrap();
            tell.send(String::from_utf8_lossy(&request[..length]).to_lowercase()).unwrap();
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
    });
    (url, told)
}

#[test]
fn http_calls_what_is_allowed_and_nothing_else() {
    let home = home();
    let (url, told) = server(&[503, 200]);
    fs::write(home.path().join("secret"), "a secret for this test\n").unwrap();
    fs::write(
        home.path().join("rota.toml"),
        "[http]\nallow_hosts = [\"127.0.0.1\"]\nsigning_secret_file = \"secret\"\n",
    )
    .unwrap();
    // Whoever asked a proxy would get nowhere.
    let mut up = home.command();
    up.args(["up", "--listen", "127.0.0.1:0"]).env("ROTA_BOOTSTRAP_KEY", KEY);
    up.env("HTTP_PROXY", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
    let _rota = Rota::start(up);

    let job = json(&submit(&home, "http", &json!({"url": url, "bodyText": "hello"})));
    assert_eq!((&job["status"], &job["attempt"]), (&json!("SUCCESSFUL"), &json!(2)), "{job}");
    assert_eq!((&job["result"]["status"], &job["result"]["body"]), (&json!(200), &json!("ok")));
    let id = job["jobId"].as_str().unwrap();
    for attempt in 1..=2 {
        let request = told.recv().unwrap();
        for line in [
            format!("rota-job-id: {id}\r\n"),
            format!("idempotency-key: {id}\r\n"),
            format!("rota-attempt: {attempt}\r\n"),
            format!("rota-job-epoch: {attempt}\r\n"),
            "rota-signature: t=".to_owned(),
        ] {
            assert!(request.contains(&line), "{line} is missing in {request}");
        }
    }

    let refused = submit(&home, "http", &json!({"url": "http://169.254.169.254/latest/meta-data/"}));
    assert_eq!(code(&refused), 1);
    let job: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((&job["status"], &job["attempt"]), (&json!("FAILED"), &json!(1)), "{job}");
    assert!(job.to_string().contains("169.254.169.254 is not called"), "{job}");

    let malformed = submit(&home, "http", &json!({"url": "ftp://example.com", "retries": 3}));
    assert_eq!(code(&malformed), 2);
    assert!(complaint(&malformed).contains("/input/payload/url"), "{}", complaint(&malformed));
    assert!(told.try_recv().is_err());
}

#[test]
fn settings_that_make_no_sense_are_told_at_the_start() {
    for (toml, words) in [
        ("[http]\nallow_host = [\"a\"]\n", "unknown key 'http.allow_host'; did you mean 'http.allow_hosts'?"),
        ("[http]\nallow_hosts = [\"10.0.0.0/99\"]\n", "'10.0.0.0/99' is neither"),
        ("[http]\nsigning_secret_file = \"nowhere\"\n", "nowhere: cannot be read"),
        ("[exec]\nprogramms = {}\n", "did you mean 'exec.programs'?"),
        ("[exec]\nprograms = { sh = \"bin/sh\" }\n", "exec.programs: sh: bin/sh is not an absolute path"),
        ("[exec]\nprograms = { sh = \"/no/such\" }\n", "exec.programs: sh: /no/such is not a file"),
        ("http = true\n", "'http' is a table"),
    ] {
        let home = home();
        fs::write(home.path().join("rota.toml"), toml).unwrap();
        let refused = home.run(&["up", "--listen", "127.0.0.1:0"]);
        assert_eq!(code(&refused), 2, "{toml}");
        assert!(complaint(&refused).contains(words), "{toml}: {}", complaint(&refused));
    }
}

/// A process that is over may still wait for somebody to ask how it ended.
fn lives(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn until(what: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it did not happen within ten seconds");
}

/// A program that starts another, which starts another, and writes down who they are.
const FAMILY: &str = "trap '' TERM; sh -c 'sleep 600 & echo $! >> ids.new; wait' & echo $$ $! >> ids.new; \
    while [ $(wc -w < ids.new) -lt 3 ]; do sleep 0.01; done; mv ids.new \"$0\"; wait; sleep 600";

fn family(home: &Home, file: &Path, flags: &[&str]) -> (String, Vec<String>) {
    let payload = json!({"program": "sh", "args": ["-c", FAMILY, file]}).to_string();
    let mut command = home.command();
    command.env("ROTA_API_KEY", KEY).args(["job", "submit", "exec", "--payload", &payload]).args(flags);
    let job = json(&command.output().unwrap());
    until(|| file.exists());
    let ids: Vec<_> = fs::read_to_string(file).unwrap().split_whitespace().map(str::to_owned).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| lives(id)), "{ids:?}");
    (job["jobId"].as_str().unwrap().to_owned(), ids)
}

#[test]
fn exec_runs_what_is_allowed_and_leaves_nobody_behind() {
    let home = home();
    fs::write(home.path().join("rota.toml"), "[exec]\nprograms = { sh = \"/bin/sh\" }\n").unwrap();
    let rota = home.up();
    let job = json(&submit(
        &home,
        "exec",
        &json!({"program": "sh", "args": ["-c", "echo $ROTA_JOB_ID; echo oh >&2"]}),
    ));
    assert_eq!(job["result"]["stdout"], format!("{}\n", job["jobId"].as_str().unwrap()));
    assert_eq!((&job["result"]["exitCode"], &job["result"]["stderr"]), (&json!(0), &json!("oh\n")));
    let refused = submit(&home, "exec", &json!({"program": "rm"}));
    assert_eq!(code(&refused), 1);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("allowed are: sh"));

    let (id, ids) = family(&home, &home.path().join("cancelled"), &[]);
    let cancel = home.command().env("ROTA_API_KEY", KEY).args(["job", "cancel", &id]).output().unwrap();
    assert_eq!(code(&cancel), 0, "{}", complaint(&cancel));
    until(|| !ids.iter().any(|id| lives(id)));

    let limited = ["--timeout", "2s", "--attempts", "1"];
    let (id, ids) = family(&home, &home.path().join("too slow"), &limited);
    let ended = home.command().env("ROTA_API_KEY", KEY).args(["job", "wait", &id]).output().unwrap();
    assert_eq!(code(&ended), 1, "{}", complaint(&ended));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\"status\": \"ERROR\""));
    until(|| !ids.iter().any(|id| lives(id)));

    let (_, ids) = family(&home, &home.path().join("killed"), &[]);
    rota.kill();
    until(|| !ids.iter().any(|id| lives(id)));
}

#[test]
fn exec_is_off_unless_it_is_configured() {
    let home = home();
    let _rota = home.up();
    let refused = submit(&home, "exec", &json!({"program": "sh"}));
    assert_eq!(code(&refused), 2);
    assert!(complaint(&refused).contains("no type 'exec' is known"), "{}", complaint(&refused));
}
