//! What runs a job. A handler sees its job and nothing else: no store, no clock, no other job.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use rota_model::trace::TraceParent;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a handler is given.
#[derive(Clone)]
pub struct Context {
    pub job_id: JobId,
    pub domain: Domain,
    /// Checked against the schema of the type.
    pub payload: Map<String, Value>,
    /// Rises with every claim: what the handler writes elsewhere can be fenced by it.
    pub epoch: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Where the attempt stands in a trace, for what it calls; none if nobody said.
    pub traceparent: Option<TraceParent>,
    /// When the attempt is over, whether the handler is done or not; none if it may take as long as it needs.
    pub deadline: Option<Instant>,
    /// Ends when the job is no longer wanted from this handler. One that does not stop by itself is stopped.
    pub cancelled: CancellationToken,
    /// Where what the handler says goes.
    pub reports: Arc<dyn Reports>,
}

/// Hears what a handler says. Nodes have one; whoever tests a handler brings another.
pub trait Reports: Send + Sync {
    fn progress(&self, percent: f64, message: Option<String>);
    fn log(&self, level: Level, text: String);
}

impl Context {
    /// Says how far the job is, in percent, and what it is doing. Costs nothing to say often: the newest word counts, and is
    /// written now and then.
    pub fn progress(&self, percent: f64, message: impl Into<Option<String>>) {
        let percent = if percent.is_nan() { 0.0 } else { percent.clamp(0.0, 100.0) };
        self.reports.progress(percent, message.into());
    }

    pub fn log(&self, level: Level, text: impl Into<String>) {
        self.reports.log(level, text.into());
    }

    /// How long the attempt may still take.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// Why a handler did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// It may well succeed another time: tried again after the job's backoff, while attempts are left.
    #[error("{0}")]
    Failed(String),
    /// It would fail again: not tried again.
    #[error("{0}")]
    Fatal(String),
    /// Tried again at this instant, if an attempt is left.
    #[error("{why}")]
    RetryAt { at: UnixMillis, why: String },
    /// It was told to stop, and did.
    #[error("it was stopped")]
    Stopped,
}

/// Runs jobs of one type. It must not block its thread: others run on it, and a handler can only be stopped where it waits.
/// What blocks belongs on a thread of its own (`tokio::task::spawn_blocking`).
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs the job to its end; what is returned becomes its `result`.
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError>;
}
