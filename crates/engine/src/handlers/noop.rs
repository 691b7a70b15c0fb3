//! `noop`: does nothing, for measuring.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::handler::{Context, Handler, HandlerError};

pub struct Noop;

impl Noop {
    pub fn payload_schema() -> Value {
        json!({"type": "object"})
    }
}

#[async_trait]
impl Handler for Noop {
    async fn run(&self, _: Context) -> Result<Map<String, Value>, HandlerError> {
        Ok(Map::new())
    }
}
