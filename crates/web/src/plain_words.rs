//! What a reader says of a value that does not fit, in words for people: what is allowed, and what came instead.
//!
//! The derived readers speak of the types of a program ("invalid type: string \"high\", expected u8"). Whoever sends a request
//! knows JSON and queries, so that is what they are told of. Words of our own, which say what is allowed already, stay as they
//! are.

/// How much of what came is repeated, in characters.
const SHOWN_CHARS: usize = 60;

/// The same fault, for people.
pub(crate) fn in_plain_words(said: &str) -> String {
    not_fitting(said)
        .or_else(|| of_a_name(said))
        .or_else(|| of_an_id(said))
        .unwrap_or_else(|| said.to_owned())
}

/// A value of the wrong kind, or beyond what its kind can hold.
fn not_fitting(said: &str) -> Option<String> {
    let rest = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: "))?;
    let (came, expected) = rest.rsplit_once(", expected ")?;
    let allowed = match (kind_of(expected), number(came)) {
        // Its field may allow less than its type: here only what is true of both is said.
        (Some("a whole number"), Some(number)) if is_whole(number) => {
            let is_too_small = number.starts_with('-');
            if is_too_small { "a larger number" } else { "a smaller number" }
        }
        (Some(kind), _) => kind,
        (None, _) => expected,
    };
    Some(format!("must be {allowed}; it is {}", shown(came)))
}

/// What a type of the program means to whoever writes JSON.
fn kind_of(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "str" | "string" => "a text",
        "a boolean" | "bool" => "true or false",
        "a sequence" => "a list",
        "a map" => "a JSON object",
        _ if expected.starts_with("struct ") => "a JSON object",
        _ => return None,
    })
}

/// The number that came, if it was one.
fn number(came: &str) -> Option<&str> {
    let digits = came.strip_prefix("integer `").or_else(|| came.strip_prefix("string \""))?;
    digits.strip_suffix(['`', '"'])
}

fn is_whole(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn shown(came: &str) -> String {
    let came = match came {
        "map" => "an object",
        "sequence" => "a list",
        "unit value" | "Option value" => "null",
        _ => ["integer `", "floating point `", "boolean `"]
            .iter()
            .find_map(|kind| came.strip_prefix(kind)?.strip_suffix('`'))
            .or_else(|| came.strip_prefix("string "))
            .unwrap_or(came),
    };
    shortened(came)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A name that nobody knows, or that is missing or there twice.
fn of_a_name(said: &str) -> Option<String> {
    if let Some(name) = said.strip_prefix("missing field ") {
        return Some(format!("{} is missing", unquoted(name)));
    }
    if let Some(name) = said.strip_prefix("duplicate field ") {
        return Some(format!("{} must be there once", unquoted(name)));
    }
    if said.starts_with("unknown field ") {
        let known = said.rsplit_once(", expected ").map(|(_, known)| listed(known));
        return Some(known.map_or("is not known: leave it out".to_owned(), |known| {
            format!("is not known; known are {known}")
        }));
    }
    let (name, known) = said.strip_prefix("unknown variant ")?.rsplit_once(", expected ")?;
    Some(format!("must be one of {}; it is \"{}\"", listed(known), shortened(&unquoted(name))))
}

/// "one of `a`, `b`" and "`a` or `b`" as "a, b".
fn listed(known: &str) -> String {
    let known = known.strip_prefix("one of ").unwrap_or(known);
    unquoted(&known.replace("` or `", "`, `"))
}

fn unquoted(names: &str) -> String {
    names.replace('`', "")
}

fn of_an_id(said: &str) -> Option<String> {
    said.starts_with("UUID parsing failed")
        .then(|| "must be a UUID, such as 0193e5a0-0000-7000-8000-000000000001".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read into")]
    struct Thing {
        small: Option<u8>,
        #[serde(default)]
        whole: i64,
        share: Option<f64>,
        text: Option<String>,
        is_on: Option<bool>,
        list: Option<Vec<u32>>,
        scope: Option<Scope>,
        inner: Option<Box<Thing>>,
        id: Option<uuid::Uuid>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Scope {
        Queued,
        Running,
    }

    fn said(of: Value) -> String {
        in_plain_words(&serde_json::from_value::<Thing>(of).unwrap_err().to_string())
    }

    #[test]
    fn what_is_allowed_is_said_of_every_kind() {
        for (of, expected) in [
            (json!({"small": "high"}), "must be a whole number; it is \"high\""),
            (json!({"small": 1.5}), "must be a whole number; it is 1.5"),
            (json!({"small": 300}), "must be a smaller number; it is 300"),
            (json!({"small": -1}), "must be a larger number; it is -1"),
            (json!({"whole": null}), "must be a whole number; it is null"),
            (json!({"whole": {}}), "must be a whole number; it is an object"),
            (json!({"share": true}), "must be a number; it is true"),
            (json!({"text": 7}), "must be a text; it is 7"),
            (json!({"is_on": "yes"}), "must be true or false; it is \"yes\""),
            (json!({"list": {}}), "must be a list; it is an object"),
            (json!({"inner": 7}), "must be a JSON object; it is 7"),
            (json!({"scope": "ever"}), "must be one of queued, running; it is \"ever\""),
            (json!({"id": "x"}), "must be a UUID, such as 0193e5a0-0000-7000-8000-000000000001"),
        ] {
            assert_eq!(said(of), expected);
        }
    }

    #[test]
    fn names_are_told_with_those_that_are_known() {
        let unknown = said(json!({"smal": 1}));
        assert!(unknown.starts_with("is not known; known are small, whole, share,"), "{unknown}");
        assert_eq!(in_plain_words("missing field `jobName`"), "jobName is missing");
        assert_eq!(in_plain_words("duplicate field `jobs`"), "jobs must be there once");
        assert_eq!(in_plain_words("unknown field `x`, there are no fields"), "is not known: leave it out");
    }

    #[test]
    fn our_own_words_stay_and_long_ones_are_cut() {
        assert_eq!(in_plain_words("must be from 0 to 9; it is 10"), "must be from 0 to 9; it is 10");
        let expected = "must be a JSON object; it is a list";
        assert_eq!(in_plain_words("invalid type: sequence, expected a JSON object"), expected);
        let long = said(json!({"small": format!("{}, expected", "é".repeat(500))}));
        assert!(long.starts_with("must be a whole number; it is \"éé") && long.ends_with("éé…"), "{long}");
        assert!(long.chars().count() < 100, "{long}");
    }
}
