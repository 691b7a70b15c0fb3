//! Rows that cannot be read as documents. No version of Rota writes such.

use rota_store::collection::JOBS;
use rota_store::query::{Order, Query};
use rota_store::seam::{Key, Write};
use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres::{self, run_sql};
use serde_json::json;

/// It keeps its place in lists; whoever must not go on without a part is told which document lacks it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_row_is_listed_and_is_named_to_whoever_asks_for_whole_documents() {
    let url = postgres::fresh();
    let store = PostgresStore::open(&url).await.unwrap();
    let body =
        json!({"jobName": "x", "status": "QUEUED", "result": {"data": 1}}).as_object().unwrap().clone();
    let create = |id: &str| Write::Create { key: Key::new(&JOBS, id), body: body.clone() };
    store.write(["a", "b", "c"].map(create).into()).await.unwrap();
    let list = Query::new(&JOBS, Order::BY_ID);
    for (damage, part) in [
        (r#"body = '{"@text": "{broken"}'"#, "its body cannot be read"),
        ("body = '[1]'", "its body cannot be read (it is not an object)"),
        (r#"body = '{}', result = '{"a": 1e400}'"#, "its result cannot be read"),
    ] {
        assert_eq!(store.find(list.clone().whole()).await.unwrap().documents.len(), 3);
        run_sql(&url, &format!("UPDATE \"jobs.rows\" SET {damage} WHERE id = 'b'"));
        let listed = store.find(list.clone()).await.unwrap().documents;
        assert_eq!((listed.len(), &listed[1].body["status"]), (3, &json!("QUEUED")));
        let error = store.find(list.clone().whole()).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("read jobs/b: {part}")), "{error}");
        run_sql(&url, "UPDATE \"jobs.rows\" SET body = '{}', result = NULL WHERE id = 'b'");
    }
}
