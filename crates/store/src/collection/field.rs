//! A declared field: where it stands in a document, and what stands there.

use serde_json::{Map, Value};

#[derive(Debug)]
pub struct Field {
    /// Where it stands in the document, with dots: `metadata.updatedAt`.
    pub path: &'static str,
    pub kind: Kind,
    /// Whether it is set on its own.
    pub changes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text that is compared as a whole.
    Keyword,
    /// Several such texts.
    Keywords,
    Integer,
    /// An instant: RFC 3339, or Unix milliseconds as a number or as its digits. It is compared by the millisecond.
    Date,
    /// Anything; it can be set but not asked for.
    Json,
}

impl Kind {
    /// What a person should have written.
    pub fn expected(self) -> &'static str {
        match self {
            Kind::Keyword => "a text of at most 1,024 bytes without NUL characters",
            Kind::Keywords => "a list of texts of at most 1,024 bytes each, without NUL characters",
            Kind::Integer => "a whole number of 64 bits",
            Kind::Date => "an instant: RFC 3339, or Unix milliseconds",
            Kind::Json => "JSON",
        }
    }
}

impl Field {
    pub(super) const fn fixed(path: &'static str, kind: Kind) -> Self {
        Self { path, kind, changes: false }
    }

    pub(super) const fn changing(path: &'static str, kind: Kind) -> Self {
        Self { path, kind, changes: true }
    }

    /// What a document holds there.
    pub fn get<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        value_at(body, self.path)
    }

    /// What it is compared and sorted by: a number, a text, or null where there is nothing.
    pub fn sort_value(&self, body: &Map<String, Value>) -> Value {
        match self.get(body) {
            // A list without texts is no value.
            Some(Value::Array(several)) if several.is_empty() => Value::Null,
            Some(value) if self.kind == Kind::Date => millis(value).map_or(Value::Null, Value::from),
            Some(value) => value.clone(),
            None => Value::Null,
        }
    }

    /// Puts a value there, or takes it away: null and absent are the same for a declared field.
    pub fn set(&self, body: &mut Map<String, Value>, value: Value) {
        set_below(body, self.path, value);
    }

    /// Takes out what a document holds there.
    pub fn take(&self, body: &mut Map<String, Value>) -> Option<Value> {
        take_at(body, self.path)
    }
}

/// Takes out what a document holds at a path with dots.
pub fn take_at(body: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => body.shift_remove(path),
        Some((part, rest)) => take_at(body.get_mut(part)?.as_object_mut()?, rest),
    }
}

/// What a document holds at a path with dots.
pub fn value_at<'a>(body: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = body.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.as_object()?.get(part))
}

/// The instant that a value of kind [`Kind::Date`] means, in Unix milliseconds.
pub fn millis(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let date = || text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
            text.parse().ok().or_else(date)
        }
        _ => None,
    }
}

fn set_below(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None if value.is_null() => {
            map.shift_remove(path);
        }
        None => {
            map.insert(path.to_owned(), value);
        }
        Some((part, rest)) => match map.get_mut(part) {
            Some(Value::Object(below)) => set_below(below, rest, value),
            _ if value.is_null() => {}
            // What is no object gives way: a field that is set can be read.
            _ => {
                let mut below = Map::new();
                set_below(&mut below, rest, value);
                map.insert(part.to_owned(), Value::Object(below));
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_instant_has_three_spellings() {
        for spelling in [json!("1970-01-01T00:00:05.25Z"), json!(5_250), json!("5250")] {
            assert_eq!(millis(&spelling), Some(5_250), "{spelling}");
        }
        assert_eq!(millis(&json!("yesterday")), None);
        assert_eq!(millis(&json!(1.5)), None);
    }
}
