//! Values on their way to the server, and JSON as the server keeps it.
//!
//! `jsonb` takes everything but one character, NUL, and keeps numbers by their value, not by their spelling. So numbers with a
//! fraction are spelt out, which it keeps; and what has a NUL is kept as the text of its JSON, in an object of one member.

use bytes::{BufMut as _, BytesMut};
use serde_json::{Map, Value};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// The member that holds a document as text.
const AS_TEXT: &str = "@text";

/// A value of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    Int(i64),
    Text(String),
    Json(Option<Json>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Jsons(Vec<Option<Json>>),
}

impl ToSql for Param {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        match self {
            Param::Int(one) => one.to_sql_checked(ty, out),
            Param::Text(one) => one.to_sql_checked(ty, out),
            Param::Json(one) => one.to_sql_checked(ty, out),
            Param::Ints(several) => several.to_sql_checked(ty, out),
            Param::Texts(several) => several.to_sql_checked(ty, out),
            Param::Jsons(several) => several.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// JSON as text that `jsonb` keeps whole.
#[derive(Clone, Debug)]
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn of(value: &impl serde::Serialize) -> Self {
        let mut text = Vec::with_capacity(512);
        // Writing to memory does not fail.
        let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, SpeltOut));
        let text = String::from_utf8(text).unwrap_or_default();
        // More texts contain this than NUL does, and lose nothing by it.
        let is_kept = !text.contains("\\u0000") && !text.starts_with("{\"@text\":");
        if is_kept {
            Self(text)
        } else {
            Self(Map::from_iter([(AS_TEXT.to_owned(), Value::String(text))]).to_json())
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

trait ToJson {
    fn to_json(&self) -> String;
}

impl ToJson for Map<String, Value> {
    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl ToSql for Json {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        // The version of the binary form.
        out.put_u8(1);
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    to_sql_checked!();
}

/// JSON as it came from the server.
pub(crate) struct Kept<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Kept<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self(raw.get(1..).unwrap_or_default()))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }
}

impl Kept<'_> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn value(&self) -> Result<Value, serde_json::Error> {
        let value: Value = serde_json::from_slice(self.0)?;
        match value.as_object().filter(|map| map.len() == 1).and_then(|map| map.get(AS_TEXT)) {
            Some(Value::String(text)) => serde_json::from_str(text),
            _ => Ok(value),
        }
    }
}

/// Spells numbers with a fraction out, without a power of ten.
struct SpeltOut;

impl serde_json::ser::Formatter for SpeltOut {
    fn write_f64<W: std::io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        let text = value.to_string();
        let fraction = if text.contains('.') { "" } else { ".0" };
        write!(writer, "{text}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn there_and_back(value: &Value) -> Value {
        Kept(Json::of(value).0.as_bytes()).value().unwrap()
    }

    #[test]
    fn what_the_server_would_not_keep_is_kept_as_text() {
        for value in [
            json!({"a": "\0"}),
            json!("\0"),
            json!({"@text": "{}"}),
            json!({"@text": {"@text": "\0"}}),
            json!({"a\0": [1e16, -1e300, 5e-324]}),
            json!(r"\u0000"),
        ] {
            assert_eq!(there_and_back(&value), value);
            assert!(!Json::of(&value).0.replace("\\\\", "").contains("\\u0000"), "{value}");
        }
    }

    #[test]
    fn fractions_are_spelt_out() {
        assert_eq!(Json::of(&json!([1e16, 0.5, 1.0, -2e-3, 7])).0, "[10000000000000000.0,0.5,1.0,-0.002,7]");
    }
}
