//! Claiming: no two callers get the same document, nothing is left behind, and no applied write is lost to a claim.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rota_store::collection::STATE;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Claim, Document, Write, Written};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Subject;
use super::examples::{body, change, claim, job_with, jobs, numbered, queued, state, token};
use super::patience::{GENEROUS, caught_up, eventually};
use super::verbs::{applied, document, fill, ids, job_numbers, one, read, walk};

fn numbers(documents: &[Document]) -> Vec<i64> {
    documents.iter().map(|document| document.body["jobNumber"].as_i64().unwrap()).collect()
}

/// Sixteen at once take everything, and nothing twice.
pub async fn claims_never_overlap(store: Subject) {
    const JOBS: usize = 400;
    fill(&store, 400).await;
    caught_up(&store, queued(), JOBS).await;
    let taken = Arc::new(AtomicUsize::new(0));
    let lags = !store.promises().find_lag.is_zero();
    let takers: Vec<_> = (0..16u8)
        .map(|taker| {
            let (store, taken) = (Arc::clone(&store), Arc::clone(&taken));
            tokio::spawn(async move {
                let mut mine = Vec::new();
                let deadline = Instant::now() + GENEROUS;
                loop {
                    let more = store.claim(claim(7, token(taker))).await.unwrap();
                    assert!(more.len() <= 7);
                    let all = taken.fetch_add(more.len(), Ordering::Relaxed) + more.len();
                    // A store that lags may find only what others took just now, and then there is more to take.
                    let end = more.is_empty() && (!lags || all >= JOBS || Instant::now() > deadline);
                    if more.is_empty() && !end {
                        sleep(store.promises().find_lag / 8).await;
                    }
                    mine.extend(more.into_iter().map(|document| document.key.id));
                    if end {
                        return mine;
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.unwrap());
    }
    assert_eq!(all.len(), JOBS);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), JOBS);
    caught_up(&store, queued(), 0).await;
}

pub async fn a_claim_marks_what_it_takes(store: Subject) {
    fill(&store, 5).await;
    caught_up(&store, queued(), 5).await;
    let taken = store.claim(claim(2, token(1))).await.unwrap();
    assert_eq!(numbers(&taken), [4, 3], "the earliest run-at comes first");
    for document in &taken {
        let (version, stored) = read(&store, document.key.clone()).await.unwrap();
        assert_eq!((version, &stored), (document.version, &Value::Object(document.body.clone())));
        let mut expected = Value::Object(job_with(
            document.body["jobNumber"].as_i64().unwrap(),
            json!({"status": "STARTED", "owner": "me", "epoch": 1, "claimToken": token(1).to_string()}),
        ));
        expected["metadata"]["updatedAt"] = json!(5);
        assert_eq!(stored, expected);
    }
    caught_up(&store, queued(), 3).await;
    let rest = store.claim(claim(10, token(2))).await.unwrap();
    assert_eq!(numbers(&rest), [2, 1, 0]);
    assert_eq!(store.claim(claim(10, token(3))).await.unwrap(), []);
}

/// Whatever is set, and taken away, is in the answer as it is in the store.
pub async fn a_claim_answers_with_what_is_there(store: Subject) {
    fill(&store, 2).await;
    caught_up(&store, queued(), 2).await;
    let mut claim = claim(2, token(1));
    claim.set.extend([
        ("progress", json!({"done": [1, 0.5, null], "\u{0}": "\u{0}"})),
        ("runAt", Value::Null),
        ("metadata.updatedBy", json!("me")),
        ("result", Value::Null),
    ]);
    let taken = store.claim(claim).await.unwrap();
    assert_eq!(taken.len(), 2);
    for document in taken {
        let (version, stored) = read(&store, document.key).await.unwrap();
        assert_eq!((version, stored), (document.version, Value::Object(document.body)));
    }
}

/// Whoever lost the answer finds by the token, or by the owner, what was claimed.
pub async fn a_claim_is_found_again(store: Subject) {
    fill(&store, 6).await;
    caught_up(&store, queued(), 6).await;
    let taken = store.claim(claim(2, token(1))).await.unwrap();
    caught_up(&store, queued(), 4).await;
    store.claim(claim(3, token(2))).await.unwrap();
    let by_token = |nth| jobs().filter(Filter::Is("claimToken", json!(token(nth).to_string())));
    eventually(&store, vec![3, 2, 1], async || {
        let mut numbers = job_numbers(&store, by_token(2)).await;
        numbers.reverse();
        numbers
    })
    .await;
    let found = walk(&store, by_token(1)).await;
    assert_eq!(numbers(&found), [4, 5]);
    let again: Vec<_> = found.into_iter().rev().collect();
    assert_eq!(again, taken, "as it was answered");
    let mine = jobs().filter(Filter::Is("status", json!("STARTED"))).filter(Filter::Is("owner", json!("me")));
    assert_eq!(job_numbers(&store, mine).await, [1, 2, 3, 4, 5]);
}

pub async fn a_claim_adds_one_to_what_is_there(store: Subject) {
    for (number, epoch) in [(0, json!(null)), (1, json!(0)), (2, json!(41)), (3, json!(-1))] {
        let body = job_with(number, json!({"epoch": epoch}));
        applied(&store, Write::Create { key: numbered(number), body }).await;
    }
    caught_up(&store, queued(), 4).await;
    let taken = store.claim(claim(4, token(1))).await.unwrap();
    let epochs: Vec<_> = taken.iter().map(|document| document.body["epoch"].as_i64().unwrap()).collect();
    assert_eq!((numbers(&taken), epochs), (vec![3, 2, 1, 0], vec![0, 42, 1, 1]));
    let with_42 = || jobs().filter(Filter::Is("epoch", json!(42)));
    eventually(&store, vec![2], async || job_numbers(&store, with_42()).await).await;
    let without = Claim { add_one: None, from: vec![jobs().limit(1)], max: 1, ..claim(1, token(2)) };
    let taken = store.claim(without).await.unwrap();
    assert_eq!(taken[0].body["epoch"], 1, "nothing is added unless asked");
}

/// Queries are asked one after the other until there are enough; each gives at most its own limit.
pub async fn a_claim_asks_its_queries_in_order(store: Subject) {
    for number in 0..12 {
        let body = job_with(number, json!({"priority": number % 3}));
        applied(&store, Write::Create { key: numbered(number), body }).await;
    }
    caught_up(&store, queued(), 12).await;
    let of = |priority: i64| queued().filter(Filter::Is("priority", json!(priority)));
    let from = vec![of(2).limit(2), of(7), of(0), of(1)];
    let taken = store.claim(Claim { from, max: 7, ..claim(1, token(1)) }).await.unwrap();
    assert_eq!(numbers(&taken), [11, 8, 9, 6, 3, 0, 10]);
    caught_up(&store, queued(), 5).await;
    let from = vec![of(1).keys_only(), of(2)];
    let taken = store.claim(Claim { from, max: 100, ..claim(1, token(2)) }).await.unwrap();
    assert_eq!(numbers(&taken), [7, 4, 1, 5, 2], "with their bodies");
    assert_eq!(store.claim(Claim { from: vec![], ..claim(1, token(3)) }).await.unwrap(), []);
}

/// Other collections whose fields change can be claimed from as well.
pub async fn a_claim_may_be_about_anything_that_changes(store: Subject) {
    for (id, running) in [("a", 3), ("b", 1), ("c", 2)] {
        let body = body(json!({"name": id, "status": "UP", "running": running}));
        applied(&store, Write::Create { key: state(id), body }).await;
    }
    let up = || {
        Query::new(&STATE, Order { fields: &["running"], descending: true })
            .filter(Filter::Is("status", json!("UP")))
    };
    caught_up(&store, up(), 3).await;
    let claim = Claim {
        collection: &STATE,
        from: vec![up()],
        max: 2,
        set: vec![("status", json!("TAKEN"))],
        add_one: Some("running"),
        token: ("metadata.updatedBy", token(1)),
    };
    let taken = store.claim(claim).await.unwrap();
    let ids_taken: Vec<_> = taken.iter().map(|document| document.key.id.as_str()).collect();
    assert_eq!(ids_taken, ["a", "c"]);
    let expected = json!({"name": "a", "status": "TAKEN", "running": 4, "metadata": {"updatedBy": token(1).to_string()}});
    assert_eq!(read(&store, state("a")).await, Some((taken[0].version, expected)));
    eventually(&store, vec!["b".to_owned()], async || ids(&store, up()).await).await;
}

/// Some change documents by version and give them back, others claim them: every claim adds one, every applied change
/// adds one, and both are all there in the end.
pub async fn claims_and_changes_lose_nothing(store: Subject) {
    const JOBS: i64 = 10;
    fill(&store, JOBS).await;
    caught_up(&store, queued(), 10).await;
    let (claimed, changed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for taker in 0..4u8 {
        let (store, claimed) = (Arc::clone(&store), Arc::clone(&claimed));
        tasks.push(tokio::spawn(async move {
            for _ in 0..60 {
                let taken = store.claim(claim(2, token(taker))).await.unwrap();
                claimed.fetch_add(taken.len() as u64, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }));
    }
    for changer in 0..6i64 {
        let (store, changed) = (Arc::clone(&store), Arc::clone(&changed));
        tasks.push(tokio::spawn(async move {
            for step in 0..60 {
                let found = document(&store, numbered((step * 3 + changer) % JOBS)).await.unwrap();
                let attempts = found.body.get("attempt").and_then(Value::as_i64).unwrap_or(0);
                let write = if step % 2 == 0 {
                    let fields = vec![("attempt", json!(attempts + 1)), ("status", json!("QUEUED"))];
                    change(found.key, found.version, fields)
                } else {
                    let mut body = found.body;
                    body.extend([
                        ("attempt".to_owned(), json!(attempts + 1)),
                        ("status".to_owned(), json!("QUEUED")),
                    ]);
                    Write::Replace { key: found.key, version: found.version, body }
                };
                match one(&store, write).await {
                    Written::Applied(_) => changed.fetch_add(1, Ordering::Relaxed),
                    other => {
                        assert_eq!(other, Written::Conflict);
                        0
                    }
                };
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let (mut epochs, mut attempts) = (0, 0);
    for number in 0..JOBS {
        let (_, stored) = read(&store, numbered(number)).await.unwrap();
        epochs += stored["epoch"].as_u64().unwrap_or(0);
        attempts += stored["attempt"].as_u64().unwrap_or(0);
    }
    assert_eq!(epochs, claimed.load(Ordering::Relaxed), "each claim is there");
    assert_eq!(attempts, changed.load(Ordering::Relaxed), "each change is there");
    assert!(epochs > 0 && attempts > 0);
}

/// Two queries about the same documents, which stay what both ask for: each is taken once, and its epoch moves on once.
pub async fn a_claim_takes_a_document_once(store: Subject) {
    fill(&store, 3).await;
    caught_up(&store, queued(), 3).await;
    let mut twice = claim(10, token(1));
    twice.from.extend(twice.from.clone());
    twice.set = vec![("metadata.updatedAt", json!(5))];
    let taken = store.claim(twice).await.unwrap();
    assert_eq!(numbers(&taken), [2, 1, 0]);
    for document in taken {
        assert_eq!(document.body["epoch"], 1);
        assert_eq!(read(&store, document.key.clone()).await.unwrap().0, document.version);
    }
}

/// There is no number above the last.
pub async fn a_claim_adds_nothing_to_the_last_number(store: Subject) {
    applied(&store, Write::Create { key: numbered(1), body: job_with(1, json!({"epoch": i64::MAX})) }).await;
    caught_up(&store, queued(), 1).await;
    let taken = store.claim(claim(1, token(1))).await.unwrap();
    assert_eq!(taken.first().map(|taken| &taken.body["epoch"]), Some(&json!(i64::MAX)));
}
