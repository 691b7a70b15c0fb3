//! Lists by names and words, from those that one document has to those that all have: the same answers, however they are reached.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::time::Duration;

use rota_store::Store;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Key, Write};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use serde_json::{Value, json};

const NEWEST: Order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };
/// More than are called common.
const COUNT: u64 = 21_000;
/// The oldest are few.
const OLD: u64 = 10;

fn holder(folder: &std::path::Path) -> Holder {
    Holder::take(folder, "a test").unwrap()
}

fn name(n: u64) -> String {
    if n < OLD { "the oldest".to_owned() } else { format!("report {}", n % 7) }
}

fn job(n: u64, name: &str) -> Write {
    let body = json!({"jobName": name, "jobNumber": n, "status": "SUCCESSFUL", "domain": "default",
        "input": {"type": "noop"}, "metadata": {"createdAt": n}});
    let Value::Object(body) = body else { unreachable!() };
    Write::Create { key: Key::new(&JOBS, format!("{n:06}")), body }
}

async fn store(folder: &std::path::Path) -> SqliteStore {
    let store = SqliteStore::open(folder, holder(folder)).unwrap();
    for begin in (0..COUNT).step_by(1_000) {
        store.write((begin..begin + 1_000).map(|n| job(n, &name(n))).collect()).await.unwrap();
    }
    store
}

fn list(filter: Filter, limit: usize) -> Query {
    Query::new(&JOBS, NEWEST).filter(Filter::Is("domain", json!("default"))).filter(filter).limit(limit)
}

/// All that is found, page by page, and how many pages that took.
async fn all(store: &SqliteStore, filter: Filter) -> (Vec<u64>, usize) {
    let (mut query, mut found, mut pages) = (list(filter, 500), Vec::new(), 0);
    loop {
        let page = store.find(query.clone()).await.unwrap();
        found.extend(page.documents.iter().map(|document| document.body["jobNumber"].as_u64().unwrap()));
        pages += 1;
        assert!(pages < 1_000);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return (found, pages),
        }
    }
}

fn numbers(is_meant: impl Fn(u64) -> bool) -> Vec<u64> {
    (0..COUNT).rev().filter(|n| is_meant(*n)).collect()
}

async fn until_indexed(store: &SqliteStore) {
    let newest = Filter::Text(format!("report {}", (COUNT - 1) % 7));
    while store
        .find(list(newest.clone(), 1))
        .await
        .unwrap()
        .documents
        .first()
        .map(|found| found.key.id.clone())
        != Some(format!("{:06}", COUNT - 1))
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn names_and_words_are_found_however_many_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let by_name = |name: &str| Filter::Is("jobName", json!(name));
    // Whether or not the words are indexed yet, and whichever way is taken, a name is found.
    assert_eq!(all(&store, by_name("report 3")).await.0, numbers(|n| n >= OLD && n % 7 == 3));
    until_indexed(&store).await;
    assert_eq!(all(&store, by_name("report 3")).await.0, numbers(|n| n >= OLD && n % 7 == 3));
    assert_eq!(all(&store, by_name("the oldest")).await, (numbers(|n| n < OLD), 1));
    assert_eq!(
        all(&store, by_name("oldest the")).await,
        (Vec::new(), 1),
        "the same words are not the same name"
    );
    assert_eq!(all(&store, by_name("!")).await, (Vec::new(), 1));
    let words = |text: &str| Filter::Text(text.to_owned());
    assert_eq!(all(&store, words("report")).await.0, numbers(|n| n >= OLD));
    assert_eq!(all(&store, words("report 3")).await.0, numbers(|n| n >= OLD && n % 7 == 3));
    assert_eq!(all(&store, words("oldest")).await, (numbers(|n| n < OLD), 1));
    assert_eq!(all(&store, words("nobody")).await, (Vec::new(), 1));
}

/// A job that was made just now is found by its name, before its words are indexed.
#[tokio::test]
async fn a_name_does_not_lag() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), holder(folder.path())).unwrap();
    for n in 0..50 {
        store.write(vec![job(n, "just now")]).await.unwrap();
        let (found, _) = all(&store, Filter::Is("jobName", json!("just now"))).await;
        assert_eq!(found, (0..=n).rev().collect::<Vec<_>>());
    }
}
