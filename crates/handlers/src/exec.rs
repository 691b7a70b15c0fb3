//! `exec`: runs a program that the operator named, and tells what it said.
//!
//! - [`settings`]: which programs there are
//! - [`payload`]: what a job asks for, read into an [`payload::Order`]
//! - [`group`]: the process group that a program runs in, and its end
//! - [`output`]: what a program says, line by line to the log, and its end for the result
//!
//! **No process of a job outlives it.** A program and whatever it starts are one process group, which ends with the run:
//! when the program ends, when the job is cancelled, when the future is dropped, and when the node dies. Only what leaves the
//! group by itself (`setsid`) is out of reach.

mod group;
mod output;
mod payload;
mod settings;

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_model::log::Level;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use settings::{ExecSettings, NoProgram};

use crate::exec::group::Group;
use crate::exec::output::{Kept, listen};
use crate::exec::payload::Order;

/// How long a program may take to end once it was asked to.
const TERM: Duration = Duration::from_secs(2);
/// How long is listened after the end of the group. Only what left the group can hold the line longer.
const DRAIN: Duration = Duration::from_secs(1);
/// How much of the last words is told with an error, in characters.
const MAX_TOLD: usize = 300;

/// Runs jobs of the type `exec`.
pub struct Exec {
    settings: ExecSettings,
}

impl Exec {
    pub fn new(settings: ExecSettings) -> Self {
        Self { settings }
    }

    pub fn payload_schema() -> Value {
        payload::schema()
    }
}

#[async_trait]
impl Handler for Exec {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        let order = Order::read(&job.payload, &self.settings).map_err(HandlerError::Fatal)?;
        let began = Instant::now();
        let group = Group::new()?;
        let mut child = group.start(&order, &job)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut said = Said::default();
        let over = CancellationToken::new();
        let ending = async {
            let ended = end(&mut child, &group, &job).await;
            group.kill();
            over.cancel();
            ended
        };
        let talking = async {
            tokio::join!(
                listen(stdout, &mut said.stdout, |line| job.log(Level::Info, line)),
                listen(stderr, &mut said.stderr, |line| job.log(Level::Warn, line)),
                tell(stdin, order.stdin.as_deref()),
            )
        };
        let talking = async {
            tokio::select! {
                _ = talking => {}
                () = async { over.cancelled().await; sleep(DRAIN).await } => {}
            }
        };
        let (ended, ()) = tokio::join!(ending, talking);
        judge(&order, ended?, said, began.elapsed())
    }
}

/// What a program said, on either line.
#[derive(Default)]
struct Said {
    stdout: Kept,
    stderr: Kept,
}

/// Waits for the end of the program, and asks for it when the job is cancelled.
async fn end(child: &mut Child, group: &Group, job: &Context) -> Result<ExitStatus, HandlerError> {
    tokio::select! {
        biased;
        ended = child.wait() => {
            ended.map_err(|error| HandlerError::Failed(format!("how it ended cannot be told: {error}")))
        }
        () = job.cancelled.cancelled() => {
            group.terminate();
            let _ = timeout(TERM, child.wait()).await;
            Err(HandlerError::Stopped)
        }
    }
}

/// A program need not listen to what it is told.
async fn tell(stdin: Option<ChildStdin>, text: Option<&str>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text) {
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

fn judge(
    order: &Order,
    ended: ExitStatus,
    said: Said,
    took: Duration,
) -> Result<Map<String, Value>, HandlerError> {
    let Said { stdout, stderr } = said;
    let truncated = stdout.truncated || stderr.truncated;
    let (stdout, stderr) = (stdout.text(), stderr.text());
    if !ended.success() {
        let how = match (ended.code(), ended.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "did not end in order".to_owned(),
        };
        return Err(HandlerError::Failed(format!("{} {how}{}", order.name, last_words(&stderr))));
    }
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let result = [
        ("exitCode", json!(0)),
        ("stdout", json!(stdout)),
        ("stderr", json!(stderr)),
        ("tookMillis", json!(took)),
        ("truncated", json!(truncated)),
    ];
    Ok(result.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What it complained of in the end, for the error.
fn last_words(stderr: &str) -> String {
    let line = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.trim().chars().filter(|c| !c.is_control()).take(MAX_TOLD).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
