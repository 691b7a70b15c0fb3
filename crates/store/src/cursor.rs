//! Where a list goes on: the sort key of the last document that was shown. A cursor names the collection and order it
//! belongs to, so that one from elsewhere is refused instead of giving a wrong page.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::collection::{Collection, Kind};
use crate::query::{Order, Query};
use crate::seam::Document;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    #[serde(rename = "c")]
    belongs_to: String,
    /// The values of the order's fields, then the id.
    #[serde(rename = "k")]
    pub key: Vec<Value>,
}

impl Cursor {
    /// Behind this document, in the list that a query makes.
    pub fn behind(document: &Document, query: &Query) -> Self {
        Self::behind_key(query.sort_key(document), query)
    }

    /// Behind whatever is sorted by this key, in the list that a query makes.
    pub fn behind_key(key: Vec<Value>, query: &Query) -> Self {
        Self { belongs_to: home(query), key }
    }

    /// Behind this id, in a list by id.
    pub fn behind_id(id: &str, collection: &'static Collection) -> Self {
        let query = Query::new(collection, Order::BY_ID);
        Self { belongs_to: home(&query), key: vec![Value::String(id.to_owned())] }
    }

    /// The id it stands behind, in a list by id.
    pub fn id_in(&self, collection: &'static Collection) -> Result<&str, StoreError> {
        self.check(&Query::new(collection, Order::BY_ID))?;
        Ok(self.key.first().and_then(Value::as_str).unwrap_or_default())
    }

    /// Reads what a user sends back.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let refused = || StoreError::refused("read the cursor", "it is not one that Rota gave");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        serde_json::from_slice(&bytes).map_err(|_| refused())
    }

    /// Refuses a cursor of another list.
    pub fn check(&self, query: &Query) -> Result<(), StoreError> {
        let length = query.order.fields.len() + 1 + usize::from(query.is_over_all_domains());
        let fits = self.belongs_to == home(query)
            && self.key.len() == length
            && self.key.iter().enumerate().all(|(nth, value)| fits(query, nth, value));
        if fits { Ok(()) } else { Err(StoreError::refused("read the cursor", "it belongs to another list")) }
    }
}

/// Whether a value can stand in this place of the key of a list.
fn fits(query: &Query, nth: usize, value: &Value) -> bool {
    let is_text = value.as_str().is_some_and(|text| !text.contains('\0'));
    match query.order.fields.get(nth).and_then(|path| query.collection.field(path)) {
        Some(field) if field.kind == Kind::Keyword => is_text || value.is_null(),
        Some(_) => value.is_i64() || value.is_null(),
        None => is_text,
    }
}

/// What a list is called: collection, domain, direction, order.
fn home(query: &Query) -> String {
    let direction = if query.order.descending { "-" } else { "+" };
    let domain = match &query.domain {
        Some(domain) => format!("-{domain}"),
        None if query.is_over_all_domains() => "-*".to_owned(),
        None => String::new(),
    };
    format!("{}{domain}{direction}{}", query.collection.name, query.order.fields.join(","))
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}
