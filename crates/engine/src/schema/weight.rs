//! How often a value of a payload is looked at, at most, when it is checked against a schema.
//!
//! References make a schema larger than its text: ten definitions of which each refers twice to the next look at a value a
//! thousand times, and one that refers to itself without going deeper into the payload would never be done. Both are found
//! here, by going through the schema as a check of a payload would, but only once for each place and depth. Payloads have a
//! bounded depth, so a definition may well refer to itself for a value inside.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use rota_model::check::{Checker, Invalid, MAX_NESTING};
use serde_json::{Map, Value};

use super::places::{About, Place, inside};

/// How often a value may be looked at.
const MAX_WEIGHT: u64 = 10_000;
/// How far a check may go down, through schemas and values: each step takes room on the stack.
const MAX_HEIGHT: usize = 300;
/// How many places of a schema may be referred to.
const MAX_REFERENCES: usize = 100;
/// How many patterns a schema may have: each takes room once it is compiled.
const MAX_PATTERNS: usize = 100;
/// Values at so many depths are checked: that of the payload itself, and those inside it.
const DEPTHS: usize = MAX_NESTING + 1;
/// To compare with so many values is as much work as to look once more.
const VALUES_PER_LOOK: usize = 8;
/// To match a text with a small pattern is as much work as to look so many times more.
const PATTERN: u64 = 32;
/// How large a pattern may be with its repetitions written out, in KiB.
const MAX_PATTERN_KIB: usize = 64;
/// How much of a pattern that is refused is shown.
const MAX_SHOWN: usize = 60;
/// What would lead elsewhere, or make a reference mean another place.
const ELSEWHERE: [&str; 5] =
    ["$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$anchor"];

/// What a schema costs whoever uses it.
#[derive(Debug)]
pub(super) struct Burden {
    pub(super) weight: u64,
    pub(super) patterns: usize,
}

/// The burden of a schema, if it can be borne.
pub(super) fn of(schema: &Value) -> Result<Burden, Invalid> {
    let mut survey = Survey::default();
    survey.go_through(schema, "/schema");
    let patterns = survey.finish(schema)?;
    let mut scale = Scale { root: schema, known: BTreeMap::new() };
    let weight = scale.weigh(schema, DEPTHS, 0)?.weight;
    Ok(Burden { weight, patterns })
}

/// Which values are the same one, wherever they were come upon.
fn identity(schema: &Value) -> usize {
    ptr::from_ref(schema).addr()
}

/// What stands where, and refers where to.
#[derive(Default)]
struct Survey<'a> {
    schemas: BTreeSet<usize>,
    /// Where something is referred to, and the first who does.
    references: BTreeMap<&'a str, String>,
    patterns: usize,
    check: Checker,
}

impl<'a> Survey<'a> {
    fn go_through(&mut self, schema: &'a Value, pointer: &str) {
        self.schemas.insert(identity(schema));
        let Value::Object(fields) = schema else { return };
        let is_root = pointer == "/schema";
        self.patterns += usize::from(fields.contains_key("pattern"));
        if let Some(Value::Object(named)) = fields.get("patternProperties") {
            self.patterns += named.len();
        }
        if let Some(Value::String(target)) = fields.get("$ref") {
            self.references.entry(target).or_insert_with(|| format!("{pointer}/$ref"));
        }
        for keyword in ELSEWHERE.into_iter().filter(|keyword| fields.contains_key(*keyword)) {
            let detail = "is not taken: refer with $ref to a place, such as #/$defs/address";
            self.check.refuse(format!("{pointer}/{keyword}"), detail);
        }
        for keyword in
            ["$id", "id", "$schema"].into_iter().filter(|keyword| !is_root && fields.contains_key(*keyword))
        {
            self.check.refuse(format!("{pointer}/{keyword}"), "may only stand in the schema as a whole");
        }
        for Place { keyword, part, schema, .. } in inside(fields) {
            let below = part.map(|part| format!("/{part}")).unwrap_or_default();
            self.go_through(schema, &format!("{pointer}/{keyword}{below}"));
        }
    }

    /// How many patterns there are, if all is well.
    fn finish(mut self, root: &Value) -> Result<usize, Invalid> {
        for (target, pointer) in &self.references {
            let found = target_of(root, target).is_some_and(|found| self.schemas.contains(&identity(found)));
            if !found {
                let detail =
                    "must lead to a schema inside this one, such as #/$defs/address; nothing is fetched";
                self.check.refuse(pointer, detail);
            }
        }
        if self.references.len() > MAX_REFERENCES {
            let count = self.references.len();
            let detail = format!("may refer to {MAX_REFERENCES} places at most; it refers to {count}");
            self.check.refuse("/schema", detail);
        }
        if self.patterns > MAX_PATTERNS {
            let count = self.patterns;
            self.check.refuse("/schema", format!("may have {MAX_PATTERNS} patterns at most; it has {count}"));
        }
        self.check.finish().map(|()| self.patterns)
    }
}

/// What a reference leads to.
fn target_of<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    // What is escaped as in an address could mean another place to others.
    if pointer.contains('%') { None } else { root.pointer(pointer) }
}

#[derive(Clone, Copy)]
struct Measure {
    weight: u64,
    height: usize,
}

struct Scale<'a> {
    root: &'a Value,
    /// By schema and the depths of the payload that are left; none while it is being weighed.
    known: BTreeMap<(usize, usize), Option<Measure>>,
}

impl<'a> Scale<'a> {
    fn weigh(&mut self, schema: &'a Value, depths: usize, level: usize) -> Result<Measure, Invalid> {
        let Value::Object(fields) = schema else { return Ok(Measure { weight: 1, height: 1 }) };
        let key = (identity(schema), depths);
        let measure = match self.known.get(&key) {
            Some(Some(measure)) => *measure,
            Some(None) => {
                return Err(refused(
                    "refers to itself without going deeper into the payload: no check would end",
                ));
            }
            None => {
                if level > MAX_HEIGHT {
                    return Err(too_deep());
                }
                self.known.insert(key, None);
                let measure = self.sum(fields, depths, level)?;
                self.known.insert(key, Some(measure));
                measure
            }
        };
        if level + measure.height > MAX_HEIGHT {
            return Err(too_deep());
        }
        if measure.weight > MAX_WEIGHT {
            let detail = "looks at a value too often: schemas that refer to others several times multiply, and so do patterns that repeat";
            return Err(refused(detail));
        }
        Ok(measure)
    }

    fn sum(
        &mut self,
        fields: &'a Map<String, Value>,
        depths: usize,
        level: usize,
    ) -> Result<Measure, Invalid> {
        let mut weight = 1 + values(fields) + patterns(fields)?;
        let mut height = 0;
        let mut one_inside: BTreeMap<&str, u64> = BTreeMap::new();
        if let Some(target) = fields.get("$ref").and_then(|target| target_of(self.root, target.as_str()?)) {
            let measure = self.weigh(target, depths, level + 1)?;
            (weight, height) = (weight.saturating_add(measure.weight), measure.height);
        }
        for Place { about, keyword, schema, part } in inside(fields) {
            let depths = match about {
                About::Same => depths,
                About::Inside | About::OneInside if depths > 0 => depths - 1,
                About::Inside | About::OneInside | About::Nothing => continue,
            };
            let measure = self.weigh(schema, depths, level + 1)?;
            height = height.max(measure.height);
            if about == About::OneInside && part.is_some() {
                let most = one_inside.entry(keyword).or_default();
                *most = measure.weight.max(*most);
            } else {
                weight = weight.saturating_add(measure.weight);
            }
        }
        weight = one_inside.into_values().fold(weight, u64::saturating_add);
        // To know what was looked at, it is looked at again.
        if fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems") {
            weight = weight.saturating_mul(2);
        }
        Ok(Measure { weight, height: height + 1 })
    }
}

/// The work of matching texts with patterns.
fn patterns(fields: &Map<String, Value>) -> Result<u64, Invalid> {
    let named = fields.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let own = fields.get("pattern").and_then(Value::as_str);
    let mut all = own.into_iter().chain(named.map(String::as_str));
    all.try_fold(0_u64, |sum, one| Ok(sum.saturating_add(pattern(one)?)))
}

/// By how much there is of a pattern once its repetitions are written out: at worst each byte of a text is held against all of
/// it. Classes of letters are counted as one each, however many letters they have.
fn pattern(pattern: &str) -> Result<u64, Invalid> {
    let shown: String = pattern.chars().take(MAX_SHOWN).collect();
    let build = |unicode, kib: usize| {
        regex::bytes::RegexBuilder::new(pattern).unicode(unicode).size_limit(kib * 1_024).build()
    };
    if let Err(regex::Error::Syntax(why)) = build(true, MAX_PATTERN_KIB) {
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        return Err(refused(&format!("the pattern {shown} is not taken: {why}")));
    }
    let sizes = [1, 2, 4, 8, 16, 32, MAX_PATTERN_KIB].into_iter();
    match sizes.into_iter().find(|kib| build(false, *kib).or_else(|_| build(true, *kib)).is_ok()) {
        Some(1) => Ok(PATTERN),
        Some(kib) => Ok(PATTERN * 4 * kib as u64),
        None => Err(refused(&format!("the pattern {shown} is too large with its repetitions written out"))),
    }
}

/// The work of comparing with the values that are allowed.
fn values(fields: &Map<String, Value>) -> u64 {
    let listed = fields.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    (listed / VALUES_PER_LOOK) as u64
}

fn refused(detail: &str) -> Invalid {
    Invalid::one("/schema", detail)
}

fn too_deep() -> Invalid {
    refused("leads from one schema to the next too often: make it shallower")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn detail(schema: &Value) -> String {
        of(schema).unwrap_err().to_string()
    }

    #[test]
    fn what_would_never_end_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert!(detail(&schema).contains("refers to itself"), "{schema}");
        }
        let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "additionalProperties": false});
        assert!(of(&tree).unwrap().weight < 100, "a tree is well within bounds");
    }

    #[test]
    fn what_multiplies_is_refused() {
        let mut defs = Map::new();
        for nth in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", nth + 1)});
            defs.insert(format!("d{nth}"), json!({"allOf": [next, next]}));
        }
        defs.insert("d40".to_owned(), json!({"type": "object"}));
        assert!(detail(&json!({"$ref": "#/$defs/d0", "$defs": defs})).contains("too often"));
        let deep = json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"patternProperties": {"a": {"$ref": "#"}}}]});
        assert!(detail(&deep).contains("too often"), "it doubles with each depth of the payload");
    }

    #[test]
    fn long_chains_are_refused() {
        let chain = |count: usize, link: &dyn Fn(Value) -> Value| {
            let next = |nth: usize| link(json!({"$ref": format!("#/$defs/d{nth}")}));
            let mut defs: Map<String, Value> =
                (0..count).map(|nth| (format!("d{nth}"), next(nth + 1))).collect();
            defs.insert(format!("d{count}"), json!({}));
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        let same = |schema: Value| json!({"allOf": [{"allOf": [{"allOf": [schema]}]}]});
        assert!(detail(&chain(99, &same)).contains("too often"));
        assert!(detail(&chain(1_000, &|schema| json!({"properties": {"a": schema}}))).contains("100 places"));
        assert!(of(&chain(50, &|schema| schema)).is_ok());
    }

    #[test]
    fn references_lead_inside() {
        for (pointer, schema) in [
            ("/schema/$ref", json!({"$ref": "https://example.org/a.json"})),
            ("/schema/$ref", json!({"$ref": "#/$defs/missing"})),
            ("/schema/items/$ref", json!({"items": {"$ref": "file:///etc/passwd"}})),
            ("/schema/$ref", json!({"$ref": "#/const", "const": {"type": "object"}})),
            ("/schema/$ref", json!({"$ref": "#/%24defs/a", "$defs": {"a": {}}})),
            ("/schema/$defs/a/$id", json!({"$defs": {"a": {"$id": "https://example.org/a"}}})),
            ("/schema/$dynamicRef", json!({"$dynamicRef": "#a"})),
        ] {
            let Invalid(errors) = of(&schema).unwrap_err();
            assert_eq!(errors[0].pointer, pointer, "{schema}: {errors:?}");
        }
        let names =
            json!({"properties": {"$ref": {"type": "string"}, "$id": {}, "id": {}}, "const": {"$ref": "x"}});
        assert!(of(&names).is_ok(), "names of properties and values are no keywords");
    }
}
