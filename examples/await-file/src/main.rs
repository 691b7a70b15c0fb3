//! Rota with one more job type, `await-file`: it waits for a file that somebody else puts into a folder, and says how large it
//! is. `docs/guides/handlers.md` shows this code, and explains it.

// guide: begin
use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rota::{Context, Handler, HandlerError, Level, Map, Program, Value, async_trait, json};

fn main() -> ExitCode {
    let folder = env::var_os("AWAIT_FILE_FOLDER").map_or_else(|| "inbox".into(), PathBuf::from);
    Program::new().job_type("await-file", AwaitFile::payload_schema(), AwaitFile { folder }).main()
}

struct AwaitFile {
    /// Files are looked for here and nowhere else, whatever a job says.
    folder: PathBuf,
}

impl AwaitFile {
    /// What a payload looks like. Every other is refused when the job is submitted.
    fn payload_schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
                "looks": {"type": "integer", "minimum": 1, "maximum": 1000},
            },
            "required": ["name", "looks"],
            "additionalProperties": false,
        })
    }
}

#[async_trait]
impl Handler for AwaitFile {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        let name = job.payload.get("name").and_then(Value::as_str).unwrap_or_default();
        let looks = job.payload.get("looks").and_then(Value::as_u64).unwrap_or_default();
        let file = self.folder.join(name);
        for look in 0..looks {
            job.progress(100.0 * look as f64 / looks as f64, format!("{name} is not there yet"));
            match tokio::fs::metadata(&file).await {
                Ok(found) if found.is_file() => {
                    job.log(Level::Info, format!("{name} is there, after {look} looks"));
                    return Ok(Map::from_iter([("bytes".to_owned(), found.len().into())]));
                }
                // Another attempt would find the same: there is none.
                Ok(_) => return Err(HandlerError::Fatal(format!("{name} is no file"))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(HandlerError::Failed(format!("{name}: {error}"))),
            }
            tokio::select! {
                () = job.cancelled.cancelled() => return Err(HandlerError::Stopped),
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
        // Tried again after the job's backoff, while attempts are left.
        Err(HandlerError::Failed(format!("{name} did not come")))
    }
}
// guide: end
