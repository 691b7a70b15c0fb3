//! The job types of this installation: for each, the payloads it takes and the handler that runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::Validator;
use rota_model::check::{Checker, Invalid};
use rota_model::job::NewJob;
use serde_json::Value;

use crate::handler::Handler;
use crate::handlers::{Noop, Wait};

/// How many faults of one payload are told at once.
const MAX_FAULTS: usize = 20;

#[derive(Default)]
pub struct JobTypes {
    types: BTreeMap<String, JobType>,
}

struct JobType {
    schema: Validator,
    handler: Arc<dyn Handler>,
}

impl JobTypes {
    /// The types that every node runs.
    pub fn built_in() -> Result<Self, Invalid> {
        let mut types = Self::default();
        types.add("wait", &Wait::payload_schema(), Arc::new(Wait))?;
        types.add("noop", &Noop::payload_schema(), Arc::new(Noop))?;
        Ok(types)
    }

    /// Adds a type, with the JSON Schema of its payload.
    pub fn add(&mut self, name: &str, schema: &Value, handler: Arc<dyn Handler>) -> Result<(), Invalid> {
        let schema = jsonschema::validator_for(schema).map_err(|error| {
            Invalid::one("/schema", format!("the schema of type {name} is no schema: {error}"))
        })?;
        self.types.insert(name.to_owned(), JobType { schema, handler });
        Ok(())
    }

    pub fn names(&self) -> Vec<String> {
        self.types.keys().cloned().collect()
    }

    pub fn handler(&self, name: &str) -> Option<Arc<dyn Handler>> {
        self.types.get(name).map(|job_type| Arc::clone(&job_type.handler))
    }

    /// Whether the type is known and takes this payload.
    pub fn check(&self, job: &NewJob) -> Result<(), Invalid> {
        let Some(job_type) = self.types.get(&job.input.kind) else {
            let known = self.names().join(", ");
            let detail = format!("no type '{}' is known here; known are: {known}", job.input.kind);
            return Err(Invalid::one("/input/type", detail));
        };
        let mut check = Checker::new();
        for fault in job_type.schema.iter_errors(&job.input.payload).take(MAX_FAULTS) {
            check.refuse(format!("/input/payload{}", fault.instance_path()), fault.to_string());
        }
        check.finish()
    }
}
