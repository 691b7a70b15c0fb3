//! Numbers for new jobs, taken from the store in blocks: one write serves a thousand submissions. What is left of a
//! block when a node stops is a gap, and gaps are allowed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rota_store::StoreError;
use rota_store::jobs::Jobs;
use tokio::sync::{Mutex, MutexGuard};

use crate::patience::persevere;

const BLOCK: u64 = 1_000;

pub(crate) struct Numbers {
    jobs: Jobs,
    block: Mutex<Block>,
    /// How often the store gave none.
    failures: AtomicU64,
}

#[derive(Default)]
struct Block {
    left: Range<u64>,
    failed: Option<StoreError>,
}

impl Numbers {
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self { jobs, block: Mutex::default(), failures: AtomicU64::new(0) }
    }

    pub(crate) async fn next(&self) -> Result<u64, StoreError> {
        let mut block = self.block().await?;
        if let Some(number) = block.left.next() {
            return Ok(number);
        }
        self.fill(&mut block, BLOCK).await?;
        block.left.next().ok_or_else(none)
    }

    /// This many, rising.
    pub(crate) async fn take(&self, count: usize) -> Result<Vec<u64>, StoreError> {
        let mut block = self.block().await?;
        let mut numbers: Vec<u64> = block.left.by_ref().take(count).collect();
        let missing = (count - numbers.len()) as u64;
        if missing > 0 {
            self.fill(&mut block, missing + BLOCK).await?;
            numbers.extend(block.left.by_ref().take(count - numbers.len()));
        }
        if numbers.len() == count { Ok(numbers) } else { Err(none()) }
    }

    /// Whoever waited while another asked the store in vain need not ask it once more: many would wait for one another.
    async fn block(&self) -> Result<MutexGuard<'_, Block>, StoreError> {
        let before = self.failures.load(Ordering::Acquire);
        let mut block = self.block.lock().await;
        if self.failures.load(Ordering::Acquire) == before {
            block.failed = None;
        }
        block.failed.clone().map_or(Ok(block), Err)
    }

    /// A block whose answer was lost is a gap.
    async fn fill(&self, block: &mut Block, count: u64) -> Result<(), StoreError> {
        match persevere("take numbers", |_| self.jobs.numbers(count)).await {
            Ok(numbers) => {
                block.left = numbers;
                Ok(())
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::AcqRel);
                block.failed = Some(error.clone());
                Err(error)
            }
        }
    }
}

fn none() -> StoreError {
    StoreError::unavailable("take numbers", "the store gave none")
}
