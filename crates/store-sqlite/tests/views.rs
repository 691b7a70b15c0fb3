//! Whoever opens the file sees whole documents, in views named as the collections are.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::{JOBS, TIMERS};
use rota_store::seam::{Key, Version, Write, Written};
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::{FILE, SqliteStore};
use serde_json::{Value, json};

async fn write(store: &SqliteStore, write: Write) -> Version {
    match store.write(vec![write]).await.unwrap()[0] {
        Written::Applied(version) => version,
        other => panic!("{other:?}"),
    }
}

fn create(key: Key, body: &Value) -> Write {
    Write::Create { key, body: body.as_object().unwrap().clone() }
}

#[tokio::test]
async fn views_show_whole_documents() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Holder::take(folder.path(), "a test").unwrap()).unwrap();
    let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    let shown = |view: &str| -> Vec<(String, Value)> {
        let mut rows = raw.prepare(&format!("SELECT id, document FROM \"{view}\" ORDER BY id")).unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
        rows.map(|row| row.map(|(id, text)| (id, serde_json::from_str(&text).unwrap())).unwrap()).collect()
    };
    let mut plain = json!({
        "jobName": "crab \u{1F980}", "status": "QUEUED", "input": {"type": "noop"}, "metadata": {"createdAt": 7},
        "result": {"kept": null, "list": [1, "two"]}, "progress": "as a text", "history": [],
    });
    let large = json!({"jobName": "large", "status": "QUEUED", "blob": "y".repeat(50_000)});
    let version = write(&store, create(Key::new(&JOBS, "a"), &plain)).await;
    write(&store, create(Key::new(&JOBS, "b"), &large)).await;
    let gone = write(&store, create(Key::new(&JOBS, "c"), &large)).await;
    write(&store, Write::Delete { key: Key::new(&JOBS, "c"), version: gone, at: UnixMillis(1) }).await;
    let fields = vec![("status", json!("STARTED")), ("metadata.updatedAt", json!(9)), ("epoch", json!(1))];
    write(&store, Write::Change { key: Key::new(&JOBS, "a"), version, fields }).await;
    plain["status"] = json!("STARTED");
    plain["metadata"]["updatedAt"] = json!(9);
    plain["epoch"] = json!(1);
    assert_eq!(shown("jobs"), [("a".to_owned(), plain), ("b".to_owned(), large)]);

    let domains: [Domain; 2] = ["default".parse().unwrap(), "other".parse().unwrap()];
    for domain in &domains {
        let timer = json!({"name": domain.as_str(), "status": "ACTIVE"});
        write(&store, create(Key::in_domain(&TIMERS, domain, "t"), &timer)).await;
    }
    assert_eq!(shown("timers-other"), [("t".to_owned(), json!({"name": "other", "status": "ACTIVE"}))]);
    assert_eq!(shown("timers").len(), 2);
    let started: i64 =
        raw.query_row("SELECT count(*) FROM jobs WHERE status = 'STARTED'", [], |row| row.get(0)).unwrap();
    assert_eq!(started, 1);
}
