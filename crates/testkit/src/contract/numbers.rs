//! Numbers: never handed out twice, rising for one caller, from 1 on.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_store::limits::MAX_NUMBERS;

use super::Subject;
use super::verbs::refusal;

pub async fn numbers_are_never_given_twice(store: Subject) {
    let takers = (0..8u64).map(|taker| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..20 {
                let numbers = store.sequence("jobs", taker + 1).await.unwrap();
                assert_eq!(numbers.end - numbers.start, taker + 1, "as many as were asked for");
                mine.extend(numbers);
            }
            assert!(mine.is_sorted_by(|a, b| a < b), "they rise for one caller");
            mine
        })
    });
    let (mut all, mut count) = (BTreeSet::new(), 0);
    for taker in takers.collect::<Vec<_>>() {
        let mine = taker.await.unwrap();
        count += mine.len();
        all.extend(mine);
    }
    assert_eq!(all.len(), count);
    assert_eq!(all.first(), Some(&1));
}

pub async fn every_sequence_has_its_own_numbers(store: Subject) {
    assert_eq!(store.sequence("jobs", 5).await.unwrap(), 1..6);
    assert_eq!(store.sequence("others", 1).await.unwrap(), 1..2);
    assert!(store.sequence("jobs", 1).await.unwrap().start >= 6);
    let many = store.sequence("jobs", MAX_NUMBERS).await.unwrap();
    assert_eq!(many.end - many.start, MAX_NUMBERS);
    assert!(store.sequence("jobs", 1).await.unwrap().start >= many.end);
    assert!(store.sequence("others", 1).await.unwrap().start >= 2);
}

pub async fn too_many_numbers_are_refused(store: Subject) {
    for n in [0, MAX_NUMBERS + 1, u64::MAX] {
        let reason = refusal(store.sequence("jobs", n).await);
        assert!(reason.contains("jobs") && reason.contains(&n.to_string()), "{reason}");
    }
    assert_eq!(store.sequence("jobs", 1).await.unwrap().start, 1, "what was refused took nothing");
}
