//! What a user may set, within which limits: the tools with which each document checks itself.
//!
//! A [`Checker`] collects every fault of a document, not only the first, each with the JSON pointer of its field and
//! a sentence that names the limit. [`crate::json_text`] looks at raw JSON before it is parsed, for what a parser would
//! silently change: numbers that do not survive being read and written.

use std::fmt;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::UnixMillis;

/// How deep objects and arrays may nest in anything a user sends: the least that every store can hold.
pub const MAX_NESTING: usize = 20;
/// The size of a request, and so of a payload.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The length of a name that people give to things, in characters.
pub const MAX_NAME_CHARS: usize = 200;

/// The length of the name of a time zone, in characters; the longest of the tz database has 30.
pub const MAX_ZONE_CHARS: usize = 64;
/// How many fields of a document may be unknown.
pub const MAX_UNKNOWN_FIELDS: usize = 100;

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldError {
    /// RFC 6901 pointer into what was sent; empty for the whole.
    #[schema(example = "/input/payload/millis")]
    pub pointer: String,
    /// What is wrong and what is allowed.
    pub detail: String,
}

/// A document that was understood and is refused, with every field at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(pub Vec<FieldError>);

impl Invalid {
    pub fn one(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(vec![FieldError { pointer: pointer.into(), detail: detail.into() }])
    }

    /// What is wrong, for whoever knows where.
    pub fn details(&self) -> String {
        self.0.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, error) in self.0.iter().enumerate() {
            let separator = if nth == 0 { "" } else { "; " };
            let place = if error.pointer.is_empty() { "the document" } else { &error.pointer };
            write!(f, "{separator}{place}: {}", error.detail)?;
        }
        Ok(())
    }
}

/// Collects the faults of one document.
#[derive(Debug, Default)]
pub struct Checker {
    errors: Vec<FieldError>,
}

impl Checker {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn refuse(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
    }

    /// Adds the faults of a part that checked itself.
    pub fn absorb(&mut self, part: Result<(), Invalid>) {
        if let Err(Invalid(errors)) = part {
            self.errors.extend(errors);
        }
    }

    /// One line of text: a length in characters, no control characters.
    pub fn line(&mut self, pointer: &str, text: &str, chars: RangeInclusive<usize>) {
        self.length(pointer, text, chars);
        if text.chars().any(char::is_control) {
            self.refuse(pointer, "must not contain control characters");
        }
    }

    /// One line of text, where there is any.
    pub fn optional_line(&mut self, pointer: &str, text: Option<&str>, chars: RangeInclusive<usize>) {
        if let Some(text) = text {
            self.line(pointer, text, chars);
        }
    }

    /// Text made of certain characters, which `allowed` names for people.
    pub fn spelled(&mut self, pointer: &str, text: &str, legal: impl Fn(char) -> bool, allowed: &str) {
        if !text.chars().all(legal) {
            self.refuse(pointer, format!("must contain only {allowed}"));
        }
    }

    /// The name of a time zone, as far as it can be judged without zone data.
    pub fn time_zone(&mut self, pointer: &str, name: &str) {
        self.line(pointer, name, 1..=MAX_ZONE_CHARS);
        let legal = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
        self.spelled(pointer, name, legal, "letters, digits, '/', '_', '+' and '-', such as Europe/Berlin");
    }

    /// Fields that this version does not know, beside those it does.
    pub fn extra(&mut self, pointer: &str, fields: &crate::Extra) {
        if fields.len() > MAX_UNKNOWN_FIELDS {
            self.refuse(
                pointer,
                format!("must not have more than {MAX_UNKNOWN_FIELDS} fields that Rota does not know"),
            );
        }
        for (name, value) in fields {
            let below = format!("{pointer}/{}", escape(name));
            self.line(&below, name, 1..=MAX_NAME_CHARS);
            self.json(&below, value);
        }
    }

    /// Text that may have several lines: a length in characters, no control characters but tab and line breaks.
    pub fn lines(&mut self, pointer: &str, text: &str, chars: RangeInclusive<usize>) {
        self.length(pointer, text, chars);
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            self.refuse(pointer, "must not contain control characters other than tab and line breaks");
        }
    }

    fn length(&mut self, pointer: &str, text: &str, chars: RangeInclusive<usize>) {
        let length = text.chars().count();
        if !chars.contains(&length) {
            let (min, max) = (chars.start(), chars.end());
            self.refuse(pointer, format!("must have {min} to {max} characters; it has {length}"));
        }
    }

    pub fn range<N: Copy + PartialOrd + fmt::Display>(
        &mut self,
        pointer: &str,
        number: N,
        range: RangeInclusive<N>,
    ) {
        if !range.contains(&number) {
            let (min, max) = (range.start(), range.end());
            self.refuse(pointer, format!("must be from {min} to {max}; it is {number}"));
        }
    }

    /// An instant between 1970 and the end of 2999.
    pub fn instant(&mut self, pointer: &str, at: UnixMillis) {
        if !(UnixMillis(0)..=UnixMillis::MAX).contains(&at) {
            self.refuse(pointer, "must be Unix milliseconds from 1970 to the end of the year 2999");
        }
    }

    /// A date in the same bounds.
    pub fn date(&mut self, pointer: &str, at: Timestamp) {
        if !is_within_bounds(at) {
            self.refuse(pointer, date_bounds());
        }
    }

    /// A JSON value that every store can hold: nesting, no NUL in strings or names.
    pub fn json(&mut self, pointer: &str, value: &Value) {
        self.json_below(pointer, value, 0);
    }

    fn json_below(&mut self, pointer: &str, value: &Value, depth: usize) {
        if depth > MAX_NESTING {
            self.refuse(pointer, format!("must not nest deeper than {MAX_NESTING} levels"));
            return;
        }
        match value {
            Value::String(text) if text.contains('\0') => {
                self.refuse(pointer, "must not contain NUL characters");
            }
            Value::Array(items) => {
                for (nth, item) in items.iter().enumerate() {
                    self.json_below(&format!("{pointer}/{nth}"), item, depth + 1);
                }
            }
            Value::Object(fields) => {
                for (name, item) in fields {
                    if name.contains('\0') {
                        self.refuse(pointer, "must not contain NUL characters in names");
                    }
                    self.json_below(&format!("{pointer}/{}", escape(name)), item, depth + 1);
                }
            }
            _ => {}
        }
    }

    pub fn finish(self) -> Result<(), Invalid> {
        if self.errors.is_empty() { Ok(()) } else { Err(Invalid(self.errors)) }
    }
}

/// Whether a date lies between 1970 and the end of 2999.
pub fn is_within_bounds(at: Timestamp) -> bool {
    (Timestamp::UNIX_EPOCH..=UnixMillis::MAX.to_date()).contains(&at)
}

/// Between which dates everything lies, for people.
pub fn date_bounds() -> String {
    format!("must be from {} to {}", Timestamp::UNIX_EPOCH, UnixMillis::MAX)
}

/// A name as a part of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
