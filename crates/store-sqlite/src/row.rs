//! A document as columns and a body, and back.

use rota_store::StoreError;
use rota_store::collection::{Collection, Kind};
use rota_store::seam::{Body, Document, Version};
use rusqlite::Row;
use rusqlite::types::{Value as SqlValue, ValueRef};
use serde_json::Value;

/// A value of a declared field as SQLite holds it. Objects and lists become their JSON text.
pub(crate) fn to_sql(value: &Value) -> SqlValue {
    match value {
        Value::Null => SqlValue::Null,
        Value::String(text) => SqlValue::Text(text.clone()),
        Value::Number(number) if number.is_i64() => SqlValue::Integer(number.as_i64().unwrap_or_default()),
        other => SqlValue::Text(other.to_string()),
    }
}

/// As [`to_sql`], for a field of this kind: whatever stands in a JSON field is JSON text, a string too.
pub(crate) fn field_to_sql(kind: Kind, value: &Value) -> SqlValue {
    match kind {
        Kind::Json if !value.is_null() => SqlValue::Text(value.to_string()),
        _ => to_sql(value),
    }
}

/// The columns of all declared fields, and the text of what is left for the body.
pub(crate) fn split(collection: &Collection, mut body: Body) -> (Vec<SqlValue>, String) {
    let mut columns = Vec::with_capacity(collection.fields.len());
    for field in collection.fields {
        let value = if field.changes { field.take(&mut body) } else { field.get(&body).cloned() };
        columns.push(field_to_sql(field.kind, &value.unwrap_or(Value::Null)));
    }
    (columns, Value::Object(body).to_string())
}

/// The document in a row of `document_columns`. A part that cannot be read is told to the operator and left out: the row
/// keeps its place in lists, and whoever needs the part finds the document incomplete.
pub(crate) fn join(collection: &'static Collection, row: &Row<'_>) -> Result<Document, StoreError> {
    let damaged = |why: String| StoreError::damaged(format!("read from {}", collection.name), why);
    let sql = |error: rusqlite::Error| damaged(error.to_string());
    let id: String = row.get(0).map_err(sql)?;
    let version: i64 = row.get(1).map_err(sql)?;
    let unreadable =
        |part: &str, why: &str| tracing::error!(collection = collection.name, id, part, why, "damaged");
    let text = row.get_ref(2).map_err(sql)?.as_bytes().unwrap_or_default();
    let mut body: Body = serde_json::from_slice(text).unwrap_or_else(|error| {
        unreadable("body", &error.to_string());
        Body::new()
    });
    for (nth, field) in collection.changing().enumerate() {
        let value = from_sql(field.kind, row.get_ref(3 + nth).map_err(sql)?);
        match value {
            Ok(Value::Null) => {}
            Ok(value) => field.set(&mut body, value),
            Err(why) => unreadable(field.path, &why),
        }
    }
    Ok(Document { id, version: Version(version.unsigned_abs()), body })
}

fn from_sql(kind: Kind, value: ValueRef<'_>) -> Result<Value, String> {
    match (kind, value) {
        (_, ValueRef::Null) => Ok(Value::Null),
        (Kind::Integer, ValueRef::Integer(number)) => Ok(number.into()),
        (Kind::Keyword, ValueRef::Text(text)) => {
            std::str::from_utf8(text).map(Value::from).map_err(|error| error.to_string())
        }
        (Kind::Json | Kind::Keywords, ValueRef::Text(text)) => {
            serde_json::from_slice(text).map_err(|error| error.to_string())
        }
        (kind, other) => Err(format!("{:?} where {kind:?} was declared", other.data_type())),
    }
}
