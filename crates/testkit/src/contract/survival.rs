//! Survival: what a store took comes back as it was, however odd.

use rota_store::StoreError;
use rota_store::collection::{Collection, SETTINGS, USERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Write, Written};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{body, change, domain, job, job_with, jobs, named, numbered, timer, timer_body, user};
use super::patience::eventually;
use super::verbs::{applied, brief, ids, job_numbers, read};

/// Signs outside the basic plane, composed and decomposed letters, right to left, joined emoji, line ends of many
/// kinds, what means something to engines, and two kinds of noise.
const ODD: [&str; 16] = [
    "\u{1F980} ' \" % \\ ; DROP TABLE jobs",
    "e\u{301}",
    "é",
    "\u{202e}txet sdrawkcab",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\r\n\t",
    "\u{2028}\u{85}\u{7f}\u{1}",
    "𝕳𝖊𝖑𝖑𝖔 𠜎",
    " leading and trailing ",
    "$1 ?1 :a @b {{c}} ${d}",
    "null",
    "a.b/c\\d*e?f#g&h=i+j%20k",
    "_id",
    "..",
    "\u{feff}\u{200d}\u{fffd}\u{10ffff}",
];

async fn comes_back(store: &Subject, key: Key, body: Body) {
    let shown = format!("{key}");
    let version = applied(store, Write::Create { key: key.clone(), body: body.clone() }).await;
    let (read_version, stored) = read(store, key).await.unwrap();
    assert_eq!(read_version, version, "{shown}");
    let body = Value::Object(body);
    assert!(stored == body, "{shown}: {} instead of {}", brief(&stored), brief(&body));
}

pub async fn odd_text_survives(store: Subject) {
    for (number, odd) in (0..).zip(ODD) {
        let mut document = job_with(number, json!({"jobName": odd, "owner": odd, "result": {odd: odd}}));
        document.insert(format!("x{odd}"), json!({odd: [odd, {odd: null}]}));
        comes_back(&store, named(odd), document).await;
    }
    let all = ODD.len();
    eventually(&store, all, async || job_numbers(&store, jobs()).await.len()).await;
    for (number, odd) in (0..).zip(ODD) {
        for field in ["jobName", "owner"] {
            let by_name = jobs().filter(Filter::Is(field, json!(odd)));
            assert_eq!(job_numbers(&store, by_name).await, [number], "{odd:?} in {field}");
        }
        comes_back(&store, user(odd), body(json!({"hashed_api_key": ["plain", odd]}))).await;
    }
    for odd in ODD {
        let several = Query::new(&USERS, Order::BY_ID).filter(Filter::Is("hashed_api_key", json!(odd)));
        eventually(&store, vec![odd.to_owned()], async || ids(&store, several.clone()).await).await;
    }
    let mut expected: Vec<String> = ODD.map(str::to_owned).to_vec();
    expected.sort_unstable();
    assert_eq!(ids(&store, Query::new(&USERS, Order::BY_ID).limit(3)).await, expected);
    let by_name = Order { fields: &["jobName"], descending: false };
    let listed = ids(&store, Query { order: by_name, ..jobs() }.limit(3)).await;
    assert_eq!(listed, expected, "cursors hold odd text, too");
}

/// Ids that an engine might take for one another are different ids.
pub async fn ids_are_what_they_are(store: Subject) {
    let here = domain("here");
    let long = "x".repeat(511);
    let mut all: Vec<String> =
        ["a", "A", "a ", " a", "a\n", "á", "a\u{301}", "0", "00", "-0", "1e0", "1.0", "a/b", "a%2fb"]
            .map(str::to_owned)
            .to_vec();
    all.extend([format!("{long}y"), format!("{long}z"), "\u{1f980}".repeat(128), long]);
    for id in &all {
        let own = body(json!({"own": id}));
        comes_back(&store, user(id), own.clone()).await;
        comes_back(&store, timer(&here, id), own).await;
    }
    for id in &all {
        assert_eq!(read(&store, user(id)).await.unwrap().1, json!({"own": id}), "{id:?}");
        let version = read(&store, timer(&here, id)).await.unwrap().0;
        let body = timer_body(&here, id, 1);
        applied(&store, Write::Replace { key: timer(&here, id), version, body }).await;
    }
    all.sort_unstable();
    eventually(&store, all, async || ids(&store, Query::new(&USERS, Order::BY_ID).limit(5)).await).await;
}

pub async fn large_documents_survive(store: Subject) {
    let of = |mebibytes: usize| "0123456789abcde\u{e9}".repeat(mebibytes * 61_681);
    for mebibytes in [1, 7] {
        let key = named(format!("{mebibytes} MiB"));
        comes_back(&store, key, job_with(1, json!({"result": {"error": of(mebibytes)}}))).await;
        comes_back(&store, user(&format!("{mebibytes} MiB")), body(json!({"text": of(mebibytes)}))).await;
    }
    let version = applied(&store, Write::Create { key: numbered(1), body: job(1) }).await;
    let result = json!({"output": [of(1), of(1)]});
    applied(&store, change(numbered(1), version, vec![("result", result.clone())])).await;
    assert!(read(&store, numbered(1)).await.unwrap().1["result"] == result);
}

pub async fn numbers_survive(store: Subject) {
    let whole = json!({"priority": i64::MIN, "runAt": i64::MAX, "epoch": 0, "section": -1});
    comes_back(&store, numbered(1), job_with(1, whole)).await;
    let floats = [
        0.1,
        0.1 + 0.2,
        1.5,
        -0.25,
        1e-7,
        1e21,
        123_456_789.123_456_79,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        f64::EPSILON,
        1.0 / 3.0,
        2.0_f64.powi(53) + 2.0,
        9_007_199_254_740_993.0,
        100.0,
    ];
    let others = json!([u64::MAX, i64::MIN, i64::MAX, i64::MAX as u64 + 1, 0, -1]);
    let undeclared = json!({"floats": floats, "others": others});
    comes_back(&store, user("numbers"), body(undeclared.clone())).await;
    comes_back(
        &store,
        numbered(2),
        job_with(2, json!({"result": undeclared, "progress": 0.5, "payload": floats})),
    )
    .await;
}

pub async fn emptiness_survives(store: Subject) {
    comes_back(&store, user("nothing"), Body::new()).await;
    comes_back(&store, named("nothing"), Body::new()).await;
    comes_back(
        &store,
        user("empty"),
        body(json!({"": "", "a": {}, "b": [], "c": null, "hashed_api_key": []})),
    )
    .await;
    comes_back(
        &store,
        numbered(1),
        job_with(1, json!({"owner": "", "domain": "", "result": {}, "progress": []})),
    )
    .await;
    let nested = json!({"a": null, "b": [null, {"c": null}], "": null});
    comes_back(&store, numbered(2), job_with(2, json!({"result": nested, "other": null, "history": [null]})))
        .await;
    comes_back(&store, numbered(3), body(json!({"input": {}, "metadata": {}}))).await;
}

/// Fields that hold anything hold anything, by every way of writing.
pub async fn any_json_survives(store: Subject) {
    let values = [
        json!("text"),
        json!(""),
        json!("null"),
        json!("{\"a\":1}"),
        json!(5),
        json!(-0.5),
        json!(true),
        json!(false),
        json!([]),
        json!([[], {}]),
        json!({}),
        json!({"error": 5}),
        json!({"error": {"error": "deep"}}),
    ];
    let mut version = applied(&store, Write::Create { key: named("changed"), body: job(0) }).await;
    for (number, value) in (1..).zip(values) {
        comes_back(&store, numbered(number), job_with(number, json!({"result": value, "progress": value})))
            .await;
        let fields = vec![("history", value.clone()), ("result", value.clone())];
        version = applied(&store, change(named("changed"), version, fields)).await;
        let expected = Value::Object(job_with(0, json!({"history": value, "result": value})));
        assert_eq!(read(&store, named("changed")).await, Some((version, expected)));
    }
}

/// What a store takes, it gives back; what it cannot, it refuses.
async fn comes_back_or_is_refused(store: &Subject, key: Key, body: Body) -> bool {
    match store.write(vec![Write::Create { key: key.clone(), body: body.clone() }]).await {
        Ok(answers) => {
            assert!(matches!(answers.as_slice(), [Written::Applied(_)]));
            let (stored, body) = (read(store, key.clone()).await.unwrap().1, Value::Object(body));
            assert!(stored == body, "{key}: {} instead of {}", brief(&stored), brief(&body));
            true
        }
        Err(StoreError::Refused { .. }) => {
            assert_eq!(read(store, key).await, None);
            false
        }
        Err(error) => panic!("{key}: {error}"),
    }
}

/// How deep a document may nest is for the store to say.
pub async fn deep_documents_survive_or_are_refused(store: Subject) {
    for depth in [20, 60, 100, 126, 127, 128, 200, 500] {
        let nested = |innermost| {
            let around = |inner: Value, nth| if nth % 2 == 0 { json!([inner]) } else { json!({"a": inner}) };
            (0..depth).fold(innermost, around)
        };
        let whole = body(json!({"payload": nested(json!(null))}));
        let field = body(json!({"result": nested(json!(1))}));
        for (key, body) in [(user(&depth.to_string()), whole), (named(depth), field)] {
            let taken = comes_back_or_is_refused(&store, key, body).await;
            assert!(taken || depth > 60, "{depth} levels are not too many");
        }
    }
}

/// Not every engine can hold this character, not even in what nobody declared.
pub async fn nul_characters_survive_or_are_refused(store: Subject) {
    for (number, odd) in (0..).zip([
        json!({"text": "a\0b"}),
        json!({"a\0b": 1}),
        json!({"result": "\0"}),
        json!({"result": {"error": "a\0b"}}),
        json!({"deep": [[{"\0": "\0"}]]}),
    ]) {
        comes_back_or_is_refused(&store, numbered(number), job_with(number, odd)).await;
    }
}

/// Members whose names look like paths, columns or commands are members like others.
pub async fn any_name_of_a_member_survives(store: Subject) {
    let names = [
        "metadata.updatedAt",
        "input.type",
        "result.error",
        "hashed_api_key.0",
        "id",
        "_id",
        "_source",
        "_version",
        "version",
        "body",
        "domain.",
        ".domain",
        ".",
        "..",
        "hidden",
        "hidden_at",
        "hiddenAt",
        "rowid",
        "select",
        "$set",
        "$",
        "a[0]",
        "#",
        "*",
        "__proto__",
        "collection",
        "key",
        "text",
        "words",
        "deleted",
        "doc",
        "type",
    ];
    let odd = |mut body: Body| {
        body.extend(names.map(|name| (name.to_owned(), json!({"own": name}))));
        body
    };
    let mut documents: Vec<(&'static Collection, Body)> =
        vec![(&USERS, Body::new()), (&SETTINGS, Body::new())];
    documents.push((&rota_store::collection::JOBS, job(1)));
    for (collection, body) in documents {
        comes_back(&store, Key::new(collection, "names"), odd(body)).await;
    }
    let here = domain("here");
    comes_back(&store, timer(&here, "names"), odd(timer_body(&here, "names", 1))).await;

    let version = read(&store, named("names")).await.unwrap().0;
    let fields = vec![("metadata.updatedAt", json!(77)), ("result", json!({"error": "x"}))];
    applied(&store, change(named("names"), version, fields)).await;
    let mut expected = Value::Object(odd(job_with(1, json!({"result": {"error": "x"}}))));
    expected["metadata"]["updatedAt"] = json!(77);
    assert_eq!(read(&store, named("names")).await.unwrap().1, expected);
}

/// Where a declared field has a parent, something else may stand in its place.
pub async fn what_stands_in_the_place_of_a_parent_survives(store: Subject) {
    let strange =
        [json!("text"), json!(5), json!([]), json!([{"type": "noop"}]), json!(true), json!(null), json!({})];
    for (number, strange) in (1..).zip(strange) {
        let differing = json!({"metadata": strange, "input": strange, "result": strange});
        let mut body = job_with(number, differing);
        body.retain(|_, value| !value.is_null());
        body.insert("input".to_owned(), strange.clone());
        body.insert("metadata".to_owned(), strange.clone());
        comes_back(&store, numbered(number), body.clone()).await;
        let version = read(&store, numbered(number)).await.unwrap().0;
        applied(&store, change(numbered(number), version, vec![("status", json!("FAILED"))])).await;
        body.insert("status".to_owned(), json!("FAILED"));
        assert_eq!(read(&store, numbered(number)).await.unwrap().1, Value::Object(body));
    }
}
