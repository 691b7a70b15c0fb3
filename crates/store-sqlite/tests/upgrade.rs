//! Files of every released schema are opened, brought up to date and used. A fixture is kept for ever.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::fs;
use std::path::{Path, PathBuf};

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::{JOBS, STATE, UNIQUE_KEYS, USERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Document, Key, Write, Written};
use rota_store_sqlite::check::check;
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::{FILE, SqliteStore};
use serde_json::{Value, json};

fn fixtures() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Holder::take(folder, "a test").unwrap()).unwrap()
}

async fn all(store: &SqliteStore, query: Query) -> Vec<Document> {
    store.find(query).await.unwrap().documents
}

#[tokio::test]
async fn every_released_file_is_brought_up_to_date() {
    let fixtures = fixtures();
    assert!(!fixtures.is_empty());
    for fixture in fixtures {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(&fixture, folder.path().join(FILE)).unwrap();
        let before = raw_jobs(&folder.path().join(FILE));
        without_keys(&folder.path().join(FILE));
        with_what_was_declared_later(&folder.path().join(FILE));
        let store = open(folder.path());
        let after = all(&store, Query::new(&JOBS, Order::BY_ID)).await;
        assert_eq!(after.len(), 5, "{}", fixture.display());
        for document in &after {
            assert_eq!(
                before.iter().find(|(id, _)| *id == document.key.id).unwrap().1,
                document.body["jobName"]
            );
        }
        is_of_use(&store).await;
        drop(store);
        let findings = check(folder.path(), &mut |_| {}).unwrap();
        assert!(findings.is_sound(), "{:?}", findings.faults);
        // What was upgraded stays so.
        assert_eq!(all(&open(folder.path()), Query::new(&JOBS, Order::BY_ID)).await.len(), 6);
    }
}

/// A user without keys, as schema 1 wrote it.
fn without_keys(file: &Path) {
    let raw = rusqlite::Connection::open(file).unwrap();
    let empty = "UPDATE \"users.rows\" SET hashed_api_key = '[]', body = json_set(body, '$.hashed_api_key', json('[]'))
        WHERE id = 'local:admin'";
    assert_eq!(raw.execute(empty, []).unwrap(), 1);
}

/// Older versions kept fields that were not declared yet in the body, as they keep any other.
fn with_what_was_declared_later(file: &Path) {
    let raw = rusqlite::Connection::open(file).unwrap();
    let expiring = "UPDATE \"jobs.rows\" SET body = json_set(body, '$.expiresAt', 1800000000000 + jobNumber)
        WHERE status = 'QUEUED' AND body <> ''";
    raw.execute(expiring, []).unwrap();
    raw.execute("UPDATE \"state.rows\" SET body = json_set(body, '$.wanted', 'PAUSE')", []).unwrap();
}

fn raw_jobs(file: &Path) -> Vec<(String, Value)> {
    let raw = rusqlite::Connection::open(file).unwrap();
    let mut names = raw.prepare("SELECT id, jobName FROM \"jobs.rows\"").unwrap();
    let rows = names.query_map([], |row| Ok((row.get(0)?, Value::String(row.get(1)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Totals, indexes over several texts, claims, large bodies, what expires and is unique: all that came later works on the
/// old file.
async fn is_of_use(store: &SqliteStore) {
    let expiring = Query::new(&JOBS, Order { fields: &["expiresAt"], descending: false })
        .filter(Filter::Is("status", json!("QUEUED")))
        .filter(Filter::AtMost("expiresAt", 1_900_000_000_000));
    let expiring = all(store, expiring).await;
    assert_eq!(expiring.iter().map(|job| &job.body["jobNumber"]).collect::<Vec<_>>(), [4, 5]);
    let paused =
        all(store, Query::new(&STATE, Order::BY_ID).filter(Filter::Is("wanted", json!("PAUSE")))).await;
    assert_eq!(paused[0].body["wanted"], json!("PAUSE"));
    assert!(all(store, Query::new(&UNIQUE_KEYS, Order::BY_ID)).await.is_empty());

    let totals = store.count(Query::new(&JOBS, Order::BY_ID), Some("status")).await.unwrap();
    let totals: Vec<_> = totals.iter().map(|tally| (tally.value.as_str().unwrap(), tally.count)).collect();
    assert_eq!(totals, [("QUEUED", 2), ("SUCCESSFUL", 3)]);

    let users = all(store, Query::new(&USERS, Order::BY_ID)).await;
    let ada = users.iter().find(|user| user.key.id == "local:ada").unwrap();
    let hash = ada.body["hashed_api_key"][0].clone();
    let by_key =
        all(store, Query::new(&USERS, Order::BY_ID).filter(Filter::Is("hashed_api_key", hash))).await;
    assert_eq!(by_key[0].key.id, "local:ada");

    let due = Query::new(&JOBS, Order { fields: &["runAt", "jobNumber"], descending: false })
        .filter(Filter::Is("status", json!("QUEUED")))
        .limit(10);
    let claim = Claim {
        collection: &JOBS,
        from: vec![due],
        max: 10,
        set: vec![("status", json!("STARTED"))],
        add_one: Some("epoch"),
        token: ("claimToken", ClaimToken::rising(UnixMillis(0), &[1; 10])),
    };
    assert_eq!(store.claim(claim).await.unwrap().len(), 2);
    let large: Body = json!({"jobName": "large", "status": "QUEUED", "text": "x".repeat(100_000)})
        .as_object()
        .unwrap()
        .clone();
    let create = Write::Create { key: Key::new(&JOBS, "large"), body: large.clone() };
    assert!(matches!(store.write(vec![create]).await.unwrap()[0], Written::Applied(_)));
    let read = store.read(vec![Key::new(&JOBS, "large")]).await.unwrap().remove(0).unwrap();
    assert_eq!(read.body, large);
}

/// A file of a Rota that is not there yet.
#[test]
fn a_newer_file_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let file = folder.path().join(FILE);
    let raw = rusqlite::Connection::open(&file).unwrap();
    raw.pragma_update(None, "user_version", 1_000).unwrap();
    drop(raw);
    let before = fs::read(&file).unwrap();
    let refused =
        SqliteStore::open(folder.path(), Holder::take(folder.path(), "a test").unwrap()).err().unwrap();
    assert!(refused.to_string().contains("use a newer Rota"), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), before);
}
