//! `wait`: lets some time pass. It is the example of seed 003.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::handler::{Context, Handler, HandlerError};

/// A week: whoever means longer sets a run-at.
const MAX_MILLIS: u64 = 7 * 24 * 3_600 * 1_000;

pub struct Wait;

impl Wait {
    pub fn payload_schema() -> Value {
        json!({
            "type": "object",
            "required": ["millis"],
            "properties": {"millis": {"type": "integer", "minimum": 0, "maximum": MAX_MILLIS}},
            "additionalProperties": false,
        })
    }
}

/// JSON Schema takes `1e2` and `5.0` for integers, and so do we.
fn whole_number(value: &Value) -> Option<u64> {
    // Adding zero makes of a negative zero a plain one.
    let whole = || (value.as_f64().filter(|number| number.fract() == 0.0)? + 0.0).to_string().parse().ok();
    value.as_u64().or_else(whole)
}

#[async_trait]
impl Handler for Wait {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        let millis = job.payload.get("millis").and_then(whole_number);
        let millis = millis.ok_or_else(|| HandlerError::Failed("the payload has no millis".to_owned()))?;
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_millis(millis)) => {
                Ok(Map::from_iter([("waitedMillis".to_owned(), json!(millis))]))
            }
            () = job.cancelled.cancelled() => Err(HandlerError::Stopped),
        }
    }
}
