//! The job types of this installation: for each, the payloads it takes and the handler that runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::check::Invalid;
use rota_model::job::NewJob;
use serde_json::Value;

use crate::handler::Handler;
use crate::handlers::{Noop, Wait};
use crate::schema::Schema;

#[derive(Default)]
pub struct JobTypes {
    types: BTreeMap<String, JobType>,
    /// Types that other nodes run: their jobs are taken here, and wait for those nodes.
    foreign: BTreeMap<String, Schema>,
}

struct JobType {
    schema: Schema,
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

    /// What the handler of a type relies on; none if the type is not known here.
    pub(crate) fn schema(&self, name: &str) -> Option<&Schema> {
        let own = self.types.get(name).map(|job_type| &job_type.schema);
        own.or_else(|| self.foreign.get(name))
    }

    /// Every type that is known here, by name.
    pub(crate) fn known(&self) -> BTreeMap<&str, &Schema> {
        let own = self.types.iter().map(|(name, job_type)| (name.as_str(), &job_type.schema));
        let foreign = self.foreign.iter().map(|(name, schema)| (name.as_str(), schema));
        foreign.chain(own).collect()
    }

    /// Whether the type is known and takes this payload.
    pub fn check(&self, job: &NewJob) -> Result<(), Invalid> {
        match self.schema(&job.input.kind) {
            Some(schema) => schema.check(&job.input.payload),
            None => Err(self.unknown(&job.input.kind)),
        }
    }

    /// That nobody knows a type.
    pub(crate) fn unknown(&self, name: &str) -> Invalid {
        let known = self.known().into_keys().collect::<Vec<_>>().join(", ");
        Invalid::one(
            "/input/type",
            format!("no type '{name}' is known here; known are: {known}, and those that the domain defines"),
        )
    }
}

fn compiled(name: &str, schema: &Value) -> Result<Schema, Invalid> {
    let named = |Invalid(errors)| Invalid::one("/schema", format!("the type {name}: {}", Invalid(errors)));
    Schema::compile(schema).map_err(named)
}
