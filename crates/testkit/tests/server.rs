//! A server that a test started ends with the test, however that ends, and leaves nothing behind.
#![expect(clippy::print_stdout, reason = "one process tells the other where its server is")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rota_testkit::postgres::{Server, run_sql, try_sql};

/// Tells this test, started by itself, that it is to hold a server.
const HOLDS: &str = "ROTA_TEST_HOLDS_A_SERVER";

/// Says where its server is, and waits for its end.
fn hold() {
    let server = Server::start(false);
    println!("\n{} {}", server.url(), run_sql(&server.url(), "SHOW data_directory"));
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
fn a_server_ends_with_whoever_started_it() {
    if std::env::var_os(HOLDS).is_some() {
        return hold();
    }
    let mut holder = Command::new(std::env::current_exe().unwrap());
    holder.args(["--exact", "a_server_ends_with_whoever_started_it", "--nocapture"]).env(HOLDS, "1");
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let place = said.find(|line| line.starts_with("postgres://")).unwrap();
    let (url, folder) = place.split_once(' ').unwrap();
    assert_eq!(run_sql(url, "SELECT 1"), "1");
    holder.kill().unwrap();
    holder.wait().unwrap();
    while try_sql(url, "SELECT 1").is_ok() || Path::new(folder).exists() {
        std::thread::sleep(Duration::from_millis(50));
    }
}
