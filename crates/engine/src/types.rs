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
    /// Types that other nodes run: their jobs are taken here, and wait for those nodes.
    foreign: BTreeMap<String, Validator>,
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
        self.types.insert(name.to_owned(), JobType { schema: compiled(name, schema)?, handler });
        Ok(())
    }

    /// Adds a type that is not run here. Its jobs are taken all the same.
    pub fn add_foreign(&mut self, name: &str, schema: &Value) -> Result<(), Invalid> {
        self.foreign.insert(name.to_owned(), compiled(name, schema)?);
        Ok(())
    }

    pub(crate) fn foreign(&self) -> impl Iterator<Item = String> {
        self.foreign.keys().cloned()
    }

    /// The types that are run here.
    pub fn names(&self) -> Vec<String> {
        self.types.keys().cloned().collect()
    }

    pub fn handler(&self, name: &str) -> Option<Arc<dyn Handler>> {
        self.types.get(name).map(|job_type| Arc::clone(&job_type.handler))
    }

    /// Whether the type is known and takes this payload.
    pub fn check(&self, job: &NewJob) -> Result<(), Invalid> {
        let own = self.types.get(&job.input.kind).map(|job_type| &job_type.schema);
        let Some(schema) = own.or_else(|| self.foreign.get(&job.input.kind)) else {
            let known = self.names().into_iter().chain(self.foreign()).collect::<Vec<_>>().join(", ");
            let detail = format!("no type '{}' is known here; known are: {known}", job.input.kind);
            return Err(Invalid::one("/input/type", detail));
        };
        let mut check = Checker::new();
        for fault in schema.iter_errors(&job.input.payload).take(MAX_FAULTS) {
            check.refuse(format!("/input/payload{}", fault.instance_path()), fault.to_string());
        }
        check.finish()
    }
}

fn compiled(name: &str, schema: &Value) -> Result<Validator, Invalid> {
    jsonschema::validator_for(schema)
        .map_err(|error| Invalid::one("/schema", format!("the schema of type {name} is no schema: {error}")))
}
