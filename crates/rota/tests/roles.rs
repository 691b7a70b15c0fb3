//! Two real nodes on a real PostgreSQL, each under a login that has the rights of what it does and no others: one serves people
//! and runs nothing, the other runs jobs and knows no users.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::process::Output;
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::job::{JobStatus, NewJob};
use rota_testkit::postgres::{Server, run_sql, try_sql};
use rota_testkit::process::{Home, KEY, Rota, complaint, json};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

/// A database that somebody prepared with what the program prints, and a login for each kind of node.
fn granted() -> (Server, String) {
    let server = Server::start(false);
    let owner = server.fresh();
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    for arguments in [&["store", "schema"][..], &["store", "schema", "--grants"]] {
        let printed = home.run(arguments);
        assert!(printed.status.success(), "{}", complaint(&printed));
        run_sql(&owner, &String::from_utf8(printed.stdout).unwrap());
    }
    run_sql(&owner, "CREATE ROLE alice LOGIN; GRANT rota_web TO alice");
    run_sql(&owner, "CREATE ROLE bob LOGIN; GRANT rota_processor TO bob");
    run_sql(&owner, "CREATE ROLE carol LOGIN; GRANT rota_web, rota_processor TO carol");
    (server, owner)
}

fn serve(owner: &str, login: &str, roles: &str) -> (Home, Rota) {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let store = owner.replace("rota@", &format!("{login}@"));
    let rota = home.serve(&store, &["--name", login, "--roles", roles]);
    (home, rota)
}

fn run(home: &Home, line: &str) -> Output {
    home.command().env("ROTA_API_KEY", KEY).args(line.split(' ')).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_node_and_a_processor_each_with_its_own_login() {
    let (server, owner) = granted();
    // It comes first, and has to do without users and without the right to make any.
    let (processor, runs) = serve(&owner, "bob", "processor");
    assert_eq!(runs.url, "", "it listens nowhere");
    assert_eq!(run_sql(&owner, "SELECT count(*) FROM users"), "0");
    let (web, serves) = serve(&owner, "alice", "web");

    let client = Client::new(&serves.url, KEY).unwrap();
    let job = NewJob::new("travels", "wait", json!({"millis": 5}));
    let made = client.submit_job(&Domain::default(), &job, None).await.unwrap();
    let ended = client.wait_for_job(&Domain::default(), made.job_id, PATIENCE).await.unwrap();
    let nodes = client.nodes().await.unwrap();
    let bob = nodes.iter().find(|node| node.name == "bob").unwrap();
    assert_eq!((ended.status, ended.metadata.updated_by), (JobStatus::Successful, bob.id), "{ended:?}");

    for line in [
        "domain create other",
        "domain set default --weight 2 --keep-jobs 30d",
        "user create local:dora --grant default=operator",
        "key create another",
        "type put limited --concurrency 1 --rate 5",
        "job submit wait --unique one --payload {\"millis\":1} --wait",
        "job list --text travels",
        "job count",
        "log list",
        "metric list",
        "node pause bob",
        "node resume bob",
    ] {
        let done = run(&web, line);
        assert!(done.status.success(), "{line}: {}", complaint(&done));
    }
    assert_eq!(run_sql(&owner, "SELECT count(*) FROM users"), "2", "the first administrator, and one more");

    // Whoever asked for what it may not have would stand in the log of the server.
    for said in [server.log(), web.log(), processor.log()] {
        assert!(!said.contains("permission denied") && !said.contains("42501"), "{said}");
    }
    let bob = owner.replace("rota@", "bob@");
    for forbidden in [
        "SELECT * FROM users",
        "SELECT * FROM \"users.rows\"",
        "DELETE FROM \"users.rows\"",
        "INSERT INTO \"progress.rows\" (id, version, body) VALUES ('a', 1, '{}')",
        "UPDATE \"domains.rows\" SET version = version",
        "CREATE TABLE mine (a int)",
    ] {
        let said = try_sql(&bob, forbidden).unwrap_err();
        assert!(said.contains("permission denied"), "{forbidden}: {said}");
    }
    assert_eq!(try_sql(&bob, "SELECT count(*) > 0 FROM jobs").unwrap(), "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_both_has_both_roles() {
    let (server, owner) = granted();
    let (home, _rota) = serve(&owner, "carol", "web,processor");
    let done = run(&home, "job submit wait --payload {\"millis\":1} --wait");
    assert_eq!(json(&done)["status"], "SUCCESSFUL");
    assert!(!server.log().contains("permission denied"), "{}", server.log());
}

/// A node whose login has too little does not start, says so in one sentence, and is no reason for others to wait.
#[test]
fn a_web_node_with_the_rights_of_a_processor_says_what_it_lacks() {
    let (_server, owner) = granted();
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let bob = owner.replace("rota@", "bob@");
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--data", "data", "--store", &bob]);
    let said = complaint(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("bob may not do this with users") && said.contains("--grants"), "{said}");
}
