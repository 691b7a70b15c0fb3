//! The verbs as tests say them: what must succeed, does.

use std::panic::Location;

use rota_store::StoreError;
use rota_store::query::{Filter, Query};
use rota_store::seam::{Document, Key, Tally, Version, Write, Written};
use serde_json::Value;

use super::Subject;
use super::examples::create;

/// More pages than any test makes: a list that goes round in circles ends here.
const MAX_PAGES: usize = 2_000;

pub(super) async fn one(store: &Subject, write: Write) -> Written {
    let answers = store.write(vec![write]).await.unwrap();
    assert_eq!(answers.len(), 1, "one write has one answer");
    answers[0]
}

/// The version that came of a write which must be applied.
#[track_caller]
pub(super) fn applied(store: &Subject, write: Write) -> impl Future<Output = Version> {
    let at = Location::caller();
    async move {
        let key = write.key().clone();
        match one(store, write).await {
            Written::Applied(version) => version,
            other => panic!("{at}: {other:?} instead of applied: {key}"),
        }
    }
}

/// What a batch was answered, without the versions.
pub(super) fn kinds(answers: &[Written]) -> Vec<&'static str> {
    answers.iter().map(kind).collect()
}

pub(super) fn kind(answer: &Written) -> &'static str {
    match answer {
        Written::Applied(_) => "applied",
        Written::Conflict => "conflict",
        Written::Exists => "exists",
        Written::Missing => "missing",
    }
}

pub(super) async fn document(store: &Subject, key: Key) -> Option<Document> {
    let mut found = store.read(vec![key]).await.unwrap();
    assert_eq!(found.len(), 1, "one key has one answer");
    found.remove(0)
}

pub(super) async fn read(store: &Subject, key: Key) -> Option<(Version, Value)> {
    let found = document(store, key).await?;
    Some((found.version, Value::Object(found.body)))
}

/// Jobs with the numbers from zero on.
pub(super) async fn fill(store: &Subject, count: i64) {
    let answers = store.write((0..count).map(create).collect()).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Written::Applied(_))));
}

/// Everything that a query finds, page by page.
pub(super) async fn walk(store: &Subject, mut query: Query) -> Vec<Document> {
    let mut found = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = store.find(query.clone()).await.unwrap();
        assert!(
            page.documents.len() <= query.limit,
            "a page of {}, not {}",
            query.limit,
            page.documents.len()
        );
        found.extend(page.documents);
        query.after = page.next;
        if query.after.is_none() {
            return found;
        }
    }
    panic!("the list has no end: {query:?}");
}

pub(super) async fn ids(store: &Subject, query: Query) -> Vec<String> {
    walk(store, query).await.into_iter().map(|document| document.key.id).collect()
}

pub(super) async fn job_numbers(store: &Subject, query: Query) -> Vec<i64> {
    let numbers = walk(store, query).await.into_iter().map(|document| document.body["jobNumber"].as_i64());
    numbers.map(Option::unwrap).collect()
}

pub(super) async fn total(store: &Subject, query: Query) -> u64 {
    let tallies = store.count(query, None).await.unwrap();
    let [Tally { value: Value::Null, count }] = tallies.as_slice() else {
        panic!("a total is one number: {tallies:?}")
    };
    *count
}

/// What words find, by id.
pub(super) async fn worded(store: &Subject, query: Query, words: &str) -> Vec<String> {
    ids(store, query.filter(Filter::Text(words.to_owned()))).await
}

/// The reason why something was refused, which it must be.
#[track_caller]
pub(super) fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(refused @ StoreError::Refused { .. }) => refused.to_string(),
        other => panic!("it was not refused: {}", brief(&other)),
    }
}

/// For a message: not all of a large document.
pub(super) fn brief(value: &impl std::fmt::Debug) -> String {
    format!("{:.3000}", format!("{value:?}"))
}
