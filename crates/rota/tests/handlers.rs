//! Handlers that reach out of Rota, in the real program and with its real settings.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};

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
        ("http = true\n", "'http' is a table"),
    ] {
        let home = home();
        fs::write(home.path().join("rota.toml"), toml).unwrap();
        let refused = home.run(&["up", "--listen", "127.0.0.1:0"]);
        assert_eq!(code(&refused), 2, "{toml}");
        assert!(complaint(&refused).contains(words), "{toml}: {}", complaint(&refused));
    }
}
