//! Limits: written by whoever read them last, found by their holders and by their age.

use rota_model::ids::Incarnation;
use rota_model::limit::{Limit, LimitName, Need};
use rota_model::time::UnixMillis;
use rota_store::job_limits::JobLimits;
use rota_store::repository::Saved;

use super::{domain, node, store};

fn name(kind: &str, key: Option<&str>) -> LimitName {
    LimitName { domain: domain("red"), kind: kind.to_owned(), key: key.map(str::to_owned) }
}

fn held(mut limit: Limit, who: &str, slots: u32) -> Limit {
    let need = Need { used: slots, more: 0, queues: false };
    limit.settle(Incarnation::derived(&[who]), node("a"), Some(9), need);
    limit
}

#[tokio::test]
async fn who_comes_second_is_told_so() {
    let limits = JobLimits::new(store());
    let names = [name("mail", None), name("mail", Some("k")), name("other", None)];
    let new = names.clone().map(|name| Limit::new(name, UnixMillis(1), node("a")));
    let created = limits.create_all(&new).await.unwrap();
    assert!(created.iter().all(Option::is_some));
    assert_eq!(limits.create_all(&new[..1]).await.unwrap(), [None]);
    let read: Vec<_> = limits.get_each(&names).await.unwrap().into_iter().flatten().collect();
    assert_eq!(read.iter().map(|limit| limit.document.clone()).collect::<Vec<_>>(), new);
    let after = held(new[0].clone(), "one", 3);
    let saved = limits.save_all([(&read[0], &after)].into_iter()).await.unwrap();
    assert!(matches!(saved[..], [Saved::Applied(_)]));
    let late = held(new[0].clone(), "two", 9);
    assert_eq!(limits.save_all([(&read[0], &late)].into_iter()).await.unwrap(), [Saved::Overtaken]);
    let deleted = limits.delete_all(read[..2].to_vec(), UnixMillis(2)).await.unwrap();
    assert!(matches!(deleted.as_slice(), [Saved::Overtaken, Saved::Applied(_)]), "{deleted:?}");
    let there: Vec<_> = limits.get_each(&names).await.unwrap().iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, true]);
}

#[tokio::test]
async fn they_are_found_by_holders_and_by_age() {
    let limits = JobLimits::new(store());
    for nth in 0..5_i64 {
        let limit = Limit::new(name("mail", Some(&nth.to_string())), UnixMillis(nth), node("a"));
        let limit = if nth % 2 == 0 { held(limit, "one", 1) } else { limit };
        limits.create_all(&[limit]).await.unwrap();
    }
    let keys = |found: &[rota_store::Versioned<Limit>]| {
        let mut keys: Vec<_> = found.iter().filter_map(|limit| limit.document.key.clone()).collect();
        keys.sort();
        keys
    };
    let (first, next) = limits.held(2, None).await.unwrap();
    let (rest, end) = limits.held(2, next).await.unwrap();
    assert!(first.len() == 2 && end.is_none());
    assert_eq!(keys(&[first, rest].concat()), ["0", "2", "4"]);
    let (old, _) = limits.unchanged_since(UnixMillis(2), 10, None).await.unwrap();
    assert_eq!(keys(&old), ["0", "1", "2"]);
}
