//! Job types from the command line, and what each way to be wrong exits with.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::process::Output;

use rota_testkit::process::{Home, KEY, code, complaint, json};
use serde_json::json;

fn run(home: &Home, line: &str) -> Output {
    home.command().env("ROTA_API_KEY", KEY).args(line.split(' ')).output().unwrap()
}

#[test]
fn types_are_defined_shown_and_deleted() {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let _rota = home.up();
    let listed = run(&home, "type list --output table");
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("wait") && listed.contains("Rota"), "{listed}");

    std::fs::write(home.path().join("invoice.json"), r#"{"type": "object", "required": ["number"]}"#)
        .unwrap();
    let made =
        json(&run(&home, "type put invoice --schema @invoice.json --attempts 2 --timeout 5s --backoff 3s"));
    assert_eq!((&made["attempts"], &made["timeoutMs"]), (&json!(2), &json!(5_000)));
    assert_eq!((&made["builtIn"], &made["runBy"]), (&json!(false), &json!([])));
    assert_eq!(json(&run(&home, "type show invoice"))["backoff"]["delayMs"], 3_000);
    let refused = run(&home, "job submit invoice");
    assert_eq!(code(&refused), 2);
    assert!(complaint(&refused).contains("number"), "{}", complaint(&refused));
    let job = json(&run(&home, r#"job submit invoice --payload {"number":7}"#));
    assert_eq!((&job["attempts"], &job["status"]), (&json!(2), &json!("QUEUED")));

    let id = job["jobId"].as_str().unwrap();
    let in_the_way = run(&home, r#"type put invoice --schema {"required":["date"]}"#);
    assert_eq!(code(&in_the_way), 4);
    assert!(complaint(&in_the_way).contains(id), "{}", complaint(&in_the_way));
    json(&run(&home, r#"type put invoice --schema {"required":["date"]} --force"#));
    let in_the_way = run(&home, "type delete invoice");
    assert_eq!(code(&in_the_way), 4, "{}", complaint(&in_the_way));
    assert_eq!(code(&run(&home, "type delete invoice --force")), 0);
    assert_eq!(json(&run(&home, &format!("job show {id}")))["status"], "QUEUED", "it waits on");
}

#[test]
fn what_is_wrong_is_told() {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let _rota = home.up();
    for (expected, words, line) in [
        (2, "/schema/type", r#"type put t --schema {"type":"objekt"}"#),
        (2, "the schema", "type put t --schema {oops"),
        (2, "the schema must be a JSON object", "type put t --schema true"),
        (2, "nowhere.json", "type put t --schema @nowhere.json"),
        (2, "/attempts", "type put t --attempts 0"),
        (2, "/timeoutMs", "type put t --timeout 8d"),
        (3, "no such job type", "type show t"),
        (3, "no such job type", "type delete t"),
        (4, "built in", "type delete wait"),
        (3, "no such domain", "type list --domain nowhere"),
    ] {
        let refused = run(&home, line);
        assert_eq!(code(&refused), expected, "{line}: {}", complaint(&refused));
        assert!(complaint(&refused).contains(words), "{line}: {}", complaint(&refused));
    }
}
