//! The numbers, several times: a thread adds to those that are its own, most likely, and whoever reads adds them up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::figures::{Count, Latency};
use super::reading::Reading;
use super::spread::{BOXES, Spread, place};

/// A few more than most machines have cores that work for us.
const SHARDS: usize = 8;

/// The next thread's.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OURS: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
}

pub(super) struct Shards(Box<[Shard]>);

/// As far apart as two cache lines, since processors fetch these in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Shard {
    counts: [AtomicU64; Count::ALL.len()],
    latencies: [Latencies; Latency::ALL.len()],
}

struct Latencies {
    boxes: [AtomicU64; BOXES],
    sum_us: AtomicU64,
    /// Since it was last taken.
    max_ns: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Self {
        let boxes = std::array::from_fn(|_| AtomicU64::default());
        Self { boxes, sum_us: AtomicU64::default(), max_ns: AtomicU64::default() }
    }
}

impl Default for Shards {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Shard::default()).collect())
    }
}

impl Shards {
    pub(super) fn count(&self, what: Count, n: u64) {
        if let Some(count) = self.ours().and_then(|shard| shard.counts.get(what as usize)) {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(super) fn record(&self, what: Latency, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let Some(latencies) = self.ours().and_then(|shard| shard.latencies.get(what as usize)) else {
            return;
        };
        if let Some(one) = latencies.boxes.get(place(nanos)) {
            one.fetch_add(1, Ordering::Relaxed);
        }
        latencies.sum_us.fetch_add(nanos.saturating_add(500) / 1_000, Ordering::Relaxed);
        // Most are not the longest: looking is cheaper than writing.
        if latencies.max_ns.load(Ordering::Relaxed) < nanos {
            latencies.max_ns.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    fn ours(&self) -> Option<&Shard> {
        self.0.get(OURS.get())
    }

    pub(super) fn read(&self) -> Reading {
        let count =
            |what: &Count| self.0.iter().filter_map(|shard| shard.counts.get(*what as usize)).map(load).sum();
        let latency = |what: &Latency| {
            let mut spread = Spread::default();
            for latencies in self.0.iter().filter_map(|shard| shard.latencies.get(*what as usize)) {
                latencies.add_to(&mut spread);
            }
            spread
        };
        Reading {
            counts: Count::ALL.iter().map(count).collect(),
            latencies: Latency::ALL.iter().map(latency).collect(),
            levels: Vec::new(),
        }
    }
}

impl Latencies {
    fn add_to(&self, spread: &mut Spread) {
        for (sum, one) in spread.boxes.iter_mut().zip(&self.boxes) {
            *sum += load(one);
        }
        spread.sum_us = spread.sum_us.wrapping_add(load(&self.sum_us));
        spread.max_ns = spread.max_ns.max(load(&self.max_ns));
    }
}

fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}
