//! The real program, used as a person would: one job from the command line to its result, and every way to be told no.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

#[test]
fn a_job_walks_from_the_command_line_to_its_result() {
    let home = home();
    let rota = home.up();
    let job = json(&home.run(&["job", "submit", "wait", "--payload", r#"{"millis": 200}"#, "--wait"]));
    assert_eq!(job["status"], "SUCCESSFUL");
    assert_eq!(job["result"]["waitedMillis"], 200);
    let id = job["jobId"].as_str().unwrap();
    assert_eq!(json(&home.run(&["job", "show", id]))["jobId"], job["jobId"]);
    let list = json(&home.run(&["job", "list", "--output", "json"]));
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|job| &job["jobName"]).collect();
    assert_eq!(names, ["wait", "first job"], "newest first");
    let table = home.run(&["job", "list", "--output", "table"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("NUMBER") && table.contains(id) && table.contains("SUCCESSFUL"), "{table}");
    let nodes = json(&home.run(&["node", "list"]));
    assert_eq!(nodes["items"][0]["status"], "ACTIVE");
    drop(rota);
}

/// Words are indexed behind the writer: what was just submitted is found a moment later.
#[test]
fn a_job_is_found_by_words() {
    let home = home();
    let _rota = home.up();
    json(&home.run(&["job", "submit", "noop", "--name", "Nightly report"]));
    let found = |words: &str| {
        let list = json(&home.run(&["job", "list", "--text", words]));
        list["items"].as_array().unwrap().len()
    };
    while found("nightly") == 0 {}
    assert_eq!((found("REPORT night*"), found("night"), found("nightly backup")), (1, 0, 0));
    let wordless = home.run(&["job", "list", "--text", "!?"]);
    assert_eq!(code(&wordless), 2);
    assert!(complaint(&wordless).contains("/text: must hold a word"), "{}", complaint(&wordless));
}

#[test]
fn keys_domains_and_users_are_made_and_limited() {
    let home = home();
    let rota = home.up();
    assert_eq!(json(&home.run(&["domain", "create", "blue"]))["name"], "blue");
    assert_eq!(code(&home.run(&["domain", "create", "blue"])), 4);
    assert_eq!(json(&home.run(&["domain", "list"]))["items"].as_array().unwrap().len(), 2);
    json(&home.run(&["user", "create", "local:alice", "--grant", "blue=viewer"]));
    let made = json(&home.run(&["key", "create", "laptop", "--user", "local:alice"]));
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("rota_"));
    let as_alice = |arguments: &[&str]| {
        let mut command = home.command();
        command.env("ROTA_API_KEY", &key).env("ROTA_URL", &rota.url).args(arguments).output().unwrap()
    };
    assert_eq!(code(&as_alice(&["job", "list", "--domain", "blue"])), 0);
    assert_eq!(code(&as_alice(&["job", "submit", "noop", "--domain", "blue"])), 6);
    assert_eq!(code(&as_alice(&["job", "list"])), 3, "another domain is not there");
    assert_eq!(code(&as_alice(&["node", "list"])), 6);
    let keys = json(&home.run(&["key", "list", "--user", "local:alice"]));
    let id = keys["items"][0]["id"].as_str().unwrap();
    assert_eq!(code(&home.run(&["key", "revoke", id, "--user", "local:alice"])), 0);
    assert_eq!(code(&as_alice(&["job", "list", "--domain", "blue"])), 6);
}

#[test]
fn whatever_is_wrong_gets_one_sentence_and_its_exit_code() {
    let home = home();
    let nobody = home.run(&["job", "list"]);
    assert_eq!(code(&nobody), 6, "{}", complaint(&nobody));
    let rota = home.up();
    let big = format!("{{\"text\": \"{}\"}}", "x".repeat(1024 * 1024));
    let file = home.path().join("big.json");
    std::fs::write(&file, big).unwrap();
    let big = format!("@{}", file.display());
    let cases: &[(i32, &str, &[&str])] = &[
        (2, "no type 'unheard-of' is known", &["job", "submit", "unheard-of"]),
        (2, "JSON object", &["job", "submit", "wait", "--payload", "[1]"]),
        (2, "JSON", &["job", "submit", "wait", "--payload", "{"]),
        (2, "/input/payload/millis", &["job", "submit", "wait", "--payload", r#"{"millis": "many"}"#]),
        (2, "1048576 bytes", &["job", "submit", "noop", "--payload", &big]),
        (2, "unexpected argument", &["job", "submit", "noop", "--colour", "red"]),
        (3, "no such job", &["job", "show", "11111111-1111-7111-8111-111111111111"]),
        (3, "no such domain", &["job", "list", "--domain", "nowhere"]),
        (5, "cannot be reached", &["job", "list", "--url", "http://127.0.0.1:1"]),
    ];
    for (expected, words, arguments) in cases {
        let mut command = home.command();
        let output =
            command.env("ROTA_API_KEY", KEY).env("ROTA_URL", &rota.url).args(*arguments).output().unwrap();
        let complaint = complaint(&output);
        assert_eq!(code(&output), *expected, "{arguments:?}: {complaint}");
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
    let mut stranger = home.command();
    let stranger =
        stranger.env("ROTA_API_KEY", "rota_wrong_wrong_wrong").args(["job", "list"]).output().unwrap();
    assert_eq!(code(&stranger), 6);
    let list = json(&home.run(&["job", "list"]));
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "only the first job is stored");
}

#[test]
fn a_second_rota_is_told_who_holds_the_folder_or_the_port() {
    let home = home();
    let rota = home.up();
    let data = home.data();
    let again = home.run(&["up", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    assert_eq!(code(&again), 4);
    let holder = format!("is in use by Rota with process id {}", rota.id());
    assert!(complaint(&again).contains(&holder), "{}", complaint(&again));

    let address = rota.url.trim_start_matches("http://");
    let both = home.run(&["up", "--listen", address, "--data", data.to_str().unwrap()]);
    assert!(complaint(&both).contains(&holder), "{}", complaint(&both));
    let elsewhere = home.path().join("elsewhere");
    let port = home.run(&["up", "--listen", address, "--data", elsewhere.to_str().unwrap()]);
    assert_eq!(code(&port), 4);
    assert!(complaint(&port).contains("is in use by another program"), "{}", complaint(&port));
    assert!(!elsewhere.exists(), "nothing is left behind");
}

#[test]
fn a_folder_that_cannot_be_used_is_told_so() {
    let home = home();
    let file = home.path().join("a-file");
    std::fs::write(&file, "in the way").unwrap();
    let output = home.run(&["up", "--listen", "127.0.0.1:0", "--data", file.to_str().unwrap()]);
    assert_eq!(code(&output), 5);
    assert!(complaint(&output).contains("cannot be used"), "{}", complaint(&output));
    let mut short = home.command();
    let short =
        short.env("ROTA_BOOTSTRAP_KEY", "short").args(["up", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(code(&short), 2);
    let mut typo = home.command();
    let typo = typo.env("ROTA_LISTN", "127.0.0.1:0").args(["up"]).output().unwrap();
    assert_eq!(code(&typo), 2);
    assert!(complaint(&typo).contains("ROTA_LISTEN"), "{}", complaint(&typo));
}

/// A browser that follows events.
fn listen(url: &str) -> impl Read + use<> {
    let address = url.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let path = "/api/v1/domains/default/events";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("listening") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0);
    }
    lines
}

fn up_with_grace(home: &Home, grace: &str) -> Rota {
    let mut up = home.command();
    up.args(["up", "--listen", "127.0.0.1:0", "--grace", grace, "--data"]).arg(home.data());
    up.env("ROTA_BOOTSTRAP_KEY", KEY).stderr(std::fs::File::create(home.path().join("said")).unwrap());
    Rota::start(up)
}

#[test]
fn ctrl_c_stops_it_within_a_second_and_a_running_job_is_given_back() {
    let home = home();
    let rota = up_with_grace(&home, "300ms");
    let job = json(&home.run(&["job", "submit", "wait", "--payload", r#"{"millis": 600000}"#]));
    let id = job["jobId"].as_str().unwrap().to_owned();
    while json(&home.run(&["job", "show", &id]))["status"] != "STARTED" {}
    let mut waiting = home.command();
    let mut waiting = waiting.args(["job", "wait", &id]).stdout(Stdio::null()).spawn().unwrap();
    let mut listening = listen(&rota.url);
    let (status, took) = rota.interrupt();
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let mut rest = String::new();
    let _ = listening.read_to_string(&mut rest);
    assert!(status.success());
    assert!(took < Duration::from_secs(1), "{took:?}");
    let rota = home.up();
    let mut show = home.command();
    let job =
        json(&show.env("ROTA_API_KEY", KEY).args(["job", "show", &id, "--url", &rota.url]).output().unwrap());
    assert_eq!(job["lost"], 0, "it was handed over, not lost: {job}");
}

#[test]
fn a_running_job_may_finish_when_rota_stops() {
    let home = home();
    let rota = up_with_grace(&home, "30s");
    let job = json(&home.run(&["job", "submit", "wait", "--payload", r#"{"millis": 1500}"#]));
    let id = job["jobId"].as_str().unwrap().to_owned();
    while json(&home.run(&["job", "show", &id]))["status"] != "STARTED" {}
    let (status, took) = rota.interrupt();
    assert!(status.success() && took < Duration::from_secs(20), "{status} {took:?}");
    let said = std::fs::read_to_string(home.path().join("said")).unwrap();
    assert!(said.contains("press Ctrl-C again to stop at once"), "{said}");
    let rota = home.up();
    let mut show = home.command();
    let job =
        json(&show.env("ROTA_API_KEY", KEY).args(["job", "show", &id, "--url", &rota.url]).output().unwrap());
    assert_eq!((&job["status"], &job["epoch"]), (&"SUCCESSFUL".into(), &1.into()), "{job}");
}

#[test]
fn the_key_is_shown_once_and_kept_for_the_command_line_alone() {
    let home = home();
    let start = || {
        let mut command = home.command();
        command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(home.data());
        Rota::start(command)
    };
    let first = start();
    let key = first.banner.split_whitespace().find(|word| word.starts_with("rota_")).unwrap().to_owned();
    let kept = home.path().join("config/rota/credentials.toml");
    assert!(std::fs::read_to_string(&kept).unwrap().contains(&key));
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&kept.metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    assert_eq!(code(&home.run(&["whoami"])), 0);
    first.kill();
    let second = start();
    assert!(!second.banner.contains("rota_"), "{}", second.banner);
    second.kill();
    for file in std::fs::read_dir(home.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "only its hash is stored");
    }
}

#[test]
fn an_administrator_who_lost_the_key_gets_back_in() {
    let home = home();
    let data = home.data();
    let recover = || home.run(&["key", "recover", "--data", data.to_str().unwrap()]);
    assert_eq!(code(&recover()), 3, "there is nothing yet");
    assert!(!data.exists());
    let rota = home.up();
    assert_eq!(code(&recover()), 4, "it is running");
    rota.kill();
    let key = json(&recover())["key"].as_str().unwrap().to_owned();
    let rota = home.up();
    let mut whoami = home.command();
    let who =
        json(&whoami.env("ROTA_API_KEY", key).env("ROTA_URL", &rota.url).arg("whoami").output().unwrap());
    assert_eq!(who["user"], "local:admin");
}

/// A key in the environment is for the first start alone: who was removed does not come back with it.
#[test]
fn a_removed_administrator_stays_removed() {
    let home = home();
    let rota = home.up();
    json(&home.run(&["user", "create", "local:boss", "--installation-admin"]));
    let key = json(&home.run(&["key", "create", "boss", "--user", "local:boss"]))["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let run_as = |url: &str, key: &str, arguments: &[&str]| {
        home.command().env("ROTA_API_KEY", key).env("ROTA_URL", url).args(arguments).output().unwrap()
    };
    let deleted = run_as(&rota.url, &key, &["user", "delete", "local:admin", "--yes"]);
    assert_eq!(code(&deleted), 0, "{}", complaint(&deleted));
    rota.kill();
    let rota = home.up();
    assert_eq!(code(&run_as(&rota.url, KEY, &["whoami"])), 6);
    assert_eq!(code(&run_as(&rota.url, &key, &["whoami"])), 0);
}
