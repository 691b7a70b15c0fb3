//! What is copied when nothing goes wrong, and when the same copy is made once more.

use std::sync::Arc;

use rota_model::time::UnixMillis;
use rota_store::collection::{JOBS, SETTINGS, STATE};
use rota_store::copy::{Progress, Stage};
use rota_store::query::{Order, Query};
use rota_store::seam::{Key, Write};
use rota_store::settings;
use rota_testkit::faults::{FaultyStore, RandomFate, Rates, Truth};
use serde_json::json;
use std::time::Duration;

use crate::{
    NOW, assert_same, body, contents, copy, copying, create, delete, filled, job, memory, purge_all, read,
    replace,
};

#[tokio::test]
async fn every_document_of_every_collection_and_domain_is_the_same() {
    let (source, target) = (filled(2_500).await, memory());
    let before = contents(&*source).await;
    let copied = copy(&*source, &*target, "1").await.unwrap();
    assert!(copied.is_equal() && !copied.resumed);
    assert_same(&*source, &*target).await;
    assert_eq!(contents(&*source).await, before, "the source is not changed");
    let jobs = copied.collections.iter().find(|one| one.collection.name == "jobs").unwrap();
    assert_eq!((jobs.source.documents, jobs.source.hidden), (2_502, 1));
    assert_eq!(jobs.source, jobs.target);
    assert_ne!(jobs.source.checksum, 0);
}

#[tokio::test]
async fn an_id_that_was_deleted_stays_taken_and_is_purged_an_hour_later() {
    let (source, target) = (filled(0).await, memory());
    copy(&*source, &*target, "1").await.unwrap();
    let again = Write::Create { key: Key::new(&JOBS, "1"), body: body(&json!({})) };
    let written = target.write(vec![again]).await.unwrap();
    assert_eq!(format!("{written:?}"), "[Exists]");
    let hidden = |before| Query::new(&JOBS, Order::BY_ID).hidden_before(before);
    let earlier = target.find(hidden(UnixMillis(NOW.0 - 1))).await.unwrap().documents;
    assert!(earlier.is_empty(), "it is deleted as of the copy");
    assert_eq!(target.find(hidden(NOW)).await.unwrap().documents.len(), 1);
}

#[tokio::test]
async fn no_number_is_given_out_again() {
    let (source, target) = (filled(0).await, memory());
    copy(&*source, &*target, "1").await.unwrap();
    let given = source.sequence("jobs", 1).await.unwrap().start;
    assert!(given > 41);
    source.sequence("jobs", 3_000_000_000 - given).await.unwrap_err();
    for _ in 0..3 {
        source.sequence("jobs", 1_000_000_000).await.unwrap();
    }
    copy(&*source, &*target, "2").await.unwrap();
    let last = source.sequence("jobs", 1).await.unwrap().start - 1;
    let next = target.sequence("jobs", 1).await.unwrap().start;
    assert!((last + 1..last + 10).contains(&next), "{last}, then {next}");
}

#[tokio::test]
async fn a_target_that_is_ahead_stays_there() {
    let (source, target) = (filled(0).await, memory());
    target.sequence("jobs", 1_000).await.unwrap();
    copy(&*source, &*target, "1").await.unwrap();
    assert!((1_001..1_010).contains(&target.sequence("jobs", 1).await.unwrap().start));
}

#[tokio::test]
async fn a_copy_made_once_more_brings_over_what_changed() {
    let (source, target) = (filled(1_500).await, memory());
    copy(&*source, &*target, "1").await.unwrap();
    // Changed, deleted, deleted and purged, purged and made anew, hidden with something else in it, new.
    replace(&*source, job(3).0, &json!({"jobName": "changed"})).await;
    delete(&*source, Key::new(&STATE, "1")).await;
    delete(&*source, job(4).0).await;
    delete(&*source, job(5).0).await;
    purge_all(&*source, &JOBS).await;
    delete(&*source, job(6).0).await;
    replace(&*source, job(7).0, &json!({"jobName": "changed before it was deleted"})).await;
    delete(&*source, job(7).0).await;
    create(&*source, job(5).0, &json!({"jobName": "anew"})).await;
    create(&*source, Key::new(&JOBS, "1"), &json!({"jobName": "hidden in the target"})).await;
    create(&*source, Key::new(&JOBS, "zz"), &json!({"jobName": "new"})).await;
    let copied = copy(&*source, &*target, "2").await.unwrap();
    assert!(copied.is_equal() && copied.resumed, "{:?}", copied.collections);
    assert_same(&*source, &*target).await;
}

#[tokio::test]
async fn a_document_that_grew_beyond_one_write_is_copied_too() {
    let (source, target) = (filled(0).await, memory());
    let large = |letter: &str| json!({"text": letter.repeat(3 * 1024 * 1024)});
    let (key, mut value) = job(1);
    value["input"] = large("i");
    create(&*source, key.clone(), &value).await;
    for (path, letter) in [("result", "r"), ("history", "h")] {
        let version = read(&*source, key.clone()).await.unwrap().version;
        let change = Write::Change { key: key.clone(), version, fields: vec![(path, large(letter))] };
        source.write(vec![change]).await.unwrap();
    }
    assert!(copy(&*source, &*target, "1").await.unwrap().is_equal());
    assert_same(&*source, &*target).await;
    let version = read(&*source, key.clone()).await.unwrap().version;
    let change = Write::Change { key: key.clone(), version, fields: vec![("result", large("s"))] };
    source.write(vec![change]).await.unwrap();
    assert!(copy(&*source, &*target, "2").await.unwrap().is_equal());
    assert_same(&*source, &*target).await;
}

/// What stands in the target is the target's: the marker of an earlier copy does not travel on.
#[tokio::test]
async fn a_copy_can_be_copied() {
    let (source, middle, target) = (filled(10).await, memory(), memory());
    copy(&*source, &*middle, "1").await.unwrap();
    let mut second = copying(&*middle, &*target, "2");
    second.origin = crate::origin("there");
    assert!(second.run(&mut |_| {}).await.unwrap().is_equal());
    assert_same(&*source, &*target).await;
    let marker = read(&*target, Key::new(&SETTINGS, "copy")).await.unwrap();
    assert_eq!((&marker.body["from"], &marker.body["finished"]), (&json!("there"), &json!(true)));
    settings::open(Arc::clone(&target), NOW.to_date()).await.unwrap();
    assert!(read(&*target, Key::new(&SETTINGS, "copy")).await.is_none());
}

#[tokio::test]
async fn how_far_it_has_come_is_told() {
    let (source, target) = (filled(2_000).await, memory());
    let mut told: Vec<Progress> = Vec::new();
    copying(&*source, &*target, "1").run(&mut |progress| told.push(progress)).await.unwrap();
    assert!(told.iter().all(|progress| progress.done <= progress.of));
    let at =
        |stage| told.iter().filter(move |progress| progress.stage == stage).map(|progress| progress.done);
    let (filling, comparing): (Vec<u64>, Vec<u64>) =
        (at(Stage::Filling).collect(), at(Stage::Comparing).collect());
    assert!(filling.is_sorted() && filling.contains(&1_001), "{filling:?}");
    assert!(comparing.is_sorted(), "what is filled in order need not be put right: {comparing:?}");
    let last = told.last().unwrap();
    assert_eq!((last.stage, last.done), (Stage::Comparing, last.of));
}

#[tokio::test(start_paused = true)]
async fn a_target_whose_finds_lag_is_waited_for() {
    let source = filled(1_200).await;
    let lag = Duration::from_millis(500);
    let truth = Truth::lagging(memory(), lag);
    let fate = RandomFate::new(1, Rates { lag_max: lag, ..Rates::default() });
    let target = FaultyStore::new(&truth, Arc::new(fate));
    let copied = copy(&*source, &target, "1").await.unwrap();
    assert!(copied.is_equal(), "{:?}", copied.collections);
    assert_same(&*source, &**truth.store()).await;
}
