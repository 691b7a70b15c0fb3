//! Writing: each document on its own, on the version that was read, answered in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_store::StoreError;
use rota_store::limits::MAX_BATCH;
use rota_store::query::Filter;
use rota_store::seam::{Body, Version, Write, Written};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{
    body, change, create, delete, domain, job, job_with, jobs, named, numbered, state, timer, timer_body,
    user,
};
use super::patience::eventually;
use super::verbs::{applied, document, job_numbers, kinds, one, read};

pub async fn an_id_is_taken_once(store: Subject) {
    let version = applied(&store, create(1)).await;
    let again = Write::Create { key: numbered(1), body: job(2) };
    assert_eq!(one(&store, again).await, Written::Exists);
    assert_eq!(read(&store, numbered(1)).await, Some((version, Value::Object(job(1)))));
    assert_eq!(document(&store, numbered(1)).await.unwrap().key, numbered(1));
    assert_eq!(read(&store, named("elsewhere")).await, None);
}

pub async fn a_write_needs_the_version(store: Subject) {
    let first = applied(&store, create(1)).await;
    let replace = |version| Write::Replace { key: numbered(1), version, body: job(2) };
    let second = applied(&store, replace(first)).await;
    assert_ne!(first, second);
    assert_eq!(one(&store, replace(first)).await, Written::Conflict);
    let late = change(numbered(1), first, vec![("epoch", json!(1))]);
    assert_eq!(one(&store, late).await, Written::Conflict);
    assert_eq!(one(&store, delete(numbered(1), first)).await, Written::Conflict);
    assert_eq!(read(&store, numbered(1)).await, Some((second, Value::Object(job(2)))));
    let third = applied(&store, change(numbered(1), second, vec![("epoch", json!(1))])).await;
    assert_eq!(one(&store, replace(second)).await, Written::Conflict);
    applied(&store, delete(numbered(1), third)).await;
}

pub async fn what_is_not_there_is_missing(store: Subject) {
    let version = applied(&store, create(1)).await;
    let key = || named("nowhere");
    let batch = vec![
        Write::Replace { key: key(), version, body: job(3) },
        change(key(), version, vec![("epoch", json!(1))]),
        delete(key(), version),
        Write::Purge { key: key(), version },
    ];
    let answers = store.write(batch).await.unwrap();
    assert_eq!(kinds(&answers), ["missing"; 4]);
    assert_eq!(read(&store, key()).await, None);
}

pub async fn fields_change_on_their_own(store: Subject) {
    let version = applied(&store, create(1)).await;
    let fields = vec![
        ("status", json!("STARTED")),
        ("owner", json!("me")),
        ("result", json!({"kept": {"null": null}, "list": [1, "two"]})),
        ("metadata.updatedAt", json!(77)),
    ];
    let version = applied(&store, change(numbered(1), version, fields)).await;
    let mut expected = Value::Object(job(1));
    expected["status"] = json!("STARTED");
    expected["owner"] = json!("me");
    expected["result"] = json!({"kept": {"null": null}, "list": [1, "two"]});
    expected["metadata"]["updatedAt"] = json!(77);
    assert_eq!(read(&store, numbered(1)).await, Some((version, expected.clone())));

    let gone = vec![("owner", Value::Null), ("metadata.updatedBy", Value::Null), ("progress", Value::Null)];
    let version = applied(&store, change(numbered(1), version, gone)).await;
    expected.as_object_mut().unwrap().shift_remove("owner");
    expected["metadata"].as_object_mut().unwrap().shift_remove("updatedBy");
    assert_eq!(read(&store, numbered(1)).await, Some((version, expected)));
}

pub async fn a_change_of_nothing_is_a_new_version(store: Subject) {
    let first = applied(&store, create(1)).await;
    let second = applied(&store, change(numbered(1), first, vec![])).await;
    assert_ne!(first, second);
    assert_eq!(read(&store, numbered(1)).await, Some((second, Value::Object(job(1)))));
    let third = applied(&store, change(numbered(1), second, vec![("status", json!("QUEUED"))])).await;
    assert_ne!(second, third);
}

pub async fn a_change_makes_what_it_stands_in(store: Subject) {
    let version = applied(&store, Write::Create { key: state("n"), body: body(json!({"name": "n"})) }).await;
    let version = applied(&store, change(state("n"), version, vec![("metadata.updatedAt", json!(3))])).await;
    let expected = json!({"name": "n", "metadata": {"updatedAt": 3}});
    assert_eq!(read(&store, state("n")).await, Some((version, expected)));
}

/// Of two values for one field the last one holds, unless the wish is refused.
pub async fn a_field_has_one_value(store: Subject) {
    let version = applied(&store, create(1)).await;
    let fields = vec![("owner", json!("first")), ("epoch", json!(1)), ("owner", json!("last"))];
    let refused = store.write(vec![change(numbered(1), version, fields)]).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(read(&store, numbered(1)).await.unwrap().1, Value::Object(job(1)));
}

/// What was set on its own does not outlive the document that it was set on.
pub async fn a_replace_leaves_nothing_of_what_was(store: Subject) {
    let version = applied(&store, create(1)).await;
    let fields =
        vec![("owner", json!("me")), ("result", json!({"old": 1})), ("metadata.updatedAt", json!(9))];
    let version = applied(&store, change(numbered(1), version, fields)).await;
    let bare = body(json!({"jobNumber": 1, "metadata": {"createdAt": 4}}));
    let version = applied(&store, Write::Replace { key: numbered(1), version, body: bare.clone() }).await;
    assert_eq!(read(&store, numbered(1)).await, Some((version, Value::Object(bare))));
}

pub async fn answers_come_in_order(store: Subject) {
    let batch = vec![create(1), create(2), create(1), create(3)];
    let answers = store.write(batch).await.unwrap();
    assert_eq!(kinds(&answers), ["applied", "applied", "exists", "applied"]);
    let found = store.read(vec![numbered(3), named("none"), numbered(1), numbered(3)]).await.unwrap();
    let ids: Vec<_> = found.iter().map(|found| found.as_ref().map(|document| &document.key.id)).collect();
    let [one, three] = [numbered(1).id, numbered(3).id];
    assert_eq!(ids, [Some(&three), None, Some(&one), Some(&three)]);
    assert_eq!(store.write(vec![]).await.unwrap(), []);
    assert_eq!(store.read(vec![]).await.unwrap(), []);
}

/// In one batch, too, each write meets what the one before it left.
pub async fn a_batch_may_write_a_document_several_times(store: Subject) {
    let made = store.write(vec![create(1), create(1), create(1)]).await.unwrap();
    assert_eq!(kinds(&made), ["applied", "exists", "exists"]);
    let Written::Applied(version) = made[0] else { unreachable!() };
    let started = || change(numbered(1), version, vec![("status", json!("STARTED"))]);
    let replace = Write::Replace { key: numbered(1), version, body: job(9) };
    let answers =
        store.write(vec![started(), started(), replace, delete(numbered(1), version), create(1)]).await;
    assert_eq!(kinds(&answers.unwrap()), ["applied", "conflict", "conflict", "conflict", "exists"]);
    let (version, stored) = read(&store, numbered(1)).await.unwrap();
    assert_eq!(stored, Value::Object(job_with(1, json!({"status": "STARTED"}))));

    let hide = || delete(numbered(1), version);
    let replace = Write::Replace { key: numbered(1), version, body: job(9) };
    let answers = store.write(vec![hide(), create(1), replace, hide(), started()]).await.unwrap();
    assert_eq!(kinds(&answers), ["applied", "exists", "missing", "missing", "missing"]);
    let Written::Applied(hidden) = answers[0] else { unreachable!() };
    let purge = || Write::Purge { key: numbered(1), version: hidden };
    let answers = store.write(vec![purge(), purge(), create(1), purge(), create(1)]).await.unwrap();
    assert_eq!(kinds(&answers), ["applied", "missing", "applied", "conflict", "exists"]);

    let make = || Write::Create { key: user("u"), body: body(json!({"hashed_api_key": ["a"]})) };
    let version = applied(&store, make()).await;
    let gone = || delete(user("u"), version);
    let answers = store.write(vec![gone(), gone(), make(), gone(), make()]).await.unwrap();
    assert_eq!(kinds(&answers), ["applied", "missing", "applied", "conflict", "exists"]);
}

/// A batch is many writes and not one.
pub async fn neighbours_do_not_matter(store: Subject) {
    let here = domain("here");
    let (user_version, timer_version) = (
        applied(&store, Write::Create { key: user("a"), body: Body::new() }).await,
        applied(&store, Write::Create { key: timer(&here, "t"), body: timer_body(&here, "t", 1) }).await,
    );
    let batch = vec![
        create(1),
        Write::Replace { key: user("a"), version: user_version, body: body(json!({"n": 1})) },
        Write::Create { key: timer(&here, "t"), body: timer_body(&here, "t", 2) },
        delete(user("b"), user_version),
        Write::Replace { key: timer(&here, "t"), version: timer_version, body: timer_body(&here, "t", 3) },
        Write::Create { key: state("s"), body: body(json!({"name": "s"})) },
    ];
    let answers = store.write(batch).await.unwrap();
    assert_eq!(kinds(&answers), ["applied", "applied", "exists", "missing", "applied", "applied"]);
    let keys = vec![numbered(1), user("a"), user("b"), timer(&here, "t"), state("s")];
    let found = store.read(keys).await.unwrap();
    let bodies: Vec<_> = found.into_iter().map(|found| found.map(|document| document.body)).collect();
    let expected = [
        Some(job(1)),
        Some(body(json!({"n": 1}))),
        None,
        Some(timer_body(&here, "t", 3)),
        Some(body(json!({"name": "s"}))),
    ];
    assert_eq!(bodies, expected);
}

pub async fn a_version_is_never_used_again(store: Subject) {
    let make = || Write::Create { key: user("u"), body: Body::new() };
    let mut versions: Vec<Version> = Vec::new();
    for _ in 0..10 {
        let made = applied(&store, make()).await;
        let replaced =
            applied(&store, Write::Replace { key: user("u"), version: made, body: Body::new() }).await;
        applied(&store, delete(user("u"), replaced)).await;
        versions.extend([made, replaced]);
    }
    let last = applied(&store, make()).await;
    for version in &versions {
        assert_ne!(*version, last);
        let late = Write::Replace { key: user("u"), version: *version, body: body(json!({"late": true})) };
        assert_eq!(one(&store, late).await, Written::Conflict);
    }
    assert_eq!(versions.iter().map(|version| version.0).collect::<BTreeSet<_>>().len(), versions.len());
}

pub async fn a_batch_may_be_as_large_as_the_limit(store: Subject) {
    let make = |nth: usize| Write::Create { key: user(&format!("u{nth}")), body: body(json!({"nth": nth})) };
    let answers = store.write((0..MAX_BATCH).map(make).collect()).await.unwrap();
    assert_eq!(answers.len(), MAX_BATCH);
    assert!(answers.iter().all(|answer| matches!(answer, Written::Applied(_))));
    let keys = (0..MAX_BATCH).map(|nth| user(&format!("u{nth}"))).collect();
    let found = store.read(keys).await.unwrap();
    for (nth, (found, answer)) in found.iter().zip(&answers).enumerate() {
        let found = found.as_ref().unwrap();
        assert_eq!((&found.body["nth"], Written::Applied(found.version)), (&json!(nth), *answer));
    }
}

/// Many come with the same wish; one of them is first.
pub async fn one_of_many_is_first(store: Subject) {
    for round in 0..10 {
        let made = all_at_once(&store, |taker| Write::Create {
            key: numbered(round),
            body: job_with(round, json!({"owner": taker.to_string()})),
        });
        let (winner, version) = only_one(&made.await, Written::Exists);
        let (read_version, stored) = read(&store, numbered(round)).await.unwrap();
        assert_eq!((read_version, &stored["owner"]), (version, &json!(winner.to_string())));

        let changed = all_at_once(&store, |taker| match taker % 3 {
            0 => {
                Write::Replace { key: numbered(round), version, body: job_with(round, json!({"owner": "r"})) }
            }
            1 => change(numbered(round), version, vec![("owner", json!("c"))]),
            _ => delete(numbered(round), version),
        });
        let answers = changed.await;
        let firsts = answers.iter().filter(|answer| matches!(answer, Written::Applied(_))).count();
        assert_eq!(firsts, 1, "{answers:?}");
        let others = answers.iter().all(|answer| !matches!(answer, Written::Exists));
        assert!(others, "{answers:?}");
    }
}

async fn all_at_once(store: &Subject, wish: impl Fn(usize) -> Write) -> Vec<Written> {
    let takers: Vec<_> = (0..16)
        .map(|taker| {
            let (store, wish) = (Arc::clone(store), wish(taker));
            tokio::spawn(async move { one(&store, wish).await })
        })
        .collect();
    let mut answers = Vec::new();
    for taker in takers {
        answers.push(taker.await.unwrap());
    }
    answers
}

fn only_one(answers: &[Written], others: Written) -> (usize, Version) {
    let mut firsts = answers.iter().enumerate().filter_map(|(taker, answer)| match answer {
        Written::Applied(version) => Some((taker, *version)),
        other => {
            assert_eq!(*other, others);
            None
        }
    });
    let first = firsts.next().unwrap();
    assert_eq!(firsts.next(), None, "{answers:?}");
    first
}

/// A field below something that is no object: what is set can be read and found, and what is taken away leaves the rest.
pub async fn a_field_that_is_set_can_be_read(store: Subject) {
    let odd = job_with(1, json!({"metadata": "a text"}));
    let version = applied(&store, Write::Create { key: numbered(1), body: odd.clone() }).await;
    let none = vec![("metadata.updatedAt", Value::Null)];
    let version = applied(&store, change(numbered(1), version, none)).await;
    assert_eq!(read(&store, numbered(1)).await.unwrap().1, Value::Object(odd.clone()));
    let some = vec![("metadata.updatedAt", json!(5))];
    applied(&store, change(numbered(1), version, some)).await;
    let mut expected = Value::Object(odd);
    expected["metadata"] = json!({"updatedAt": 5});
    assert_eq!(read(&store, numbered(1)).await.unwrap().1, expected);
    let by_it = || jobs().filter(Filter::Is("metadata.updatedAt", json!(5)));
    eventually(&store, vec![1], async || job_numbers(&store, by_it()).await).await;
    // And a parent is not made for nothing.
    let mut bare = job_with(2, json!({}));
    bare.shift_remove("metadata");
    let version = applied(&store, Write::Create { key: numbered(2), body: bare.clone() }).await;
    let none = vec![("metadata.updatedAt", Value::Null)];
    applied(&store, change(numbered(2), version, none)).await;
    assert_eq!(read(&store, numbered(2)).await.unwrap().1, Value::Object(bare));
}
