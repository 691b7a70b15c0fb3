//! Statements. Each has one text per shape of request, so that SQLite prepares it once and keeps it.

use std::fmt::Write as _;

use rota_store::collection::{Collection, Kind};
use rota_store::query::{Filter, Query};
use rusqlite::types::Value as SqlValue;
use serde_json::Value;

use crate::row::to_sql;

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The column of a declared field.
pub(crate) fn column(path: &str) -> String {
    quoted(&path.replace('.', "_"))
}

/// The table of a collection. The plain name is left for a view that shows whole documents.
pub(crate) fn table(collection: &Collection) -> String {
    quoted(&format!("{}.rows", collection.name))
}

/// What makes up a document: id, version, body, then the changing fields.
pub(crate) fn document_columns(collection: &Collection) -> String {
    let mut columns = String::from("id, version, body");
    for field in collection.changing() {
        let _ = write!(columns, ", {}", column(field.path));
    }
    columns
}

pub(crate) fn insert(collection: &Collection) -> String {
    let columns: String = collection.fields.iter().map(|field| format!(", {}", column(field.path))).collect();
    let values = ", ?".repeat(collection.fields.len());
    format!(
        "INSERT INTO {} (id, version, body{columns}) VALUES (?, ?, ?{values}) ON CONFLICT (id) DO NOTHING",
        table(collection)
    )
}

pub(crate) fn replace(collection: &Collection) -> String {
    let columns: String =
        collection.fields.iter().map(|field| format!(", {} = ?", column(field.path))).collect();
    format!("UPDATE {} SET version = ?, body = ?{columns} WHERE id = ? AND version = ?", table(collection))
}

pub(crate) fn change(collection: &Collection, fields: &[(&'static str, Value)]) -> String {
    let columns: String = fields.iter().map(|(path, _)| format!(", {} = ?", column(path))).collect();
    format!("UPDATE {} SET version = ?{columns} WHERE id = ? AND version = ?", table(collection))
}

pub(crate) fn delete(collection: &Collection) -> String {
    format!("DELETE FROM {} WHERE id = ? AND version = ?", table(collection))
}

pub(crate) fn read(collection: &Collection) -> String {
    format!("SELECT {} FROM {} WHERE id = ?", document_columns(collection), table(collection))
}

pub(crate) fn claim_one(
    collection: &Collection,
    fields: &[(&'static str, Value)],
    add_one: Option<&'static str>,
) -> String {
    let mut columns: String = fields.iter().map(|(path, _)| format!(", {} = ?", column(path))).collect();
    if let Some(path) = add_one {
        let _ = write!(columns, ", {0} = coalesce({0}, 0) + 1", column(path));
    }
    let documents = document_columns(collection);
    format!("UPDATE {} SET version = ?{columns} WHERE pk = ? RETURNING {documents}", table(collection))
}

/// A query as a statement with its parameters; `columns` is what it answers.
pub(crate) fn select(query: &Query, columns: &str, limit: usize) -> (String, Vec<SqlValue>) {
    let mut text = format!("SELECT {columns} FROM {} WHERE true", table(query.collection));
    let mut values = Vec::new();
    for filter in &query.filters {
        condition(query.collection, filter, &mut text, &mut values);
    }
    let direction = if query.order.descending { "DESC" } else { "ASC" };
    let mut order: Vec<String> = query.order.fields.iter().map(|path| column(path)).collect();
    order.push("id".to_owned());
    if let Some(cursor) = &query.after {
        let comparison = if query.order.descending { "<" } else { ">" };
        let holes = vec!["?"; order.len()].join(", ");
        let _ = write!(text, " AND ({}) {comparison} ({holes})", order.join(", "));
        values.extend(cursor.key.iter().map(to_sql));
    }
    let order: Vec<String> = order.iter().map(|name| format!("{name} {direction}")).collect();
    let _ = write!(text, " ORDER BY {} LIMIT ?", order.join(", "));
    values.push(SqlValue::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    (text, values)
}

fn condition(collection: &Collection, filter: &Filter, text: &mut String, values: &mut Vec<SqlValue>) {
    let name = column(filter.path());
    let several = collection.field(filter.path()).is_some_and(|field| field.kind == Kind::Keywords);
    match filter {
        Filter::Is(_, Value::String(value)) if guards_an_index(collection, filter.path(), value) => {
            // A literal, and not a parameter: only then does SQLite see that a partial index applies.
            let _ = write!(text, " AND {name} = '{value}'");
        }
        Filter::Is(_, value) if several => {
            let _ = write!(text, " AND EXISTS (SELECT 1 FROM json_each({name}) WHERE value = ?)");
            values.push(to_sql(value));
        }
        Filter::Is(_, value) => {
            let _ = write!(text, " AND {name} = ?");
            values.push(to_sql(value));
        }
        Filter::In(_, wanted) => {
            let _ = write!(text, " AND {name} IN ({})", vec!["?"; wanted.len()].join(", "));
            values.extend(wanted.iter().map(to_sql));
        }
        Filter::AtLeast(_, least) => {
            let _ = write!(text, " AND {name} >= ?");
            values.push(SqlValue::Integer(*least));
        }
        Filter::AtMost(_, most) => {
            let _ = write!(text, " AND {name} <= ?");
            values.push(SqlValue::Integer(*most));
        }
    }
}

fn guards_an_index(collection: &Collection, path: &str, value: &str) -> bool {
    collection.indexes.iter().any(|index| index.only == Some((path, value)))
}
