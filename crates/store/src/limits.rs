//! What no store is asked to do. Each request is checked against the declarations before a store sees it: what is wrong
//! with it is said, and nothing of it is done.

use serde_json::{Number, Value};

use crate::StoreError;
use crate::collection::{Collection, Kind, Reach, Walker, Walkers, value_at};
use crate::query::{Filter, Query, fits};
use crate::seam::{Body, Claim, Fields, Key, Write};
use crate::words::Words;

/// How many documents a page or a claim holds.
pub const MAX_PAGE: usize = 1_000;
/// How many documents are written in one call.
pub const MAX_BATCH: usize = 10_000;
/// How many keys are read in one call.
pub const MAX_KEYS: usize = 10_000;
/// How many values a filter lists.
pub const MAX_VALUES: usize = 1_000;
/// How many conditions a query has.
pub const MAX_FILTERS: usize = 32;
/// How many values all conditions of a query list together.
pub const MAX_QUERY_VALUES: usize = 10_000;
/// How many queries a claim tries.
pub const MAX_QUERIES: usize = 10_000;
/// How many numbers are taken from a sequence in one call.
pub const MAX_NUMBERS: u64 = 1_000_000_000;
/// The length of an id, in bytes: that of search engines.
pub const MAX_ID_BYTES: usize = 512;
/// The length of a keyword, in bytes, so that every engine can index it.
pub const MAX_KEYWORD_BYTES: usize = 1_024;
/// The size of what one write brings of a document, as JSON text, in bytes.
pub const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
/// How deep a document nests, so that every engine can read it again.
pub const MAX_DEPTH: usize = 100;
/// How many words are searched at once.
pub const MAX_WORDS: usize = 32;

pub fn check_writes(batch: &[Write]) -> Result<(), StoreError> {
    if batch.len() > MAX_BATCH {
        let why = format!("{} documents at once; at most {MAX_BATCH} are taken", batch.len());
        return Err(StoreError::refused("write", why));
    }
    let mut walkers = Walkers::default();
    batch.iter().try_for_each(|write| check_write(write, walkers.of(write.key().collection)))
}

pub fn check_keys(keys: &[Key]) -> Result<(), StoreError> {
    if keys.len() > MAX_KEYS {
        let why = format!("{} documents at once; at most {MAX_KEYS} are read", keys.len());
        return Err(StoreError::refused("read", why));
    }
    let wrong = keys.iter().find_map(|key| Some((key, fault_of_key(key)?)));
    wrong.map_or(Ok(()), |(key, why)| Err(StoreError::refused(format!("read {key}"), why)))
}

pub fn check_query(query: &Query) -> Result<(), StoreError> {
    let fault = fault_of_query(query).or_else(|| fault_of_page(query));
    refuse("find in", query.collection, fault)?;
    query.after.as_ref().map_or(Ok(()), |cursor| cursor.check(query))
}

pub fn check_count(query: &Query, by: Option<&'static str>) -> Result<(), StoreError> {
    let fault = fault_of_query(query).or_else(|| {
        let path = by?;
        let kind = query.collection.field(path).map(|field| field.kind);
        let countable = matches!(kind, Some(Kind::Keyword | Kind::Integer));
        (!countable).then(|| format!("{path} is not a declared keyword or integer field"))
    });
    refuse("count", query.collection, fault)
}

pub fn check_claim(claim: &Claim) -> Result<(), StoreError> {
    let (collection, fields) = (claim.collection, claim.fields());
    let fault = fault_of_fields(collection, &fields).or_else(|| {
        if !(1..=MAX_PAGE).contains(&claim.max) {
            return Some(format!("a claim takes 1 to {MAX_PAGE} documents, not {}", claim.max));
        }
        if claim.from.len() > MAX_QUERIES {
            return Some(format!("{} queries; at most {MAX_QUERIES} are tried", claim.from.len()));
        }
        let added = claim.add_one.map(|path| (path, collection.field(path)));
        if let Some((path, field)) = added
            && !field.is_some_and(|field| field.changes && field.kind == Kind::Integer)
        {
            return Some(format!("{path} is not an integer that is declared to change"));
        }
        if let Some((path, _)) = fields.iter().find(|(path, _)| claim.add_one == Some(path)) {
            return Some(format!("{path} cannot be set and added to at once"));
        }
        claim.from.iter().find_map(|query| {
            let other =
                (query.collection != collection).then(|| "a query is about another collection".to_owned());
            let more = (query.after.is_some()
                || query.firsts
                || query.hidden_before.is_some()
                || query.words().is_some())
            .then(|| "a claim takes neither a cursor, nor words, nor firsts, nor what is hidden".to_owned());
            other.or(more).or_else(|| fault_of_query(query)).or_else(|| fault_of_page(query))
        })
    });
    refuse("claim from", collection, fault)
}

pub fn check_sequence(name: &str, n: u64) -> Result<(), StoreError> {
    if (1..=MAX_NUMBERS).contains(&n) {
        return Ok(());
    }
    Err(StoreError::refused(
        format!("take numbers from {name}"),
        format!("1 to {MAX_NUMBERS} at once, not {n}"),
    ))
}

fn refuse(verb: &str, collection: &Collection, fault: Option<String>) -> Result<(), StoreError> {
    fault.map_or(Ok(()), |why| Err(StoreError::refused(format!("{verb} {}", collection.name), why)))
}

fn check_write(write: &Write, walker: &mut Walker) -> Result<(), StoreError> {
    let key = write.key();
    let fault = fault_of_key(key).or_else(|| match write {
        Write::Create { body, .. } | Write::Replace { body, .. } => {
            fault_of_body(key.collection, body, walker)
        }
        Write::Change { fields, .. } => fault_of_fields(key.collection, fields),
        Write::Delete { .. } | Write::Purge { .. } => None,
    });
    fault.map_or(Ok(()), |why| Err(StoreError::refused(format!("write {key}"), why)))
}

fn fault_of_key(key: &Key) -> Option<String> {
    let Key { collection, domain, id } = key;
    if let Some(fault) = fault_of_collection(collection) {
        return Some(fault);
    }
    match (collection.reach, domain) {
        (Reach::Domain, None) => {
            return Some(format!("{} are kept per domain, and none is named", collection.name));
        }
        (Reach::Installation, Some(_)) => {
            return Some(format!("{} are not kept per domain", collection.name));
        }
        _ => {}
    }
    let legal = (1..=MAX_ID_BYTES).contains(&id.len()) && !id.contains('\0');
    (!legal).then(|| format!("an id has 1 to {MAX_ID_BYTES} bytes and no NUL character"))
}

fn fault_of_collection(collection: &Collection) -> Option<String> {
    (!collection.is_known()).then(|| format!("{} is not a collection of this store", collection.name))
}

fn fault_of_body(collection: &Collection, body: &Body, walker: &mut Walker) -> Option<String> {
    let fault = |nth: usize, value: &Value| {
        let field = collection.fields.get(nth).filter(|field| !fits(field.kind, value))?;
        Some(format!("{} must be {}", field.path, field.kind.expected()))
    };
    for (place, (name, value)) in body.iter().enumerate() {
        let Some(member) = walker.member(place, name) else { continue };
        let below = |(rest, nth): &(&str, usize)| fault(*nth, value_at(value.as_object()?, rest)?);
        let found = member.itself.and_then(|nth| fault(nth, value));
        if let Some(fault) = found.or_else(|| member.below.iter().find_map(below)) {
            return Some(fault);
        }
    }
    fault_of_size(bytes_of_object(body, MAX_DEPTH))
}

/// Whether a document can be written as a whole. One that grew by changes may be larger than what one write brings.
pub(crate) fn fits_one_write(body: &Body) -> bool {
    bytes_of_object(body, MAX_DEPTH).is_some_and(|bytes| bytes <= MAX_BODY_BYTES)
}

fn fault_of_size(bytes: Option<usize>) -> Option<String> {
    match bytes {
        None => Some(format!("a document nests at most {MAX_DEPTH} levels deep")),
        Some(bytes) if bytes > MAX_BODY_BYTES => {
            Some(format!("a document has at most {MAX_BODY_BYTES} bytes as JSON text; this has {bytes}"))
        }
        Some(_) => None,
    }
}

/// Fields of a change or a claim.
fn fault_of_fields(collection: &Collection, fields: &Fields) -> Option<String> {
    for (nth, (path, value)) in fields.iter().enumerate() {
        let Some(field) = collection.field(path).filter(|field| field.changes) else {
            return Some(format!("{path} is not declared to change"));
        };
        if fields.iter().take(nth).any(|(other, _)| other == path) {
            return Some(format!("{path} is set twice"));
        }
        if !fits(field.kind, value) {
            return Some(format!("{path} must be {}", field.kind.expected()));
        }
    }
    let bytes = fields.iter().map(|(path, value)| Some(path.len() + bytes_of(value, MAX_DEPTH)?));
    fault_of_size(bytes.sum())
}

fn fault_of_query(query: &Query) -> Option<String> {
    let collection = query.collection;
    if let Some(fault) = fault_of_collection(collection) {
        return Some(fault);
    }
    if collection.reach == Reach::Installation && query.domain.is_some() {
        return Some(format!("{} are not kept per domain", collection.name));
    }
    if query.hidden_before.is_some() && !collection.hides() {
        return Some("nothing is hidden in it".to_owned());
    }
    for path in query.order.fields {
        let kind = collection.field(path).map(|field| field.kind);
        if !matches!(kind, Some(Kind::Integer | Kind::Keyword | Kind::Date)) {
            return Some(format!("{path} gives no order"));
        }
    }
    if query.filters.len() > MAX_FILTERS {
        return Some(format!("{} conditions; at most {MAX_FILTERS} are asked at once", query.filters.len()));
    }
    let values =
        query.filters.iter().map(|filter| if let Filter::In(_, values) = filter { values.len() } else { 1 });
    let values: usize = values.sum();
    if values > MAX_QUERY_VALUES {
        return Some(format!("{values} values; at most {MAX_QUERY_VALUES} are compared at once"));
    }
    let texts = query.filters.iter().filter(|filter| matches!(filter, Filter::Text(_))).count();
    if texts > 1 {
        return Some("words are searched for once: put them into one text".to_owned());
    }
    query.filters.iter().find_map(|filter| fault_of_filter(collection, filter))
}

fn fault_of_page(query: &Query) -> Option<String> {
    let is_plain = !query.order.fields.is_empty() && !query.order.descending && query.hidden_before.is_none();
    if query.firsts && !(is_plain && query.words().is_none()) {
        return Some("the first of each value are listed upwards by a field, without words".to_owned());
    }
    let outside = !(1..=MAX_PAGE).contains(&query.limit);
    outside.then(|| format!("a page holds 1 to {MAX_PAGE} documents, not {}", query.limit))
}

fn fault_of_filter(collection: &Collection, filter: &Filter) -> Option<String> {
    if let Filter::Text(text) = filter {
        let count = Words::parse(text).0.len();
        return match count {
            _ if collection.text.is_empty() => Some("nothing is searched for words in it".to_owned()),
            0 => Some("there is no word to search for".to_owned()),
            _ if count > MAX_WORDS => {
                Some(format!("at most {MAX_WORDS} words are searched at once, not {count}"))
            }
            _ => None,
        };
    }
    let path = filter.path()?;
    let Some(field) = collection.field(path) else {
        return Some(format!("{path} is not a declared field"));
    };
    let asked = |value: &Value| match field.kind {
        Kind::Keyword | Kind::Keywords => fits(Kind::Keyword, value) && !value.is_null(),
        Kind::Integer => value.is_i64(),
        Kind::Date | Kind::Json => false,
    };
    let fits = match filter {
        Filter::Is(_, value) => asked(value),
        Filter::In(_, values) if values.len() > MAX_VALUES => {
            return Some(format!("{path}: at most {MAX_VALUES} values are compared, not {}", values.len()));
        }
        Filter::In(_, values) => values.iter().all(asked),
        Filter::Absent(_) => field.kind != Kind::Json,
        Filter::AtLeast(..) | Filter::AtMost(..) => matches!(field.kind, Kind::Integer | Kind::Date),
        Filter::Text(_) => true,
    };
    (!fits).then(|| format!("{path} cannot be asked for like this: it is {}", field.kind.expected()))
}

/// How long a value is as JSON text, without making it; none if it nests deeper than so many levels. To the byte: what passed
/// where it came in, measured as text, is not refused here.
fn bytes_of(value: &Value, levels: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(true) => Some(4),
        Value::Bool(false) => Some(5),
        Value::Number(number) => Some(bytes_of_number(number)),
        Value::String(text) => Some(bytes_of_text(text)),
        Value::Array(several) => {
            let levels = levels.checked_sub(1)?;
            let bytes: Option<usize> = several.iter().map(|one| bytes_of(one, levels)).sum();
            Some(bytes? + bytes_around(several.len()))
        }
        Value::Object(body) => bytes_of_object(body, levels),
    }
}

fn bytes_of_number(number: &Number) -> usize {
    let digits = |whole: u64| whole.checked_ilog10().map_or(1, |power| power as usize + 1);
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => digits(whole),
        (None, Some(below_zero)) => 1 + digits(below_zero.unsigned_abs()),
        (None, None) => number.to_string().len(),
    }
}

/// Some characters are written with more.
fn bytes_of_text(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + 2 + text.bytes().map(more).sum::<usize>()
}

fn bytes_of_object(body: &Body, levels: usize) -> Option<usize> {
    let levels = levels.checked_sub(1)?;
    let member = |(name, value): (&String, &Value)| Some(bytes_of_text(name) + 1 + bytes_of(value, levels)?);
    let bytes: Option<usize> = body.iter().map(member).sum();
    Some(bytes? + bytes_around(body.len()))
}

/// The brackets, and the commas between so many.
fn bytes_around(count: usize) -> usize {
    2 + count.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_long_as_its_text() {
        let controls: String = (1..=0x20).filter_map(char::from_u32).collect();
        for value in [
            json!(null),
            json!([true, false, null]),
            json!([0, 1, 9, 10, 99, 100, u64::MAX, -1, -9, -10, i64::MIN]),
            json!([0.0, -0.0, 1.5, 1e9, 1e15, 1e16, 1e300, -1e-300, 0.1, f64::MAX, f64::MIN_POSITIVE]),
            json!(["", "\"", "\\", "ä€😀\u{7f}", controls]),
            json!({}),
            json!([[], {}, [[]]]),
            json!({"a": 1, "b\n\"": {"c": [1, 2, 3], "d": {}}, "": [""]}),
        ] {
            assert_eq!(bytes_of(&value, MAX_DEPTH), Some(value.to_string().len()), "{value}");
        }
    }

    #[test]
    fn who_nests_too_deep_has_no_length() {
        let nested = |levels| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(bytes_of(&nested(5), 5), Some(10));
        assert_eq!(bytes_of(&nested(6), 5), None);
    }
}
