//! How long to wait between two attempts at the same work.
//!
//! The wait grows by a factor up to a limit, and is shortened by chance, which is an argument: jobs that failed together
//! do not all come back together.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};

/// The longest wait between two attempts, in milliseconds: a week.
pub const MAX_DELAY_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
pub const MAX_FACTOR: u32 = 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// Before the second attempt.
    #[schema(example = 1_000, maximum = 604_800_000)]
    pub delay_ms: u64,
    /// Each further wait is this many times the one before; 1 keeps it constant.
    #[serde(default = "double")]
    #[schema(minimum = 1, maximum = 10)]
    pub factor: u32,
    /// No wait is longer.
    #[serde(default = "an_hour")]
    #[schema(maximum = 604_800_000)]
    pub max_delay_ms: u64,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

fn double() -> u32 {
    2
}

fn an_hour() -> u64 {
    60 * 60 * 1_000
}

/// A second, doubled each time, up to an hour.
impl Default for Backoff {
    fn default() -> Self {
        Self { delay_ms: 1_000, factor: double(), max_delay_ms: an_hour(), extra: Extra::new() }
    }
}

impl Backoff {
    /// The wait after an attempt failed; attempts count from 1.
    pub fn after(&self, attempt: u32) -> Duration {
        let grown = u64::from(self.factor).saturating_pow(attempt.saturating_sub(1));
        Duration::from_millis(self.delay_ms.saturating_mul(grown).min(self.max_delay_ms))
    }

    /// The same, shortened by up to a quarter: `chance` is from 0 to 1.
    pub fn spread(&self, attempt: u32, chance: f64) -> Duration {
        self.after(attempt).mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0)
    }

    /// Checks the limits of a backoff that stands at `pointer`.
    pub fn check(&self, pointer: &str) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.range(&format!("{pointer}/delayMs"), self.delay_ms, 0..=MAX_DELAY_MS);
        check.range(&format!("{pointer}/factor"), self.factor, 1..=MAX_FACTOR);
        check.range(&format!("{pointer}/maxDelayMs"), self.max_delay_ms, 0..=MAX_DELAY_MS);
        check.extra(pointer, &self.extra);
        check.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_their_limit() {
        let backoff = Backoff { delay_ms: 100, factor: 3, max_delay_ms: 1_000, ..Backoff::default() };
        let waits: Vec<_> = (1..=4).map(|attempt| backoff.after(attempt).as_millis()).collect();
        assert_eq!(waits, [100, 300, 900, 1_000]);
        assert_eq!(Backoff::default().after(u32::MAX), Duration::from_secs(3_600));
    }
}
