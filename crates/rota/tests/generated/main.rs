//! Requests generated from the OpenAPI document, sent to the real program: no answer is a 5xx, and none says what the document
//! does not. `schemathesis` makes the requests and judges the answers; `schemathesis.toml` beside this file says how. It comes
//! from PyPI, by `cargo xtask test --only set-up`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rota_testkit::process::{Home, KEY, Rota};
use serde_json::Value;

const CONTRACT: &str = include_str!("../../../web/golden/openapi.json");

#[test]
fn generated_requests_find_no_5xx_and_no_answer_outside_the_contract() {
    let Some(schemathesis) = program() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let rota = home.up();
    let report = home.path().join("report.ndjson");
    let output = generate(&schemathesis, &rota, &report).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    let answers = answers(&report);
    assert!(answers.values().flatten().all(|status| *status < 500), "{answers:?}");
    let never: Vec<_> = operations().into_iter().filter(|name| !has_succeeded(answers.get(name))).collect();
    assert!(never.len() * 10 <= operations().len(), "never reached as they are meant to be: {never:?}");
}

fn has_succeeded(statuses: Option<&BTreeSet<u64>>) -> bool {
    statuses.is_some_and(|statuses| statuses.iter().any(|status| *status < 300))
}

/// None where the person who runs this said that it cannot be had.
#[expect(clippy::print_stderr, reason = "whoever leaves something out is told what")]
fn program() -> Option<PathBuf> {
    if std::env::var_os("ROTA_TEST_WITHOUT_PYTHON").is_some() {
        eprintln!("LEFT OUT: requests generated from the contract, since ROTA_TEST_WITHOUT_PYTHON is set");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("python/bin/schemathesis");
    let advice =
        "`cargo xtask test --only set-up` installs it; ROTA_TEST_WITHOUT_PYTHON=1 leaves this test out";
    assert!(program.exists(), "{} is missing: {advice}", program.display());
    Some(program)
}

fn generate(program: &Path, rota: &Rota, report: &Path) -> Command {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated");
    let mut command = Command::new(program);
    command.arg("--config-file").arg(here.join("schemathesis.toml")).args(["run", "--no-color"]);
    command.env("SCHEMATHESIS_HOOKS", here.join("hooks.py")).env("ROTA_API_KEY", KEY);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(format!("{}/api/v1/openapi.json", rota.url));
    command.arg("--header").arg(format!("Authorization: Bearer {KEY}"));
    command.args(["--report", "ndjson", "--report-ndjson-path"]).arg(report);
    // It keeps notes of its own where it is started.
    command.current_dir(report.parent().unwrap());
    command
}

/// `GET /api/ping` and so on, in the order of the contract.
fn operations() -> Vec<String> {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let paths = contract["paths"].as_object().unwrap().iter();
    let named = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    named.collect()
}

/// The statuses that each operation was answered with.
fn answers(report: &Path) -> BTreeMap<String, BTreeSet<u64>> {
    let mut answers = BTreeMap::<_, BTreeSet<_>>::new();
    for line in fs::read_to_string(report).unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let recorded = &event["ScenarioFinished"]["recorder"];
        for (id, exchange) in recorded["interactions"].as_object().into_iter().flatten() {
            let case = &recorded["cases"][id]["value"];
            let operation =
                format!("{} {}", case["method"].as_str().unwrap(), case["path"].as_str().unwrap());
            answers.entry(operation).or_default().extend(exchange["response"]["status_code"].as_u64());
        }
    }
    answers
}
