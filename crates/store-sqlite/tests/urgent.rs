//! Beats do not queue behind other writes.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::sync::{Arc, Mutex};

use rota_store::Store;
use rota_store::collection::{Collection, JOBS, STATE};
use rota_store::seam::{Key, Write};
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::{FILE, SqliteStore};
use serde_json::json;
use tokio::task::JoinSet;

fn creates(collection: &'static Collection, name: &str, count: usize) -> Vec<Write> {
    let body = json!({"status": "QUEUED"}).as_object().unwrap().clone();
    let key = |nth: usize| Key::new(collection, format!("{name} {nth}"));
    (0..count).map(|nth| Write::Create { key: key(nth), body: body.clone() }).collect()
}

/// On one thread tasks run in the order in which they were started, and go on in the order in which they are answered.
#[tokio::test]
async fn a_beat_is_answered_before_all_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let holder = Holder::take(folder.path(), "a test").unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), holder).unwrap());
    let answered = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    let mut ask = |name: String, batch: Vec<Write>| {
        let (store, answered) = (Arc::clone(&store), Arc::clone(&answered));
        tasks.spawn(async move {
            store.write(batch).await.unwrap();
            answered.lock().unwrap().push(name);
        });
    };
    // While somebody else has the file, the writer is held up with the first of them.
    let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    ask("first".to_owned(), creates(&JOBS, "first", 1));
    for nth in 0..20 {
        let name = format!("batch {nth}");
        ask(name.clone(), creates(&JOBS, &name, 1_000));
    }
    ask("beat".to_owned(), creates(&STATE, "beat", 1));
    tasks.spawn(async move { raw.execute_batch("ROLLBACK").unwrap() });
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let answered = answered.lock().unwrap();
    assert_eq!(answered.len(), 22);
    // Before it came, the writer may have taken some of the batches together with the first.
    assert!(answered.iter().take(4).any(|name| name == "beat"), "{answered:?}");
}
