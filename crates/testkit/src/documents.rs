//! What a store holds, all of it: documents such as some store might not keep, and whether two stores hold the same.

use std::collections::BTreeMap;

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::{ALL, EXECUTIONS, JOBS, Kind, Reach, SETTINGS, TIMERS};
use rota_store::query::{Order, Query};
use rota_store::seam::{Body, Key, Write, Written};
use serde_json::{Value, json};

/// Every document but the marker of a copy, by its name; `hidden` where it is.
pub async fn contents(store: &dyn Store) -> BTreeMap<String, Body> {
    let mut all = BTreeMap::new();
    for collection in ALL {
        let there = Query::new(collection, Order::BY_ID);
        let hidden = collection.hides().then(|| there.clone().hidden_before(UnixMillis(i64::MAX)));
        for (mut query, note) in [(there, "")].into_iter().chain(hidden.map(|query| (query, " hidden"))) {
            loop {
                let page = store.find(query.clone()).await.unwrap();
                let named = page.documents.into_iter();
                all.extend(named.map(|document| (format!("{}{note}", document.key), document.body)));
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
        }
    }
    all.remove("settings/copy");
    all
}

/// Without the text of all documents in the failure, which would drown the one that differs.
pub fn assert_same(ours: &BTreeMap<String, Body>, theirs: &BTreeMap<String, Body>) {
    for (key, body) in ours {
        assert_eq!(Some(body), theirs.get(key), "{key}");
    }
    let surplus: Vec<_> = theirs.keys().filter(|key| !ours.contains_key(*key)).collect();
    assert!(surplus.is_empty(), "{surplus:?}");
}

/// A body that was written as JSON.
pub fn body(value: &Value) -> Body {
    value.as_object().unwrap().clone()
}

/// Each of them is applied.
pub async fn write(store: &dyn Store, batch: Vec<Write>) {
    let written = store.write(batch).await.unwrap();
    assert!(written.iter().all(|one| matches!(one, Written::Applied(_))), "{written:?}");
}

/// Documents of every collection and of two domains, with a value in every declared field.
pub async fn put_odd_documents(store: &dyn Store) {
    let ids = ["a", "B", "ä", "z/1?#%", "\u{1f980}", "\u{ff5e}", "with space"];
    let mut batch = Vec::new();
    for collection in ALL.into_iter().filter(|collection| **collection != SETTINGS) {
        for (nth, id) in ids.iter().enumerate() {
            let mut body = body(&json!({"odd": odd(nth), "large": "x".repeat(nth * 10_000)}));
            for field in collection.fields {
                let value = match field.kind {
                    Kind::Keyword => json!(format!("keyword ä {nth}")),
                    Kind::Keywords => json!([format!("one {nth}"), "\"two\\"]),
                    Kind::Integer => json!(i64::try_from(nth).unwrap() - 3),
                    Kind::Date => json!("2030-01-31T00:00:00.123456789Z"),
                    Kind::Json => odd(nth + 1),
                };
                field.set(&mut body, value);
            }
            match collection.reach {
                Reach::Installation => batch.push(Write::Create { key: Key::new(collection, id), body }),
                Reach::Domain => batch.extend(["default", "other-2"].map(|domain| {
                    let key = Key::in_domain(collection, &domain.parse().unwrap(), id);
                    Write::Create { key, body: body.clone() }
                })),
            }
        }
    }
    write(store, batch).await;
    let other: Domain = "other-2".parse().unwrap();
    let gone = [
        Key::new(&JOBS, "B"),
        Key::new(&JOBS, "\u{1f980}"),
        Key::in_domain(&TIMERS, &other, "ä"),
        Key::in_domain(&EXECUTIONS, &other, "a"),
    ];
    for found in store.read(gone.to_vec()).await.unwrap() {
        let found = found.unwrap();
        write(store, vec![Write::Delete { key: found.key, version: found.version, at: UnixMillis(1) }]).await;
    }
}

/// What a body may hold, and some store might not keep.
fn odd(nth: usize) -> Value {
    let all = [
        json!({"text": "ä€😀\u{7f}\u{ffff}", "NUL\u{0} in a name": "and\u{0}in a text\u{0}"}),
        json!({"numbers": [0, -1, i64::MAX, i64::MIN, u64::MAX, 9_007_199_254_740_993_i64]}),
        json!({"fractions": [0.0, 0.1, 1.0, 1.5e300, -2e-300, 5e-324, 1e16, f64::MAX, 123_456.789]}),
        json!({"nothing": null, "empty": [{}, [], ""], "b": 1, "a": {"z": 1, "y": [true, false, null]}}),
        json!({"@text": "{}", "slashes": "\\u0000 \\ \" \n\r\t\u{1}"}),
        (1..90).fold(json!([]), |inner, _| json!([inner])),
    ];
    all[nth % all.len()].clone()
}
