//! `rota store copy` with the real program: from SQLite to PostgreSQL and back, document by document; killed in the middle and
//! begun again; while nodes work on the source; and what is refused.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobStatus, NewJob};
use rota_model::time::UnixMillis;
use rota_store::collection::{JOBS, SETTINGS};
use rota_store::query::{Order, Query};
use rota_store::seam::{Key, Store, Write};
use rota_store::settings;
use rota_store_postgres::PostgresStore;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use rota_testkit::documents::{assert_same, body, contents, put_odd_documents, write};
use rota_testkit::postgres::{self, run_sql};
use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use serde_json::json;
use tokio::time::{sleep, timeout};

const NOW: UnixMillis = UnixMillis(1_900_000_000_000);

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn copy(home: &Home, from: &str, to: &str, flags: &[&str]) -> Output {
    tokio::task::block_in_place(|| {
        home.command().args(["store", "copy", "--from", from, "--to", to]).args(flags).output().unwrap()
    })
}

fn assert_refused(output: &Output, expected: i32, words: &str) {
    let complaint = complaint(output);
    assert_eq!(code(output), expected, "{complaint}");
    assert!(complaint.contains(words), "{complaint}");
}

fn sqlite(folder: &Path) -> String {
    format!("sqlite:{}", folder.display())
}

fn open(folder: &Path) -> Arc<dyn Store> {
    let holder = Holder::take(folder, "a test").unwrap();
    Arc::new(SqliteStore::open(folder, holder).unwrap())
}

async fn open_shared(url: &str) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(url).await.unwrap())
}

async fn put_jobs(store: &dyn Store, count: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(5_000) {
        let job = |number: &usize| {
            let value = json!({
                "jobName": format!("job {number}"), "jobNumber": number, "status": "SUCCESSFUL", "domain": "default",
                "input": {"type": "noop", "payload": {"text": "x".repeat(200)}}, "result": {"data": number},
                "metadata": {"createdAt": number, "updatedAt": number, "updatedBy": "a test"},
            });
            Write::Create { key: Key::new(&JOBS, format!("job-{number:07}")), body: body(&value) }
        };
        write(store, some.iter().map(job).collect()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_sqlite_to_postgresql_and_back_every_document_is_the_same() {
    let home = home();
    let (data, back, shared) = (home.data(), home.path().join("new/back"), postgres::fresh());
    let store = open(&data);
    settings::open(Arc::clone(&store), NOW.to_date()).await.unwrap();
    put_odd_documents(&*store).await;
    put_jobs(&*store, 2_500).await;
    store.sequence("jobs", 77_000).await.unwrap();
    let ours = contents(&*store).await;
    drop(store);

    let there = json(&copy(&home, &sqlite(&data), &shared, &[]));
    let again = json(&copy(&home, &shared, &sqlite(&back), &[]));
    for copied in [&there, &again] {
        assert_eq!((&copied["equal"], &copied["resumed"]), (&json!(true), &json!(false)), "{copied}");
        assert_eq!(copied["documents"], ours.len(), "{copied}");
    }
    assert_eq!(there["collections"], again["collections"]);
    let jobs = there["collections"].as_array().unwrap().iter().find(|one| one["name"] == "jobs").unwrap();
    assert_eq!((&jobs["documents"], &jobs["hidden"]), (&json!(2_505), &json!(2)));
    assert_eq!(jobs["checksum"].as_str().unwrap().len(), 32);

    assert_same(&ours, &contents(&*open_shared(&shared).await).await);
    let store = open(&back);
    assert_same(&ours, &contents(&*store).await);
    assert!(store.sequence("jobs", 1).await.unwrap().start > 77_000);
}

/// Jobs that a node held when it was killed, and those that waited, run on the other store; keys are good there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_unfinished_is_finished_by_a_node_on_the_copy() {
    let (home, second) = (home(), home());
    let rota = home.up_with(&["--capacity", "1"]);
    let client = Client::new(&rota.url, KEY).unwrap();
    let submit = |millis: u64| {
        let job = NewJob::new("unfinished", "wait", json!({"millis": millis}));
        let client = &client;
        async move { client.submit_job(&Domain::default(), &job, None).await.unwrap().job_id }
    };
    let (started, queued) = (submit(3_000).await, submit(10).await);
    let status = |id: JobId| {
        let client = &client;
        async move { client.job(&Domain::default(), id).await.unwrap().status }
    };
    while status(started).await != JobStatus::Started {
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status(queued).await, JobStatus::Queued);
    rota.kill();

    let shared = postgres::fresh();
    assert_eq!(json(&copy(&home, &sqlite(&home.data()), &shared, &[]))["equal"], true);
    let rota = tokio::task::block_in_place(|| second.serve(&shared, &[]));
    let client = Client::new(&rota.url, KEY).unwrap();
    for id in [started, queued] {
        let job = client.wait_for_job(&Domain::default(), id, Duration::from_secs(60)).await.unwrap();
        assert_eq!(job.status, JobStatus::Successful);
    }
    let new = NewJob::new("new", "noop", json!({}));
    let new = client.submit_job(&Domain::default(), &new, None).await.unwrap();
    let queued = client.job(&Domain::default(), queued).await.unwrap();
    assert!(new.job_number > queued.job_number, "{} and {}", new.job_number, queued.job_number);
    // Nothing is copied over what the node did.
    assert_refused(&copy(&home, &sqlite(&home.data()), &shared, &[]), 4, "it is not empty");
}

/// Back in a folder, everything is as it was for whoever asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rota_up_starts_on_a_folder_that_is_a_copy() {
    let (home, second) = (home(), home());
    let rota = up(&home);
    let client = Client::new(&rota.url, KEY).unwrap();
    let job = NewJob::new("copied", "noop", json!({}));
    let job = client.submit_job(&Domain::default(), &job, None).await.unwrap();
    let done = client.wait_for_job(&Domain::default(), job.job_id, Duration::from_secs(60)).await.unwrap();
    tokio::task::block_in_place(|| rota.terminate());

    assert_eq!(json(&copy(&home, &sqlite(&home.data()), &sqlite(&second.data()), &[]))["equal"], true);
    let rota = up(&second);
    let client = Client::new(&rota.url, KEY).unwrap();
    assert_eq!(client.job(&Domain::default(), job.job_id).await.unwrap(), done);
    let next = NewJob::new("next", "noop", json!({}));
    let next = client.submit_job(&Domain::default(), &next, None).await.unwrap();
    assert!(next.job_number > job.job_number);
}

async fn count_of_jobs(store: &dyn Store) -> u64 {
    store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap()[0].count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_killed_goes_on() {
    let (home, second) = (home(), home());
    let (data, shared) = (home.data(), postgres::fresh());
    let store = open(&data);
    settings::open(Arc::clone(&store), NOW.to_date()).await.unwrap();
    put_jobs(&*store, 25_000).await;
    let ours = contents(&*store).await;
    drop(store);

    let target = open_shared(&shared).await;
    let mut command = home.command();
    command.args(["store", "copy", "--from", &sqlite(&data), "--to", &shared]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let some = async {
        while count_of_jobs(&*target).await < 7_000 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(120), some).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let copied = count_of_jobs(&*target).await;
    assert!((7_000..25_000).contains(&copied), "{copied}");

    let mut serve = second.command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--store", &shared, "--data"]).arg(second.data());
    let refused = tokio::task::block_in_place(|| serve.output().unwrap());
    assert_refused(&refused, 2, "that was not finished; give the same `rota store copy` again");
    let third = home.path().join("third");
    assert_refused(&copy(&home, &shared, &sqlite(&third), &[]), 4, "a copy of");
    assert!(!third.exists());

    let copied = json(&copy(&home, &sqlite(&data), &shared, &[]));
    assert_eq!((&copied["equal"], &copied["resumed"]), (&json!(true), &json!(true)), "{copied}");
    assert_same(&ours, &contents(&*target).await);
}

/// Whoever copies a store that is in use is told that it is ahead of the copy.
fn assert_goes_on(copied: &Output) {
    let (told, said) = (json(copied), complaint(copied));
    assert_eq!(told["sourceInUse"], true, "{told}");
    assert!(
        said.contains("was in use and goes on") && said.contains("give the same command again"),
        "{said}"
    );
}

fn up(home: &Home) -> Rota {
    tokio::task::block_in_place(|| home.up())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_embedded_store_is_refused_or_one_moment_of_it_is_copied() {
    let home = home();
    let rota = up(&home);
    let (from, other) = (sqlite(&home.data()), home.path().join("other"));
    let holder = format!("is in use by Rota with process id {}", rota.id());
    let refused = copy(&home, &from, &sqlite(&other), &[]);
    assert_refused(&refused, 4, &holder);
    assert_refused(&refused, 4, "--while-running");
    assert!(!other.exists());

    let copied = copy(&home, &from, &sqlite(&other), &["--while-running"]);
    assert_goes_on(&copied);
    assert_eq!(json(&copied)["equal"], true);
    let flags = ["--while-running", "--output", "table"];
    let told = complaint(&copy(&home, &from, &sqlite(&home.path().join("third")), &flags));
    assert!(told.contains("was in use and goes on") && !told.contains("`rota up"), "{told}");
    assert!(!home.data().join("copied-moment").exists());
    let client = Client::new(&rota.url, KEY).unwrap();
    let new = NewJob::new("after the copy", "noop", json!({}));
    let new = client.submit_job(&Domain::default(), &new, None).await.unwrap();
    client.wait_for_job(&Domain::default(), new.job_id, Duration::from_secs(60)).await.unwrap();
    tokio::task::block_in_place(|| rota.terminate());

    // At rest, the same command brings the rest.
    let copied = json(&copy(&home, &from, &sqlite(&other), &[]));
    assert_eq!((&copied["equal"], &copied["resumed"]), (&json!(true), &json!(true)), "{copied}");
    assert_eq!(copied["sourceInUse"], false, "{copied}");
    let ours = contents(&*open(&home.data())).await;
    assert!(ours.contains_key(&format!("jobs/{}", new.job_id)));
    assert_same(&ours, &contents(&*open(&other)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_at_work_on_postgresql_are_found_and_named() {
    let (home, shared) = (home(), postgres::fresh());
    let rota = tokio::task::block_in_place(|| home.serve(&shared, &["--name", "busy-bee"]));
    let other = home.path().join("other");
    let refused = copy(&home, &shared, &sqlite(&other), &[]);
    assert_refused(&refused, 4, "is in use by the nodes busy-bee");
    assert_refused(&refused, 4, "--while-running");
    assert!(!other.exists());

    let copied = copy(&home, &shared, &sqlite(&other), &["--while-running"]);
    assert_goes_on(&copied);
    tokio::task::block_in_place(|| rota.terminate());
    let copied = json(&copy(&home, &shared, &sqlite(&other), &[]));
    assert_eq!((&copied["equal"], &copied["resumed"]), (&json!(true), &json!(true)), "{copied}");
    assert_same(&contents(&*open_shared(&shared).await).await, &contents(&*open(&other)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_an_older_rota_made_is_copied_as_it_is() {
    let (home, shared) = (home(), postgres::fresh());
    settings::open(open_shared(&shared).await, NOW.to_date()).await.unwrap();
    run_sql(&shared, "UPDATE facts SET value = 1 WHERE name = 'schema'");
    assert_eq!(json(&copy(&home, &shared, &sqlite(&home.data()), &[]))["equal"], true);
    assert_eq!(run_sql(&shared, "SELECT value FROM facts WHERE name = 'schema'"), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_cannot_be_read_ends_the_copy_and_is_named() {
    let (home, shared) = (home(), postgres::fresh());
    let store = open_shared(&shared).await;
    settings::open(Arc::clone(&store), NOW.to_date()).await.unwrap();
    put_jobs(&*store, 3).await;
    let damaged = "SET body = '{\"@text\": \"{broken\"}' WHERE id = 'job-0000001'";
    let kept = run_sql(&shared, "SELECT body FROM \"jobs.rows\" WHERE id = 'job-0000001'");
    run_sql(&shared, &format!("UPDATE \"jobs.rows\" {damaged}"));
    let to = sqlite(&home.data());
    for _ in 0..2 {
        let refused = copy(&home, &shared, &to, &[]);
        assert_refused(&refused, 1, "read jobs/job-0000001: its body cannot be read");
        assert_refused(&refused, 1, "restore a backup of it, or take that document away there");
    }

    let mended = format!("UPDATE \"jobs.rows\" SET body = '{kept}' WHERE id = 'job-0000001'");
    run_sql(&shared, &mended);
    let copied = json(&copy(&home, &shared, &to, &[]));
    assert_eq!((&copied["equal"], &copied["resumed"]), (&json!(true), &json!(true)), "{copied}");
    assert_same(&contents(&*store).await, &contents(&*open(&home.data())).await);
}

fn tables(url: &str) -> String {
    run_sql(url, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_place_is_made_for_the_copy_of_what_a_newer_rota_wrote() {
    let home = home();
    let (data, other, shared) = (home.data(), home.path().join("other"), postgres::fresh());
    let store = open(&data);
    settings::open(Arc::clone(&store), NOW.to_date()).await.unwrap();
    let key = Key::new(&SETTINGS, "installation");
    let mut found = store.read(vec![key.clone()]).await.unwrap().pop().unwrap().unwrap();
    found.body.insert("oldest_reader".to_owned(), json!(99));
    write(&*store, vec![Write::Replace { key, version: found.version, body: found.body }]).await;
    drop(store);
    for to in [&sqlite(&other), &shared] {
        assert_refused(&copy(&home, &sqlite(&data), to, &[]), 2, "written by a newer Rota");
    }
    assert!(!other.exists());
    assert_eq!(tables(&shared), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_copied_is_told_so_and_nothing_is_made() {
    let home = home();
    let (data, shared) = (home.data(), postgres::fresh());
    let (from, to) = (sqlite(&data), sqlite(&home.path().join("other")));
    assert_refused(&copy(&home, &from, &to, &[]), 3, "there is no Rota in");
    assert_refused(&copy(&home, &shared, &to, &[]), 3, "there is no Rota in");
    assert_eq!((tables(&shared).as_str(), fs::read_dir(home.path()).unwrap().count()), ("0", 0));

    drop(up(&home));
    let dotted = sqlite(&home.path().join("./data"));
    assert_refused(&copy(&home, &from, &dotted, &[]), 2, "to itself");
    assert_refused(&copy(&home, &shared, &shared, &[]), 2, "to itself");
    for wrong in ["mysql://rota:hush@db/rota", "postgre://rota:hush@db/rota"] {
        let refused = copy(&home, &from, wrong, &[]);
        assert_refused(&refused, 2, "the store must be sqlite:DIR or postgres://");
        assert!(!complaint(&refused).contains("hush"), "{}", complaint(&refused));
    }
    let nobody = copy(&home, "postgres://rota:hush@127.0.0.1:1/rota", &to, &[]);
    assert_refused(&nobody, 5, "cannot be reached at 127.0.0.1:1");
    assert!(!complaint(&nobody).contains("hush"), "{}", complaint(&nobody));
    assert!(!home.path().join("other").exists());

    let second = Home::new(env!("CARGO_BIN_EXE_rota"));
    let rota = up(&second);
    assert_refused(&copy(&home, &from, &sqlite(&second.data()), &[]), 4, "name another folder with --to");
    rota.kill();
    assert_refused(&copy(&home, &from, &sqlite(&second.data()), &[]), 4, "it is not empty: it holds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_told_what_was_copied_and_what_to_do_next() {
    let home = home();
    drop(up(&home));
    let other = home.path().join("other");
    let copied = copy(&home, &sqlite(&home.data()), &sqlite(&other), &["--output", "table"]);
    let told = format!("{}{}", String::from_utf8_lossy(&copied.stdout), complaint(&copied));
    assert!(told.contains("COLLECTION") && told.contains("\njobs ") && told.contains(" equal\n"), "{told}");
    let start = format!("`rota up --data {}` starts on the copy.", other.display());
    assert!(told.contains(&start) && !told.contains('\u{1b}'), "{told}");
}
