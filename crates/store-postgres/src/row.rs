//! A document as columns and a body, and back. Fields that change stand in columns only; fixed declared fields stand in
//! both.

use rota_store::StoreError;
use rota_store::collection::{Collection, Field, Kind, Reach, Walker, millis, take_at, value_at};
use rota_store::seam::{Body, Document, Fields, Key, Version};
use serde_json::Value;
use tokio_postgres::Row as SqlRow;

use crate::value::{Json, Kept};

/// What stands in one column.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Int(i64),
    Json(Json),
}

/// A document that is about to be written.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) body: Json,
    /// One for each declared field, in their order.
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    /// What changes on its own is taken out of the body.
    pub(crate) fn of(collection: &Collection, mut body: Body, walker: &mut Walker) -> Self {
        let mut cells = vec![Cell::Null; collection.fields.len()];
        let mut changing = Vec::new();
        for (place, (name, value)) in body.iter_mut().enumerate() {
            let Some(member) = walker.member(place, name) else { continue };
            let below = member.below.iter().map(|(rest, nth)| (Some(*rest), *nth));
            for (rest, nth) in member.itself.map(|nth| (None, nth)).into_iter().chain(below) {
                let Some((field, cell)) = collection.fields.get(nth).zip(cells.get_mut(nth)) else {
                    continue;
                };
                *cell = cell_at(field, value, rest);
                if field.changes && rest.is_none() {
                    changing.push(field);
                }
            }
        }
        changing.into_iter().for_each(|field| drop(field.take(&mut body)));
        Self { body: Json::of(&body), cells }
    }
}

/// The cell of a field in a member of the document; what changes on its own and stands below it is taken out.
fn cell_at(field: &Field, value: &mut Value, rest: Option<&str>) -> Cell {
    match (rest, value) {
        (None, value) => cell_of(field.kind, value),
        (Some(rest), Value::Object(parent)) if field.changes => {
            take_at(parent, rest).map_or(Cell::Null, |value| cell_of(field.kind, &value))
        }
        (Some(rest), Value::Object(parent)) => {
            value_at(parent, rest).map_or(Cell::Null, |value| cell_of(field.kind, value))
        }
        (Some(_), _) => Cell::Null,
    }
}

/// The cells that a change sets, by the place of the field among the declared ones, in their order.
pub(crate) fn cells_of(collection: &Collection, fields: &Fields) -> Vec<(usize, Cell)> {
    let place = |path: &str| collection.fields.iter().position(|field| field.path == path);
    let cell = |(path, value): &(&str, Value)| {
        let nth = place(path)?;
        Some((nth, cell_of(collection.fields.get(nth)?.kind, value)))
    };
    let mut cells: Vec<_> = fields.iter().filter_map(cell).collect();
    cells.sort_by_key(|(nth, _)| *nth);
    cells
}

fn cell_of(kind: Kind, value: &Value) -> Cell {
    match (kind, value) {
        (_, Value::Null) => Cell::Null,
        (Kind::Json, value) => Cell::Json(Json::of(value)),
        (Kind::Date, value) => millis(value).map_or(Cell::Null, Cell::Int),
        (Kind::Keywords, Value::Array(several)) if several.is_empty() => Cell::Null,
        (Kind::Keywords, Value::Array(several)) => Cell::Text(array_of(several)),
        (_, Value::String(text)) => Cell::Text(text.clone()),
        (_, value) => value.as_i64().map_or(Cell::Null, Cell::Int),
    }
}

/// Several texts as the server spells an array: rows have different numbers of them, which no array of arrays can hold.
fn array_of(several: &[Value]) -> String {
    let texts = several.iter().filter_map(Value::as_str);
    let quoted = texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

fn damaged(collection: &Collection) -> impl Fn(String) -> StoreError {
    let what = format!("read from {}", collection.name);
    move |why| StoreError::damaged(what.clone(), why)
}

/// The key of a row whose columns from `first` on are those of [`crate::names::key`].
pub(crate) fn key_in(
    collection: &'static Collection,
    row: &SqlRow,
    first: usize,
) -> Result<(Key, Version), StoreError> {
    let damaged = damaged(collection);
    let version: i64 = row.try_get(first).map_err(|error| damaged(error.to_string()))?;
    let id: String = row.try_get(first + 1).map_err(|error| damaged(error.to_string()))?;
    let domain = match collection.reach {
        Reach::Installation => None,
        Reach::Domain => {
            let name: String = row.try_get(first + 2).map_err(|error| damaged(error.to_string()))?;
            Some(name.parse().map_err(|error| damaged(format!("{error}")))?)
        }
    };
    Ok((Key { collection, domain, id }, Version(version.unsigned_abs())))
}

/// The document in a row whose columns from `first` on are those of [`crate::names::document`], and about how long it is. A
/// part that cannot be read is told to the operator and left out: whoever needs it finds the document incomplete.
pub(crate) fn document_in(
    collection: &'static Collection,
    row: &SqlRow,
    first: usize,
) -> Result<(Document, usize), StoreError> {
    let read = read_in(collection, row, first, collection.changing())?;
    let bytes = read.bytes;
    Ok((read.told(), bytes))
}

/// A document that was just changed: what it was changed to is known, and stands in no column of the answer.
pub(crate) fn changed_in(
    collection: &'static Collection,
    row: &SqlRow,
    change: &[(&'static Field, Value)],
) -> Result<Document, StoreError> {
    let mut document = read_in(collection, row, 0, unchanged(collection, change))?.told();
    change.iter().for_each(|(field, value)| field.set(&mut document.body, value.clone()));
    Ok(document)
}

/// The changing fields that a change leaves as they are.
pub(crate) fn unchanged(
    collection: &'static Collection,
    change: &[(&'static Field, Value)],
) -> impl Iterator<Item = &'static Field> {
    let is_set = |field: &Field| change.iter().any(|(set, _)| set.path == field.path);
    collection.changing().filter(move |field| !is_set(field))
}

/// The same, unless a part of it cannot be read.
pub(crate) fn whole_in(
    collection: &'static Collection,
    row: &SqlRow,
    first: usize,
) -> Result<(Document, usize), StoreError> {
    let Read { document, bytes, unreadable } = read_in(collection, row, first, collection.changing())?;
    match unreadable.first() {
        None => Ok((document, bytes)),
        Some((part, why)) => {
            let why = format!("its {part} cannot be read ({why})");
            Err(StoreError::damaged(format!("read {}", document.key), why))
        }
    }
}

/// A document as far as it can be read.
struct Read {
    document: Document,
    /// About how long it is.
    bytes: usize,
    /// Each part that cannot be read, with the reason.
    unreadable: Vec<(&'static str, String)>,
}

impl Read {
    /// The document; what of it cannot be read is told to the operator.
    fn told(self) -> Document {
        for (part, why) in self.unreadable {
            tracing::error!(key = %self.document.key, part, why, "damaged");
        }
        self.document
    }
}

fn read_in(
    collection: &'static Collection,
    row: &SqlRow,
    first: usize,
    changing: impl Iterator<Item = &'static Field>,
) -> Result<Read, StoreError> {
    let (key, version) = key_in(collection, row, first)?;
    let (mut bytes, mut unreadable) = (0, Vec::new());
    let mut body = match object_in(row, first + 3) {
        Ok((body, length)) => {
            bytes += length;
            body
        }
        Err(why) => {
            unreadable.push(("body", why));
            Body::new()
        }
    };
    for (nth, field) in (first + 4..).zip(changing) {
        match value_in(field.kind, row, nth) {
            Ok((Value::Null, _)) => {}
            Ok((value, length)) => {
                bytes += length;
                field.set(&mut body, value);
            }
            Err(why) => unreadable.push((field.path, why)),
        }
    }
    Ok(Read { document: Document { key, version, body }, bytes, unreadable })
}

fn object_in(row: &SqlRow, nth: usize) -> Result<(Body, usize), String> {
    match json_in(row, nth)? {
        (Value::Object(body), length) => Ok((body, length)),
        _ => Err("it is not an object".to_owned()),
    }
}

fn json_in(row: &SqlRow, nth: usize) -> Result<(Value, usize), String> {
    let kept: Option<Kept<'_>> = row.try_get(nth).map_err(|error| error.to_string())?;
    let Some(kept) = kept else { return Ok((Value::Null, 0)) };
    Ok((kept.value().map_err(|error| error.to_string())?, kept.len()))
}

/// What a column means, and how long it is where that may be much.
fn value_in(kind: Kind, row: &SqlRow, nth: usize) -> Result<(Value, usize), String> {
    match kind {
        Kind::Json => json_in(row, nth),
        Kind::Keyword | Kind::Integer | Kind::Date => sorted_in(kind, row, nth).map(|value| (value, 0)),
        Kind::Keywords => Err("several texts do not change on their own".to_owned()),
    }
}

/// A keyword, an integer or a date as it stands in a column.
pub(crate) fn sorted_in(kind: Kind, row: &SqlRow, nth: usize) -> Result<Value, String> {
    let failed = |error: tokio_postgres::Error| error.to_string();
    Ok(match kind {
        Kind::Integer | Kind::Date => row.try_get::<_, Option<i64>>(nth).map_err(failed)?.map(Value::from),
        _ => row.try_get::<_, Option<String>>(nth).map_err(failed)?.map(Value::from),
    }
    .unwrap_or_default())
}
