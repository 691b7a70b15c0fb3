//! A store that waits for its disk a moment later: it does, and where it must not it does not.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::path::Path;
use std::time::Duration;

use rota_store::Store;
use rota_store::collection::{DOMAINS, JOBS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Key, Write};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::Holder;
use serde_json::json;

/// Longer than any test.
const NEVER: Durability = Durability::Within(Duration::from_secs(60 * 60));

fn open(folder: &Path, durability: Durability) -> SqliteStore {
    SqliteStore::open_with(folder, Holder::take(folder, "a test").unwrap(), durability).unwrap()
}

async fn make(store: &SqliteStore, key: Key) {
    let body = json!({"jobName": "nightly report"}).as_object().unwrap().clone();
    store.write(vec![Write::Create { key, body }]).await.unwrap();
}

/// The text index, which syncs too, has nothing to do with domains.
async fn make_without_words(store: &SqliteStore, id: &str) {
    make(store, Key::new(&DOMAINS, id)).await;
}

async fn probe(what: &str, is_so: impl AsyncFn() -> bool) {
    let mut tries = 0;
    while !is_so().await {
        tries += 1;
        assert!(tries < 10_000, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn commits_are_on_disk_when_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Durability::OnDisk);
    make_without_words(&store, "a").await;
    assert_eq!(store.unsynced_commits(), 0);
    drop(store);

    let store = open(folder.path(), NEVER);
    make_without_words(&store, "b").await;
    assert_eq!(store.unsynced_commits(), 0, "versions were taken with it, which must not be taken again");
    make_without_words(&store, "c").await;
    make_without_words(&store, "d").await;
    assert_eq!(store.unsynced_commits(), 2);
    store.sequence("jobs", 1).await.unwrap();
    assert_eq!(store.unsynced_commits(), 0, "a number must not be given out again");
    make_without_words(&store, "e").await;
    drop(store);

    let store = open(folder.path(), Durability::Within(Duration::from_millis(50)));
    for name in ["f", "g", "h"] {
        make_without_words(&store, name).await;
    }
    probe("it is on disk soon", async || store.unsynced_commits() == 0).await;
    let all = Query::new(&DOMAINS, Order::BY_ID);
    assert_eq!(store.find(all).await.unwrap().documents.len(), 8);
}

#[tokio::test]
async fn the_text_index_learns_from_what_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), NEVER);
    make_without_words(&store, "a").await;
    make(&store, Key::new(&JOBS, "b")).await;
    let worded = || Query::new(&JOBS, Order::BY_ID).filter(Filter::Text("report".to_owned()));
    probe("it is found", async || store.find(worded()).await.unwrap().documents.len() == 1).await;
    assert_eq!(store.unsynced_commits(), 0);
}
