//! Totals are what they would be if somebody counted, whatever the server thinks of its tables.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Claim, Key, Write};
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres::{self, run_sql};
use serde_json::json;

const DUE: Order = Order { fields: &["runAt", "jobNumber"], descending: false };

fn due(lane: &str, limit: usize) -> Query {
    let query = Query::new(&JOBS, DUE).filter(Filter::Is("status", json!("QUEUED")));
    query.filter(Filter::Is("lane", json!(lane))).filter(Filter::AtMost("runAt", 100)).limit(limit)
}

async fn create(store: &PostgresStore, lane: &str, number: i64) {
    let body =
        json!({"domain": "default", "status": "QUEUED", "lane": lane, "runAt": number, "jobNumber": number});
    let (key, body) = (Key::new(&JOBS, format!("{lane}{number}")), body.as_object().unwrap().clone());
    store.write(vec![Write::Create { key, body }]).await.unwrap();
}

/// Each lane is asked for its share, and then for the rest: a document that one query has picked may be picked by the next, where
/// the server knows its table as it was when there was next to nothing in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_picked_twice_counts_once() {
    let url = postgres::fresh();
    let store = PostgresStore::open(&url).await.unwrap();
    create(&store, "a", 1).await;
    run_sql(&url, "ANALYZE \"jobs.rows\"");
    for number in 2..=8 {
        create(&store, "a", number).await;
        create(&store, "b", number).await;
    }
    let mut claimed = Vec::new();
    for round in 0..3 {
        let claim = Claim {
            collection: &JOBS,
            from: vec![due("a", 5), due("b", 5), due("a", 20), due("b", 20)],
            max: 20,
            set: vec![("status", json!("STARTED"))],
            add_one: Some("epoch"),
            token: ("claimToken", ClaimToken::rising(UnixMillis(round), &[7; 10])),
        };
        claimed.extend(store.claim(claim).await.unwrap().into_iter().map(|job| job.key.id));
    }
    claimed.sort();
    let unique = claimed.len();
    claimed.dedup();
    assert_eq!((claimed.len(), unique), (15, 15), "each once: {claimed:?}");
    for (status, expected) in [("STARTED", 15), ("QUEUED", 0)] {
        let query = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!(status)));
        let total = store.count(query, None).await.unwrap().first().map(|tally| tally.count);
        assert_eq!(total, Some(expected), "{status}");
    }
}
