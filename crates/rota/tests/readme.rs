//! The README takes a person from a clone to a finished job, and guides from there on: each of their commands is run here, as
//! it stands there. Only the port is another, and `cargo run --release --` is the program that was built for this test.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::process::{Home, KEY, Rota};

const README: &str = include_str!("../../../README.md");
const JOBS: &str = include_str!("../../../docs/guides/jobs.md");
const HANDLERS: &str = include_str!("../../../docs/guides/handlers.md");
const JOB_TYPES: &str = include_str!("../../../docs/guides/job-types.md");
const OBSERVER: &str = include_str!("../../../docs/guides/observer.md");
const OPERATING: &str = include_str!("../../../docs/guides/operating.md");
const CALENDAR: &str = include_str!("../../../docs/guides/calendar.md");
const LOGS: &str = include_str!("../../../docs/guides/logs.md");
const STORES: &str = include_str!("../../../docs/guides/stores.md");
const CLUSTER: &str = include_str!("../../../docs/guides/cluster.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_rota");

/// The blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    let fence = format!("```{language}");
    while let Some(line) = lines.next() {
        if line == fence {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
        }
    }
    blocks
}

/// What stands for `cargo` while the README is run: it knows the one command that the README uses.
const CARGO: &str =
    "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 64\nshift 3\nexec PROGRAM \"$@\"\n";

fn lay_out(folder: &Path) {
    fs::create_dir_all(folder.join("target/release")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.join("target/release/rota")).unwrap();
    fs::create_dir_all(folder.join("bin")).unwrap();
    let cargo = folder.join("bin/cargo");
    fs::write(&cargo, CARGO.replace("PROGRAM", PROGRAM)).unwrap();
    fs::set_permissions(&cargo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn shell(home: &Home, script: &str) -> Command {
    let mut shell = Command::new("bash");
    let inherited = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ROTA_"));
    inherited.for_each(|(name, _)| {
        shell.env_remove(name);
    });
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap());
    shell.args(["-euo", "pipefail", "-c", script]).current_dir(home.path()).stdin(Stdio::null());
    shell.env("PATH", path).env("XDG_CONFIG_HOME", home.path().join("config"));
    shell
}

/// Runs blocks as one script, and gives what it said.
fn run(home: &Home, rota: &Rota, blocks: &[String]) -> String {
    let address = rota.url.trim_start_matches("http://");
    let script = blocks.join("\n").replace("127.0.0.1:7682", address);
    let output = shell(home, &script).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- said:\n{said}\n--- complained:\n{complained}");
    said.into_owned()
}

#[test]
fn every_command_of_the_readme_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    let blocks = blocks(README, "sh");
    let (start, rest) = blocks.split_first().unwrap();
    assert_eq!(start, "cargo run --release -- up");
    assert!(rest.len() >= 4, "{rest:?}");
    let mut up = shell(&home, &format!("exec {start}"));
    let rota = Rota::start({
        up.env("ROTA_LISTEN", "127.0.0.1:0");
        up
    });
    assert!(rota.banner.contains("#signin="), "{}", rota.banner);
    let said = run(&home, &rota, rest);
    for expected in [
        "\"waitedMillis\": 200",
        "pong",
        "from a script",
        "nightly report",
        "local:alice",
        "local:admin",
        "\"sound\": true",
        "\"fileBytes\": ",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_jobs_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    fs::write(home.path().join("rota.toml"), blocks(JOBS, "toml").join("\n")).unwrap();
    let rota = home.up();
    let mut script = blocks(JOBS, "sh");
    assert!(script.len() >= 8, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        "\"idempotencyKey\": \"order-4711\"",
        "\"new\": 3",
        "\"existing\": 4",
        "no type 'no-such-type' is known",
        "\"waitedMillis\": 50",
        "\"cancelled\": \"by a person\"",
        "\"deleted\": 1",
        "\"wanted\": \"PAUSE\"",
        "\"wanted\": \"DRAIN\"",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_handlers_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    let mut script = blocks(HANDLERS, "sh");
    let before = script.remove(0);
    assert!(shell(&home, &before).status().unwrap().success());
    fs::write(home.path().join("rota.toml"), blocks(HANDLERS, "toml").join("\n")).unwrap();
    let rota = home.up();
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        "\"body\": \"pong\"",
        "refused, as it should be",
        "169.254.169.254 is not called",
        "\"stdout\": \"hello from job",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_logs_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    fs::write(home.path().join("rota.toml"), blocks(LOGS, "toml").join("\n")).unwrap();
    let rota = home.up();
    let mut script = blocks(LOGS, "sh");
    assert!(script.len() >= 2, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        " INFO  ",
        "attempt 1 of 1 failed; it ended as FAILED: sh ended with exit code 3",
        "\"title\": \"the disk is almost full\"",
        "this node joined the fleet",
        "\"level\":\"ERROR\"",
        "event: log\nid: ",
    ] {
        assert!(said.contains(expected), "{expected:?} is not among\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_job_types_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    let rota = home.up();
    let mut script = blocks(JOB_TYPES, "sh");
    assert!(script.len() >= 5, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        "\"builtIn\": true",
        "refused, as it should be",
        "refused here, too",
        "\"handlerSchema\": {",
        "a job waits that has no date",
        "a job waits that nobody runs",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_operating_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    fs::write(home.path().join("rota.toml"), blocks(OPERATING, "toml").join("\n")).unwrap();
    let rota = home.up();
    let mut script = blocks(OPERATING, "sh");
    assert!(script.len() >= 5, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"\nrota job submit noop --wait".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        "pong",
        "{\"status\":\"okay\",",
        "worker-1",
        "rota_jobs_processed_total{outcome=\"successful\"} ",
        "rota_jobs{status=\"SUCCESSFUL\"} ",
        "BUCKET",
        "\"bucketStart\":\"",
        "\"storeWriteLatency\"",
        "\"keep_logs\": \"forever\"",
        "\"keep_logs\": \"7d\"",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
    let key = fs::metadata(home.path().join("prometheus.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}

#[test]
fn every_command_of_the_guide_to_the_observer_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    let rota = home.up();
    let mut script = blocks(OBSERVER, "sh");
    assert!(script.len() >= 3, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    for expected in [
        "waits     It is to run at 2099-01-01T00:00:00Z.",
        "\"byStatus\": {",
        "event: counts\ndata: {\"total\":2",
        "event: node\ndata: {",
    ] {
        assert!(said.contains(expected), "{expected:?} is not among\n{said}");
    }
}

#[test]
fn every_command_of_the_guide_to_schedules_works() {
    let home = Home::new(PROGRAM);
    lay_out(home.path());
    let rota = home.up();
    let mut script = blocks(CALENDAR, "sh");
    assert!(script.len() >= 4, "{script:?}");
    script.insert(0, "PATH=\"$PWD/target/release:$PATH\"".to_owned());
    let said = run(&home, &rota, &script);
    let shown = blocks(CALENDAR, "text");
    for expected in shown.iter().map(String::as_str).chain([
        "refused, as it should be",
        "\"at\":\"2026-10-25T00:30:00Z\",\"local\":\"2026-10-25T02:30:00+02:00\"",
        "\"zoneDataVersion\": ",
    ]) {
        assert!(said.contains(expected), "{expected} is not among\n{said}");
    }
}

/// A guide about PostgreSQL, as it is to be followed on this machine: the server, the folder and the address are others, and so is the
/// name of the role, since the server's own is called so.
fn here(text: &str, server: &Server, home: &Home) -> String {
    let place = server.url().split('@').nth(1).unwrap().replace("/postgres", "");
    let folder = home.path().display().to_string();
    text.replace("postgres://rota:", "postgres://guide:")
        .replace("postgres://owner@", "postgres://rota@")
        .replace("ROLE rota ", "ROLE guide ")
        .replace("OWNER rota", "OWNER guide")
        .replace("db.example", &place)
        .replace("/srv/", &format!("{folder}/"))
        .replace("10.0.0.5:7682", "127.0.0.1:0")
}

/// The statements of a guide, each on its own: a database is made outside of transactions.
fn run_statements(url: &str, statements: &str) -> Vec<String> {
    let uncommented = statements.lines().map(|line| line.split("--").next().unwrap()).collect::<String>();
    uncommented.split_inclusive(';').map(|statement| run_sql(url, statement)).collect()
}

/// A process that a guide starts, by its command.
fn start(home: &Home, command: &str) -> Rota {
    let mut command = shell(home, &format!("PATH=\"$PWD/target/release:$PATH\" exec {command}"));
    command.env("ROTA_BOOTSTRAP_KEY", KEY);
    Rota::start(command)
}

/// Commands, as somebody gives them who is signed in there.
fn ask(home: &Home, rota: &Rota, commands: &str) -> String {
    let signed_in =
        format!("PATH=\"$PWD/target/release:$PATH\"\nexport ROTA_URL={} ROTA_API_KEY={KEY}", rota.url);
    run(home, rota, &[signed_in, commands.to_owned()])
}

#[test]
fn every_command_of_the_guide_to_clusters_works() {
    let (server, home) = (Server::start(false), Home::new(PROGRAM));
    lay_out(home.path());
    let guide = here(CLUSTER, &server, &home);
    let (sql, text) = (blocks(&guide, "sql"), blocks(&guide, "text"));
    let [database, logins, looks] = sql.as_slice() else { panic!("{sql:?}") };
    let [serve, by_hand] = text.as_slice() else { panic!("{text:?}") };
    run_statements(&server.url(), database);
    let two = serve.replace("/rota --listen", "/rota-of-two --listen");
    assert_ne!(*serve, two);
    let nodes = [start(&home, serve), start(&home, &two)];
    let listed = ask(&home, &nodes[1], "rota job submit noop --wait; rota node list --output json");
    assert_eq!(listed.matches("\"status\": \"ACTIVE\"").count(), 2, "{listed}");
    let owner = here("postgres://owner@db.example/rota", &server, &home);
    let looks = looks.replace('…', &run_sql(&owner, "SELECT max(id) FROM jobs"));
    let seen = run_statements(&owner, &looks).join("\n");
    assert!(seen.contains("SUCCESSFUL|") && seen.contains("\"jobName\""), "{seen}");

    // Logins of their own, in a database whose tables somebody else makes.
    run_sql(&server.url(), "CREATE DATABASE granted");
    let granted = |text: &str| text.replace("/rota\n", "/granted\n");
    ask(&home, &nodes[0], &granted(&format!("{by_hand}\n")));
    let owner = here("postgres://owner@db.example/granted", &server, &home);
    run_statements(&owner, logins);
    let store = owner.replace("rota@", "alice:secret@");
    let web =
        start(&home, &format!("rota serve --store {store} --data ./alice --listen 127.0.0.1:0 --roles web"));
    assert!(ask(&home, &web, "rota job submit noop --output json").contains("\"QUEUED\""));
}

#[test]
fn every_command_of_the_guide_to_stores_works() {
    let (server, home) = (Server::start(false), Home::new(PROGRAM));
    lay_out(home.path());
    run_statements(&server.url(), &blocks(&here(CLUSTER, &server, &home), "sql")[0]);
    let rota = start(&home, "rota up --data ./rota --listen 127.0.0.1:0");
    ask(&home, &rota, "rota job submit noop --name moved --wait");
    assert!(rota.terminate().success());
    let script = blocks(&here(STORES, &server, &home), "sh").join("\n");
    assert_eq!(script.matches("rota store copy").count(), 2, "{script}");
    let output = shell(&home, &format!("PATH=\"$PWD/target/release:$PATH\"\n{script}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rota = start(&home, "rota up --data ./rota-2 --listen 127.0.0.1:0");
    assert!(ask(&home, &rota, "rota job list").contains("moved"));
}
