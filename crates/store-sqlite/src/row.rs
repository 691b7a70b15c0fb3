//! A document as columns and a body, and back. Fields that change stand in columns only; fixed declared fields stand in
//! both.

use std::borrow::Cow;

use rota_store::StoreError;
use rota_store::collection::{Collection, Kind, Reach, Walker, millis, take_at, value_at};
use rota_store::seam::{Body, Document, Fields, Key, Version};
use rusqlite::Row as SqlRow;
use rusqlite::types::{Value as SqlValue, ValueRef};
use serde_json::Value;

/// A document that is about to be written.
#[derive(Debug)]
pub(crate) struct Row {
    /// One for each declared field, in their order.
    pub(crate) columns: Vec<SqlValue>,
    /// What is not in columns alone, as JSON text.
    pub(crate) body: String,
    /// For each declared field of several texts, by its place among the fields: the texts.
    pub(crate) keywords: Vec<(usize, Vec<String>)>,
}

/// The columns that a change sets, by the place of the field among the declared ones.
pub(crate) type Columns = Vec<(usize, SqlValue)>;

impl Row {
    /// Goes through the document once: what changes on its own is taken out, the rest becomes text.
    pub(crate) fn of(collection: &Collection, body: Body, walker: &mut Walker) -> Self {
        let columns = vec![SqlValue::Null; collection.fields.len()];
        let mut row = Self { columns, body: String::new(), keywords: Vec::new() };
        let mut text = Vec::with_capacity(512);
        for (place, (name, mut value)) in body.into_iter().enumerate() {
            if let Some(member) = walker.member(place, &name) {
                for (rest, nth) in &member.below {
                    row.put_below(collection, *nth, &mut value, rest);
                }
                if let Some(nth) = member.itself
                    && let Some(field) = collection.fields.get(nth)
                {
                    if field.changes {
                        row.put(nth, column_of(field.kind, Some(value)));
                        continue;
                    }
                    row.put_fixed(nth, field.kind, &value);
                }
            }
            text.push(if text.is_empty() { b'{' } else { b',' });
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut text, &name);
            text.push(b':');
            let _ = serde_json::to_writer(&mut text, &value);
        }
        text.extend_from_slice(if text.is_empty() { b"{}" } else { b"}" });
        row.body = String::from_utf8(text).unwrap_or_default();
        row
    }

    fn put(&mut self, nth: usize, column: SqlValue) {
        if let Some(place) = self.columns.get_mut(nth) {
            *place = column;
        }
    }

    fn put_fixed(&mut self, nth: usize, kind: Kind, value: &Value) {
        if kind == Kind::Keywords {
            self.keywords.push((nth, texts(value)));
        }
        self.put(nth, column_of(kind, Some(value.clone())));
    }

    fn put_below(&mut self, collection: &Collection, nth: usize, value: &mut Value, rest: &str) {
        let (Some(field), Value::Object(parent)) = (collection.fields.get(nth), value) else { return };
        if field.changes {
            self.put(nth, column_of(field.kind, take_at(parent, rest)));
        } else if let Some(value) = value_at(parent, rest) {
            self.put_fixed(nth, field.kind, value);
        }
    }
}

impl Row {
    /// The document again.
    pub(crate) fn document(&self, key: Key, version: Version) -> Document {
        let mut body: Body = serde_json::from_str(&self.body).unwrap_or_default();
        for (field, column) in key.collection.fields.iter().zip(&self.columns) {
            if field.changes && *column != SqlValue::Null {
                field.set(&mut body, value_of(field.kind, column));
            }
        }
        Document { key, version, body }
    }
}

/// What a column means that was made from a document, and so is as declared.
pub(crate) fn value_of(kind: Kind, column: &SqlValue) -> Value {
    value_in(kind, ValueRef::from(column)).unwrap_or_default()
}

pub(crate) fn columns_of(collection: &Collection, fields: Fields) -> Columns {
    let place = |path: &str| collection.fields.iter().position(|field| field.path == path);
    let column = |(path, value): (&str, Value)| {
        let nth = place(path)?;
        Some((nth, column_of(collection.fields.get(nth)?.kind, Some(value))))
    };
    fields.into_iter().filter_map(column).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let several = value.as_array().into_iter().flatten();
    several.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// What stands in the column of a field of this kind.
fn column_of(kind: Kind, value: Option<Value>) -> SqlValue {
    match value {
        None | Some(Value::Null) => SqlValue::Null,
        Some(value) if kind == Kind::Date => millis(&value).map_or(SqlValue::Null, SqlValue::Integer),
        Some(Value::Array(several)) if kind == Kind::Keywords && several.is_empty() => SqlValue::Null,
        Some(value) if matches!(kind, Kind::Json | Kind::Keywords) => SqlValue::Text(value.to_string()),
        Some(Value::String(text)) => SqlValue::Text(text),
        Some(value) => value.as_i64().map_or(SqlValue::Null, SqlValue::Integer),
    }
}

/// A value that a keyword or integer is compared with.
pub(crate) fn to_sql(value: &Value) -> SqlValue {
    match value {
        Value::String(text) => SqlValue::Text(text.clone()),
        other => other.as_i64().map_or(SqlValue::Null, SqlValue::Integer),
    }
}

/// A keyword or integer as it stands in a column.
pub(crate) fn from_column(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        _ => Value::Null,
    }
}

/// The key of a row whose columns from `first` on are those of [`crate::statements::key`].
pub(crate) fn key_in(
    collection: &'static Collection,
    row: &SqlRow<'_>,
    first: usize,
) -> Result<(Key, Version), StoreError> {
    let damaged = |why: String| StoreError::damaged(format!("read from {}", collection.name), why);
    let id: String = row.get(first).map_err(|error| damaged(error.to_string()))?;
    let version: i64 = row.get(first + 1).map_err(|error| damaged(error.to_string()))?;
    let domain = match collection.reach {
        Reach::Installation => None,
        Reach::Domain => {
            let name: String = row.get(first + 2).map_err(|error| damaged(error.to_string()))?;
            Some(name.parse().map_err(|error| damaged(format!("{error}")))?)
        }
    };
    Ok((Key { collection, domain, id }, Version(version.unsigned_abs())))
}

/// A document as it stands in the file. Whoever asked for it makes the document of it: the writer's thread has better
/// things to do.
#[derive(Debug)]
pub(crate) struct RawDocument {
    pub(crate) key: Key,
    pub(crate) version: Version,
    body: String,
    /// Whether characters of the body were lost.
    garbled: bool,
    /// The fields that change, in their order.
    changing: Vec<SqlValue>,
}

impl RawDocument {
    /// From a row whose columns from `first` on are those of [`crate::statements::document`].
    pub(crate) fn of(key: Key, version: Version, row: &SqlRow<'_>, first: usize) -> rusqlite::Result<Self> {
        let body = String::from_utf8_lossy(row.get_ref(first + 3)?.as_bytes().unwrap_or_default());
        let garbled = matches!(body, Cow::Owned(_));
        let count = key.collection.changing().count();
        let changing = (0..count).map(|nth| row.get(first + 4 + nth)).collect::<rusqlite::Result<_>>()?;
        Ok(Self { key, version, body: body.into_owned(), garbled, changing })
    }

    /// From a document that is about to be written.
    pub(crate) fn of_row(key: Key, version: Version, row: &Row) -> Self {
        let fields = key.collection.fields.iter().zip(&row.columns);
        let changing = fields.filter(|(field, _)| field.changes).map(|(_, column)| column.clone()).collect();
        Self { version, body: row.body.clone(), garbled: false, changing, key }
    }

    /// The column of a field that changes, by the place of the field.
    fn column(&mut self, nth: usize) -> Option<&mut SqlValue> {
        let before = self.key.collection.fields.iter().take(nth).filter(|field| field.changes).count();
        self.changing.get_mut(before)
    }

    pub(crate) fn set(&mut self, columns: &Columns) {
        for (nth, value) in columns {
            if let Some(column) = self.column(*nth) {
                column.clone_from(value);
            }
        }
    }

    /// One more in a field; what it is then.
    pub(crate) fn add_one(&mut self, nth: usize) -> i64 {
        let Some(column) = self.column(nth) else { return 0 };
        let held = if let SqlValue::Integer(held) = column { *held } else { 0 };
        *column = SqlValue::Integer(held.saturating_add(1));
        held.saturating_add(1)
    }

    /// The document. A part that cannot be read is told to the operator and left out: the row keeps its place in lists, and
    /// whoever needs the part finds the document incomplete.
    pub(crate) fn into_document(self) -> Document {
        let (document, unreadable) = self.read();
        for (part, why) in unreadable {
            tracing::error!(key = %document.key, part, why, "damaged");
        }
        document
    }

    /// The document, unless a part of it cannot be read.
    fn into_whole(self) -> Result<Document, StoreError> {
        let (document, unreadable) = self.read();
        match unreadable.first() {
            None => Ok(document),
            Some((part, why)) => {
                let why = format!("its {part} cannot be read ({why})");
                Err(StoreError::damaged(format!("read {}", document.key), why))
            }
        }
    }

    /// The document as far as it can be read, and each part that cannot, with the reason.
    fn read(self) -> (Document, Vec<(&'static str, String)>) {
        let Self { key, version, body, garbled, changing } = self;
        let mut unreadable = Vec::new();
        if garbled {
            unreadable.push(("body", "it is not UTF-8".to_owned()));
        }
        let mut body: Body = serde_json::from_str(&body).unwrap_or_else(|error| {
            unreadable.push(("body", error.to_string()));
            Body::new()
        });
        for (field, column) in key.collection.changing().zip(&changing) {
            match value_in(field.kind, ValueRef::from(column)) {
                Ok(Value::Null) => {}
                Ok(value) => field.set(&mut body, value),
                Err(why) => unreadable.push((field.path, why)),
            }
        }
        (Document { key, version, body }, unreadable)
    }
}

/// The document in a row whose columns from `first` on are those of [`crate::statements::document`].
pub(crate) fn document_in(
    collection: &'static Collection,
    row: &SqlRow<'_>,
    first: usize,
) -> Result<Document, StoreError> {
    raw_in(collection, row, first).map(RawDocument::into_document)
}

/// The same, unless a part of it cannot be read.
pub(crate) fn whole_in(
    collection: &'static Collection,
    row: &SqlRow<'_>,
    first: usize,
) -> Result<Document, StoreError> {
    raw_in(collection, row, first)?.into_whole()
}

fn raw_in(
    collection: &'static Collection,
    row: &SqlRow<'_>,
    first: usize,
) -> Result<RawDocument, StoreError> {
    let (key, version) = key_in(collection, row, first)?;
    RawDocument::of(key, version, row, first).map_err(|error| match key_in(collection, row, first) {
        Ok((key, _)) => StoreError::damaged(format!("read {key}"), error),
        Err(damaged) => damaged,
    })
}

fn value_in(kind: Kind, value: ValueRef<'_>) -> Result<Value, String> {
    match (kind, value) {
        (_, ValueRef::Null) => Ok(Value::Null),
        (Kind::Integer, ValueRef::Integer(number)) => Ok(number.into()),
        (Kind::Keyword, ValueRef::Text(text)) => {
            std::str::from_utf8(text).map(Value::from).map_err(|error| error.to_string())
        }
        (Kind::Json, ValueRef::Text(text)) => serde_json::from_slice(text).map_err(|error| error.to_string()),
        (kind, other) => Err(format!("{:?} where {} was declared", other.data_type(), kind.expected())),
    }
}
