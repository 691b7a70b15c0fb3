//! The examples and the schemas of seeds 003 and 004, kept word for word in `fixtures/seeds`.
//!
//! Three readings are documented and done here: inner `$id`s are stripped, the placeholders `metricName` and `<uuid>`
//! are patterns of names, and `modifiedAt` in an example means `updatedAt`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a fixture that cannot be read fails the test that asked for it"
)]

use rota_model::job::Job;
use rota_model::log::Log;
use rota_model::metric::MetricsBucket;
use rota_model::node::NodeState;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::filled;

const UUID: &str = "018f3c2e-5a77-7c1d-9b1e-2f6c0a4d8e11";
const UUID_PATTERN: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/seeds/", $name))
    };
}

/// Collection, schema.
const SCHEMAS: [(&str, &str); 4] = [
    ("state", fixture!("003-a-state.schema.json")),
    ("jobs", fixture!("003-b-jobs.schema.json")),
    ("logs", fixture!("003-c-logs.schema.json")),
    ("metrics", fixture!("003-d-metrics.schema.json")),
];
const STATE_OF_SEED_004: &str = fixture!("004-a-state.schema.json");

/// Collection, example, the way through its type.
type Example = (&'static str, &'static str, fn(&Value) -> Value);
const EXAMPLES: [Example; 5] = [
    ("state", fixture!("003-a-state.example.json"), through::<NodeState>),
    ("state", fixture!("004-a-state.example.json"), through::<NodeState>),
    ("jobs", fixture!("003-b-jobs.example.json"), through::<Job>),
    ("logs", fixture!("003-c-logs.example.json"), through::<Log>),
    ("metrics", fixture!("003-d-metrics.example.json"), through::<MetricsBucket>),
];

fn through<T: Serialize + DeserializeOwned>(document: &Value) -> Value {
    let read: T = serde_json::from_value(document.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

fn example(text: &str) -> Value {
    serde_json::from_str(&text.replace("<uuid>", UUID)).unwrap()
}

fn rename(object: &mut Value, from: &str, to: &str) {
    let fields = object.as_object_mut().unwrap();
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// An example in the spelling that Rota writes.
fn normalised(text: &str) -> Value {
    let mut document = example(text);
    rename(&mut document, "job_queue_section", "jobQueueSection");
    rename(&mut document["metadata"], "modifiedAt", "updatedAt");
    document
}

/// A schema in the reading that is documented.
fn schema(text: &str) -> Value {
    let mut schema: Value = serde_json::from_str(text).unwrap();
    for part in schema["properties"].as_object_mut().unwrap().values_mut() {
        strip_ids(part);
    }
    read_placeholders_as_patterns(&mut schema);
    schema
}

fn strip_ids(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("$id");
            fields.values_mut().for_each(strip_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_ids),
        _ => {}
    }
}

fn read_placeholders_as_patterns(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for (placeholder, pattern) in [("metricName", "."), ("<uuid>", UUID_PATTERN)] {
        let named = fields.get_mut("properties").and_then(Value::as_object_mut);
        if let Some(meant) = named.and_then(|named| named.remove(placeholder)) {
            fields.insert("patternProperties".to_owned(), json!({pattern: meant}));
            fields["required"].as_array_mut().unwrap().retain(|name| name != placeholder);
        }
    }
    fields.values_mut().for_each(read_placeholders_as_patterns);
}

/// Every field of `part` stands in `whole`, with the same value. Rota may add fields.
fn assert_contains(whole: &Value, part: &Value, at: &str) {
    let (Value::Object(whole_fields), Value::Object(fields)) = (whole, part) else {
        assert_eq!(whole, part, "{at}");
        return;
    };
    for (name, value) in fields {
        let found = whole_fields.get(name).unwrap_or(&Value::Null);
        assert_contains(found, value, &format!("{at}/{name}"));
    }
}

#[test]
fn every_example_is_read_and_written_again() {
    for (collection, text, through) in EXAMPLES {
        let written = through(&example(text));
        assert_contains(&written, &normalised(text), collection);
        assert_eq!(through(&normalised(text)), written, "{collection}: both spellings mean the same");
        assert_eq!(through(&written), written, "{collection}");
    }
}

#[test]
fn examples_gain_nothing_but_what_jobs_need() {
    for (collection, text, through) in EXAMPLES {
        if collection != "jobs" {
            assert_eq!(through(&example(text)), normalised(text), "{collection}");
        }
    }
}

#[test]
fn what_rota_writes_is_valid_by_the_seeds() {
    for (collection, text) in SCHEMAS {
        let validator = jsonschema::validator_for(&schema(text)).unwrap();
        let written = filled::document(collection);
        let errors: Vec<_> = validator.iter_errors(&written).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{collection}: {errors:?}");
        for (_, example, through) in EXAMPLES.into_iter().filter(|(of, _, _)| *of == collection) {
            assert!(validator.is_valid(&through(&self::example(example))), "{collection}");
        }
    }
}

/// The schemas bite: each refuses a document with a field gone, and with a field of another type.
#[test]
fn the_schemas_refuse_what_is_not_theirs() {
    for (collection, text) in SCHEMAS {
        let schema = schema(text);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for name in schema["required"].as_array().unwrap() {
            let mut without = filled::document(collection);
            without.as_object_mut().unwrap().remove(name.as_str().unwrap());
            assert!(!validator.is_valid(&without), "{collection} without {name}");
        }
    }
    let metrics = jsonschema::validator_for(&schema(SCHEMAS[3].1)).unwrap();
    let mut bucket = filled::document("metrics");
    for entry in bucket["metrics"]["jobs_finished"].as_object_mut().unwrap().values_mut() {
        entry["value"] = json!("12");
    }
    assert!(!metrics.is_valid(&bucket));
}

/// Three examples lack the `updatedAt` that their own schema requires; the two of `state` are held to theirs.
#[test]
fn the_examples_of_state_are_valid_as_they_stand() {
    for (text, schema_text) in [(EXAMPLES[0].1, SCHEMAS[0].1), (EXAMPLES[1].1, STATE_OF_SEED_004)] {
        let validator = jsonschema::validator_for(&schema(schema_text)).unwrap();
        assert!(validator.is_valid(&example(text)), "{text}");
    }
}

/// Seed 004 spells one field differently; what Rota writes holds everything else that its schema asks for.
#[test]
fn what_rota_writes_for_state_is_valid_by_seed_004_but_for_one_spelling() {
    let validator = jsonschema::validator_for(&schema(STATE_OF_SEED_004)).unwrap();
    let mut written = filled::document("state");
    assert!(!validator.is_valid(&written));
    rename(&mut written, "jobQueueSection", "job_queue_section");
    assert!(validator.is_valid(&written));
}
