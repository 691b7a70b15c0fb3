//! What a node measures: how much it did, how long that took, and how full it is.
//!
//! **Measuring costs next to nothing and waits for nobody.** Whoever measures adds to a number in memory; there is no lock and
//! nothing is allocated. Threads add to numbers of their own ([`shards`]), so that those who measure the same thing at the same
//! time do not pull one cache line to and fro. Numbers only rise; whoever wants to know what happened since it last looked
//! subtracts what it read then.
//!
//! ```text
//!  desk ─────────┐                         ┌─▶ writer ─▶ every five seconds, into the bucket of all nodes
//!  processor ────┼─▶ numbers ─▶ reading ───┤
//!  store, beat ──┘                         └─▶ whoever asks: `/metrics`
//! ```
//!
//! - [`figures`]: what is measured, by name
//! - [`shards`]: the numbers
//! - [`spread`]: how latencies are sorted, and what can be said of them
//! - [`reading`]: all of it at one moment, and what came in between two
//! - [`measured`]: a store whose answers are timed
//! - [`writer`]: the task that stores it; [`board`]: what whoever looks is shown
//!
//! A meter is off unless a node is given one ([`crate::surroundings::Surroundings::measured_by`]).

pub mod board;
pub mod figures;
mod measured;
pub mod reading;
mod shards;
pub mod spread;
pub(crate) mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_model::keep::Keep;
use rota_store::Store;
use tokio::time::Instant;

pub use figures::{Count, Latency, Level};
pub use reading::Reading;

use measured::Measured;
use shards::Shards;

/// Where things are counted and timed. Clones are the same meter.
#[derive(Clone, Default)]
pub struct Meter(Option<Arc<Inner>>);

struct Inner {
    shards: Shards,
    levels: [AtomicU64; Level::ALL.len()],
    /// How long what is stored is kept.
    kept: Keep,
}

/// How long metrics are kept unless somebody decides otherwise.
pub const KEPT: Keep = Keep::For(Duration::from_secs(7 * 24 * 60 * 60));

/// When something began; nothing, if nobody wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Began(Option<Instant>);

impl Meter {
    /// One that measures. The default one does not.
    pub fn new() -> Self {
        Self::keeping(KEPT)
    }

    /// One that measures, whose buckets are kept for this long.
    pub fn keeping(kept: Keep) -> Self {
        Self(Some(Arc::new(Inner { shards: Shards::default(), levels: Default::default(), kept })))
    }

    /// How long buckets are kept; none if there are none.
    pub(crate) fn kept(&self) -> Option<Keep> {
        self.0.as_ref().map(|inner| inner.kept)
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub fn count(&self, what: Count, n: u64) {
        if let Some(inner) = &self.0 {
            inner.shards.count(what, n);
        }
    }

    /// Something took this long.
    pub fn record(&self, what: Latency, took: Duration) {
        if let Some(inner) = &self.0 {
            inner.shards.record(what, took);
        }
    }

    /// Says when something begins, for [`Meter::end`].
    pub fn begin(&self) -> Began {
        Began(self.is_on().then(Instant::now))
    }

    /// Something that began then is done.
    pub fn end(&self, what: Latency, began: Began) {
        if let Some(began) = began.0 {
            self.record(what, began.elapsed());
        }
    }

    /// How full something is, from now on.
    pub fn set(&self, what: Level, value: u64) {
        if let Some(level) = self.0.as_ref().and_then(|inner| inner.levels.get(what as usize)) {
            level.store(value, Ordering::Relaxed);
        }
    }

    /// The observer received a message that was this old.
    pub fn observer_received(&self, latency: Duration) {
        self.record(Latency::Observer, latency);
    }

    /// Everything that was measured until now; none if nothing is.
    pub fn reading(&self) -> Option<Reading> {
        let inner = self.0.as_ref()?;
        let level =
            |what: &Level| inner.levels.get(*what as usize).map_or(0, |level| level.load(Ordering::Relaxed));
        Some(Reading { levels: Level::ALL.iter().map(level).collect(), ..inner.shards.read() })
    }

    /// The same, for whoever looks at each span of time once: the longest of each latency is that since it last did.
    fn take(&self) -> Option<Reading> {
        let reading = self.reading();
        if let Some(inner) = &self.0 {
            inner.shards.forget_longest();
        }
        reading
    }

    /// The same store, with its answers timed; as it is, if nobody wants to know.
    pub(crate) fn measure(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        if self.is_on() { Arc::new(Measured::new(store, self.clone())) } else { store }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_measure_at_the_same_time_is_all_there() {
        let meter = Meter::new();
        let measure = |meter: Meter| {
            for nth in 0..10_000 {
                meter.count(Count::Claims, 2);
                meter.record(Latency::RunTime, Duration::from_micros(nth));
            }
        };
        let threads: Vec<_> = (0..12)
            .map(|_| {
                let meter = meter.clone();
                std::thread::spawn(move || measure(meter))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let reading = meter.reading().unwrap();
        assert_eq!(reading.count(Count::Claims), 12 * 20_000);
        let spread = reading.latency(Latency::RunTime);
        assert_eq!((spread.count(), spread.max()), (12 * 10_000, Duration::from_micros(9_999)));
        assert_eq!(spread.sum(), Duration::from_micros(12 * 9_999 * 5_000));
    }

    #[test]
    fn metrics_are_kept_for_as_long_as_their_collection_declares() {
        use rota_store::collection::{METRICS, Retention};
        assert!(matches!(METRICS.kept, Retention::For { span, .. } if KEPT.span() == Some(span)));
    }

    #[test]
    fn a_meter_that_is_off_measures_nothing() {
        let meter = Meter::default();
        meter.count(Count::Claims, 1);
        meter.end(Latency::RunTime, meter.begin());
        meter.set(Level::Running, 3);
        assert!(meter.reading().is_none() && !meter.is_on());
    }
}
