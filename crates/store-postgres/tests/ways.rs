//! The way to PostgreSQL fails without a word, statements hang and are given up, and nobody can be told of changes: what can go on
//! goes on.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::time::Duration;

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, JOBS, STATE};
use rota_store::query::{Order, Query};
use rota_store::seam::{Key, Write, Written};
use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::relay::Relay;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

fn create(collection: &'static Collection, id: &str) -> Write {
    let body = json!({"domain": "default", "jobName": "a job", "status": "QUEUED", "name": "a node"});
    Write::Create { key: Key::new(collection, id), body: body.as_object().unwrap().clone() }
}

/// The address of a database behind a relay.
fn behind(server: &Server, relay: impl Fn(u16) -> Relay) -> (Relay, String) {
    let url = server.fresh();
    let port: u16 = run_sql(&url, "SHOW port").parse().unwrap();
    let relay = relay(port);
    let far = format!("{}&sslmode=disable", url.replace(&format!(":{port}"), &format!(":{}", relay.port)));
    (relay, far)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beats_find_another_way_before_a_lease_is_over() {
    let server = Server::start(false);
    let (relay, url) = behind(&server, Relay::before);
    let store = PostgresStore::open(&url).await.unwrap();
    store.write(vec![create(&STATE, "a"), create(&JOBS, "a")]).await.unwrap();
    store.write(vec![create(&STATE, "b")]).await.unwrap();
    relay.lose_connections();
    let began = Instant::now();
    let lost = store.write(vec![create(&STATE, "c")]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown { .. }), "{lost:?}");
    let written = store.write(vec![create(&STATE, "c")]).await.unwrap();
    assert!(matches!(written.as_slice(), [Written::Applied(_)]), "{written:?}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// Whoever gave up on one connection does not try all the others, one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_finds_another_way_at_the_second_try() {
    let server = Server::start(false);
    let (relay, url) = behind(&server, Relay::before);
    let store = PostgresStore::open(&url).await.unwrap();
    store.write(vec![create(&JOBS, "a")]).await.unwrap();
    let read = || store.read(vec![Key::new(&JOBS, "a")]);
    // Several at once, so that there are several connections.
    for found in futures::future::join_all((0..8).map(|_| read())).await {
        assert!(found.unwrap()[0].is_some());
    }
    relay.lose_connections();
    timeout(Duration::from_millis(1_200), read()).await.unwrap_err();
    let found = timeout(Duration::from_secs(4), read()).await.unwrap();
    assert!(found.unwrap()[0].is_some());
}

/// A table is locked for a while, and callers do not wait that long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_was_given_up_is_in_nobodys_way() {
    let server = Server::start(false);
    let url = server.fresh();
    let store = PostgresStore::open(&url).await.unwrap();
    store.write(vec![create(&JOBS, "a")]).await.unwrap();
    let locks = url.clone();
    let lock = "BEGIN; LOCK TABLE \"state.rows\" IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(6); COMMIT";
    let locked = std::thread::spawn(move || run_sql(&locks, lock));
    let is_locked = "SELECT count(*) FROM pg_locks WHERE relation = 'state.rows'::regclass AND granted";
    while run_sql(&url, &is_locked.replace("state.rows", "\"state.rows\"")) == "0" {
        sleep(Duration::from_millis(20)).await;
    }
    let blocked = store.read(vec![Key::new(&STATE, "a")]);
    timeout(Duration::from_millis(200), blocked).await.unwrap_err();
    let began = Instant::now();
    assert!(store.read(vec![Key::new(&JOBS, "a")]).await.unwrap()[0].is_some());
    assert!(began.elapsed() < Duration::from_secs(3), "it waited for the lock: {:?}", began.elapsed());
    let still_wants =
        "SELECT count(*) FROM pg_locks WHERE relation = '\"state.rows\"'::regclass AND NOT granted";
    while run_sql(&url, still_wants) != "0" {
        sleep(Duration::from_millis(50)).await;
    }
    assert!(!locked.is_finished(), "the server goes on with what nobody wants any more");
    locked.join().unwrap();
}

/// Engines that speak the protocol and cannot listen are not kept out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_listen_goes_without() {
    let server = Server::start(false);
    let (_relay, url) = behind(&server, |port| Relay::altering(port, "LISTEN", "LISTEM"));
    let store = PostgresStore::open(&url).await.unwrap();
    let written = store.write(vec![create(&JOBS, "a")]).await.unwrap();
    assert!(matches!(written.as_slice(), [Written::Applied(_)]), "{written:?}");
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    assert_eq!(run_sql(&server.url(), listening), "0", "somebody listens all the same");
}

/// Nor are those that do not know `COPY`, or not this form of it: one is refused while the statement is read, the other when the
/// driver believes that rows are wanted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_copy_inserts() {
    let server = Server::start(false);
    for (word, other) in [("COPY ", "COPX "), ("(FORMAT binary)", "(FORMAT binarx)")] {
        let (_relay, url) = behind(&server, |port| Relay::altering(port, word, other));
        let store = PostgresStore::open(&url).await.unwrap();
        for round in 0..3 {
            let many: Vec<_> = (0..300).map(|nth| create(&JOBS, &format!("{round} {nth}"))).collect();
            for batch in [many, vec![create(&JOBS, &format!("{round} alone"))]] {
                let written = store.write(batch).await.unwrap();
                assert!(written.iter().all(|one| matches!(one, Written::Applied(_))), "{other}: {written:?}");
            }
        }
        let total = store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap();
        assert_eq!(total.first().map(|tally| tally.count), Some(903), "{other}");
    }
}

/// What is hidden is few, and found by an index of its own, however many are shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_for_what_is_hidden_walks_past_nothing_else() {
    let server = Server::start(false);
    let url = server.fresh();
    let store = PostgresStore::open(&url).await.unwrap();
    run_sql(&url, "ALTER TABLE \"jobs.rows\" SET (autovacuum_enabled = false)");
    // Nobody has looked yet what is in the table.
    for slice in 0..20 {
        let many = (0..1_000).map(|nth| create(&JOBS, &format!("{slice} {nth}"))).collect();
        store.write(many).await.unwrap();
    }
    let read = "SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE indexrelname = 'jobs.rows_pkey'";
    let before: i64 = run_sql(&url, read).parse().unwrap();
    let hidden = Query::new(&JOBS, Order::BY_ID).hidden_before(UnixMillis(1)).limit(200);
    assert!(store.find(hidden).await.unwrap().documents.is_empty());
    // The server tells of it a second later.
    sleep(Duration::from_millis(1_500)).await;
    store.read(vec![Key::new(&JOBS, "0 1")]).await.unwrap();
    sleep(Duration::from_millis(1_500)).await;
    let after: i64 = run_sql(&url, read).parse().unwrap();
    assert!(after - before < 1_000, "it read {} of 20,000", after - before);
}
