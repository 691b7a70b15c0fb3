//! Numbers for new jobs, taken from the store in blocks: one write serves a thousand submissions. What is left of a
//! block when a node stops is a gap, and gaps are allowed.

use std::ops::Range;

use rota_store::StoreError;
use rota_store::jobs::Jobs;
use tokio::sync::Mutex;

const BLOCK: u64 = 1_000;

pub(crate) struct Numbers {
    jobs: Jobs,
    block: Mutex<Range<u64>>,
}

impl Numbers {
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self { jobs, block: Mutex::new(0..0) }
    }

    pub(crate) async fn next(&self) -> Result<u64, StoreError> {
        let mut block = self.block.lock().await;
        if let Some(number) = block.next() {
            return Ok(number);
        }
        *block = self.jobs.numbers(BLOCK).await?;
        block.next().ok_or_else(|| StoreError::unavailable("take numbers", "the store gave none"))
    }
}
