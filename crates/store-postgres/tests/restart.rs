//! PostgreSQL is stopped, crashes and starts again in the middle of writes, and connections are cut: nothing acknowledged is lost,
//! what nobody knows of is there once or not at all, and the totals are what they must be.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Write, Written};
use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres::{Server, run_sql};
use serde_json::json;
use tokio::time::sleep;

/// Each writer makes its documents one batch after the other, each until it is known to be there.
struct Writers {
    /// Many share the first, and their batches are copied in together; few share the second, and theirs are statements.
    stores: [PostgresStore; 2],
    over: AtomicBool,
    made: AtomicUsize,
    unknown: AtomicUsize,
    repeated: AtomicUsize,
}

/// How many documents each writes at once, by the store: so many share a commit of the first that they are copied in.
const BATCH: [usize; 2] = [40, 7];
/// What an operator, a failing network or a pooler does: whatever is under way on a connection ends with it.
const CUT_OFF: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'rota'";

fn body(nth: usize) -> Body {
    let status = if nth.is_multiple_of(2) { "QUEUED" } else { "SUCCESSFUL" };
    let body = json!({"domain": "default", "jobName": format!("job {nth}"), "input": {"type": "noop"}, "status": status});
    body.as_object().unwrap().clone()
}

impl Writers {
    async fn run(self: Arc<Self>, store: usize) {
        let (store, size) = (&self.stores[store], BATCH[store]);
        while !self.over.load(Ordering::Relaxed) {
            let first = self.made.fetch_add(size, Ordering::Relaxed);
            let create = |nth: usize| Write::Create { key: Key::new(&JOBS, nth), body: body(nth) };
            let batch: Vec<Write> = (first..first + size).map(create).collect();
            let mut maybe = false;
            loop {
                match store.write(batch.clone()).await {
                    Ok(written) => {
                        let exist = written.iter().filter(|written| **written == Written::Exists).count();
                        assert!(
                            exist == 0 || (maybe && exist == size),
                            "a batch is written whole: {written:?}"
                        );
                        self.repeated.fetch_add(exist, Ordering::Relaxed);
                        break;
                    }
                    Err(StoreError::Unknown { .. }) => {
                        maybe = true;
                        self.unknown.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(StoreError::Unavailable { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_loses_nothing_and_doubles_nothing() {
    let mut server = Server::start(true);
    let url = server.fresh();
    let writers = Arc::new(Writers {
        stores: [PostgresStore::open(&url).await.unwrap(), PostgresStore::open(&url).await.unwrap()],
        over: AtomicBool::new(false),
        made: AtomicUsize::new(0),
        unknown: AtomicUsize::new(0),
        repeated: AtomicUsize::new(0),
    });
    let run = |nth: usize| tokio::spawn(Arc::clone(&writers).run(usize::from(nth.is_multiple_of(5))));
    let tasks: Vec<_> = (0..20).map(run).collect();
    for nth in 0..4 {
        sleep(Duration::from_millis(400)).await;
        if nth % 2 == 0 {
            server.crash();
        } else {
            server.stop();
        }
        server.resume();
        for _ in 0..5 {
            sleep(Duration::from_millis(100)).await;
            run_sql(&url, CUT_OFF);
        }
    }
    sleep(Duration::from_millis(400)).await;
    writers.over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let made = writers.made.load(Ordering::Relaxed);
    println!(
        "{made} documents, {} answers unknown, {} found to be there",
        writers.unknown.load(Ordering::Relaxed),
        writers.repeated.load(Ordering::Relaxed)
    );
    assert!(writers.unknown.load(Ordering::Relaxed) > 0, "nothing happened in the middle of a write");
    assert_eq!(run_sql(&url, "SELECT count(*) FROM jobs"), made.to_string());
    for (status, expected) in [("QUEUED", made.div_ceil(2)), ("SUCCESSFUL", made / 2)] {
        let query = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!(status)));
        let totals = writers.stores[0].count(query, None).await.unwrap();
        assert_eq!(totals.first().map(|tally| tally.count), Some(expected as u64), "{status}");
    }
}

/// Several nodes start at once on an empty database: one makes the tables, the others wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_comes_first_makes_the_tables() {
    // What they have to trip over each other in is short: each place is a chance.
    for _ in 0..8 {
        let url = rota_testkit::postgres::fresh();
        let opened = (0..6).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { PostgresStore::open(&url).await })
        });
        let opened: Vec<_> = opened.collect();
        for store in opened {
            store.await.unwrap().unwrap();
        }
        assert_eq!(run_sql(&url, "SELECT value FROM facts WHERE name = 'schema'"), "3");
    }
}

/// Who may not make tables is told what to do; with what is printed for it, it works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_not_make_tables_uses_those_that_somebody_made() {
    let server = Server::start(false);
    let url = server.fresh();
    let schema = run_sql(&url, "SELECT current_schema()");
    let role = format!("CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest");
    run_sql(&url, &role);
    let guest = url.replace("rota@", "guest@");
    let Err(error) = PostgresStore::open(&guest).await else { panic!("it made tables") };
    assert!(error.to_string().contains("rota store schema"), "{error}");
    run_sql(&url, &rota_store_postgres::schema());
    let granted = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA";
    run_sql(&url, &format!("{granted} {schema} TO guest"));
    let store = PostgresStore::open(&guest).await.unwrap();
    let made = store.write(vec![Write::Create { key: Key::new(&JOBS, "a"), body: body(0) }]).await.unwrap();
    assert!(matches!(made.as_slice(), [Written::Applied(_)]));
}
