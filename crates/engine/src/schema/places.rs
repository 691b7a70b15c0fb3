//! Where schemas stand in a schema, and which part of a payload each of them is about.

use std::fmt;

use rota_model::check::escape;
use serde_json::{Map, Value};

/// What a schema inside another one is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum About {
    /// The same value as the one around it.
    Same,
    /// A value inside that one.
    Inside,
    /// A value inside that one, and of all with this keyword one at most is about it.
    OneInside,
    /// Nothing, until something refers to it.
    Nothing,
}

/// A schema that stands inside another one.
pub(super) struct Place<'a> {
    pub(super) about: About,
    pub(super) keyword: &'static str,
    pub(super) part: Option<Part<'a>>,
    pub(super) schema: &'a Value,
}

/// A name or a number on the way to a place.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Name(&'a str),
    Nth(usize),
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Name(name) => f.write_str(&escape(name)),
            Part::Nth(nth) => write!(f, "{nth}"),
        }
    }
}

/// The keywords that hold schemas.
const KEYWORDS: [(&str, About); 20] = [
    ("allOf", About::Same),
    ("anyOf", About::Same),
    ("oneOf", About::Same),
    ("not", About::Same),
    ("if", About::Same),
    ("then", About::Same),
    ("else", About::Same),
    ("dependentSchemas", About::Same),
    ("dependencies", About::Same),
    ("properties", About::OneInside),
    ("patternProperties", About::Inside),
    ("additionalProperties", About::Inside),
    ("unevaluatedProperties", About::Inside),
    ("propertyNames", About::Inside),
    ("items", About::OneInside),
    ("prefixItems", About::OneInside),
    ("additionalItems", About::Inside),
    ("unevaluatedItems", About::Inside),
    ("contains", About::Inside),
    ("contentSchema", About::Nothing),
];
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Those of them that hold one schema by each name.
const BY_NAME: [&str; 4] = ["dependentSchemas", "dependencies", "properties", "patternProperties"];

/// The schemas right inside a schema.
pub(super) fn inside(schema: &Map<String, Value>) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    for (keyword, about) in KEYWORDS {
        match schema.get(keyword) {
            None => {}
            Some(Value::Array(list)) => places.extend(list.iter().enumerate().map(|(nth, schema)| Place {
                about,
                keyword,
                part: Some(Part::Nth(nth)),
                schema,
            })),
            Some(Value::Object(named)) if BY_NAME.contains(&keyword) => {
                places.extend(by_name(about, keyword, named));
            }
            Some(schema) => places.push(Place { about, keyword, part: None, schema }),
        }
    }
    for keyword in DEFINITIONS {
        if let Some(Value::Object(named)) = schema.get(keyword) {
            places.extend(by_name(About::Nothing, keyword, named));
        }
    }
    places
}

fn by_name<'a>(
    about: About,
    keyword: &'static str,
    named: &'a Map<String, Value>,
) -> impl Iterator<Item = Place<'a>> {
    named.iter().map(move |(name, schema)| Place { about, keyword, part: Some(Part::Name(name)), schema })
}
