//! A backup is one whole moment of a store that goes on, and a store again when it is restored.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rota_model::time::UnixMillis;
use rota_store::collection::{JOBS, USERS};
use rota_store::query::{Order, Query};
use rota_store::seam::{Key, Write, Written};
use rota_store::{Store, StoreError};
use rota_store_sqlite::backup::{Progress, Restored, backup, look_at, restore};
use rota_store_sqlite::check::check;
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::stats::stats;
use rota_store_sqlite::{FILE, SqliteStore};
use serde_json::json;

fn holder(folder: &Path) -> Holder {
    Holder::take(folder, "a test").unwrap()
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, holder(folder)).unwrap()
}

fn create(n: u64) -> Write {
    let body =
        json!({"jobNumber": n, "jobName": format!("job {n}"), "status": "QUEUED", "text": "x".repeat(500)});
    Write::Create { key: Key::new(&JOBS, format!("{n:08}")), body: body.as_object().unwrap().clone() }
}

async fn total(store: &SqliteStore) -> u64 {
    let totals = store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap();
    totals.first().unwrap().count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_moment_of_a_store_that_is_written() {
    let place = tempfile::tempdir().unwrap();
    let (folder, file) = (place.path().join("data"), place.path().join("rota.backup"));
    let store = Arc::new(open(&folder));
    store.write((0..8_000).map(create).collect()).await.unwrap();
    let (acknowledged, stop) = (Arc::new(AtomicU64::new(8_000)), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn(keep_writing(Arc::clone(&store), Arc::clone(&acknowledged), Arc::clone(&stop)));
    let before = acknowledged.load(Ordering::SeqCst);
    let (from, to) = (folder.clone(), file.clone());
    let seen = tokio::task::spawn_blocking(move || {
        let mut seen: Vec<Progress> = Vec::new();
        backup(&from, &to, &mut |progress| seen.push(progress)).unwrap();
        seen
    })
    .await
    .unwrap();
    let after = acknowledged.load(Ordering::SeqCst);
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    assert!(seen.last().is_some_and(|last| last.done == last.of && last.of > 0), "{seen:?}");

    let other = place.path().join("other");
    let restored = restore(&other, &holder(&other), &file, false, "now", &mut |_| {}).unwrap();
    assert_eq!(restored, Restored::Into(other.join(FILE)));
    let copy = open(&other);
    let count = total(&copy).await;
    assert!((before..=after + 8).contains(&count), "{before} <= {count} <= {after}");
    let read = copy
        .read((0..before).step_by(97).map(|n| Key::new(&JOBS, format!("{n:08}"))).collect())
        .await
        .unwrap();
    assert!(read.iter().all(Option::is_some));
    // What it writes now is never taken for something of the store it came from.
    let Written::Applied(here) = copy.write(vec![create(1 << 40)]).await.unwrap()[0] else { unreachable!() };
    let Written::Applied(there) = store.write(vec![create(1 << 40)]).await.unwrap()[0] else {
        unreachable!()
    };
    assert!(here.0 > there.0 + 1_000_000_000);
    drop(copy);
    for folder in [&folder, &other] {
        let findings = check(folder, &mut |_| {}).unwrap();
        assert!(findings.is_sound(), "{:?}", findings.faults);
    }
    let stats = stats(&folder).unwrap();
    let jobs = stats.collections.iter().find(|collection| collection.name == "jobs").unwrap();
    assert_eq!(jobs.documents, total(&store).await);
    assert!(jobs.document_bytes > 500 * 8_000 && jobs.index_bytes > 0, "{jobs:?}");
}

async fn keep_writing(store: Arc<SqliteStore>, acknowledged: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    for n in 8_000.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        store.write(vec![create(n)]).await.unwrap();
        acknowledged.store(n + 1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn what_is_there_is_neither_overwritten_nor_lost() {
    let place = tempfile::tempdir().unwrap();
    let (folder, file) = (place.path().join("data"), place.path().join("rota.backup"));
    let store = open(&folder);
    store.write(vec![create(1)]).await.unwrap();
    backup(&folder, &file, &mut |_| {}).unwrap();
    store.write(vec![create(2)]).await.unwrap();
    drop(store);
    let again = backup(&folder, &file, &mut |_| {}).unwrap_err();
    assert!(matches!(again, StoreError::Refused { .. }), "{again}");
    let refused = restore(&folder, &holder(&folder), &file, false, "now", &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("--replace"), "{refused}");
    assert_eq!(total(&open(&folder)).await, 2);

    let restored = restore(&folder, &holder(&folder), &file, true, "now", &mut |_| {}).unwrap();
    let Restored::Instead { kept } = restored else { panic!("{restored:?}") };
    assert_eq!(total(&open(&folder)).await, 1);
    // And what was there can be put back.
    let old = place.path().join("old");
    fs::create_dir(&old).unwrap();
    fs::rename(kept, old.join(FILE)).unwrap();
    assert_eq!(total(&open(&old)).await, 2);
}

#[tokio::test]
async fn only_a_whole_backup_of_rota_is_restored() {
    let place = tempfile::tempdir().unwrap();
    let (folder, file) = (place.path().join("data"), place.path().join("rota.backup"));
    let store = open(&folder);
    store.write((0..2_000).map(create).collect()).await.unwrap();
    backup(&folder, &file, &mut |_| {}).unwrap();
    drop(store);
    let whole = fs::read(&file).unwrap();
    let mut scratched = whole.clone();
    let middle = whole.len() / 2;
    scratched[middle..middle + 4_000].fill(0xff);
    let other = place.path().join("other");
    for content in [b"nothing of ours".to_vec(), whole[..whole.len() / 2].to_vec(), scratched] {
        fs::write(&file, content).unwrap();
        let refused = restore(&other, &holder(&other), &file, true, "now", &mut |_| {}).unwrap_err();
        assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
        assert!(!other.join(FILE).exists());
    }
}

/// Each way in which a file can fall apart is seen.
#[tokio::test]
async fn a_check_sees_what_is_wrong() {
    let damages = [
        (
            "UPDATE \"jobs.rows\" SET jobName = 'other' WHERE id = '00000001'",
            "jobs/00000001: the column of jobName",
        ),
        (
            "UPDATE \"jobs.rows\" SET body = '{\"x\"' WHERE id = '00000001'",
            "jobs/00000001: its body is missing or not",
        ),
        (
            "UPDATE \"jobs.rows\" SET body = json_set(body, '$.status', 'X')",
            "holds a field that belongs in a column",
        ),
        (
            "UPDATE \"jobs.rows\" SET body = '' WHERE id = '00000001'",
            "jobs/00000001: its body is missing or not",
        ),
        ("UPDATE counts SET n = n + 1", "the total of [null,\"QUEUED\",null] is off by -1"),
        ("INSERT INTO \"jobs.large\" VALUES (77, '{}')", "1 rows belong to no document"),
        ("INSERT INTO \"users.hashed_api_key\" VALUES ('x', 77)", "1 rows belong to no document"),
    ];
    for (damage, finding) in damages {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.write(vec![create(1)]).await.unwrap();
        drop(store);
        assert!(check(folder.path(), &mut |_| {}).unwrap().is_sound());
        let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
        raw.execute_batch(damage).unwrap();
        drop(raw);
        let findings = check(folder.path(), &mut |_| {}).unwrap();
        assert!(
            findings.faults.iter().any(|fault| fault.contains(finding)),
            "{damage}: {:?}",
            findings.faults
        );
    }
}

/// What stands apart from a row, a large body or the texts of a list, goes with it, however it goes.
#[tokio::test]
async fn nothing_is_left_of_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let large = |n: u64| {
        let Write::Create { key, mut body } = create(n) else { unreachable!() };
        body.insert("text".to_owned(), json!("x".repeat(50_000)));
        Write::Create { key, body }
    };
    let user = Key::new(&USERS, "local:a");
    let keys = json!({"hashed_api_key": ["one", "two"]}).as_object().unwrap().clone();
    let made = store
        .write(vec![large(1), large(2), Write::Create { key: user.clone(), body: keys.clone() }])
        .await
        .unwrap();
    let version = |nth: usize| match made.get(nth) {
        Some(Written::Applied(version)) => *version,
        other => panic!("{other:?}"),
    };
    let (first, second) = (Key::new(&JOBS, "00000001"), Key::new(&JOBS, "00000002"));
    let Write::Create { body: small, .. } = create(2) else { unreachable!() };
    let hidden = store
        .write(vec![
            Write::Delete { key: first.clone(), version: version(0), at: UnixMillis(1) },
            Write::Replace { key: second.clone(), version: version(1), body: small.clone() },
            Write::Delete { key: user, version: version(2), at: UnixMillis(1) },
        ])
        .await
        .unwrap();
    let Some(Written::Applied(version)) = hidden.first() else { panic!("{hidden:?}") };
    store.write(vec![Write::Purge { key: first, version: *version }]).await.unwrap();
    assert_eq!(store.read(vec![second]).await.unwrap().remove(0).unwrap().body, small);
    drop(store);
    let findings = check(folder.path(), &mut |_| {}).unwrap();
    assert!(findings.is_sound(), "{:?}", findings.faults);
}

/// The same backup restored twice goes on with other versions each time.
#[tokio::test]
async fn two_lives_of_one_backup_share_no_version() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("rota.backup");
    let store = open(&place.path().join("data"));
    backup(&place.path().join("data"), &file, &mut |_| {}).unwrap();
    drop(store);
    let mut versions = Vec::new();
    for life in ["one", "two"] {
        let folder = place.path().join(life);
        restore(&folder, &holder(&folder), &file, false, "now", &mut |_| {}).unwrap();
        let written = open(&folder).write(vec![create(1)]).await.unwrap();
        let Some(Written::Applied(version)) = written.first() else { panic!("{written:?}") };
        versions.push(version.0);
    }
    let apart = versions[0].abs_diff(versions[1]);
    assert!(apart > 1_000_000 && versions.iter().all(|version| *version > 1 << 40), "{versions:?}");
}

/// Several at once under one name: one of them makes the file, and it is whole.
#[tokio::test]
async fn backups_under_one_name_do_not_meet() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    let store = open(&folder);
    store.write((0..500).map(create).collect()).await.unwrap();
    for round in 0..20 {
        let file = place.path().join(format!("{round}.backup"));
        let backups: Vec<_> = (0..4)
            .map(|_| {
                let (folder, file) = (folder.clone(), file.clone());
                tokio::task::spawn_blocking(move || backup(&folder, &file, &mut |_| {}))
            })
            .collect();
        let mut made = 0;
        for backup in backups {
            match backup.await.unwrap() {
                Ok(()) => made += 1,
                Err(error) => assert!(matches!(error, StoreError::Refused { .. }), "{error:?}"),
            }
        }
        assert_eq!(made, 1);
        look_at(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["data"]);
    }
}

/// Whoever looks at a store from within its own process takes nothing from it: afterwards a stranger who wants the file
/// for itself is still told that it is in use.
#[tokio::test]
async fn looking_from_within_takes_no_lock_away() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.write(vec![create(1)]).await.unwrap();
    stats(folder.path()).unwrap();
    let stranger = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["a_stranger", "--exact", "--nocapture"])
        .env("ROTA_STRANGER", folder.path().join(FILE))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&stranger.stdout);
    assert!(said.contains("database is locked"), "{said}");
    assert_eq!(total(&store).await, 1);
}

/// Wants a file for itself, as any program with SQLite may. By itself it does nothing.
#[test]
fn a_stranger() {
    let Some(file) = std::env::var_os("ROTA_STRANGER") else { return };
    let raw = rusqlite::Connection::open(file).unwrap();
    raw.busy_timeout(std::time::Duration::ZERO).unwrap();
    raw.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
    println!("{:?}", raw.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)));
}
