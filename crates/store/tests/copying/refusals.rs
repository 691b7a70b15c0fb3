//! What is not copied, and nothing is written then.

use std::sync::Arc;

use rota_store::collection::{JOBS, SETTINGS};
use rota_store::copy::CopyError;
use rota_store::seam::Key;
use rota_store::settings;
use serde_json::json;

use crate::{
    NOW, assert_same, contents, copy, copying, create, delete, filled, memory, origin, read, replace,
};

#[tokio::test]
async fn a_target_that_holds_anything_is_left_alone() {
    let source = filled(1).await;
    let opened = memory();
    settings::open(Arc::clone(&opened), NOW.to_date()).await.unwrap();
    let hidden = memory();
    create(&*hidden, Key::new(&JOBS, "1"), &json!({})).await;
    delete(&*hidden, Key::new(&JOBS, "1")).await;
    for (target, name) in [(opened, "settings/installation"), (hidden, "jobs/1")] {
        let before = contents(&*target).await;
        match copy(&*source, &*target, "1").await {
            Err(CopyError::NotEmpty(key)) => assert_eq!(key.to_string(), name),
            other => panic!("{other:?}"),
        }
        assert_eq!(contents(&*target).await, before);
        assert!(read(&*target, Key::new(&SETTINGS, "copy")).await.is_none());
    }
}

#[tokio::test]
async fn a_copy_of_another_store_is_left_alone() {
    let (source, target) = (filled(1).await, memory());
    let mut other = copying(&*source, &*target, "1");
    other.origin = origin("elsewhere");
    other.run(&mut |_| {}).await.unwrap();
    match copy(&*source, &*target, "2").await {
        Err(CopyError::OtherCopy { from }) => assert_eq!(from, "elsewhere"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_node_took_over_is_not_copied_over() {
    let (source, target) = (filled(1).await, memory());
    copy(&*source, &*target, "1").await.unwrap();
    settings::open(Arc::clone(&target), NOW.to_date()).await.unwrap();
    create(&*target, Key::new(&JOBS, "new"), &json!({})).await;
    let refused = copy(&*source, &*target, "2").await;
    assert!(matches!(refused, Err(CopyError::NotEmpty(_))), "{refused:?}");
    assert!(read(&*target, Key::new(&JOBS, "new")).await.is_some());
}

#[tokio::test]
async fn what_is_no_whole_store_of_this_version_is_not_copied() {
    let target = memory();
    let nothing = copy(&*memory(), &*target, "1").await;
    assert!(matches!(nothing, Err(CopyError::NoSource)), "{nothing:?}");

    let half = filled(1).await;
    let marker = json!({"from": "there", "mark": "m", "run": "1", "began": NOW.to_date(), "finished": false});
    create(&*half, Key::new(&SETTINGS, "copy"), &marker).await;
    match copy(&*half, &*target, "1").await {
        Err(CopyError::HalfSource { from }) => assert_eq!(from, "there"),
        other => panic!("{other:?}"),
    }

    let newer = filled(1).await;
    let mut settings = read(&*newer, Key::new(&SETTINGS, "installation")).await.unwrap();
    settings.body.insert("oldest_reader".to_owned(), json!(99));
    replace(&*newer, settings.key, &settings.body.into()).await;
    let refused = copy(&*newer, &*target, "1").await.unwrap_err().to_string();
    assert!(refused.contains("written by a newer Rota"), "{refused}");
    assert_same(&*memory(), &*target).await;
    assert!(read(&*target, Key::new(&SETTINGS, "copy")).await.is_none());
}
