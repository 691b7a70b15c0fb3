//! Progress: written by the recorder, read by the scheduler in the order of what is due.

use rota_model::progress::Progress;
use rota_model::time::UnixMillis;
use rota_store::access::{Recorder, Scheduler};
use rota_store::collection::PROGRESS;
use rota_store::repository::{Created, Saved};
use rota_store::seam::Key;
use rota_store::timers::TimerKey;
use serde_json::json;

use super::{Arc, instant, new, put, store, timer};

fn due(text: &str) -> Progress {
    Progress { next_due: Some(instant(text)), ..Progress::default() }
}

#[tokio::test]
async fn what_is_due_comes_in_order_however_its_instant_is_spelled() {
    let store = store();
    for (name, next_due) in [
        ("fourth", json!("2026-03-01T13:00:04+01:00")),
        ("second", json!("2026-03-01T12:00:01.500Z")),
        ("first", json!("2026-03-01T07:00:01-05:00")),
        ("third", json!("2026-03-01T12:00:02Z")),
        ("later", json!("2026-03-01T12:00:04.001Z")),
        ("never", json!(null)),
    ] {
        put(&store, Key::new(&PROGRESS, timer("red", name)), json!({"next_due": next_due})).await;
    }
    let progress = Scheduler::new(store).progress();
    let now = UnixMillis::from(instant("2026-03-01T12:00:04Z"));
    let mut found: Vec<TimerKey> = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = progress.due_before(now, 1, cursor).await.unwrap();
        found.extend(page.iter().map(|progress| progress.timer_key().unwrap()));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["first", "second", "third", "fourth"].map(|name| timer("red", name)));
}

#[tokio::test]
async fn progress_of_one_timer_in_two_domains_is_two() {
    let store = store();
    let writer = Recorder::new(Arc::clone(&store)).progress();
    let (red, blue) = (timer("red", "one"), timer("blue", "one"));
    new(writer.create(&red, due("2026-03-01T12:00:00Z")).await.unwrap());
    new(writer.create(&blue, due("2026-03-01T13:00:00Z")).await.unwrap());
    let reader = Scheduler::new(store).progress();
    let read = reader.get_all(&[blue.clone(), timer("green", "one"), red.clone()]).await.unwrap();
    let read: Vec<_> = read.into_iter().map(|read| (read.timer_key().unwrap(), read.document)).collect();
    assert_eq!(read, [(blue, due("2026-03-01T13:00:00Z")), (red, due("2026-03-01T12:00:00Z"))]);
}

#[tokio::test]
async fn a_timer_is_moved_on_once_by_whoever_read_it_last() {
    let store = store();
    let (writer, reader) = (Recorder::new(Arc::clone(&store)).progress(), Scheduler::new(store).progress());
    let key = timer("red", "one");
    new(writer.create(&key, due("2026-03-01T12:00:00Z")).await.unwrap());
    let second = writer.create(&key, due("2026-03-01T12:30:00Z")).await.unwrap();
    assert!(matches!(second, Created::Exists(_)));
    let read = reader.get(&key).await.unwrap().unwrap();
    let moved = due("2026-03-01T13:00:00Z");
    assert!(matches!(writer.save(&read, &moved).await.unwrap(), Saved::Applied(_)));
    assert_eq!(writer.save(&read, &due("2026-03-01T14:00:00Z")).await.unwrap(), Saved::Overtaken);
    let read = reader.get(&key).await.unwrap().unwrap();
    assert_eq!(read.document, moved);
    assert!(matches!(writer.delete(&read, UnixMillis(1)).await.unwrap(), Saved::Applied(_)));
    assert_eq!(reader.get(&key).await.unwrap(), None);
}
