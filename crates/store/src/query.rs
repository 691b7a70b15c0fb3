//! What can be asked of a store: declared fields, compared; one order; pages.

use rota_model::check;
use serde_json::{Map, Value};

use crate::StoreError;
use crate::collection::{Collection, Kind};
use crate::cursor::Cursor;
use crate::seam::Document;

/// The most documents a page may hold.
pub const MAX_LIMIT: usize = 1_000;

#[derive(Clone, Debug)]
pub struct Query {
    pub collection: &'static Collection,
    /// All of them hold.
    pub filters: Vec<Filter>,
    pub order: Order,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// Declared integer or keyword fields, all in one direction. The id is the last of them, unsaid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub fields: &'static [&'static str],
    pub descending: bool,
}

impl Order {
    pub const BY_ID: Order = Order { fields: &[], descending: false };
}

#[derive(Clone, Debug)]
pub enum Filter {
    /// The field has this value; one of its values, if it has several.
    Is(&'static str, Value),
    /// The field has one of these values.
    In(&'static str, Vec<Value>),
    /// The integer field is this or more.
    AtLeast(&'static str, i64),
    /// The integer field is this or less.
    AtMost(&'static str, i64),
}

impl Filter {
    pub fn path(&self) -> &'static str {
        match self {
            Filter::Is(path, _)
            | Filter::In(path, _)
            | Filter::AtLeast(path, _)
            | Filter::AtMost(path, _) => path,
        }
    }

    /// Whether a document matches.
    pub fn holds(&self, collection: &Collection, body: &Map<String, Value>) -> bool {
        let held = collection.field(self.path()).and_then(|field| field.get(body));
        match self {
            Filter::Is(_, wanted) => held.is_some_and(|held| is(held, wanted)),
            Filter::In(_, wanted) => held.is_some_and(|held| wanted.iter().any(|one| is(held, one))),
            Filter::AtLeast(_, least) => held.and_then(Value::as_i64).is_some_and(|held| held >= *least),
            Filter::AtMost(_, most) => held.and_then(Value::as_i64).is_some_and(|held| held <= *most),
        }
    }
}

fn is(held: &Value, wanted: &Value) -> bool {
    held.as_array().map_or(held == wanted, |several| several.contains(wanted))
}

impl Query {
    pub fn new(collection: &'static Collection, order: Order) -> Self {
        Self { collection, filters: Vec::new(), order, limit: MAX_LIMIT, after: None }
    }

    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Refuses what no store could answer.
    pub fn check(&self) -> Result<(), StoreError> {
        let refuse = |why: String| Err(StoreError::refused(format!("find in {}", self.collection.name), why));
        for filter in &self.filters {
            let Some(field) = self.collection.field(filter.path()) else {
                return refuse(format!("{} is not a declared field", filter.path()));
            };
            let ranged = matches!(filter, Filter::AtLeast(..) | Filter::AtMost(..));
            if field.kind == Kind::Json || (ranged && field.kind != Kind::Integer) {
                return refuse(format!("{} cannot be asked for like this", filter.path()));
            }
        }
        for path in self.order.fields {
            let kind = self.collection.field(path).map(|field| field.kind);
            if !matches!(kind, Some(Kind::Integer | Kind::Keyword)) {
                return refuse(format!("{path} gives no order"));
            }
        }
        if !(1..=MAX_LIMIT).contains(&self.limit) {
            return refuse(format!("a page holds 1 to {MAX_LIMIT} documents"));
        }
        Ok(())
    }
}

/// Some of the documents that match.
#[derive(Clone, Debug)]
pub struct Page {
    pub documents: Vec<Document>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
}

/// Checks the fields of a change or a claim against the declaration.
pub fn check_set(collection: &Collection, fields: &[(&'static str, Value)]) -> Result<(), StoreError> {
    for (path, value) in fields {
        let what = format!("change {} of {}", check::escape(path), collection.name);
        let Some(field) = collection.field(path).filter(|field| field.changes) else {
            return Err(StoreError::refused(what, "is not declared to change"));
        };
        if !fits(field.kind, value) {
            return Err(StoreError::refused(what, format!("must be {:?}", field.kind)));
        }
    }
    Ok(())
}

/// Whether a value may stand in a field of this kind. Null is absence, and may stand anywhere.
pub fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        _ if value.is_null() => true,
        Kind::Keyword => value.is_string(),
        Kind::Keywords => value.as_array().is_some_and(|several| several.iter().all(Value::is_string)),
        Kind::Integer => value.is_i64(),
        Kind::Json => true,
    }
}

/// Checks the declared fields of a whole document.
pub fn check_body(collection: &Collection, body: &Map<String, Value>) -> Result<(), StoreError> {
    for field in collection.fields {
        if field.get(body).is_some_and(|value| !fits(field.kind, value)) {
            let what = format!("write to {}", collection.name);
            return Err(StoreError::refused(what, format!("{} must be {:?}", field.path, field.kind)));
        }
    }
    Ok(())
}
