//! The task that stores lines: after a moment, so that those said together are stored together, and sooner when many wait.

use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::LogId;
use rota_model::log::Log;
use rota_store::StoreError;
use rota_store::logs::Logs;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::buffer::BATCH_LINES;
use super::{Inner, Journal};
use crate::meter::Count;
use crate::patience::{Complaint, STORE_PAUSE, answered};

/// How long lines wait for company.
const GATHER: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Journal {
    /// Stores what is said until it is over; then what is left, and ends. Nothing to do if the journal is off.
    pub(crate) async fn write(self, logs: Logs, over: CancellationToken) {
        let Some(inner) = self.0 else { return };
        let writer = Writer { inner, logs };
        while !over.is_cancelled() {
            writer.gather(&over).await;
            writer.store_all(&over).await;
        }
    }
}

struct Writer {
    inner: Arc<Inner>,
    logs: Logs,
}

impl Writer {
    /// Until there is something to store, and a moment longer.
    async fn gather(&self, over: &CancellationToken) {
        let talk = async {
            self.inner.news.notified().await;
            tokio::select! {
                biased;
                () = self.inner.batch.notified() => {}
                () = sleep(GATHER) => {}
            }
        };
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = talk => {}
        }
    }

    /// Stores what waits. A rest that makes no batch waits for company, unless it is over.
    async fn store_all(&self, over: &CancellationToken) {
        let mut complaint = Complaint::default();
        loop {
            let batch = {
                let surroundings = &self.inner.surroundings;
                let mut buffer = self.inner.buffer();
                buffer.take(self.inner.origin, surroundings.now(), || surroundings.randomness())
            };
            let is_rest = batch.len() < BATCH_LINES;
            if batch.is_empty() {
                return;
            }
            self.store(batch, &mut complaint).await;
            if is_rest && !over.is_cancelled() && self.inner.buffer().is_empty() {
                return;
            }
        }
    }

    /// Hands a batch over, again and again under the same ids, until it is stored. What the store refuses for good is dropped
    /// and counted, each line on its own.
    async fn store(&self, batch: Vec<(LogId, Log)>, complaint: &mut Complaint) {
        let mut batches = vec![batch];
        while let Some(batch) = batches.pop() {
            match self.persist(&batch, complaint).await {
                Ok(()) => {}
                Err(error) => match batch.as_slice() {
                    [(id, log)] => {
                        tracing::error!(line = %id, %error, "a log line cannot be stored");
                        self.inner.buffer().drop_one(log);
                        self.inner.surroundings.meter().count(Count::LogLinesDropped, 1);
                    }
                    _ => batches.extend(batch.into_iter().rev().map(|line| vec![line])),
                },
            }
        }
    }

    async fn persist(&self, batch: &[(LogId, Log)], complaint: &mut Complaint) -> Result<(), StoreError> {
        let mut pause = STORE_PAUSE;
        loop {
            match answered("store log lines", self.logs.append(batch.to_vec())).await {
                Err(error) if error.is_passing() => {
                    // Not said in the journal itself: that would feed on itself.
                    if let Some(kept_back) = complaint.is_due() {
                        tracing::warn!(%error, kept_back, "log lines cannot be stored; trying again");
                    }
                }
                ended => return ended,
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
