//! Hints: they come, and who cannot keep up is told so. Nothing else is promised: they may be late, doubled or lost.

use rota_model::time::UnixMillis;
use rota_store::collection::{JOBS, TIMERS, USERS};
use rota_store::hints::{Changes, Hint, News};
use rota_store::query::{Order, Query};
use rota_store::seam::{Body, Key, Write};
use serde_json::json;

use super::Subject;
use super::examples::{change, claim, create, domain, job, numbered, queued, timer, timer_body, token, user};
use super::patience::{awaited, caught_up, eventually};
use super::verbs::{applied, ids};

/// The next hint about a document.
async fn hint_about(changes: &mut Changes, key: &Key) -> Hint {
    loop {
        match awaited(changes.next()).await {
            News::Of(hints) => {
                let foreign = hints.iter().find(|hint| hint.key.collection != key.collection);
                assert_eq!(foreign, None, "nobody asked for it");
                if let Some(hint) = hints.iter().find(|hint| hint.key == *key) {
                    return hint.clone();
                }
            }
            other => panic!("{other:?} instead of a hint about {key}"),
        }
    }
}

pub async fn every_change_is_hinted(store: Subject) {
    let mut changes = store.changes(&JOBS);
    let key = numbered(1);
    applied(&store, Write::Create { key: user("a"), body: Body::new() }).await;
    let version = applied(&store, create(1)).await;
    assert!(hint_about(&mut changes, &key).await.is_new);
    let version = applied(&store, change(key.clone(), version, vec![("epoch", json!(1))])).await;
    assert!(!hint_about(&mut changes, &key).await.is_new);
    applied(&store, Write::Replace { key: key.clone(), version, body: job(1) }).await;
    assert!(!hint_about(&mut changes, &key).await.is_new);
    caught_up(&store, queued(), 1).await;
    let taken = store.claim(claim(1, token(1))).await.unwrap();
    assert!(!hint_about(&mut changes, &key).await.is_new);
    let gone = Write::Delete { key: key.clone(), version: taken[0].version, at: UnixMillis(1) };
    let version = applied(&store, gone).await;
    assert!(!hint_about(&mut changes, &key).await.is_new);
    // What goes for good was hidden before: the next that is told is that the id is used anew.
    applied(&store, Write::Purge { key: key.clone(), version }).await;
    applied(&store, create(1)).await;
    assert!(hint_about(&mut changes, &key).await.is_new);
}

pub async fn a_hint_names_its_domain(store: Subject) {
    let mut changes = store.changes(&TIMERS);
    for name in ["here", "there"] {
        let domain = domain(name);
        let key = timer(&domain, "t");
        applied(&store, Write::Create { key: key.clone(), body: timer_body(&domain, "t", 1) }).await;
        let hint = hint_about(&mut changes, &key).await;
        assert_eq!((hint.key.domain, hint.is_new), (Some(domain), true));
    }
}

/// Each of those who listen is told.
pub async fn all_listeners_hear_of_it(store: Subject) {
    let mut listeners: Vec<Changes> = (0..5).map(|_| store.changes(&USERS)).collect();
    applied(&store, Write::Create { key: user("a"), body: Body::new() }).await;
    for changes in &mut listeners {
        assert!(hint_about(changes, &user("a")).await.is_new);
    }
}

/// A listener that is not read learns either of everything or that something was lost; the store knows it all the same.
pub async fn who_falls_behind_is_told(store: Subject) {
    const COMMITS: usize = 1_300;
    let mut changes = store.changes(&USERS);
    let expected: Vec<String> = (0..COMMITS).map(|nth| format!("{nth:05}")).collect();
    for id in &expected {
        applied(&store, Write::Create { key: user(id), body: Body::new() }).await;
    }
    let (mut heard, mut lost) = (Vec::new(), false);
    let last = expected.last().unwrap();
    while !heard.contains(last) {
        match awaited(changes.next()).await {
            News::Of(hints) => heard.extend(hints.iter().map(|hint| hint.key.id.clone())),
            News::Lost => lost = true,
            News::Closed => panic!("the store is open"),
        }
    }
    heard.sort_unstable();
    heard.dedup();
    assert!(lost || heard == expected, "{} of {COMMITS} were told of, and nobody said so", heard.len());
    eventually(&store, expected, async || ids(&store, Query::new(&USERS, Order::BY_ID)).await).await;
}

/// A listener that nobody reads holds nobody up, and one that is gone even less.
pub async fn listeners_hold_nobody_up(store: Subject) {
    let unread = store.changes(&USERS);
    drop(store.changes(&USERS));
    for nth in 0..50 {
        let made = applied(&store, Write::Create { key: user(&nth.to_string()), body: Body::new() });
        awaited(made).await;
    }
    drop(unread);
}
