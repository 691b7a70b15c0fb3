//! A store is copied to another one: all of it, whatever goes wrong on the way, and never over what somebody else wrote.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod faults;
mod nodes;
mod overtaken;
mod refusals;
mod whole;

use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_store::collection::{ALL, Collection, EXECUTIONS, JOBS, Reach, SETTINGS, TIMERS};
use rota_store::copy::{Copied, CopyError, Copying, Origin};
use rota_store::memory::MemoryStore;
use rota_store::query::{Order, Query};
use rota_store::seam::{Document, Key, Write, Written};
use rota_store::{Store, settings};
use rota_testkit::documents::{self, body, contents};
use serde_json::{Value, json};

const NOW: UnixMillis = UnixMillis(1_900_000_000_000);
/// When what is hidden in the source was deleted.
const EARLIER: UnixMillis = UnixMillis(1_000);

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn origin(name: &str) -> Origin {
    Origin { from: name.to_owned(), mark: format!("the mark of {name}") }
}

fn copying<'a>(source: &'a dyn Store, target: &'a dyn Store, run: &str) -> Copying<'a> {
    Copying { source, target, origin: origin("here"), run: run.to_owned(), now: NOW, in_use: false }
}

async fn copy(source: &dyn Store, target: &dyn Store, run: &str) -> Result<Copied, CopyError> {
    copying(source, target, run).run(&mut |_| {}).await
}

fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

async fn create(store: &dyn Store, key: Key, value: &Value) {
    let written = store.write(vec![Write::Create { key, body: body(value) }]).await.unwrap();
    assert!(matches!(written[..], [Written::Applied(_)]), "{written:?}");
}

async fn read(store: &dyn Store, key: Key) -> Option<Document> {
    store.read(vec![key]).await.unwrap().pop().unwrap()
}

async fn replace(store: &dyn Store, key: Key, value: &Value) {
    let version = read(store, key.clone()).await.unwrap().version;
    let written = store.write(vec![Write::Replace { key, version, body: body(value) }]).await.unwrap();
    assert!(matches!(written[..], [Written::Applied(_)]), "{written:?}");
}

async fn delete(store: &dyn Store, key: Key) {
    let version = read(store, key.clone()).await.unwrap().version;
    let written = store.write(vec![Write::Delete { key, version, at: EARLIER }]).await.unwrap();
    assert!(matches!(written[..], [Written::Applied(_)]), "{written:?}");
}

async fn purge_all(store: &dyn Store, collection: &'static Collection) {
    let hidden = Query::new(collection, Order::BY_ID).hidden_before(UnixMillis(i64::MAX));
    let hidden = store.find(hidden).await.unwrap().documents.into_iter();
    let purge = hidden.map(|document| Write::Purge { key: document.key, version: document.version });
    store.write(purge.collect()).await.unwrap();
}

fn job(number: u64) -> (Key, Value) {
    let key = Key::new(&JOBS, format!("job-{number:06}"));
    (key, json!({"jobName": format!("job {number}"), "jobNumber": number, "status": "QUEUED", "runAt": 7}))
}

/// A store that a node has opened, with something in every collection and in two domains.
async fn filled(jobs: u64) -> Arc<dyn Store> {
    let store = memory();
    settings::open(Arc::clone(&store), NOW.to_date()).await.unwrap();
    for collection in ALL.into_iter().filter(|collection| **collection != SETTINGS) {
        for number in 0..3 {
            let value =
                json!({"name": format!("{} {number}", collection.name), "text": "ä\u{0}\u{1f980}", "n": 0.5});
            let id = format!("{number}");
            match collection.reach {
                Reach::Installation => create(&*store, Key::new(collection, id), &value).await,
                Reach::Domain => {
                    for name in ["default", "other"] {
                        create(&*store, Key::in_domain(collection, &domain(name), &id), &value).await;
                    }
                }
            }
        }
    }
    for key in [
        Key::new(&JOBS, "1"),
        Key::in_domain(&TIMERS, &domain("other"), "1"),
        Key::in_domain(&EXECUTIONS, &domain("default"), "2"),
    ] {
        delete(&*store, key).await;
    }
    let batch: Vec<Write> = (0..jobs)
        .map(|number| {
            let (key, value) = job(number);
            Write::Create { key, body: body(&value) }
        })
        .collect();
    for some in batch.chunks(10_000) {
        store.write(some.to_vec()).await.unwrap();
    }
    store.sequence("jobs", 41).await.unwrap();
    store
}

async fn assert_same(source: &dyn Store, target: &dyn Store) {
    documents::assert_same(&contents(source).await, &contents(target).await);
}
