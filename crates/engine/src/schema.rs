//! A JSON Schema that payloads are checked against, compiled so that no schema and no payload can hold up a thread.
//!
//! Whoever administers a domain writes schemas, and need not mean well. Nothing is fetched: references lead to places in
//! the schema itself. Patterns are matched in time that is linear in the text, so look-around and back-references are
//! refused, and so is a pattern that takes much room. How often a value may be looked at, at most, is [`weight`]ed before
//! the schema is compiled; where that times the size of a payload is too much, the payload is refused.

mod places;
mod weight;

use jsonschema::{PatternOptions, Validator};
use rota_model::check::{Checker, Invalid};
use serde_json::Value;

use weight::Burden;

/// How many faults of one payload are told at once.
const MAX_FAULTS: usize = 20;
/// How much of a fault is told: it may quote the payload.
const MAX_FAULT_CHARS: usize = 400;
/// The room that one pattern may take, and the room for what is learnt while it is matched, in bytes.
const PATTERN_BYTES: usize = 128 * 1024;
/// How much work one payload may be: so many looks at a value take well under a tenth of a second.
const MAX_EFFORT: u64 = 2_000_000;
/// Below this weight no payload of the size that is taken is too much.
const LIGHT: u64 = 4;
/// How much larger a schema is once it is compiled, at most; about.
const COMPILED: usize = 16;
/// A text of so many bytes is one more value, as far as work goes.
const TEXT_BYTES: usize = 64;

/// A compiled schema.
pub struct Schema {
    source: Value,
    validator: Validator,
    /// How often one value of a payload is looked at, at most.
    weight: u64,
    /// The room it takes, at most, in bytes; about.
    room: usize,
}

impl Schema {
    /// Compiles a schema that stands at `/schema`.
    pub fn compile(source: &Value) -> Result<Self, Invalid> {
        let Burden { weight, patterns } = weight::of(source)?;
        let engine = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let built = jsonschema::options().offline().with_pattern_options(engine).build(source);
        let validator = built.map_err(|error| {
            let why = cut(&error.to_string());
            Invalid::one(format!("/schema{}", error.instance_path()), format!("is no schema: {why}"))
        })?;
        let room = source.to_string().len() * COMPILED + patterns * PATTERN_BYTES;
        Ok(Self { source: source.clone(), validator, weight, room })
    }

    /// As it was written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// What there is to be said against the payload of a job.
    pub fn check(&self, payload: &Value) -> Result<(), Invalid> {
        if self.effort(payload) > MAX_EFFORT {
            let detail = "is too large for a schema as intricate as that of its type: send less at once";
            return Err(Invalid::one("/input/payload", detail));
        }
        let mut check = Checker::new();
        for fault in self.validator.iter_errors(payload).take(MAX_FAULTS) {
            check.refuse(format!("/input/payload{}", fault.instance_path()), cut(&fault.to_string()));
        }
        check.finish()
    }

    /// How much work it is to check a payload, at most; about, for what is no work worth mentioning.
    pub fn effort(&self, payload: &Value) -> u64 {
        if self.weight <= LIGHT { self.weight } else { self.weight.saturating_mul(size(payload)) }
    }

    /// Whether a payload that waits in the queue would be taken.
    pub(crate) fn fits(&self, payload: &Value) -> bool {
        self.effort(payload) <= MAX_EFFORT && self.validator.is_valid(payload)
    }
}

/// How many values there are to look at.
fn size(value: &Value) -> u64 {
    let texts = |text: &str| (text.len() / TEXT_BYTES) as u64;
    match value {
        Value::String(text) => 1 + texts(text),
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(name, value)| texts(name) + size(value)).sum::<u64>()
        }
        _ => 1,
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_FAULT_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_FAULT_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(schema: &Value) -> (String, String) {
        let Invalid(mut errors) = Schema::compile(schema).err().unwrap();
        let error = errors.remove(0);
        (error.pointer, error.detail)
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        for (schema, pointer, words) in [
            (json!({"type": "objekt"}), "/schema/type", "is no schema"),
            (json!({"properties": {"a": {"minimum": "5"}}}), "/schema/properties/a/minimum", "is no schema"),
            (json!({"required": "a"}), "/schema/required", "is no schema"),
            (json!({"$schema": "https://example.org/mine"}), "/schema", "is no schema"),
            (
                json!({"properties": {"a": {"pattern": "("}}}),
                "/schema",
                "the pattern ( is not taken: unclosed group",
            ),
        ] {
            let (found, detail) = refusal(&schema);
            assert!(found.starts_with(pointer) && detail.contains(words), "{schema}: {found} {detail}");
        }
    }

    #[test]
    fn patterns_take_bounded_time_and_room() {
        for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "(?=a)b", r"(a)\1"] {
            let (_, detail) = refusal(&json!({"properties": {"a": {"pattern": pattern}}}));
            assert!(detail.contains("the pattern"), "{pattern}: {detail}");
            let (_, detail) = refusal(&json!({"patternProperties": {pattern: true}}));
            assert!(detail.contains("the pattern"), "{pattern}: {detail}");
        }
        // A pattern that is small and slow: short texts are checked, and long ones are refused instead.
        let slow = Schema::compile(&json!({"properties": {"a": {"pattern": "[ab]*a[ab]{200}c"}}})).unwrap();
        assert!(!slow.fits(&json!({"a": "ab".repeat(1_000)})));
        let refused = slow.check(&json!({"a": "ab".repeat(50_000)})).unwrap_err();
        assert!(refused.to_string().contains("too large for a schema"), "{refused}");
        let many = (0..100).map(|nth| json!({"pattern": format!("{}|[ab]*a[ab]{{500}}c", "x".repeat(nth))}));
        let (_, detail) = refusal(&json!({"properties": {"a": {"allOf": many.collect::<Vec<_>>()}}}));
        assert!(detail.contains("too often"), "{detail}");
        let usual =
            Schema::compile(&json!({"properties": {"a": {"pattern": r"^\w+@\w+\.[a-z]{2,63}$"}}})).unwrap();
        assert!(usual.fits(&json!({"a": format!("{}@example.org", "a".repeat(20_000))})));
        let explodes = Schema::compile(&json!({"properties": {"a": {"pattern": "^(a+)+$"}}})).unwrap();
        assert!(!explodes.fits(&json!({"a": format!("{}!", "a".repeat(500_000))})));
        assert!(explodes.fits(&json!({"a": "a".repeat(500_000)})));
    }

    #[test]
    fn a_fault_is_told_in_few_words() {
        let schema = Schema::compile(&json!({"properties": {"a": {"maxLength": 3}}})).unwrap();
        let Invalid(errors) = schema.check(&json!({"a": "x".repeat(100_000)})).unwrap_err();
        assert_eq!(errors[0].pointer, "/input/payload/a");
        assert!(errors[0].detail.chars().count() <= MAX_FAULT_CHARS);
    }

    #[test]
    fn a_payload_that_is_too_much_work_is_refused() {
        let many: Vec<Value> = (0..500).map(|nth| json!({"not": {"const": nth}})).collect();
        let schema = Schema::compile(&json!({"properties": {"list": {"items": {"allOf": many}}}})).unwrap();
        assert!(schema.check(&json!({"list": vec![-1; 100]})).is_ok());
        let refused = schema.check(&json!({"list": vec![-1; 100_000]})).unwrap_err();
        assert!(refused.to_string().contains("too large for a schema"), "{refused}");
    }
}
