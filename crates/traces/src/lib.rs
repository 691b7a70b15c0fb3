//! Spans out of the process, by OpenTelemetry: OTLP over HTTP, as protobuf.
//!
//! ```text
//!  whoever ends a span ──try_send──▶ queue of 8,192 ──▶ sender: up to 512 at a time ──▶ POST …/v1/traces
//!                         └── full: dropped, counted
//! ```
//!
//! Nobody waits for a collector: what the queue cannot hold is dropped, and so is what a collector does not take after some tries.
//! How much was lost is said in the log of the process, a line a minute at most. At the end, what is left is sent within a bound.
//!
//! - [`endpoint`]: where to
//! - [`otlp`]: spans as the collector reads them
//! - [`sender`]: gathering, sending, trying again; [`post`]: one request, by http or https

pub mod endpoint;
mod otlp;
mod post;
mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_engine::traces::{Span, SpanSink, Traces};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ClientConfig;
use tokio_util::sync::CancellationToken;

pub use endpoint::{Endpoint, NoEndpoint};
pub use otlp::Service;

/// How many spans wait to be sent at most.
const QUEUE: usize = 8_192;

/// Takes spans and has them sent, until it is finished.
pub struct Exporter {
    queue: Arc<Queue>,
    stop: CancellationToken,
    sending: JoinHandle<()>,
}

struct Queue {
    spans: mpsc::Sender<Span>,
    /// Those that nobody will see.
    lost: AtomicU64,
}

impl SpanSink for Queue {
    fn take(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Exporter {
    /// Begins to send what is told from now on. An endpoint that [is secure](Endpoint::is_secure) takes `tls`, which says who is
    /// believed.
    pub fn start(
        endpoint: Endpoint,
        service: &Service,
        tls: Option<ClientConfig>,
    ) -> Result<Self, NoEndpoint> {
        let (spans, queued) = mpsc::channel(QUEUE);
        let queue = Arc::new(Queue { spans, lost: AtomicU64::new(0) });
        let stop = CancellationToken::new();
        let sender = sender::Sender::new(endpoint, tls, otlp::resource(service), Arc::clone(&queue))?;
        let sending = tokio::spawn(sender.run(queued, stop.clone()));
        Ok(Self { queue, stop, sending })
    }

    /// Where spans are told.
    pub fn traces(&self) -> Traces {
        Traces::to(Arc::clone(&self.queue) as Arc<dyn SpanSink>)
    }

    /// Sends what is left, and takes no longer than this over it.
    pub async fn finish(self, patience: Duration) {
        self.stop.cancel();
        if tokio::time::timeout(patience, self.sending).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}
