//! Many new documents are copied in, few are inserted by a statement: whatever is asked afterwards, nobody can tell which.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::sync::Arc;

use futures::future::join_all;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::{ALL, Collection, JOBS, Kind, LOGS, Reach};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Write, Written};
use rota_store_postgres::PostgresStore;
use rota_testkit::documents::{body, write};
use rota_testkit::postgres::{self, run_sql};
use serde_json::{Value, json};

const MANY: usize = 240;

fn key(collection: &'static Collection, nth: usize) -> Key {
    let id = format!("{nth:03} ä'\"\\");
    match collection.reach {
        Reach::Installation => Key::new(collection, id),
        Reach::Domain => Key::in_domain(collection, &"blue".parse().unwrap(), id),
    }
}

/// A document with a value in most of its fields: some of them odd, some absent.
fn document(collection: &'static Collection, nth: usize) -> Body {
    let texts =
        ["Nightly report", "nightly NIGHTLY report, again", "größer als 😀 b a c", "\t\n\\N \\. \"", "…", ""];
    let text = texts[nth % texts.len()];
    let mut document = body(&json!({"odd": [0.5, 1e16, null, {"a": [text]}], "text": text}));
    if nth.is_multiple_of(5) {
        document.insert("NUL\u{0}".to_owned(), json!("\u{0}"));
    }
    for path in collection.text.iter().filter(|path| !path.contains('.')) {
        document.insert((*path).to_owned(), json!(text));
    }
    for (place, field) in collection.fields.iter().enumerate() {
        let value = match (field.kind, (nth + place) % 7) {
            (_, 0) => Value::Null,
            (Kind::Keyword, _) => json!(text),
            (Kind::Keywords, _) => json!([text, "two"]),
            (Kind::Integer, 2) => json!(i64::MIN),
            (Kind::Date, 2) => json!("2030-01-31T00:00:00.123456789Z"),
            (Kind::Integer | Kind::Date, _) => json!(nth),
            (Kind::Json, _) => json!({"error": text, "nth": nth}),
        };
        field.set(&mut document, value);
    }
    document
}

fn creates(collection: &'static Collection) -> Vec<Write> {
    (0..MANY)
        .map(|nth| Write::Create { key: key(collection, nth), body: document(collection, nth) })
        .collect()
}

/// Every row of a collection as the server shows it, but for its version.
fn rows(url: &str, collection: &Collection) -> Vec<String> {
    let name = collection.name;
    let of = |table: &str| {
        run_sql(url, &format!("SELECT to_jsonb(t) - 'version' FROM \"{table}\" AS t ORDER BY 1"))
    };
    let is_there = run_sql(url, &format!("SELECT to_regclass('\"{name}.words\"') IS NOT NULL")) == "t";
    let mut rows = vec![of(&format!("{name}.rows"))];
    rows.extend(is_there.then(|| of(&format!("{name}.words"))));
    let kinds = "SELECT key, sum(n) FROM counts WHERE collection = '{}' GROUP BY key ORDER BY key";
    rows.push(run_sql(url, &kinds.replace("{}", name)));
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_at_once_is_what_each_alone_would_be() {
    let urls = [postgres::fresh(), postgres::fresh()];
    let [at_once, one_by_one] = urls.each_ref().map(|url| PostgresStore::open(url));
    let (at_once, one_by_one) = (at_once.await.unwrap(), one_by_one.await.unwrap());
    for collection in ALL {
        write(&at_once, creates(collection)).await;
        for one in creates(collection) {
            write(&one_by_one, vec![one]).await;
        }
        let [ours, theirs] = urls.each_ref().map(|url| rows(url, collection));
        assert_eq!(ours[0].lines().count(), MANY, "{collection:?}");
        assert_eq!(ours, theirs, "{collection:?}");
    }
    for collection in [&JOBS, &LOGS] {
        for (words, least) in [("nightly", MANY / 4), ("groesser größer", 0), ("größ*", MANY / 8)] {
            let query =
                || Query::new(collection, Order::BY_ID).filter(Filter::Text(words.to_owned())).limit(MANY);
            let found = at_once.find(query()).await.unwrap().documents;
            let by_name = one_by_one.find(query()).await.unwrap().documents;
            let keys = |found: Vec<rota_store::seam::Document>| -> Vec<Key> {
                found.into_iter().map(|document| document.key).collect()
            };
            let found = keys(found);
            assert_eq!(found, keys(by_name), "{words}");
            assert!(found.len() >= least, "{words}: {}", found.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_is_left_alone_and_the_rest_is_made() {
    let url = postgres::fresh();
    let store = PostgresStore::open(&url).await.unwrap();
    let there = Write::Create { key: key(&JOBS, 7), body: body(&json!({"status": "STARTED"})) };
    let hidden = Write::Create { key: key(&JOBS, 8), body: body(&json!({"status": "FAILED"})) };
    let made = store.write(vec![there, hidden]).await.unwrap();
    let [Written::Applied(_), Written::Applied(version)] = made[..] else { panic!("{made:?}") };
    let hide = Write::Delete { key: key(&JOBS, 8), version, at: UnixMillis(1) };
    write(&store, vec![hide]).await;
    for round in 0..2 {
        let written = store.write(creates(&JOBS)).await.unwrap();
        for (nth, one) in written.iter().enumerate() {
            let is_new = round == 0 && ![7, 8].contains(&nth);
            assert_eq!(matches!(one, Written::Applied(_)), is_new, "{nth} in round {round}: {one:?}");
            assert!(is_new || *one == Written::Exists, "{nth} in round {round}: {one:?}");
        }
        assert_eq!(
            run_sql(&url, "SELECT count(*), count(*) FILTER (WHERE listed) FROM \"jobs.rows\""),
            "240|240"
        );
        let registered = run_sql(&url, "SELECT count(*) FROM \"jobs.words\"");
        assert_eq!(registered, "240", "what is hidden keeps its words");
        let total = store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap();
        assert_eq!(total.first().map(|tally| tally.count), Some(239));
    }
    let kept = store.read(vec![key(&JOBS, 7)]).await.unwrap().remove(0).unwrap();
    assert_eq!(kept.body, body(&json!({"status": "STARTED"})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_write_the_same_each_document_has_one() {
    let url = postgres::fresh();
    let store = Arc::new(PostgresStore::open(&url).await.unwrap());
    let other = Arc::new(PostgresStore::open(&url).await.unwrap());
    let writers = [&store, &other, &store, &other].map(|store| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.write(creates(&JOBS)).await.unwrap() })
    });
    let mut first = vec![0; MANY];
    for written in join_all(writers).await {
        for (nth, one) in written.unwrap().into_iter().enumerate() {
            first[nth] += usize::from(matches!(one, Written::Applied(_)));
        }
    }
    assert_eq!(first, vec![1; MANY]);
    assert_eq!(run_sql(&url, "SELECT sum(n) FROM counts WHERE collection = 'jobs'"), MANY.to_string());
    assert_eq!(run_sql(&url, "SELECT count(*) FROM \"jobs.words\""), MANY.to_string());
}
