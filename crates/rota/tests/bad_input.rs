//! What is wrong with schemas, addresses, programs and lines is told clearly or cut with a mark, and harms nobody else.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::process::Output;
use std::time::Duration;

use rota_testkit::process::{Home, code, complaint, json};
use serde_json::{Value, json};

/// A Rota with a shell on the list of its programs.
fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    fs::write(home.path().join("rota.toml"), "[exec]\nprograms = { sh = \"/bin/sh\" }\n").unwrap();
    home
}

fn submit(home: &Home, kind: &str, payload: &Value) -> Output {
    home.run(&["job", "submit", kind, "--attempts", "3", "--wait", "--payload", &payload.to_string()])
}

fn ended(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A job that runs as it should: nothing else was affected.
fn all_is_well(home: &Home) {
    let done = json(&submit(home, "wait", &json!({"millis": 1})));
    assert_eq!(done["status"], "SUCCESSFUL", "{done}");
}

#[test]
fn schemas_that_are_none_and_patterns_that_explode() {
    let home = home();
    let _rota = home.up();
    for (schema, words) in [
        (json!({"type": "objekt"}), "/schema/type: is no schema"),
        (json!({"properties": {"a": {"pattern": "("}}}), "/schema"),
        (json!({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}), "/schema"),
    ] {
        let refused = home.run(&["type", "put", "bad", "--schema", &schema.to_string()]);
        assert!(code(&refused) == 2 && complaint(&refused).contains(words), "{}", complaint(&refused));
    }
    assert_eq!(code(&home.run(&["type", "show", "bad"])), 3, "nothing of it is stored");

    // Elsewhere this takes twice as long with each letter.
    let pattern = json!({"properties": {"a": {"pattern": "^(a+)+$"}}}).to_string();
    json(&home.run(&["type", "put", "slow", "--schema", &pattern]));
    let refused = submit(&home, "slow", &json!({"a": format!("{}!", "a".repeat(50_000))}));
    assert!(
        code(&refused) == 2 && complaint(&refused).contains("/input/payload/a"),
        "{}",
        complaint(&refused)
    );
    all_is_well(&home);
}

#[test]
fn addresses_and_programs_that_are_not_allowed() {
    let home = home();
    let _rota = home.up();
    for (kind, payload, words) in [
        ("http", json!({"url": "http://169.254.169.254/latest/meta-data/"}), "169.254.169.254 is not called"),
        ("http", json!({"url": "http://[::ffff:169.254.169.254]/"}), "is not called"),
        ("exec", json!({"program": "/bin/sh"}), "no program \"/bin/sh\" is allowed here; allowed are: sh"),
        ("exec", json!({"program": "sh", "env": {"LD_PRELOAD": "x"}}), "LD_PRELOAD"),
    ] {
        let output = submit(&home, kind, &payload);
        let job = ended(&output);
        assert_eq!(
            (code(&output), &job["status"], &job["attempt"]),
            (1, &json!("FAILED"), &json!(1)),
            "{job}"
        );
        assert!(job["result"].to_string().replace("\\\"", "\"").contains(words), "{job}");
    }
    all_is_well(&home);
}

#[test]
fn lines_that_are_long_or_binary() {
    let home = home();
    let _rota = home.up();
    let script = "head -c 1048576 /dev/zero | tr '\\0' x; echo; printf '\\377\\000\\001\\n'; echo after";
    let done = json(&submit(&home, "exec", &json!({"program": "sh", "args": ["-c", script]})));
    assert_eq!((&done["status"], &done["result"]["truncated"]), (&json!("SUCCESSFUL"), &json!(true)));
    let id = done["jobId"].as_str().unwrap();
    let lines = loop {
        let lines = json(&home.run(&["log", "list", "--job", id]));
        if lines.to_string().contains("\"after\"") {
            break lines;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let lines = lines["items"].as_array().or(lines.as_array()).unwrap();
    let all = lines.iter().map(ToString::to_string).collect::<String>();
    assert!(all.contains("x …") || all.contains("x…"), "the cut is marked");
    assert!(all.contains('\u{fffd}') && !all.contains("\\u0000"), "what is no text is replaced");
    assert!(all.len() < 200_000, "{}", all.len());
    all_is_well(&home);
}
