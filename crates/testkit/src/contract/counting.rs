//! Counting: whatever happened, totals are what a list of everything would show.

use rota_model::time::UnixMillis;
use rota_store::collection::{EXECUTIONS, JOBS, TIMERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Key, Tally, Version, Write, Written};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{
    body, change, claim, create, delete, domain, execution, job_with, jobs, numbered, timer, token,
};
use super::patience::{caught_up, eventually};
use super::verbs::{applied, read, total, walk};

type Tallies = Vec<(Value, u64)>;

fn pairs(tallies: Vec<Tally>) -> Tallies {
    tallies.into_iter().map(|tally| (tally.value, tally.count)).collect()
}

async fn counted(store: &Subject, query: Query, by: &'static str) -> Tallies {
    pairs(store.count(query, Some(by)).await.unwrap())
}

/// What a list of everything shows: null first, then numbers, then texts.
async fn listed(store: &Subject, query: Query, by: &'static str) -> Tallies {
    let field = query.collection.field(by).unwrap();
    let mut values: Vec<Value> =
        walk(store, query).await.iter().map(|document| field.sort_value(&document.body)).collect();
    values.sort_by_key(|value| (value.is_string(), value.as_i64(), value.as_str().map(str::to_owned)));
    let mut tallies: Tallies = Vec::new();
    for value in values {
        match tallies.last_mut() {
            Some((last, count)) if *last == value => *count += 1,
            _ => tallies.push((value, 1)),
        }
    }
    tallies
}

/// Counts of jobs that people look at often, and of others that are only possible.
fn questions() -> Vec<Query> {
    vec![
        jobs(),
        jobs().filter(Filter::Is("domain", json!("default"))),
        jobs().filter(Filter::Is("domain", json!("other"))).filter(Filter::Is("status", json!("QUEUED"))),
        jobs().filter(Filter::In("status", vec![json!("QUEUED"), json!("FAILED")])),
        jobs().filter(Filter::Is("input.type", json!("noop"))),
        jobs().filter(Filter::Is("owner", json!("me"))),
        jobs().filter(Filter::AtLeast("jobNumber", 4)).filter(Filter::Is("status", json!("QUEUED"))),
        jobs().filter(Filter::AtMost("runAt", 995)),
        jobs().filter(Filter::Absent("owner")),
        jobs().filter(Filter::Absent("status")).filter(Filter::Is("domain", json!("other"))),
        jobs().filter(Filter::Is("status", json!("NEVER"))),
        jobs().hidden_before(UnixMillis(i64::MAX)),
        jobs().hidden_before(UnixMillis(5)).filter(Filter::Is("domain", json!("default"))),
        jobs().filter(Filter::In("domain", vec![])),
    ]
}

/// Counting and listing agree on every question, once this many jobs are shown as they are.
async fn agree(store: &Subject, all: usize) {
    caught_up(store, jobs(), all).await;
    for query in questions() {
        for by in ["status", "domain", "input.type", "priority", "owner", "attempt"] {
            let counted = counted(store, query.clone(), by).await;
            assert_eq!(counted, listed(store, query.clone(), by).await, "by {by}: {:?}", query.filters);
        }
        let listed = walk(store, query.clone()).await.len();
        assert_eq!(total(store, query.clone()).await, listed as u64, "{:?}", query.filters);
    }
}

async fn version_of(store: &Subject, key: Key) -> Version {
    read(store, key).await.unwrap().0
}

/// Every verb that changes a total, one after the other.
pub async fn totals_follow_every_write(store: Subject) {
    agree(&store, 0).await;
    let differing = |number: i64| match number % 4 {
        0 => json!({"domain": "other"}),
        1 => json!({"domain": "other", "status": "FAILED", "priority": 1}),
        2 => json!({"input": {"type": "exec"}, "attempt": 2}),
        _ => json!({}),
    };
    let make = |number| Write::Create { key: numbered(number), body: job_with(number, differing(number)) };
    let answers = store.write((0..12).map(make).collect()).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Written::Applied(_))));
    agree(&store, 12).await;

    let version = version_of(&store, numbered(0)).await;
    let version = applied(&store, change(numbered(0), version, vec![("status", json!("CANCELLED"))])).await;
    applied(&store, change(numbered(0), version, vec![("status", Value::Null), ("owner", json!("me"))]))
        .await;
    agree(&store, 12).await;

    let version = version_of(&store, numbered(1)).await;
    let body = job_with(1, json!({"domain": "third", "status": "QUEUED", "input": 5}));
    applied(&store, Write::Replace { key: numbered(1), version, body }).await;
    agree(&store, 12).await;

    let taken = store.claim(claim(3, token(1))).await.unwrap();
    assert_eq!(taken.len(), 3);
    agree(&store, 12).await;

    for (number, at) in [(2, 5), (3, 6), (4, 7)] {
        let version = version_of(&store, numbered(number)).await;
        applied(&store, Write::Delete { key: numbered(number), version, at: UnixMillis(at) }).await;
    }
    agree(&store, 9).await;

    let hidden = walk(&store, jobs().hidden_before(UnixMillis(5))).await;
    let purges = hidden.into_iter().map(|found| Write::Purge { key: found.key, version: found.version });
    let answers = store.write(purges.collect()).await.unwrap();
    assert!(matches!(answers.as_slice(), [Written::Applied(_)]));
    agree(&store, 9).await;
    applied(&store, create(2)).await;
    agree(&store, 10).await;
}

/// What is refused or comes too late changes no total.
pub async fn totals_ignore_what_was_not_applied(store: Subject) {
    let version = applied(&store, create(1)).await;
    let current = applied(&store, change(numbered(1), version, vec![("status", json!("STARTED"))])).await;
    let late = vec![
        create(1),
        change(numbered(1), version, vec![("status", json!("FAILED"))]),
        Write::Replace { key: numbered(1), version, body: job_with(1, json!({"domain": "late"})) },
        delete(numbered(1), version),
        Write::Purge { key: numbered(1), version: current },
        delete(numbered(2), version),
    ];
    store.write(late).await.unwrap();
    let expected = vec![(json!("STARTED"), 1)];
    eventually(&store, expected, async || counted(&store, jobs(), "status").await).await;
    agree(&store, 1).await;
}

/// Several changes of one document in one batch count once.
pub async fn totals_follow_a_batch(store: Subject) {
    let make = |id: &str, status: &str| Write::Create {
        key: timer(&domain("here"), id),
        body: body(json!({"name": id, "status": status})),
    };
    let version = applied(&store, make("a", "ACTIVE")).await;
    let replace = |status: &str| Write::Replace {
        key: timer(&domain("here"), "a"),
        version,
        body: body(json!({"status": status})),
    };
    let timers = || Query::new(&TIMERS, Order::BY_ID);
    let batch = vec![
        replace("PAUSED"),
        replace("ENDED"),
        make("b", "PAUSED"),
        make("b", "ENDED"),
        make("a", "ENDED"),
    ];
    store.write(batch).await.unwrap();
    eventually(&store, vec![(json!("PAUSED"), 2)], async || counted(&store, timers(), "status").await).await;
    let (version, _) = read(&store, timer(&domain("here"), "b")).await.unwrap();
    let gone = delete(timer(&domain("here"), "b"), version);
    store.write(vec![gone.clone(), gone]).await.unwrap();
    eventually(&store, vec![(json!("PAUSED"), 1)], async || counted(&store, timers(), "status").await).await;
}

/// By value: what is absent, numbers from small to large, texts by their characters. A total of nothing is zero, and
/// nothing has no values.
pub async fn totals_come_by_value(store: Subject) {
    assert_eq!(total(&store, jobs()).await, 0);
    assert_eq!(counted(&store, jobs(), "status").await, []);
    let priorities = [json!(10), json!(-1), json!(null), json!(9), json!(i64::MIN), json!(9)];
    let owners = [json!("b"), json!("B"), json!(""), json!(null), json!("\u{1f980}"), json!("\u{ff5e}")];
    for ((number, priority), owner) in (0..).zip(priorities).zip(owners) {
        let body = job_with(number, json!({"priority": priority, "owner": owner}));
        applied(&store, Write::Create { key: numbered(number), body }).await;
    }
    caught_up(&store, jobs(), 6).await;
    let by_priority: Tallies =
        vec![(json!(null), 1), (json!(i64::MIN), 1), (json!(-1), 1), (json!(9), 2), (json!(10), 1)];
    assert_eq!(counted(&store, jobs(), "priority").await, by_priority);
    let by_owner = [json!(null), json!(""), json!("B"), json!("b"), json!("\u{ff5e}"), json!("\u{1f980}")];
    assert_eq!(counted(&store, jobs(), "owner").await, by_owner.map(|owner| (owner, 1)));
}

/// Order, limit and cursor mean nothing to a count.
pub async fn a_count_counts_beyond_the_page(store: Subject) {
    store.write((0..30).map(create).collect()).await.unwrap();
    caught_up(&store, jobs(), 30).await;
    let query = jobs().limit(7);
    let cursor = store.find(query.clone()).await.unwrap().next;
    assert!(cursor.is_some());
    let query = query.after(cursor);
    assert_eq!(total(&store, query.clone()).await, 30);
    assert_eq!(counted(&store, query, "status").await, [(json!("QUEUED"), 30)]);
    assert_eq!(total(&store, Query::new(&JOBS, Order::BY_ID).keys_only()).await, 30);
}

pub async fn a_domain_is_counted_by_itself(store: Subject) {
    let (here, there) = (domain("here"), domain("there"));
    for (domain, id, outcome) in
        [(&here, "1", "FIRED"), (&here, "2", "MISSED"), (&there, "1", "FIRED"), (&there, "3", "FIRED")]
    {
        let body = body(json!({"outcome": outcome, "due": 5, "timer_uuid": id}));
        applied(&store, Write::Create { key: execution(domain, id), body }).await;
    }
    let all = || Query::new(&EXECUTIONS, Order::BY_ID);
    let everywhere = vec![(json!("FIRED"), 3), (json!("MISSED"), 1)];
    eventually(&store, everywhere, async || counted(&store, all(), "outcome").await).await;
    let mine = counted(&store, all().in_domain(&here), "outcome").await;
    assert_eq!(mine, [(json!("FIRED"), 1), (json!("MISSED"), 1)]);
    assert_eq!(counted(&store, all().in_domain(&there), "outcome").await, [(json!("FIRED"), 2)]);
    let due = all()
        .in_domain(&there)
        .filter(Filter::AtLeast("due", 5))
        .filter(Filter::Is("timer_uuid", json!("3")));
    assert_eq!(counted(&store, due.clone(), "outcome").await, [(json!("FIRED"), 1)]);
    assert_eq!(total(&store, due).await, 1);
}
