//! Finds, counts and claims that lag.

use std::time::Duration;

use rota_model::time::UnixMillis;
use rota_store::query::Order;
use rota_store::seam::{Store, Tally, Write, Written};
use rota_store::{Promises, StoreError};
use rota_testkit::faults::{Effect, Lot};
use serde_json::json;
use tokio::time::sleep;

use crate::script::{
    World, applied, claim, create, job, jobs, lagging, ms, node, numbers, queued, start, there,
};

async fn there_before(world: &World, lag: Duration) -> Vec<i64> {
    world.fate.next_lag(lag);
    there(&*world.store, jobs()).await
}

#[tokio::test(start_paused = true)]
async fn a_find_looks_at_the_past() {
    let world = lagging(ms(1_000));
    applied(&*world.store, create(1)).await;
    sleep(ms(400)).await;
    applied(&*world.store, create(2)).await;
    sleep(ms(400)).await;
    assert_eq!(there_before(&world, ms(0)).await, [1, 2]);
    assert_eq!(there_before(&world, ms(400)).await, [1, 2], "what is as old as the lag is seen");
    assert_eq!(there_before(&world, ms(401)).await, [1]);
    assert_eq!(there_before(&world, ms(801)).await, Vec::<i64>::new());
    assert_eq!(there_before(&world, ms(0)).await, [1, 2], "and the next may see more again");
    let read = world.store.read(vec![job(2)]).await.unwrap();
    assert!(read[0].is_some(), "a read does not lag");
}

#[tokio::test(start_paused = true)]
async fn the_lag_is_promised_and_kept() {
    let world = lagging(ms(1_000));
    let Promises { find_lag, text_lag, .. } = world.store.promises();
    assert_eq!((find_lag, text_lag), (ms(1_000), ms(1_000)));
    applied(&*world.store, create(1)).await;
    sleep(ms(1_000)).await;
    assert_eq!(there_before(&world, ms(3_600_000)).await, [1], "whatever fate says");
}

/// Every kind of write is seen late, and each version of a document has its time.
#[tokio::test(start_paused = true)]
async fn every_change_is_seen_later() {
    let world = lagging(ms(1_000));
    let store = &*world.store;
    let tallies = async |lag| -> Vec<(String, u64)> {
        world.fate.next_lag(lag);
        let tallies: Vec<Tally> = store.count(jobs(), Some("status")).await.unwrap();
        tallies
            .into_iter()
            .map(|Tally { value, count }| (value.as_str().unwrap().to_owned(), count))
            .collect()
    };
    let version = applied(store, create(1)).await;
    sleep(ms(100)).await;
    let version = applied(store, start(1, version)).await;
    sleep(ms(100)).await;
    let body = json!({"jobNumber": 1, "status": "FINISHED"}).as_object().unwrap().clone();
    let version = applied(store, Write::Replace { key: job(1), version, body }).await;
    sleep(ms(100)).await;
    let hidden = applied(store, Write::Delete { key: job(1), version, at: UnixMillis(7) }).await;
    sleep(ms(100)).await;
    let old = |status: &str| vec![(status.to_owned(), 1)];
    assert_eq!(tallies(ms(0)).await, []);
    assert_eq!(tallies(ms(150)).await, old("FINISHED"));
    assert_eq!(tallies(ms(250)).await, old("STARTED"));
    assert_eq!(tallies(ms(350)).await, old("QUEUED"));
    assert_eq!(tallies(ms(450)).await, []);

    let buried = || jobs().hidden_before(UnixMillis(7));
    assert_eq!(there(store, buried()).await, [1]);
    applied(store, Write::Purge { key: job(1), version: hidden }).await;
    applied(store, create(1)).await;
    sleep(ms(50)).await;
    assert_eq!(there(store, buried()).await, Vec::<i64>::new());
    world.fate.next_lag(ms(60));
    assert_eq!(there(store, buried()).await, [1]);
    assert_eq!(there(store, queued()).await, [1], "made anew");
}

#[tokio::test(start_paused = true)]
async fn a_page_goes_on_in_the_past() {
    let world = lagging(ms(100));
    for number in 0..10 {
        applied(&*world.store, create(number)).await;
    }
    sleep(ms(100)).await;
    for order in [Order { fields: &["jobNumber"], descending: true }, Order { fields: &[], descending: true }]
    {
        let (mut query, mut seen) = (jobs().limit(3), Vec::new());
        query.order = order;
        loop {
            world.fate.next_lag(ms(100));
            let page = world.store.find(query.clone()).await.unwrap();
            seen.extend(numbers(&page.documents));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }
}

/// What a claim saw may have been changed, claimed or deleted since: then it is somebody else's.
#[tokio::test(start_paused = true)]
async fn a_lagging_claim_takes_only_what_is_as_it_was_seen() {
    let world = lagging(ms(1_000));
    let store = &*world.store;
    let mut versions = Vec::new();
    for number in 0..4 {
        versions.push(applied(store, create(number)).await);
    }
    sleep(ms(1_000)).await;
    applied(store, start(0, versions[0])).await;
    applied(store, Write::Delete { key: job(1), version: versions[1], at: UnixMillis(1) }).await;
    sleep(ms(10)).await;
    world.fate.next_lag(ms(500));
    let taken = store.claim(claim(3, 1)).await.unwrap();
    assert_eq!(numbers(&taken), [2], "three were found, and two of them had changed");
    let stored = store.read(vec![job(2)]).await.unwrap().remove(0).unwrap();
    assert_eq!(taken, [stored], "it is answered as it is stored");
    assert_eq!(taken[0].body["epoch"], 1);
    world.fate.next_lag(ms(500));
    assert_eq!(store.claim(claim(3, 2)).await.unwrap(), [], "and still the same three are found");
    assert_eq!(numbers(&store.claim(claim(3, 3)).await.unwrap()), [3]);
}

/// Two nodes look at the same past at the same time.
#[tokio::test(start_paused = true)]
async fn nodes_that_see_the_same_do_not_share() {
    let world = lagging(ms(1_000));
    let other = node(&world.truth, &world.fate);
    for number in 0..6 {
        applied(&*world.store, create(number)).await;
    }
    sleep(ms(1_000)).await;
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        world.fate.next_lag(ms(1_000));
        world.fate.next_lag(ms(1_000));
        let (one, another) = tokio::join!(world.store.claim(claim(2, 1)), other.claim(claim(4, 2)));
        mine.extend(numbers(&one.unwrap()));
        theirs.extend(numbers(&another.unwrap()));
        sleep(ms(600)).await;
    }
    let mut all = [mine, theirs].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn effects_and_lag_come_together() {
    let world = lagging(ms(100));
    let (store, fate) = (&*world.store, &world.fate);
    for number in 0..4 {
        applied(store, create(number)).await;
    }
    sleep(ms(100)).await;
    fate.next(Lot { effect: Effect::Torn(1), lag: ms(100), ..Lot::CALM });
    assert!(matches!(store.claim(claim(3, 1)).await, Err(StoreError::Unknown { .. })));
    assert_eq!(there(&*world.right, queued()).await, [1, 2, 3]);
    fate.next(Lot { effect: Effect::Late(ms(50)), lag: ms(100), ..Lot::CALM });
    assert!(store.claim(claim(2, 2)).await.is_err());
    sleep(ms(60)).await;
    assert_eq!(
        there(&*world.right, queued()).await,
        [2, 3],
        "the past that it saw held the one claimed before"
    );
    fate.next_effect(Effect::Unanswered);
    assert!(matches!(store.write(vec![create(9)]).await, Err(StoreError::Unknown { .. })));
    assert_eq!(store.write(vec![create(9)]).await.unwrap(), [Written::Exists]);
    assert_eq!(there(store, jobs()).await, [0, 1, 2, 3, 9], "the past knows it, too");
}
