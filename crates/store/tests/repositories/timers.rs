//! Timers: one domain's for the web service, all of them for the scheduler, none to be read for the recorder.

use std::collections::BTreeMap;

use rota_model::time::UnixMillis;
use rota_model::timer::{Timer, TimerStatus};
use rota_store::access::{Recorder, Scheduler, WebService};
use rota_store::collection::TIMERS;
use rota_store::repository::{Created, Saved};
use rota_store::seam::Key;
use rota_store::timers::{TimerFilter, TimerKey, TimersOfDomain};
use rota_store::{Store, StoreError};
use serde_json::json;

use super::{Arc, domain, new, put, store, timer};

fn every_minute(name: &str, status: &str, section: u32) -> Timer {
    let document = json!({
        "name": name, "status": status, "section": section,
        "task": {"type": if name.starts_with("call") { "http" } else { "noop" }}, "schedule": {"cron": "* * * * *"},
    });
    serde_json::from_value(document).unwrap()
}

/// Two domains with timers; one id stands in both.
async fn two_domains(store: &Arc<dyn Store>) {
    let timers = Recorder::new(Arc::clone(store)).timers();
    for (key, document) in [
        (timer("red", "shared"), every_minute("report red", "ACTIVE", 1)),
        (timer("red", "call"), every_minute("call home", "ACTIVE", 2)),
        (timer("red", "idle"), every_minute("report idle", "PAUSED", 1)),
        (timer("blue", "shared"), every_minute("report blue", "ACTIVE", 1)),
        (timer("blue", "far"), every_minute("report far", "ACTIVE", 7)),
    ] {
        new(timers.create(&key, document).await.unwrap());
    }
}

async fn names(timers: &TimersOfDomain, filter: TimerFilter) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = timers.list(&filter, 1, cursor).await.unwrap();
        names.extend(page.into_iter().map(|timer| timer.document.name.unwrap()));
        cursor = next;
        if cursor.is_none() {
            names.sort();
            return names;
        }
    }
}

#[tokio::test]
async fn a_domain_sees_its_own_timers_alone() {
    let store = store();
    two_domains(&store).await;
    let web = WebService::new(Arc::clone(&store));
    let (red, blue) = (web.timers(&domain("red")), web.timers(&domain("blue")));
    let shared = timer("red", "shared").uuid;
    assert_eq!(red.get(shared).await.unwrap().unwrap().document.name.unwrap(), "report red");
    assert_eq!(blue.get(shared).await.unwrap().unwrap().document.name.unwrap(), "report blue");
    assert_eq!(blue.get(timer("red", "call").uuid).await.unwrap(), None);
    assert_eq!(names(&red, TimerFilter::default()).await, ["call home", "report idle", "report red"]);
    assert_eq!(names(&blue, TimerFilter::default()).await, ["report blue", "report far"]);
    let totals = BTreeMap::from([(TimerStatus::Active, 2), (TimerStatus::Paused, 1)]);
    assert_eq!(red.totals().await.unwrap(), totals);
}

#[tokio::test]
async fn a_list_is_narrowed() {
    let store = store();
    two_domains(&store).await;
    let red = WebService::new(store).timers(&domain("red"));
    let paused = TimerFilter { status: Some(TimerStatus::Paused), ..TimerFilter::default() };
    assert_eq!(names(&red, paused).await, ["report idle"]);
    let calls = TimerFilter { kind: Some("http".to_owned()), ..TimerFilter::default() };
    assert_eq!(names(&red, calls).await, ["call home"]);
    let named = TimerFilter { name: Some("report red".to_owned()), ..TimerFilter::default() };
    assert_eq!(names(&red, named).await, ["report red"]);
    let reports = TimerFilter { text: Some("REP*".to_owned()), ..TimerFilter::default() };
    assert_eq!(names(&red, reports).await, ["report idle", "report red"]);
}

#[tokio::test]
async fn the_scheduler_walks_the_active_timers_of_its_sections_in_every_domain() {
    let store = store();
    two_domains(&store).await;
    let timers = Scheduler::new(store).timers();
    let mut found: Vec<TimerKey> = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = timers.active_in(&[2, 1], 1, cursor).await.unwrap();
        found.extend(page.iter().map(|timer| timer.timer_key().unwrap()));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found.last(), Some(&timer("red", "call")), "sections come one after the other");
    found.sort();
    let mut expected = [timer("blue", "shared"), timer("red", "shared"), timer("red", "call")];
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(timers.active_in(&[], 10, None).await.unwrap().0, []);
}

#[tokio::test]
async fn a_batch_is_read_in_the_order_asked_and_leaves_out_what_is_not_there() {
    let store = store();
    two_domains(&store).await;
    let timers = Scheduler::new(store).timers();
    let asked = [timer("red", "call"), timer("blue", "call"), timer("blue", "far"), timer("red", "idle")];
    let read = timers.get_all(&asked).await.unwrap();
    let read: Vec<_> = read.iter().map(|timer| timer.timer_key().unwrap()).collect();
    assert_eq!(read, [timer("red", "call"), timer("blue", "far"), timer("red", "idle")]);
}

#[tokio::test]
async fn a_damaged_timer_is_told_from_a_missing_one() {
    let store = store();
    let (damaged, missing) = (timer("red", "damaged"), timer("red", "missing"));
    put(&store, Key::in_domain(&TIMERS, &damaged.domain, damaged.uuid), json!({"task": 1})).await;
    put(&store, Key::in_domain(&TIMERS, &damaged.domain, "no-uuid"), json!(every_minute("x", "ACTIVE", 3)))
        .await;
    let timers = Scheduler::new(store).timers();
    assert_eq!(timers.get_all(&[damaged.clone(), missing.clone()]).await.unwrap(), []);
    assert_eq!(timers.get(&missing).await.unwrap(), None);
    assert!(matches!(timers.get(&damaged).await, Err(StoreError::Damaged { .. })));
    let (odd, _) = timers.active_in(&[3], 10, None).await.unwrap();
    assert!(matches!(odd.first().unwrap().timer_key(), Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn the_recorder_writes_on_what_a_reader_read() {
    let store = store();
    two_domains(&store).await;
    let (writer, reader) = (Recorder::new(Arc::clone(&store)).timers(), Scheduler::new(store).timers());
    let call = timer("red", "call");
    let read = reader.get(&call).await.unwrap().unwrap();
    let paused = Timer { status: TimerStatus::Paused, ..read.document.clone() };
    assert!(matches!(writer.save(&read, &paused).await.unwrap(), Saved::Applied(_)));
    assert_eq!(writer.save(&read, &read.document).await.unwrap(), Saved::Overtaken);
    assert_eq!(writer.delete(&read, UnixMillis(1)).await.unwrap(), Saved::Overtaken);
    let read = reader.get(&call).await.unwrap().unwrap();
    assert_eq!(read.document, paused);
    assert!(matches!(writer.delete(&read, UnixMillis(1)).await.unwrap(), Saved::Applied(_)));
    assert_eq!(reader.get(&call).await.unwrap(), None);
    let again = writer.create(&call, paused.clone()).await.unwrap();
    assert_eq!(again, Created::Exists(paused), "a create that was under way must not bring it back");
}
