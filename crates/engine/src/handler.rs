//! What runs a job. A handler sees its job and nothing else: no store, no clock, no other job.

use async_trait::async_trait;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// What a handler is given.
#[derive(Clone, Debug)]
pub struct Context {
    pub job_id: JobId,
    pub domain: Domain,
    /// Checked against the schema of the type.
    pub payload: Map<String, Value>,
    /// Rises with every claim: what the handler writes elsewhere can be fenced by it.
    pub epoch: u64,
    /// Ends when the job is no longer wanted from this handler.
    pub cancelled: CancellationToken,
}

/// Why a handler did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    #[error("{0}")]
    Failed(String),
    /// It was told to stop, and did.
    #[error("it was stopped")]
    Stopped,
}

#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs the job to its end; what is returned becomes its `result`.
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError>;
}
