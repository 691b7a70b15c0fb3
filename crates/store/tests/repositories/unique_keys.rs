//! Unique keys: taken once, moved on by whoever read them last, and found by their age.

use rota_model::Extra;
use rota_model::ids::JobId;
use rota_model::metadata::Metadata;
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::repository::{Created, Saved};
use rota_store::unique_keys::UniqueKeys;

use super::{domain, new, node, store};

fn key(domain_name: &str, name: &str, job: &str, at: i64) -> UniqueKey {
    UniqueKey {
        domain: domain(domain_name),
        key: name.to_owned(),
        job_id: JobId::derived(&[job]),
        requeue: None,
        metadata: Metadata::new(UnixMillis(at), node("a")),
        extra: Extra::new(),
    }
}

#[tokio::test]
async fn a_key_has_one_job_at_a_time() {
    let keys = UniqueKeys::new(store());
    // Longer than an id may be.
    let long = "k".repeat(2_000);
    let first = new(keys.create(key("red", &long, "first", 1)).await.unwrap());
    assert_eq!(keys.get(&domain("red"), &long).await.unwrap(), Some(first.clone()));
    let second = key("red", &long, "second", 2);
    assert_eq!(keys.create(second.clone()).await.unwrap(), Created::Exists(second.clone()));
    new(keys.create(key("blue", &long, "second", 2)).await.unwrap());

    assert!(matches!(keys.save(&first, &second).await.unwrap(), Saved::Applied(_)));
    assert_eq!(keys.save(&first, &key("red", &long, "third", 3)).await.unwrap(), Saved::Overtaken);
    assert_eq!(keys.delete_all(vec![first], UnixMillis(3)).await.unwrap(), [Saved::Overtaken]);
    let moved = keys.get(&domain("red"), &long).await.unwrap().unwrap();
    assert_eq!(moved.document, second);
    assert!(matches!(keys.delete_all(vec![moved], UnixMillis(3)).await.unwrap()[..], [Saved::Applied(_)]));
    assert_eq!(keys.get(&domain("red"), &long).await.unwrap(), None);
    new(keys.create(key("red", &long, "fourth", 4)).await.unwrap());
}

#[tokio::test]
async fn the_oldest_keys_come_first() {
    let keys = UniqueKeys::new(store());
    for (domain, name, at) in [("red", "c", 30), ("red", "later", 31), ("blue", "a", 10), ("red", "b", 20)] {
        new(keys.create(key(domain, name, name, at)).await.unwrap());
    }
    let a = keys.get(&domain("blue"), "a").await.unwrap().unwrap();
    let mut touched = a.document.clone();
    touched.metadata.touch(UnixMillis(25), node("b"));
    keys.save(&a, &touched).await.unwrap();
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = keys.unchanged_since(UnixMillis(30), 1, cursor).await.unwrap();
        found.extend(page.into_iter().map(|key| key.document.key));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["b", "a", "c"]);
}
