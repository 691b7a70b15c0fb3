//! Bad input: refused with a reason that names what is wrong, and nothing of it is done.

use std::time::Duration;

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, Deleting, EXECUTIONS, JOBS, TIMERS, USERS};
use rota_store::limits::{
    MAX_BATCH, MAX_BODY_BYTES, MAX_ID_BYTES, MAX_KEYS, MAX_KEYWORD_BYTES, MAX_PAGE, MAX_QUERIES, MAX_VALUES,
    MAX_WORDS,
};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Fields, Key, Write};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{
    BY_NUMBER, body, change, claim, create, domain, execution, job, job_with, jobs, named, numbered, queued,
    timer, token, user,
};
use super::patience::{caught_up, eventually};
use super::verbs::{applied, fill, ids, read, refusal, total};

/// A collection that no store knows.
static STRANGE: Collection = Collection { name: "strange", ..Collection::PLAIN };

/// Another that has the name of one that they know.
static NAMESAKE: Collection =
    Collection { name: "users", deleting: Deleting::Hides(Duration::ZERO), ..Collection::PLAIN };

/// Each is refused for a reason that names the thing, and takes its whole batch with it.
async fn refuses(store: &Subject, wrong: Vec<(Write, &str)>) {
    for (write, names) in wrong {
        let shown = write.key().to_string();
        let neighbour = Write::Create { key: named("neighbour"), body: job(1) };
        for batch in [vec![write.clone()], vec![neighbour.clone(), write.clone()], vec![write, neighbour]] {
            let reason = refusal(store.write(batch).await);
            assert!(reason.contains(names), "{reason:?} does not name {names}: {shown}");
        }
        assert_eq!(read(store, named("neighbour")).await, None, "the whole batch is refused: {shown}");
    }
}

fn make(key: Key, body: Body) -> Write {
    Write::Create { key, body }
}

pub async fn wrong_keys_are_refused(store: Subject) {
    let here = domain("here");
    let long = "x".repeat(MAX_ID_BYTES + 1);
    let wide = "é".repeat(MAX_ID_BYTES / 2 + 1);
    let keys = [
        (named(""), "id"),
        (named(&long), "512"),
        (named(&wide), "512"),
        (named("nul\0"), "NUL"),
        (Key::new(&TIMERS, "t"), "timers"),
        (Key::new(&EXECUTIONS, "e"), "executions"),
        (Key::in_domain(&JOBS, &here, "j"), "jobs"),
        (Key::in_domain(&USERS, &here, "u"), "users"),
        (Key::new(&STRANGE, "s"), "strange"),
        (Key::new(&NAMESAKE, "n"), "users"),
    ];
    let version = applied(&store, create(1)).await;
    for (key, names) in keys {
        let at = UnixMillis(1);
        let wrong = vec![
            make(key.clone(), Body::new()),
            Write::Replace { key: key.clone(), version, body: Body::new() },
            change(key.clone(), version, vec![]),
            Write::Delete { key: key.clone(), version, at },
            Write::Purge { key: key.clone(), version },
        ];
        refuses(&store, wrong.into_iter().map(|write| (write, names)).collect()).await;
        let reason = refusal(store.read(vec![numbered(1), key]).await);
        assert!(reason.contains(names), "{reason:?} does not name {names}");
    }
    assert_eq!(read(&store, user("n")).await, None);
}

pub async fn wrong_bodies_are_refused(store: Subject) {
    let long = "k".repeat(MAX_KEYWORD_BYTES + 1);
    let wide = "é".repeat(MAX_KEYWORD_BYTES / 2 + 1);
    let jobs = [
        (json!({"jobNumber": "two"}), "jobNumber"),
        (json!({"jobNumber": 1.0}), "jobNumber"),
        (json!({"jobNumber": u64::MAX}), "jobNumber"),
        (json!({"jobName": 5}), "jobName"),
        (json!({"jobName": ["a"]}), "jobName"),
        (json!({"owner": {"a": 1}}), "owner"),
        (json!({"owner": long}), "owner"),
        (json!({"owner": wide}), "owner"),
        (json!({"status": "a\0b"}), "status"),
        (json!({"epoch": true}), "epoch"),
        (json!({"input": {"type": 5}}), "input.type"),
        (json!({"metadata": {"updatedAt": "now"}}), "metadata.updatedAt"),
    ];
    for (differing, names) in jobs {
        let body = job_with(2, differing);
        let version = rota_store::seam::Version(1);
        let replace = Write::Replace { key: named("wrong"), version, body: body.clone() };
        refuses(&store, vec![(make(named("wrong"), body), names), (replace, names)]).await;
    }
    let keys = [json!("text"), json!([5]), json!(["a", null]), json!({"a": 1}), json!([long]), json!(["\0"])];
    let users =
        keys.map(|keys| (make(user("wrong"), body(json!({"hashed_api_key": keys}))), "hashed_api_key"));
    refuses(&store, users.to_vec()).await;
    let here = domain("here");
    let dates =
        [json!("yesterday"), json!("2026-01-01"), json!(1.5), json!(true), json!([1]), json!(""), json!({})];
    let executions = dates.map(|due| (make(execution(&here, "wrong"), body(json!({"due": due}))), "due"));
    refuses(&store, executions.to_vec()).await;
    for key in [named("wrong"), user("wrong"), execution(&here, "wrong")] {
        assert_eq!(read(&store, key).await, None);
    }
    caught_up(&store, Query::new(&JOBS, Order::BY_ID), 0).await;
}

pub async fn too_much_is_refused(store: Subject) {
    let version = applied(&store, create(1)).await;
    let before = read(&store, numbered(1)).await;
    let text = "x".repeat(MAX_BODY_BYTES);
    let parts: Vec<Value> =
        text.as_bytes().chunks(1 << 20).map(|part| json!(String::from_utf8_lossy(part))).collect();
    let limit = MAX_BODY_BYTES.to_string();
    for large in [json!({"text": text}), json!({"parts": parts}), json!({text: 1})] {
        let large = body(large);
        refuses(
            &store,
            vec![
                (make(user("large"), large.clone()), limit.as_str()),
                (make(user("large"), large.clone()), "large"),
                (Write::Replace { key: numbered(1), version, body: large.clone() }, limit.as_str()),
                (change(numbered(1), version, vec![("result", Value::Object(large))]), limit.as_str()),
            ],
        )
        .await;
    }
    let many = (0..=MAX_BATCH).map(|nth| make(user(&nth.to_string()), Body::new())).collect();
    assert!(refusal(store.write(many).await).contains(&MAX_BATCH.to_string()));
    let many = (0..=MAX_KEYS).map(|nth| user(&nth.to_string())).collect();
    assert!(refusal(store.read(many).await).contains(&MAX_KEYS.to_string()));
    assert_eq!(read(&store, numbered(1)).await, before);
    assert_eq!(read(&store, user("0")).await, None);
    eventually(&store, 0, async || ids(&store, Query::new(&USERS, Order::BY_ID)).await.len()).await;
}

fn wrong_fields() -> [(Fields, &'static str); 8] {
    [
        (vec![("jobName", json!("fixed"))], "jobName"),
        (vec![("nowhere", json!(1))], "nowhere"),
        (vec![("metadata", json!({}))], "metadata"),
        (vec![("epoch", json!(1)), ("input.type", json!("noop"))], "input.type"),
        (vec![("epoch", json!("one"))], "epoch"),
        (vec![("owner", json!(["me"]))], "owner"),
        (vec![("owner", json!("k".repeat(MAX_KEYWORD_BYTES + 1)))], "owner"),
        (vec![("status", json!("\0"))], "status"),
    ]
}

pub async fn wrong_changes_are_refused(store: Subject) {
    let version = applied(&store, create(1)).await;
    let before = read(&store, numbered(1)).await;
    let wrong = wrong_fields().map(|(fields, names)| (change(numbered(1), version, fields), names));
    refuses(&store, wrong.to_vec()).await;
    let timer = timer(&domain("here"), "t");
    refuses(&store, vec![(change(timer, version, vec![("status", json!("PAUSED"))]), "status")]).await;
    assert_eq!(read(&store, numbered(1)).await, before);
}

pub async fn wrong_questions_are_refused(store: Subject) {
    fill(&store, 3).await;
    let here = domain("here");
    let ordered = |fields| Query::new(&JOBS, Order { fields, descending: false });
    let of = |filter: Filter| jobs().filter(filter);
    let many = |count: usize| vec![json!("x"); count];
    let executions = || Query::new(&EXECUTIONS, Order::BY_ID);
    let words = |count: usize| "word ".repeat(count);
    let both: Vec<(Query, &str)> = vec![
        (of(Filter::Is("nowhere", json!(1))), "nowhere"),
        (of(Filter::Is("metadata", json!(1))), "metadata"),
        (of(Filter::Is("result", json!({}))), "result"),
        (of(Filter::Is("status", json!(1))), "status"),
        (of(Filter::Is("status", Value::Null)), "status"),
        (of(Filter::Is("status", json!("\0"))), "status"),
        (of(Filter::Is("status", json!("x".repeat(MAX_KEYWORD_BYTES + 1)))), "status"),
        (of(Filter::Is("jobNumber", json!("1"))), "jobNumber"),
        (of(Filter::Is("jobNumber", json!(1.5))), "jobNumber"),
        (of(Filter::In("status", vec![json!("QUEUED"), json!(1)])), "status"),
        (of(Filter::In("status", many(MAX_VALUES + 1))), "1000"),
        (of(Filter::AtLeast("status", 1)), "status"),
        (of(Filter::AtMost("progress", 1)), "progress"),
        (of(Filter::AtMost("nowhere", 1)), "nowhere"),
        (executions().filter(Filter::Is("due", json!(5))), "due"),
        (executions().filter(Filter::Text("word".to_owned())), "words"),
        (of(Filter::Text(String::new())), "word"),
        (of(Filter::Text("*** !".to_owned())), "word"),
        (of(Filter::Text(words(MAX_WORDS + 1))), "32"),
        (of(Filter::Text(words(1))).filter(Filter::Text(words(1))), "words"),
        (of(Filter::Absent("nowhere")), "nowhere"),
        (of(Filter::Absent("result")), "result"),
        (ordered(&["nowhere"]), "nowhere"),
        (ordered(&["jobNumber", "result"]), "result"),
        (Query::new(&USERS, Order { fields: &["hashed_api_key"], descending: true }), "hashed_api_key"),
        (Query::new(&STRANGE, Order::BY_ID), "strange"),
        (Query::new(&NAMESAKE, Order::BY_ID), "users"),
        (jobs().in_domain(&here), "jobs"),
        (Query::new(&USERS, Order::BY_ID).hidden_before(UnixMillis(1)), "hidden"),
    ];
    for (query, names) in both {
        let reasons =
            [refusal(store.find(query.clone()).await), refusal(store.count(query.clone(), None).await)];
        assert!(reasons.iter().all(|reason| reason.contains(names)), "{reasons:?} do not name {names}");
    }
    for limit in [0, MAX_PAGE + 1, usize::MAX] {
        let reason = refusal(store.find(Query::new(&JOBS, BY_NUMBER).limit(limit)).await);
        assert!(reason.contains(&limit.to_string()), "{reason}");
    }
    for by in ["nowhere", "result", "metadata"] {
        assert!(refusal(store.count(jobs(), Some(by)).await).contains(by));
    }
    assert!(refusal(store.count(executions(), Some("due")).await).contains("due"));
    assert!(
        refusal(store.count(Query::new(&USERS, Order::BY_ID), Some("hashed_api_key")).await)
            .contains("hashed")
    );
}

pub async fn wrong_claims_are_refused(store: Subject) {
    fill(&store, 3).await;
    caught_up(&store, queued(), 3).await;
    let right = || claim(5, token(1));
    let cursor = store.find(queued().limit(1)).await.unwrap().next;
    let from = |query: Query| Claim { from: vec![queued(), query], ..right() };
    let mut wrong = vec![
        (Claim { max: 0, ..right() }, "0"),
        (Claim { max: MAX_PAGE + 1, ..right() }, "1001"),
        (Claim { from: vec![queued(); MAX_QUERIES + 1], ..right() }, "10000"),
        (Claim { add_one: Some("owner"), ..right() }, "owner"),
        (Claim { add_one: Some("jobNumber"), ..right() }, "jobNumber"),
        (Claim { add_one: Some("nowhere"), ..right() }, "nowhere"),
        (Claim { set: vec![("epoch", json!(7))], ..right() }, "epoch"),
        (Claim { token: ("nowhere", token(1)), ..right() }, "nowhere"),
        (Claim { token: ("epoch", token(1)), ..right() }, "epoch"),
        (Claim { token: ("jobName", token(1)), ..right() }, "jobName"),
        (Claim { collection: &STRANGE, ..right() }, "strange"),
        (from(Query::new(&USERS, Order::BY_ID)), "another collection"),
        (from(queued().after(cursor)), "cursor"),
        (from(queued().hidden_before(UnixMillis(1))), "hidden"),
        (from(queued().filter(Filter::Text("job".to_owned()))), "words"),
        (from(queued().filter(Filter::Is("nowhere", json!(1)))), "nowhere"),
        (from(Query::new(&JOBS, Order { fields: &["result"], descending: false })), "result"),
    ];
    wrong.extend(wrong_fields().map(|(set, names)| (Claim { set, ..right() }, names)));
    for (claim, names) in wrong {
        let reason = refusal(store.claim(claim).await);
        assert!(reason.contains(names), "{reason:?} does not name {names}");
    }
    assert_eq!(total(&store, queued()).await, 3, "nothing was taken");
}
