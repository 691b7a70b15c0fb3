//! Sweeping: slice by slice, the oldest first, and nothing that is still in its time.

use std::time::Duration;

use rota_model::ids::{JobId, LogId};
use rota_model::log::{Level, Log};
use rota_model::time::UnixMillis;
use rota_store::access::{Recorder, Scheduler};
use rota_store::collection::{Deleting, JOBS, LOGS, TIMERS, USERS};
use rota_store::jobs::Jobs;
use rota_store::logs::{LogFilter, Logs};
use rota_store::query::{Filter, Order, Query};
use rota_store::repository::{Created, Saved};
use rota_store::seam::{Body, Key, Write};
use rota_store::{Store, StoreError, sweep};
use serde_json::json;

use super::crowded::Crowded;
use super::jobs::job;
use super::{Arc, domain, new, node, store, timer};

async fn logged(store: &Arc<dyn Store>, at: &[i64]) -> Logs {
    let logs = Logs::new(Arc::clone(store));
    let entry = |at: &i64| {
        let log = Log::new(Level::Info, format!("{at}"), node("a"), UnixMillis(*at));
        (LogId::derived(&[&at.to_string()]), log)
    };
    logs.append(at.iter().map(entry).collect()).await.unwrap();
    logs
}

async fn left(logs: &Logs) -> Vec<String> {
    let (page, _) = logs.search(&LogFilter::default(), 100, None).await.unwrap();
    page.into_iter().map(|line| line.log.title).collect()
}

#[tokio::test]
async fn what_is_older_goes_slice_by_slice_and_the_oldest_first() {
    let store = store();
    let logs = logged(&store, &[50, 10, 40, 20, 30]).await;
    let older = || sweep::delete_older(store.as_ref(), &LOGS, UnixMillis(40), UnixMillis(99), 2);
    assert_eq!(older().await.unwrap(), 2);
    assert_eq!(left(&logs).await, ["50", "40", "30"]);
    assert_eq!(older().await.unwrap(), 1);
    assert_eq!(older().await.unwrap(), 0);
    assert_eq!(left(&logs).await, ["50", "40"], "what is not older stays");
}

#[tokio::test]
async fn what_changed_since_it_was_looked_at_is_left() {
    let crowded = Arc::new(Crowded::default());
    let store: Arc<dyn Store> = Arc::clone(&crowded) as Arc<dyn Store>;
    logged(&store, &[10, 20]).await;
    let (key, body) = (Key::new(&LOGS, LogId::derived(&["10"])), Body::new());
    let version = store.read(vec![key.clone()]).await.unwrap().remove(0).unwrap().version;
    crowded.meanwhile.lock().unwrap().push(Write::Replace { key: key.clone(), version, body });
    let gone = sweep::delete_older(store.as_ref(), &LOGS, UnixMillis(40), UnixMillis(99), 2).await.unwrap();
    assert_eq!(gone, 1);
    assert!(store.read(vec![key]).await.unwrap().remove(0).is_some());
}

#[tokio::test]
async fn a_domain_is_swept_apart_from_others_and_from_what_is_nobodys() {
    let store = store();
    let logs = logged(&store, &[10, 20]).await;
    for (name, at) in [("red", 11), ("red", 21), ("blue", 12)] {
        let log = Log::new(Level::Info, format!("{name} {at}"), node("a"), UnixMillis(at));
        let log = Log { domain: Some(domain(name)), ..log };
        logs.append(vec![(LogId::derived(&[name, &at.to_string()]), log)]).await.unwrap();
    }
    let sweep = |whose: Filter| {
        sweep::delete_older_of(store.as_ref(), &LOGS, Some(whose), UnixMillis(20), UnixMillis(99), 100)
    };
    assert_eq!(sweep(Filter::Is("domain", json!("red"))).await.unwrap(), 1);
    assert_eq!(left(&logs).await, ["red 21", "20", "blue 12", "10"]);
    assert_eq!(sweep(Filter::Absent("domain")).await.unwrap(), 1);
    assert_eq!(left(&logs).await, ["red 21", "20", "blue 12"]);
}

#[tokio::test]
async fn the_oldest_jobs_of_a_domain_are_walked_through_in_pages() {
    let jobs = Jobs::new(store());
    for (name, whose, made) in
        [("a", "red", 30), ("b", "red", 10), ("c", "blue", 5), ("d", "red", 20), ("e", "red", 40)]
    {
        let mut job = job(whose, name, "FAILED", "");
        job.metadata.created_at = UnixMillis(made);
        new(jobs.create(job).await.unwrap());
    }
    let (mut walked, mut cursor) = (Vec::new(), None);
    loop {
        let page = jobs.oldest(&domain("red"), UnixMillis(10), UnixMillis(40), 1, cursor).await.unwrap();
        walked.extend(page.0.into_iter().map(|job| job.document.metadata.created_at.0));
        cursor = page.1;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(walked, [10, 20, 30]);
}

#[tokio::test]
async fn what_is_kept_for_ever_is_never_swept() {
    let store = store();
    new(Jobs::new(Arc::clone(&store)).create(job("red", "a", "FAILED", "")).await.unwrap());
    let refused = sweep::delete_older(store.as_ref(), &JOBS, UnixMillis(i64::MAX), UnixMillis(1), 100).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
    assert_eq!(Jobs::new(store).totals(None).await.unwrap().len(), 1);
}

fn hiding_span(deleting: Deleting) -> Duration {
    match deleting {
        Deleting::Hides(span) => span,
        Deleting::AtOnce => panic!("it hides what is deleted"),
    }
}

#[tokio::test]
async fn a_hidden_id_is_taken_until_it_is_purged() {
    let store = store();
    let jobs = Jobs::new(Arc::clone(&store));
    let purge = |now: UnixMillis| sweep::purge_hidden(store.as_ref(), &JOBS, now, 2);
    for name in ["a", "b", "c", "kept"] {
        new(jobs.create(job("red", name, "FAILED", "")).await.unwrap());
    }
    for (name, at) in [("a", 10), ("b", 10), ("c", 11)] {
        let found = jobs.get(&domain("red"), JobId::derived(&["red", name])).await.unwrap().unwrap();
        assert!(matches!(jobs.delete(&found, UnixMillis(at)).await.unwrap(), Saved::Applied(_)));
    }
    let over = UnixMillis(10).plus(hiding_span(JOBS.deleting));
    assert_eq!(purge(UnixMillis(over.0 - 1)).await.unwrap(), 0);
    assert!(matches!(jobs.create(job("red", "a", "QUEUED", "")).await.unwrap(), Created::Exists(_)));
    assert_eq!(purge(over).await.unwrap(), 2);
    new(jobs.create(job("red", "a", "QUEUED", "")).await.unwrap());
    assert_eq!(
        purge(over).await.unwrap(),
        0,
        "what was hidden later is not due, what was made anew is not hidden"
    );
    assert_eq!(purge(UnixMillis(over.0 + 1)).await.unwrap(), 1);
    assert_eq!(jobs.totals(None).await.unwrap().values().sum::<u64>(), 2);
}

#[tokio::test]
async fn hidden_timers_of_every_domain_are_purged() {
    let store = store();
    let (writer, reader) =
        (Recorder::new(Arc::clone(&store)).timers(), Scheduler::new(Arc::clone(&store)).timers());
    let document = json!({"task": {}, "schedule": {"cron": "@daily"}});
    for key in [timer("red", "one"), timer("blue", "one")] {
        new(writer.create(&key, serde_json::from_value(document.clone()).unwrap()).await.unwrap());
        let made = reader.get(&key).await.unwrap().unwrap();
        writer.delete(&made, UnixMillis(10)).await.unwrap();
    }
    let over = UnixMillis(10).plus(hiding_span(TIMERS.deleting));
    assert_eq!(sweep::purge_hidden(store.as_ref(), &TIMERS, over, 100).await.unwrap(), 2);
    let hidden = Query::new(&TIMERS, Order::BY_ID).hidden_before(UnixMillis(i64::MAX));
    assert_eq!(store.find(hidden).await.unwrap().documents, []);
    assert_eq!(sweep::purge_hidden(store.as_ref(), &USERS, over, 100).await.unwrap(), 0);
}
