//! When two documents are the same: a digest of where they stand and of what is in them. Stores may answer the members of an
//! object in another order and spell a number in another way; the digest is of the values.

use rota_model::domain::Domain;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::walk::Shown;
use crate::seam::{Body, Document};

/// The digest of one document.
pub(super) type Digest = u128;

/// What many documents come to, in whatever order they are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub documents: u64,
    /// Deleted, and not yet purged.
    pub hidden: u64,
    /// The digests, added up.
    pub checksum: u128,
}

impl Sum {
    pub(super) fn add(&mut self, digest: Digest, shown: Shown) {
        match shown {
            Shown::There => self.documents += 1,
            Shown::Hidden => self.hidden += 1,
        }
        self.checksum = self.checksum.wrapping_add(digest);
    }
}

pub(super) fn of(document: &Document, shown: Shown) -> Digest {
    let mut text = Vec::with_capacity(1_024);
    let domain = document.key.domain.as_ref().map_or("", Domain::as_str);
    for part in [domain, &document.key.id] {
        put_text(part, &mut text);
    }
    text.push(u8::from(shown == Shown::Hidden));
    put_body(document, &mut text);
    let digest = Sha256::digest(&text);
    digest.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

/// For a declared field that changes on its own, null and absent are the same.
fn put_body(document: &Document, text: &mut Vec<u8>) {
    let body = &document.body;
    let nothing = |field: &&_| is_null(body, field);
    let absent: Vec<_> = document.key.collection.changing().filter(nothing).collect();
    if absent.is_empty() {
        return put_object(body, text);
    }
    let mut body = body.clone();
    for field in absent {
        field.take(&mut body);
    }
    put_object(&body, text);
}

fn is_null(body: &Body, field: &crate::collection::Field) -> bool {
    field.get(body).is_some_and(Value::is_null)
}

fn put_value(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => put_object(members, text),
        Value::Array(several) => {
            text.push(b'[');
            for one in several {
                put_value(one, text);
                text.push(b',');
            }
            text.push(b']');
        }
        Value::String(one) => put_text(one, text),
        // Not every store has a zero below zero.
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => text.extend(b"0.0"),
        Value::Number(number) => text.extend(number.to_string().bytes()),
        Value::Bool(true) => text.push(b't'),
        Value::Bool(false) => text.push(b'f'),
        Value::Null => text.push(b'n'),
    }
}

/// By the names of the members.
fn put_object(members: &Map<String, Value>, text: &mut Vec<u8>) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    text.push(b'{');
    for (name, value) in sorted {
        put_text(name, text);
        put_value(value, text);
    }
    text.push(b'}');
}

/// With its length, so that no text can be taken for what surrounds it.
fn put_text(one: &str, text: &mut Vec<u8>) {
    text.extend(one.len().to_string().bytes());
    text.push(b'"');
    text.extend_from_slice(one.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::collection::JOBS;
    use crate::seam::{Key, Version};

    fn digest(body: &Value) -> Digest {
        let body = body.as_object().unwrap().clone();
        of(&Document { key: Key::new(&JOBS, "1"), version: Version(1), body }, Shown::There)
    }

    #[test]
    fn the_order_of_members_means_nothing_and_that_of_lists_does() {
        let one = json!({"a": {"x": 1, "y": [1, 2]}, "b": "c"});
        assert_eq!(digest(&one), digest(&json!({"b": "c", "a": {"y": [1, 2], "x": 1}})));
        assert_ne!(digest(&one), digest(&json!({"a": {"x": 1, "y": [2, 1]}, "b": "c"})));
    }

    #[test]
    fn every_value_counts() {
        let bodies = [
            json!({}),
            json!({"a": null}),
            json!({"a": 1}),
            json!({"a": 1.0}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": {"1": 1}}),
            json!({"a": "b\u{0}"}),
            json!({"a": "b", "c": "d"}),
            json!({"a": "b\",1\"c1\"d"}),
            json!({"a": true}),
            json!({"a": u64::MAX}),
            json!({"a": i64::MIN}),
            json!({"a": 5e-324}),
        ];
        for (nth, body) in bodies.iter().enumerate() {
            for other in &bodies[..nth] {
                assert_ne!(digest(body), digest(other), "{body} and {other}");
            }
        }
    }

    #[test]
    fn what_stores_need_not_tell_apart_is_the_same() {
        assert_eq!(digest(&json!({"a": 0.0})), digest(&json!({"a": -0.0})));
        assert_eq!(digest(&json!({"owner": null, "a": 1})), digest(&json!({"a": 1})));
    }

    #[test]
    fn what_is_hidden_is_not_what_is_there() {
        let document = Document { key: Key::new(&JOBS, "1"), version: Version(1), body: Body::new() };
        assert_ne!(of(&document, Shown::There), of(&document, Shown::Hidden));
    }
}
