//! Hints that are lost, doubled and late.

use std::sync::Arc;

use rota_store::Store;
use rota_store::collection::{JOBS, USERS};
use rota_store::hints::{Changes, News};
use rota_store::seam::{Body, Key, Write};
use tokio::time::{Instant, timeout};

use crate::script::{World, applied, claim, create, ms, node, world};

/// The jobs that the next news is about.
async fn told(changes: &mut Changes) -> Vec<String> {
    match changes.next().await {
        News::Of(hints) => hints.iter().map(|hint| hint.key.id.clone()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn hints_are_handed_on() {
    let World { store, right, .. } = world();
    let mut changes = store.changes(&JOBS);
    store.write(vec![create(1), create(2)]).await.unwrap();
    assert_eq!(told(&mut changes).await, ["job-1", "job-2"], "a commit is one piece of news");
    applied(&*right, create(3)).await;
    assert_eq!(told(&mut changes).await, ["job-3"], "whoever wrote it");
    applied(&*store, Write::Create { key: Key::new(&USERS, "u"), body: Body::new() }).await;
    store.claim(claim(1, 1)).await.unwrap();
    assert_eq!(told(&mut changes).await, ["job-1"]);
}

#[tokio::test(start_paused = true)]
async fn hints_are_lost_doubled_and_late() {
    let World { store, fate, .. } = world();
    let mut changes = store.changes(&JOBS);
    let began = Instant::now();
    fate.next_hint(&[]);
    fate.next_hint(&[ms(0), ms(0)]);
    fate.next_hint(&[ms(500), ms(20)]);
    fate.next_hint(&[ms(0)]);
    for number in 1..=4 {
        applied(&*store, create(number)).await;
    }
    assert_eq!(told(&mut changes).await, ["job-2", "job-2"]);
    assert_eq!(told(&mut changes).await, ["job-4"]);
    assert_eq!(began.elapsed(), ms(0));
    assert_eq!(told(&mut changes).await, ["job-3"]);
    assert_eq!(told(&mut changes).await, ["job-3"]);
    assert!((ms(500)..ms(502)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(timeout(ms(10_000), changes.next()).await.is_err(), "the first never comes");
}

/// What is lost to one node is not lost to another.
#[tokio::test(start_paused = true)]
async fn each_node_has_hints_of_its_own() {
    let World { store, truth, fate, .. } = world();
    let calm = node(&truth, &Arc::default());
    let (mut mine, mut theirs) = (store.changes(&JOBS), calm.changes(&JOBS));
    fate.next_hint(&[]);
    applied(&*store, create(1)).await;
    assert_eq!(told(&mut theirs).await, ["job-1"]);
    applied(&*calm, create(2)).await;
    assert_eq!(told(&mut mine).await, ["job-2"]);
    assert_eq!(told(&mut theirs).await, ["job-2"]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_listen_loses_hints_and_is_told() {
    let World { store, right, .. } = world();
    let mut read_by_nobody = store.changes(&JOBS);
    for number in 0..2_000 {
        applied(&*store, create(number)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(read_by_nobody.next().await, News::Lost);

    let mut held_up = store.changes(&JOBS);
    for number in 2_000..4_000 {
        // The relay has no turn meanwhile, and loses hints itself.
        assert!(at_once(right.write(vec![create(number)])).is_ok());
    }
    let mut lost = false;
    while !lost {
        lost = timeout(ms(10_000), held_up.next()).await.unwrap() == News::Lost;
    }
}

/// The in-memory store answers at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(ready) => ready,
        std::task::Poll::Pending => panic!("it waits for something"),
    }
}

#[tokio::test(start_paused = true)]
async fn hints_end_with_the_node() {
    let World { store, truth, fate, .. } = world();
    let mut changes = store.changes(&JOBS);
    drop(store);
    assert_eq!(timeout(ms(10_000), changes.next()).await.unwrap(), News::Closed);
    let again = node(&truth, &fate);
    let mut changes = again.changes(&JOBS);
    applied(&*again, create(1)).await;
    assert_eq!(told(&mut changes).await, ["job-1"]);
}
