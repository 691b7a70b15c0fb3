//! Finding: by declared fields, compared and put in order. Absent values match nothing and sort before all others.

use rota_store::collection::{EXECUTIONS, JOBS, USERS};
use rota_store::limits::{MAX_KEYWORD_BYTES, MAX_VALUES};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Write};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{
    body, create, domain, execution, job_with, jobs, named, numbered, timer, timer_body, user,
};
use super::patience::{caught_up, eventually};
use super::verbs::{applied, fill, ids, job_numbers, read, total, walk};

async fn make(store: &Subject, key: Key, body: Body) {
    applied(store, Write::Create { key, body }).await;
}

/// Jobs that differ only in these members, numbered from zero on.
async fn make_jobs(store: &Subject, differing: &[Value]) {
    for (number, differing) in (0..).zip(differing) {
        make(store, numbered(number), job_with(number, differing.clone())).await;
    }
    caught_up(store, jobs(), differing.len()).await;
}

async fn finds(store: &Subject, filter: Filter, expected: &[i64]) {
    let query = || jobs().filter(filter.clone());
    assert_eq!(job_numbers(store, query()).await, expected, "{filter:?}");
}

pub async fn keywords_are_compared_as_a_whole(store: Subject) {
    let long = "k".repeat(MAX_KEYWORD_BYTES);
    let mut almost = long.clone();
    almost.replace_range(MAX_KEYWORD_BYTES - 1.., "l");
    let owners = [
        json!("a"),
        json!("A"),
        json!("ab"),
        json!(""),
        json!(null),
        json!(" a"),
        json!(long),
        json!(almost),
    ];
    make_jobs(&store, &owners.map(|owner| json!({"owner": owner}))).await;
    let is = |owner: &str| Filter::Is("owner", json!(owner));
    for (owner, expected) in [("a", [0]), ("A", [1]), ("ab", [2]), ("", [3]), (" a", [5]), (&long, [6])] {
        finds(&store, is(owner), &expected).await;
    }
    for nobody in ["b", "a*", "%", "_", "null", "a "] {
        finds(&store, is(nobody), &[]).await;
    }
    finds(&store, Filter::In("owner", vec![json!("ab"), json!("a"), json!("ab"), json!("none")]), &[0, 2])
        .await;
    finds(&store, Filter::In("owner", vec![json!(almost)]), &[7]).await;
    finds(&store, Filter::In("owner", vec![]), &[]).await;
    finds(&store, Filter::Absent("owner"), &[4]).await;
    let mut many: Vec<Value> = (1..MAX_VALUES).map(|nth| json!(format!("nobody {nth}"))).collect();
    many.push(json!("A"));
    finds(&store, Filter::In("owner", many), &[1]).await;
}

pub async fn integers_are_compared_as_numbers(store: Subject) {
    let values = [json!(9), json!(10), json!(-1), json!(0), json!(null), json!(i64::MAX), json!(i64::MIN)];
    make_jobs(&store, &values.map(|value| json!({"runAt": value}))).await;
    finds(&store, Filter::Is("runAt", json!(10)), &[1]).await;
    finds(&store, Filter::Is("runAt", json!(0)), &[3]).await;
    finds(&store, Filter::Is("runAt", json!(i64::MAX)), &[5]).await;
    finds(&store, Filter::In("runAt", vec![json!(i64::MIN), json!(9), json!(8)]), &[0, 6]).await;
    finds(&store, Filter::AtLeast("runAt", 9), &[0, 1, 5]).await;
    finds(&store, Filter::AtMost("runAt", 9), &[0, 2, 3, 6]).await;
    finds(&store, Filter::AtLeast("runAt", i64::MIN), &[0, 1, 2, 3, 5, 6]).await;
    finds(&store, Filter::AtMost("runAt", i64::MAX), &[0, 1, 2, 3, 5, 6]).await;
    finds(&store, Filter::AtLeast("runAt", i64::MAX), &[5]).await;
    finds(&store, Filter::Absent("runAt"), &[4]).await;
    let between = jobs().filter(Filter::AtLeast("runAt", 0)).filter(Filter::AtMost("runAt", 9));
    assert_eq!(job_numbers(&store, between).await, [0, 3]);
}

pub async fn several_texts_are_found_by_each_of_them(store: Subject) {
    let of = |keys: Value| body(json!({"hashed_api_key": keys}));
    for (id, keys) in [
        ("both", json!(["one", "two"])),
        ("one", json!(["one"])),
        ("twice", json!(["two", "two"])),
        ("none", json!([])),
        ("null", json!(null)),
    ] {
        make(&store, user(id), of(keys)).await;
    }
    make(&store, user("absent"), Body::new()).await;
    let users = |filter: Filter| Query::new(&USERS, Order::BY_ID).filter(filter);
    let by = |hash: &str| users(Filter::Is("hashed_api_key", json!(hash)));
    eventually(&store, vec!["both", "twice"], async || leak(ids(&store, by("two")).await)).await;
    eventually(&store, vec!["both", "one"], async || leak(ids(&store, by("one")).await)).await;
    caught_up(&store, Query::new(&USERS, Order::BY_ID), 6).await;
    assert_eq!(ids(&store, by("tw")).await, Vec::<String>::new());
    let either = || users(Filter::In("hashed_api_key", vec![json!("two"), json!("one"), json!("three")]));
    assert_eq!(ids(&store, either()).await, ["both", "one", "twice"], "each once");
    assert_eq!(ids(&store, either().limit(1)).await, ["both", "one", "twice"], "on pages, too");
    assert_eq!(total(&store, either()).await, 3);
    let each = by("one").filter(Filter::Is("hashed_api_key", json!("two")));
    assert_eq!(ids(&store, each).await, ["both"]);

    let (version, _) = read(&store, user("both")).await.unwrap();
    applied(&store, Write::Replace { key: user("both"), version, body: of(json!(["three"])) }).await;
    eventually(&store, vec!["both"], async || leak(ids(&store, by("three")).await)).await;
    eventually(&store, vec!["twice"], async || leak(ids(&store, by("two")).await)).await;
}

/// Texts to compare with literals; a test's few bytes may stay.
fn leak(texts: Vec<String>) -> Vec<&'static str> {
    texts.into_iter().map(|text| &*text.leak()).collect()
}

pub async fn instants_are_compared_however_they_are_spelt(store: Subject) {
    let here = domain("here");
    for (id, due) in [
        ("a", json!("1970-01-01T00:00:02Z")),
        ("b", json!(1_000)),
        ("c", json!("3000")),
        ("d", json!("1970-01-01T01:00:02.5+01:00")),
        ("e", json!(null)),
        ("f", json!("1969-12-31T23:59:59Z")),
        ("g", json!("1970-01-01T00:00:01.000900Z")),
        ("h", json!("9999-12-30T00:00:00Z")),
    ] {
        make(&store, execution(&here, id), body(json!({"timer_uuid": "t", "due": due}))).await;
    }
    let by_due = |descending| Query::new(&EXECUTIONS, Order { fields: &["due"], descending }).limit(3);
    let rising = vec!["e", "f", "b", "g", "a", "d", "c", "h"];
    eventually(&store, rising.clone(), async || leak(ids(&store, by_due(false)).await)).await;
    let falling: Vec<_> = rising.into_iter().rev().collect();
    assert_eq!(ids(&store, by_due(true)).await, falling);
    let due = |filter: Filter| by_due(false).filter(filter);
    assert_eq!(ids(&store, due(Filter::AtLeast("due", 2_000))).await, ["a", "d", "c", "h"]);
    assert_eq!(ids(&store, due(Filter::AtMost("due", 1_000))).await, ["f", "b", "g"]);
    assert_eq!(ids(&store, due(Filter::AtMost("due", 999))).await, ["f"]);
    let between = due(Filter::AtLeast("due", 1_001)).filter(Filter::AtMost("due", 2_500));
    assert_eq!(ids(&store, between).await, ["a", "d"]);
    assert_eq!(ids(&store, due(Filter::Absent("due"))).await, ["e"]);
    assert_eq!(ids(&store, due(Filter::Absent("finished")).filter(Filter::AtMost("due", 0))).await, ["f"]);
    let spelt = read(&store, execution(&here, "d")).await.unwrap().1;
    assert_eq!(spelt["due"], json!("1970-01-01T01:00:02.5+01:00"), "it comes back as it was written");
}

pub async fn all_filters_hold_together(store: Subject) {
    fill(&store, 10).await;
    make(&store, named("other"), job_with(50, json!({"domain": "other", "input": {"type": "exec"}}))).await;
    caught_up(&store, jobs(), 11).await;
    finds(&store, Filter::Is("domain", json!("other")), &[50]).await;
    finds(&store, Filter::Is("input.type", json!("exec")), &[50]).await;
    finds(&store, Filter::Is("owner", json!("nobody")), &[]).await;
    let both = jobs().filter(Filter::AtLeast("jobNumber", 3)).filter(Filter::Is("domain", json!("default")));
    assert_eq!(job_numbers(&store, both.clone().filter(Filter::AtMost("jobNumber", 4))).await, [3, 4]);
    let none = both.filter(Filter::Is("domain", json!("other")));
    assert_eq!(job_numbers(&store, none).await, Vec::<i64>::new());
}

pub async fn what_changed_is_found_by_what_it_is_now(store: Subject) {
    fill(&store, 3).await;
    let (version, _) = read(&store, numbered(1)).await.unwrap();
    let fields = vec![("status", json!("FAILED")), ("runAt", json!(7)), ("metadata.updatedAt", json!(8))];
    let version = applied(&store, Write::Change { key: numbered(1), version, fields }).await;
    let with = |filter: Filter| jobs().filter(filter);
    let failed = || with(Filter::Is("status", json!("FAILED")));
    eventually(&store, vec![1], async || job_numbers(&store, failed()).await).await;
    let queued = || with(Filter::Is("status", json!("QUEUED")));
    eventually(&store, vec![0, 2], async || job_numbers(&store, queued()).await).await;
    assert_eq!(job_numbers(&store, with(Filter::AtMost("runAt", 7))).await, [1]);
    assert_eq!(job_numbers(&store, with(Filter::Is("metadata.updatedAt", json!(8)))).await, [1]);

    let gone = vec![("status", Value::Null), ("runAt", Value::Null)];
    applied(&store, Write::Change { key: numbered(1), version, fields: gone }).await;
    eventually(&store, vec![], async || job_numbers(&store, failed()).await).await;
    assert_eq!(job_numbers(&store, with(Filter::AtMost("runAt", i64::MAX))).await, [0, 2]);
    assert_eq!(job_numbers(&store, with(Filter::Absent("status"))).await, [1]);
    let by_run_at = Query::new(&JOBS, Order { fields: &["runAt"], descending: false });
    assert_eq!(job_numbers(&store, by_run_at).await, [1, 2, 0]);
}

pub async fn texts_go_by_their_characters(store: Subject) {
    let rising = ["", "A", "B", "Z", "a", "a ", "aa", "b", "z", "é", "\u{ff5e}", "\u{1f980}"];
    let shuffled = [7, 2, 11, 0, 9, 4, 1, 10, 3, 8, 6, 5];
    let mut owners: Vec<Value> = shuffled.iter().map(|nth| json!({"owner": rising[*nth]})).collect();
    owners.push(json!({"owner": null}));
    make_jobs(&store, &owners).await;
    let by_owner = |descending| Query::new(&JOBS, Order { fields: &["owner"], descending }).limit(4);
    let shown = async |descending| -> Vec<Value> {
        let found = walk(&store, by_owner(descending)).await;
        found.iter().map(|found| found.body.get("owner").cloned().unwrap_or_default()).collect()
    };
    let mut expected: Vec<Value> = rising.iter().map(|owner| json!(owner)).collect();
    expected.insert(0, Value::Null);
    assert_eq!(shown(false).await, expected);
    expected.reverse();
    assert_eq!(shown(true).await, expected);

    let odd: Vec<_> = rising.iter().filter(|id| !id.is_empty()).collect();
    for id in odd.iter().rev() {
        make(&store, user(id), Body::new()).await;
    }
    eventually(&store, odd.len(), async || ids(&store, Query::new(&USERS, Order::BY_ID)).await.len()).await;
    let by_id = Query::new(&USERS, Order::BY_ID).limit(3);
    assert_eq!(ids(&store, by_id).await, odd.into_iter().copied().collect::<Vec<_>>());
}

/// The id decides between equals, in the direction of the order; absent before any value.
pub async fn orders_are_total(store: Subject) {
    let of = |priority: Value, section: Value| json!({"priority": priority, "section": section});
    make_jobs(
        &store,
        &[
            of(json!(2), json!(1)),
            of(json!(null), json!(5)),
            of(json!(1), json!(null)),
            of(json!(2), json!(1)),
            of(json!(-3), json!(0)),
            of(json!(2), json!(null)),
            of(json!(null), json!(4)),
            of(json!(i64::MIN), json!(0)),
        ],
    )
    .await;
    let expected = [6, 1, 7, 4, 2, 5, 0, 3];
    for limit in [1, 3, 100] {
        let order = Order { fields: &["priority", "section"], descending: false };
        let query = Query::new(&JOBS, order).limit(limit);
        assert_eq!(job_numbers(&store, query.clone()).await, expected, "pages of {limit}");
        let falling = Query { order: Order { descending: true, ..order }, ..query };
        let reversed: Vec<_> = expected.iter().rev().copied().collect();
        assert_eq!(job_numbers(&store, falling).await, reversed, "falling, pages of {limit}");
    }
    let by_id = Query::new(&JOBS, Order { fields: &[], descending: true }).limit(3);
    assert_eq!(job_numbers(&store, by_id).await, [7, 6, 5, 4, 3, 2, 1, 0]);
}

/// A store may look for those few in a shorter way; a list of all in the same order must not go it.
pub async fn a_value_that_few_have_finds_few_and_orders_all(store: Subject) {
    const BY_EXPIRY: Order = Order { fields: &["expiresAt"], descending: false };
    let members = [
        json!({"expiresAt": 30}),
        json!({}),
        json!({"expiresAt": 10}),
        json!({"expiresAt": null}),
        json!({"expiresAt": 20, "status": "STARTED"}),
        json!({"expiresAt": 10}),
        json!({"expiresAt": -1}),
    ];
    make_jobs(&store, &members).await;
    let by_expiry = || Query::new(&JOBS, BY_EXPIRY);
    let waiting = || by_expiry().filter(Filter::Is("status", json!("QUEUED")));
    let expired = |now: i64| waiting().filter(Filter::AtMost("expiresAt", now));
    for limit in [1, 2, 10] {
        let found = async |query: Query| job_numbers(&store, query.limit(limit)).await;
        assert_eq!(found(expired(29)).await, [6, 2, 5], "pages of {limit}");
        assert_eq!(found(expired(i64::MAX)).await, [6, 2, 5, 0]);
        assert_eq!(found(waiting().filter(Filter::AtLeast("expiresAt", 10))).await, [2, 5, 0]);
        assert_eq!(found(waiting().filter(Filter::Is("expiresAt", json!(10)))).await, [2, 5]);
        let some = Filter::In("expiresAt", vec![json!(30), json!(-1), json!(20)]);
        assert_eq!(found(waiting().filter(some)).await, [6, 0]);
        assert_eq!(found(waiting()).await, [1, 3, 6, 2, 5, 0]);
        assert_eq!(found(by_expiry()).await, [1, 3, 6, 2, 5, 4, 0]);
        assert_eq!(found(waiting().filter(Filter::Absent("expiresAt"))).await, [1, 3]);
        let mut falling = expired(29);
        falling.order.descending = true;
        assert_eq!(found(falling).await, [5, 2, 6]);
    }
    assert_eq!(total(&store, expired(29)).await, 3);
    let (version, _) = read(&store, numbered(6)).await.unwrap();
    let fields = vec![("status", json!("FAILED"))];
    applied(&store, Write::Change { key: numbered(6), version, fields }).await;
    let (version, _) = read(&store, numbered(2)).await.unwrap();
    applied(&store, Write::Replace { key: numbered(2), version, body: job_with(2, json!({})) }).await;
    eventually(&store, vec![5], async || job_numbers(&store, expired(29)).await).await;
}

pub async fn keys_are_found_without_bodies(store: Subject) {
    fill(&store, 25).await;
    caught_up(&store, jobs(), 25).await;
    let due = || Query::new(&JOBS, Order { fields: &["runAt"], descending: true }).limit(4);
    let whole = walk(&store, due().filter(Filter::AtLeast("jobNumber", 5))).await;
    let bare = walk(&store, due().filter(Filter::AtLeast("jobNumber", 5)).keys_only()).await;
    assert_eq!(bare.len(), 20);
    for (whole, bare) in whole.iter().zip(&bare) {
        assert_eq!((&whole.key, whole.version, &Body::new()), (&bare.key, bare.version, &bare.body));
        assert_eq!(read(&store, bare.key.clone()).await.unwrap().0, bare.version);
    }
}

pub async fn collections_are_apart(store: Subject) {
    let here = domain("here");
    make(&store, named("same"), job_with(1, json!({}))).await;
    make(&store, user("same"), body(json!({"hashed_api_key": ["same"]}))).await;
    make(&store, timer(&here, "same"), timer_body(&here, "same", 1)).await;
    applied(&store, create(2)).await;
    eventually(&store, vec![1, 2], async || {
        let mut numbers = job_numbers(&store, jobs()).await;
        numbers.sort_unstable();
        numbers
    })
    .await;
    eventually(&store, vec!["same"], async || leak(ids(&store, Query::new(&USERS, Order::BY_ID)).await))
        .await;
    let (version, _) = read(&store, user("same")).await.unwrap();
    applied(&store, Write::Delete { key: user("same"), version, at: rota_model::time::UnixMillis(1) }).await;
    assert_eq!(read(&store, user("same")).await, None);
    assert!(read(&store, named("same")).await.is_some());
    assert!(read(&store, timer(&here, "same")).await.is_some());
}
