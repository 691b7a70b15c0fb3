//! The file of the embedded store: what is in it after a restart, and what happens to a file that is not ours.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Key, Store, Write, Written};
use rota_store_sqlite::check::check;
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::{FILE, SqliteStore};
use serde_json::json;

fn open(folder: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(folder, Holder::take(folder, "a test").unwrap())
}

fn create(id: &str) -> Write {
    let body: Body = json!({"jobNumber": 1, "status": "QUEUED"}).as_object().unwrap().clone();
    Write::Create { key: Key::new(&JOBS, id), body }
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart_and_versions_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let Written::Applied(before) = store.write(vec![create("a")]).await.unwrap()[0] else { unreachable!() };
    let numbers = store.sequence("jobs", 3).await.unwrap();
    drop(store);

    let store = open(folder.path()).unwrap();
    let found = store.read(vec![Key::new(&JOBS, "a")]).await.unwrap().remove(0).unwrap();
    assert_eq!((found.version, &found.body["status"]), (before, &json!("QUEUED")));
    let Written::Applied(after) = store.write(vec![create("b")]).await.unwrap()[0] else { unreachable!() };
    assert!(after.0 > before.0);
    assert_eq!(store.sequence("jobs", 1).await.unwrap(), numbers.end..numbers.end + 1);
}

#[tokio::test]
async fn callers_at_the_same_moment_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(folder.path()).unwrap());
    let mut commits = store.changes(&JOBS);
    let writes: Vec<_> = (0..200)
        .map(|n| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move { store.write(vec![create(&format!("{n}"))]).await.unwrap() })
        })
        .collect();
    for write in writes {
        write.await.unwrap();
    }
    // One message holds what one commit changed.
    let (mut documents, mut messages) = (0, 0);
    while documents < 200 {
        let rota_store::hints::News::Of(ids) = commits.next().await else { unreachable!() };
        documents += ids.len();
        messages += 1;
    }
    assert!(messages < 100, "{messages} commits for 200 writes");
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_untouched() {
    for content in
        [b"certainly no database, but long enough to look at it twice".to_vec(), foreign_database()]
    {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, &content).unwrap();
        let refused = open(folder.path()).err().unwrap();
        assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

fn foreign_database() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE things (x)").unwrap();
    drop(other);
    fs::read(path).unwrap()
}

/// A process that died while making the file, after its first page and before its tables.
#[test]
fn a_half_made_file_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let half = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    half.pragma_update(None, "page_size", 8_192).unwrap();
    half.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(half);
    assert!(fs::metadata(folder.path().join(FILE)).unwrap().len() > 0);
    drop(open(folder.path()).unwrap());
    open(folder.path()).unwrap();
}

/// A row whose body is damaged keeps its place: nothing behind it disappears from a list, and it can be set aside.
#[tokio::test]
async fn a_damaged_row_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.write(["a", "b", "c"].map(create).into()).await.unwrap();
    drop(store);
    let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    raw.execute("UPDATE \"jobs.rows\" SET body = '{broken', result = '{x' WHERE id = 'b'", []).unwrap();
    drop(raw);
    let store = open(folder.path()).unwrap();
    let mut query = Query::new(&JOBS, Order::BY_ID).limit(1);
    let mut ids = Vec::new();
    loop {
        let page = store.find(query.clone()).await.unwrap();
        ids.extend(page.documents.into_iter().map(|document| document.key.id));
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    assert_eq!(ids, ["a", "b", "c"]);
    let damaged = store.read(vec![Key::new(&JOBS, "b")]).await.unwrap().remove(0).unwrap();
    let fields = vec![("status", json!("ERROR"))];
    let change = Write::Change { key: Key::new(&JOBS, "b"), version: damaged.version, fields };
    assert!(matches!(store.write(vec![change]).await.unwrap()[0], Written::Applied(_)));
}

/// Whoever must not go on without a part is told which document lacks it.
#[tokio::test]
async fn a_damaged_row_is_named_to_whoever_asks_for_whole_documents() {
    for (damage, part) in [
        ("body = '{broken'", "its body"),
        ("body = CAST(x'7b2261223a22ff227d' AS TEXT)", "its body"),
        ("result = '{x'", "its result"),
        ("result = CAST(x'22ff22' AS TEXT)", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        store.write(["a", "b", "c"].map(create).into()).await.unwrap();
        let whole = Query::new(&JOBS, Order::BY_ID).whole();
        assert_eq!(store.find(whole.clone()).await.unwrap().documents.len(), 3);
        drop(store);
        let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
        raw.execute(&format!("UPDATE \"jobs.rows\" SET {damage} WHERE id = 'b'"), []).unwrap();
        drop(raw);
        let error = open(folder.path()).unwrap().find(whole).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{damage}: {error:?}");
        assert!(error.to_string().starts_with(&format!("read jobs/b: {part}")), "{damage}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn the_file_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let _store = open(&data).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&data), 0);
    for name in [FILE.to_owned(), format!("{FILE}-wal"), format!("{FILE}-shm")] {
        assert_eq!(mode(&data.join(&name)), 0, "{name}");
    }
}

/// Cut short anywhere, the file is refused, and stays as it is for whoever can make something of it.
#[tokio::test]
async fn a_file_cut_short_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.write((0..500).map(|n| create(&format!("{n}"))).collect()).await.unwrap();
    drop(store);
    let file = folder.path().join(FILE);
    let whole = fs::read(&file).unwrap();
    for length in [50, 100, 8_192, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let refused = open(folder.path()).err().unwrap();
        assert!(matches!(refused, StoreError::Refused { .. }), "{length}: {refused:?}");
        assert!(refused.to_string().contains("it was left untouched"), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), &whole[..length]);
        assert!(!folder.path().join(format!("{FILE}-wal")).exists());
    }
    fs::write(&file, &whole).unwrap();
    open(folder.path()).unwrap();
}

/// A job that is made and taken within one commit is written once. The file itself counts.
#[tokio::test]
async fn what_changes_twice_in_a_commit_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let raw = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    let triggers = "CREATE TABLE probe (what TEXT);
        CREATE TRIGGER made AFTER INSERT ON \"jobs.rows\" BEGIN INSERT INTO probe VALUES ('insert'); END;
        CREATE TRIGGER changed AFTER UPDATE ON \"jobs.rows\" BEGIN INSERT INTO probe VALUES ('update'); END;";
    raw.execute_batch(triggers).unwrap();
    let store = open(folder.path()).unwrap();
    let due = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!("QUEUED"))).limit(10);
    let claim = |max| Claim {
        collection: &JOBS,
        from: vec![due.clone(), due.clone()],
        max,
        set: vec![("status", json!("STARTED"))],
        add_one: Some("epoch"),
        token: ("claimToken", ClaimToken::rising(UnixMillis(0), &[1; 10])),
    };
    // The writer gathers what waits while it is held up: here by whoever has the file for a moment.
    let mut both_in_one_commit = false;
    for round in 0..50 {
        raw.execute_batch("DELETE FROM probe").unwrap();
        raw.execute_batch("BEGIN IMMEDIATE").unwrap();
        let first = store.write(vec![create(&format!("held up {round}"))]);
        let rest = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let made = store.write(vec![create(&format!("a {round}")), create(&format!("b {round}"))]);
            let taken = store.claim(claim(10));
            let release = async { raw.execute_batch("COMMIT").unwrap() };
            let (made, taken, ()) = tokio::join!(made, taken, release);
            assert!(made.unwrap().iter().all(|written| matches!(written, Written::Applied(_))));
            taken.unwrap()
        };
        let (_, taken) = tokio::join!(first, rest);
        assert_eq!(taken.len(), 3);
        for document in &taken {
            let stored = store.read(vec![document.key.clone()]).await.unwrap().remove(0).unwrap();
            assert_eq!(&stored, document);
            assert_eq!((&stored.body["status"], &stored.body["epoch"]), (&json!("STARTED"), &json!(1)));
        }
        let count = |what: &str| -> i64 {
            raw.query_row("SELECT count(*) FROM probe WHERE what = ?", [what], |row| row.get(0)).unwrap()
        };
        assert_eq!(count("insert"), 3);
        // The one that was held up was made in a commit before: only that one is written again.
        if count("update") == 1 {
            both_in_one_commit = true;
            break;
        }
    }
    assert!(
        both_in_one_commit,
        "in none of the rounds were two jobs made and taken in one commit and written once"
    );
}

/// After a crash there is a log beside the file. What the file lacks must be in it.
#[tokio::test]
async fn a_file_cut_short_beside_its_log_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.write((0..3_000).map(|n| create(&format!("{n}"))).collect()).await.unwrap();
    drop(store);
    let store = open(folder.path()).unwrap();
    store.write(vec![create("last")]).await.unwrap();
    // As a kill leaves it.
    let crashed = tempfile::tempdir().unwrap();
    let (file, log) = (crashed.path().join(FILE), crashed.path().join(format!("{FILE}-wal")));
    fs::copy(folder.path().join(FILE), &file).unwrap();
    fs::copy(folder.path().join(format!("{FILE}-wal")), &log).unwrap();
    let (whole, logged) = (fs::read(&file).unwrap(), fs::read(&log).unwrap());
    assert!(logged.len() > 8_192);
    for length in [whole.len() / 4, whole.len() - 8_192 * 3] {
        fs::write(&file, &whole[..length]).unwrap();
        for refused in [open(crashed.path()).err(), check(crashed.path(), &mut |_| {}).err()] {
            let refused = refused.unwrap();
            assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
            assert!(refused.to_string().contains("cut short"), "{refused}");
        }
        assert_eq!(fs::read(&file).unwrap(), &whole[..length]);
        assert_eq!(fs::read(&log).unwrap(), logged);
    }
    // Looking changes nothing; opening brings back all of it.
    fs::write(&file, &whole).unwrap();
    assert!(check(crashed.path(), &mut |_| {}).unwrap().is_sound());
    assert_eq!((fs::read(&file).unwrap(), fs::read(&log).unwrap()), (whole, logged));
    let reopened = open(crashed.path()).unwrap();
    assert!(reopened.read(vec![Key::new(&JOBS, "last")]).await.unwrap()[0].is_some());
}

/// Words are found while somebody writes without a pause, and a claim may bring some too.
#[tokio::test]
async fn words_are_found_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let named = json!({"jobName": "steady", "status": "QUEUED"}).as_object().unwrap().clone();
    store.write(vec![Write::Create { key: Key::new(&JOBS, "found"), body: named }]).await.unwrap();
    let by_word = |word: &str| Query::new(&JOBS, Order::BY_ID).filter(Filter::Text(word.to_owned()));
    for word in ["steady", "zebra"] {
        if word == "zebra" {
            let from = vec![Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("jobName", json!("steady")))];
            let token = ("claimToken", ClaimToken::rising(UnixMillis(0), &[1; 10]));
            let set = vec![("result", json!({"error": "a zebra"}))];
            let claim = Claim { collection: &JOBS, from, max: 1, set, add_one: None, token };
            assert_eq!(store.claim(claim).await.unwrap().len(), 1);
        }
        let mut n = 0;
        while store.find(by_word(word)).await.unwrap().documents.is_empty() {
            assert!(n < 3_000, "{word} was not found while {n} others were written");
            store.write(vec![create(&format!("{word} {n}"))]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
            n += 1;
        }
    }
}

/// The index of words holds nothing of its own: damaged or of another store, it is made anew.
#[tokio::test]
async fn a_damaged_text_index_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("rota-text.db");
    let by_word = || Query::new(&JOBS, Order::BY_ID).filter(Filter::Text("lost*".to_owned()));
    let found = async |store: &SqliteStore| {
        for _ in 0..1_000 {
            if !store.find(by_word()).await.unwrap().documents.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        unreachable!("the word was not found");
    };
    let store = open(folder.path()).unwrap();
    let named = json!({"jobName": "lost and found"}).as_object().unwrap().clone();
    store.write(vec![Write::Create { key: Key::new(&JOBS, "a"), body: named }]).await.unwrap();
    found(&store).await;
    drop(store);
    let mut scratched = fs::read(&index).unwrap();
    scratched[4_096..].fill(0xff);
    for content in [scratched, b"rubbish".to_vec()] {
        fs::write(&index, content).unwrap();
        found(&open(folder.path()).unwrap()).await;
    }
}

/// Comparing with nothing finds nothing, by whatever index.
#[tokio::test]
async fn comparing_with_nothing_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.write(vec![create("a")]).await.unwrap();
    for order in [Order::BY_ID, Order { fields: &["runAt", "jobNumber"], descending: false }] {
        let query = Query::new(&JOBS, order)
            .filter(Filter::Is("status", json!("QUEUED")))
            .filter(Filter::In("input.type", Vec::new()));
        assert_eq!(store.find(query).await.unwrap().documents, []);
    }
}

#[tokio::test]
async fn large_documents_come_in_short_pages() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let text = "x".repeat(1_000_000);
    for nth in 0..20 {
        let body = json!({"jobNumber": nth, "status": "QUEUED", "input": {"payload": {"text": text}}});
        let key = Key::new(&JOBS, format!("{nth:02}"));
        store.write(vec![Write::Create { key, body: body.as_object().unwrap().clone() }]).await.unwrap();
    }
    let (mut seen, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = store.find(Query::new(&JOBS, Order::BY_ID).limit(1_000).after(after)).await.unwrap();
        assert!(page.documents.len() <= 9, "{}", page.documents.len());
        seen.extend(page.documents.into_iter().map(|document| document.key.id));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let all: Vec<_> = (0..20).map(|nth| format!("{nth:02}")).collect();
    assert_eq!((seen, pages), (all, 3));
    let keys = store.find(Query::new(&JOBS, Order::BY_ID).limit(1_000).keys_only()).await.unwrap();
    assert_eq!((keys.documents.len(), keys.next), (20, None));
}
