//! Calls that fail, are not answered, are torn, come late or take long.

use std::sync::Arc;

use rota_store::seam::{Key, Store, Write, Written};
use rota_store::{Promises, StoreError};
use rota_testkit::faults::{Effect, Lot};
use tokio::time::{Instant, sleep};

use crate::script::{World, applied, claim, create, job, jobs, ms, queued, start, there, world};

#[tokio::test(start_paused = true)]
async fn without_faults_it_is_the_store() {
    let World { right, store, fate, .. } = world();
    let version = applied(&*store, create(1)).await;
    assert_eq!(store.read(vec![job(1)]).await.unwrap(), right.read(vec![job(1)]).await.unwrap());
    assert_eq!(there(&*store, jobs()).await, [1]);
    assert_eq!(store.count(jobs(), None).await.unwrap()[0].count, 1);
    assert_eq!(store.claim(claim(5, 1)).await.unwrap().len(), 1);
    assert_eq!(
        store.write(vec![start(1, version), create(1)]).await.unwrap(),
        [Written::Conflict, Written::Exists]
    );
    assert_eq!(store.sequence("jobs", 3).await.unwrap(), 1..4);
    assert_eq!(fate.asked(), ["Write", "Read", "Find", "Count", "Claim", "Write", "Sequence"]);
    let Promises { find_lag, text_lag, exclusive } = store.promises();
    assert_eq!((find_lag, text_lag, exclusive), (ms(0), ms(0), right.promises().exclusive));
}

#[tokio::test(start_paused = true)]
async fn what_fails_did_not_happen() {
    let World { right, store, fate, .. } = world();
    fate.next_effect(Effect::Fails);
    let failed = store.write(vec![create(1)]).await.unwrap_err();
    assert!(
        matches!(failed, StoreError::Unavailable { .. }) && failed.to_string().contains("jobs/job-1"),
        "{failed}"
    );
    assert_eq!(there(&*right, jobs()).await, Vec::<i64>::new());
    applied(&*store, create(1)).await;
    fate.next_effect(Effect::Fails);
    assert!(matches!(store.claim(claim(1, 1)).await, Err(StoreError::Unavailable { .. })));
    assert_eq!(there(&*right, queued()).await, [1]);
    fate.next_effect(Effect::Fails);
    assert!(matches!(store.sequence("jobs", 1).await, Err(StoreError::Unavailable { .. })));
    assert_eq!(right.sequence("jobs", 1).await.unwrap(), 1..2);
}

/// A look has no effect that could be unknown.
#[tokio::test(start_paused = true)]
async fn a_look_fails_or_succeeds() {
    let World { store, fate, .. } = world();
    for effect in [Effect::Fails, Effect::Unanswered, Effect::Torn(1), Effect::Late(ms(5))] {
        fate.next_effect(effect);
        assert!(matches!(store.read(vec![job(1)]).await, Err(StoreError::Unavailable { .. })));
        fate.next_effect(effect);
        assert!(matches!(store.find(jobs()).await, Err(StoreError::Unavailable { .. })));
        fate.next_effect(effect);
        assert!(matches!(store.count(jobs(), None).await, Err(StoreError::Unavailable { .. })));
    }
    assert_eq!(store.read(vec![job(1)]).await.unwrap(), [None]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_happened() {
    let World { right, store, fate, .. } = world();
    fate.next_effect(Effect::Unanswered);
    let lost = store.write(vec![create(1), create(2)]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown { .. }), "{lost}");
    assert_eq!(there(&*right, jobs()).await, [1, 2]);
    fate.next_effect(Effect::Unanswered);
    assert!(matches!(store.claim(claim(1, 1)).await, Err(StoreError::Unknown { .. })));
    assert_eq!(there(&*right, queued()).await, [2]);
    fate.next_effect(Effect::Unanswered);
    assert!(matches!(store.sequence("jobs", 5).await, Err(StoreError::Unknown { .. })));
    assert_eq!(store.sequence("jobs", 1).await.unwrap(), 6..7);
}

#[tokio::test(start_paused = true)]
async fn what_is_torn_happened_in_part() {
    let World { right, store, fate, .. } = world();
    for (bits, expected) in [(0b000, vec![]), (0b101, vec![1, 3])] {
        fate.next_effect(Effect::Torn(bits));
        let torn = store.write(vec![create(1), create(2), create(3)]).await;
        assert!(matches!(torn, Err(StoreError::Unknown { .. })));
        assert_eq!(there(&*right, jobs()).await, expected);
    }
    for (bits, expected) in [(0b00, vec![1, 3]), (0b10, vec![3])] {
        fate.next_effect(Effect::Torn(bits));
        assert!(matches!(store.claim(claim(2, 1)).await, Err(StoreError::Unknown { .. })));
        assert_eq!(there(&*right, queued()).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_late_happens_after_its_answer() {
    let World { right, store, fate, .. } = world();
    let began = Instant::now();
    fate.next(Lot { before: ms(5), after: ms(5), effect: Effect::Late(ms(1_000)), ..Lot::CALM });
    assert!(matches!(store.write(vec![create(1)]).await, Err(StoreError::Unknown { .. })));
    assert_eq!(began.elapsed(), ms(10));
    sleep(ms(999)).await;
    assert_eq!(there(&*right, jobs()).await, Vec::<i64>::new());
    sleep(ms(2)).await;
    assert_eq!(there(&*right, jobs()).await, [1]);

    fate.next_effect(Effect::Late(ms(50)));
    assert!(store.claim(claim(1, 1)).await.is_err());
    assert_eq!(there(&*right, queued()).await, [1]);
    sleep(ms(51)).await;
    assert_eq!(there(&*right, queued()).await, Vec::<i64>::new());
}

/// A late write meets what others wrote meanwhile.
#[tokio::test(start_paused = true)]
async fn what_is_late_may_come_too_late() {
    let World { right, store, fate, .. } = world();
    let version = applied(&*store, create(1)).await;
    fate.next_effect(Effect::Late(ms(100)));
    let late = Write::Delete { key: job(1), version, at: rota_model::time::UnixMillis(1) };
    assert!(store.write(vec![late]).await.is_err());
    let second = applied(&*store, start(1, version)).await;
    sleep(ms(200)).await;
    assert_eq!(right.read(vec![job(1)]).await.unwrap()[0].as_ref().unwrap().version, second);
}

/// A caller that dies takes back what was not sent yet, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_caller_may_die_meanwhile() {
    let slow = |before, effect, after| Lot { before: ms(before), effect, after: ms(after), ..Lot::CALM };
    for (number, lot, happens) in [
        (1, slow(100, Effect::Done, 0), false),
        (2, slow(0, Effect::Done, 100), true),
        (3, slow(100, Effect::Late(ms(100)), 0), true),
        (4, slow(0, Effect::Late(ms(100)), 100), true),
        (5, slow(0, Effect::Unanswered, 100), true),
        (6, slow(0, Effect::Fails, 100), false),
    ] {
        let World { right, store, fate, .. } = world();
        fate.next(lot);
        let caller = tokio::spawn(async move { store.write(vec![create(number)]).await });
        sleep(ms(50)).await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        sleep(ms(1_000)).await;
        let expected: &[i64] = if happens { &[number] } else { &[] };
        assert_eq!(there(&*right, jobs()).await, expected, "{lot:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_take_their_time() {
    let World { right, store, fate, .. } = world();
    let began = Instant::now();
    fate.next(Lot { before: ms(300), after: ms(700), ..Lot::CALM });
    let caller = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.write(vec![create(1)]).await })
    };
    sleep(ms(299)).await;
    assert_eq!(there(&*right, jobs()).await, Vec::<i64>::new());
    sleep(ms(2)).await;
    assert_eq!(there(&*right, jobs()).await, [1], "long before the answer");
    caller.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), ms(1_000));

    fate.next(Lot { before: ms(10), after: ms(20), ..Lot::CALM });
    let reader = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { there(&*store, jobs()).await })
    };
    sleep(ms(15)).await;
    applied(&*right, create(2)).await;
    assert_eq!(reader.await.unwrap(), [1], "what was there when it looked");
    assert_eq!(began.elapsed(), ms(1_030));
    fate.next(Lot { before: ms(4), after: ms(6), effect: Effect::Fails, ..Lot::CALM });
    assert!(store.sequence("jobs", 1).await.is_err());
    assert_eq!(began.elapsed(), ms(1_040));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_nobodys_fate() {
    let World { store, fate, .. } = world();
    let nameless = Key { id: String::new(), ..job(1) };
    let refused = |error: StoreError| matches!(error, StoreError::Refused { .. });
    assert!(refused(
        store
            .write(vec![Write::Create { key: nameless.clone(), body: Default::default() }])
            .await
            .unwrap_err()
    ));
    assert!(refused(store.read(vec![nameless]).await.unwrap_err()));
    assert!(refused(store.find(jobs().limit(0)).await.unwrap_err()));
    assert!(refused(store.count(jobs(), Some("nowhere")).await.unwrap_err()));
    assert!(refused(store.claim(claim(0, 1)).await.unwrap_err()));
    assert!(refused(store.sequence("jobs", 0).await.unwrap_err()));
    assert_eq!(fate.asked(), Vec::<String>::new());
}
