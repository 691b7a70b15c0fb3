//! Where a list goes on: the sort key of the last document that was shown. A cursor names the collection and order it
//! belongs to, so that one from elsewhere is refused instead of giving a wrong page.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::collection::Collection;
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
    /// Behind this document.
    pub fn behind(document: &Document, collection: &'static Collection, order: Order) -> Self {
        let fields = order.fields.iter().filter_map(|path| collection.field(path));
        let mut key: Vec<Value> =
            fields.map(|field| field.get(&document.body).cloned().unwrap_or(Value::Null)).collect();
        key.push(Value::String(document.id.clone()));
        Self { belongs_to: home(collection, order), key }
    }

    /// Behind this id, in a list by id.
    pub fn behind_id(id: &str, collection: &'static Collection) -> Self {
        Self { belongs_to: home(collection, Order::BY_ID), key: vec![Value::String(id.to_owned())] }
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
        let fits = self.belongs_to == home(query.collection, query.order)
            && self.key.len() == query.order.fields.len() + 1
            && self.key.iter().all(|value| value.is_string() || value.is_i64() || value.is_null());
        if fits { Ok(()) } else { Err(StoreError::refused("read the cursor", "it belongs to another list")) }
    }
}

fn home(collection: &Collection, order: Order) -> String {
    let direction = if order.descending { "-" } else { "+" };
    format!("{}{direction}{}", collection.name, order.fields.join(","))
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}
