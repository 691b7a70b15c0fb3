//! Numbers for new jobs, taken from the store in blocks: one write serves a thousand submissions. What is left of a
//! block when a node stops is a gap, and gaps are allowed.

use std::ops::Range;

use rota_store::StoreError;
use rota_store::jobs::Jobs;
use tokio::sync::Mutex;

use crate::patience::persevere;

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
        *block = self.fetch(BLOCK).await?;
        block.next().ok_or_else(none)
    }

    /// This many, rising.
    pub(crate) async fn take(&self, count: usize) -> Result<Vec<u64>, StoreError> {
        let mut block = self.block.lock().await;
        let mut numbers: Vec<u64> = block.by_ref().take(count).collect();
        let missing = (count - numbers.len()) as u64;
        if missing > 0 {
            *block = self.fetch(missing + BLOCK).await?;
            numbers.extend(block.by_ref().take(count - numbers.len()));
        }
        if numbers.len() == count { Ok(numbers) } else { Err(none()) }
    }

    /// A block whose answer was lost is a gap.
    async fn fetch(&self, count: u64) -> Result<Range<u64>, StoreError> {
        persevere("take numbers", |_| self.jobs.numbers(count)).await
    }
}

fn none() -> StoreError {
    StoreError::unavailable("take numbers", "the store gave none")
}
