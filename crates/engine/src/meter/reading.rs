//! Everything that was measured until one moment.

use super::figures::{Count, Latency, Level};
use super::spread::Spread;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub(super) counts: Vec<u64>,
    pub(super) latencies: Vec<Spread>,
    pub(super) levels: Vec<u64>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            counts: vec![0; Count::ALL.len()],
            latencies: vec![Spread::default(); Latency::ALL.len()],
            levels: vec![0; Level::ALL.len()],
        }
    }
}

impl Reading {
    pub fn count(&self, what: Count) -> u64 {
        self.counts.get(what as usize).copied().unwrap_or_default()
    }

    pub fn latency(&self, what: Latency) -> Spread {
        self.latencies.get(what as usize).cloned().unwrap_or_default()
    }

    pub fn level(&self, what: Level) -> u64 {
        self.levels.get(what as usize).copied().unwrap_or_default()
    }

    /// Jobs that ended, however.
    pub fn jobs_processed(&self) -> u64 {
        [Count::JobsSuccessful, Count::JobsFailed, Count::JobsInError]
            .into_iter()
            .map(|of| self.count(of))
            .sum()
    }

    /// What came since an earlier reading; levels are what they are.
    #[must_use]
    pub fn since(&self, before: &Reading) -> Reading {
        let counts = self.counts.iter().zip(&before.counts).map(|(now, before)| now.saturating_sub(*before));
        let latencies = self.latencies.iter().zip(&before.latencies).map(|(now, before)| now.since(before));
        Reading { counts: counts.collect(), latencies: latencies.collect(), levels: self.levels.clone() }
    }
}
