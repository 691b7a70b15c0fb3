//! What a `main` does: read the command line, run the command, end with a code for scripts and a sentence for people.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rota_engine::handler::Handler;
use rota_engine::types::JobTypes;
use rota_model::check::Invalid;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::{commands, output};

/// What is still under way when a command is done is not waited for much longer.
const LEFTOVERS: Duration = Duration::from_millis(50);

/// Rota, with the job types that it comes with and those that are added here.
#[derive(Default)]
pub struct Program {
    types: OwnTypes,
}

impl Program {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job type that `up` runs, with the JSON Schema of its payload.
    #[must_use]
    pub fn job_type(mut self, name: &str, schema: Value, handler: impl Handler) -> Self {
        self.types.0.push((name.to_owned(), schema, Arc::new(handler)));
        self
    }

    /// Does what the command line says. What it returns is for `main` to return.
    pub fn main(self) -> ExitCode {
        let done = Runtime::new()
            .map_err(|error| Failure::new(Exit::Unreachable, error.to_string()))
            .and_then(|runtime| {
                let done = runtime.block_on(commands::run(Cli::read(std::env::args_os()), self.types));
                runtime.shutdown_timeout(LEFTOVERS);
                done
            });
        match done {
            Ok(()) => Exit::Done.into(),
            Err(failure) => {
                output::complain(&failure);
                failure.exit.into()
            }
        }
    }
}

/// Types that do not come with Rota.
#[derive(Default)]
pub(crate) struct OwnTypes(Vec<(String, Value, Arc<dyn Handler>)>);

impl OwnTypes {
    /// Adds them to the others. None may take the place of another: who submitted jobs to that one would be surprised.
    pub(crate) fn add_to(self, types: &mut JobTypes) -> Result<(), Invalid> {
        for (name, schema, handler) in self.0 {
            if types.handler(&name).is_some() {
                return Err(Invalid::one("/type", format!("there are two job types '{name}': rename one")));
            }
            types.add(&name, &schema, handler)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rota_engine::handlers::Noop;
    use serde_json::json;

    use super::*;

    fn refusal(program: Program) -> String {
        program.types.add_to(&mut JobTypes::built_in().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_type_takes_nobodys_place_and_has_a_schema() {
        assert!(refusal(Program::new().job_type("wait", json!({}), Noop)).contains("two job types 'wait'"));
        let twice = Program::new().job_type("own", json!({}), Noop).job_type("own", json!({}), Noop);
        assert!(refusal(twice).contains("two job types 'own'"));
        let no_schema = Program::new().job_type("own", json!({"type": "thing"}), Noop);
        assert!(refusal(no_schema).contains("own"));
    }
}
