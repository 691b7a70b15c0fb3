//! How latencies are sorted: into boxes whose bounds rise by about a quarter, ten to each power of ten (the series R10 of
//! preferred numbers). So every bound of the form 1, 2.5 or 5 times a power of ten is one of ours, and what was at most that
//! long is known exactly; a quantile is known to within a few percent.

use std::time::Duration;

const SERIES: [u64; 10] = [1_000, 1_250, 1_600, 2_000, 2_500, 3_150, 4_000, 5_000, 6_300, 8_000];
const POWERS: usize = 12;
/// Upper bounds in nanoseconds, from a microsecond to nine days.
pub(super) const BOUNDS: [u64; POWERS * SERIES.len()] = bounds();
/// What is longer than all of them has a box too.
pub(super) const BOXES: usize = BOUNDS.len() + 1;

#[expect(clippy::indexing_slicing, reason = "it is done by the compiler, which would say so")]
const fn bounds() -> [u64; POWERS * SERIES.len()] {
    let mut all = [0; POWERS * SERIES.len()];
    let (mut nth, mut factor) = (0, 1);
    while nth < all.len() {
        all[nth] = SERIES[nth % SERIES.len()] * factor;
        nth += 1;
        if nth.is_multiple_of(SERIES.len()) {
            factor *= 10;
        }
    }
    all
}

/// Which box a latency belongs into: the first whose bound is not below it.
pub(super) fn place(nanos: u64) -> usize {
    BOUNDS.partition_point(|bound| *bound < nanos)
}

/// Many latencies, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many are in each box.
    pub(super) boxes: Vec<u64>,
    pub(super) sum_us: u64,
    pub(super) max_ns: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { boxes: vec![0; BOXES], sum_us: 0, max_ns: 0 }
    }
}

impl Spread {
    pub fn count(&self) -> u64 {
        self.boxes.iter().sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// The longest since a reading was last taken for a bucket.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }

    /// How many were at most this long. Exact for 1, 2.5 and 5 times any power of ten.
    pub fn at_most(&self, bound: Duration) -> u64 {
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let boxes = BOUNDS.iter().zip(&self.boxes).take_while(|(bound, _)| **bound <= nanos);
        boxes.map(|(_, count)| count).sum()
    }

    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_us.checked_div(self.count()).unwrap_or(0))
    }

    /// What this share of them, from 0 to 1, was at most. Within a box they are taken to lie evenly.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = share * self.count() as f64;
        let (mut below, mut lower) = (0_u64, 0_u64);
        for (count, upper) in self.boxes.iter().zip(BOUNDS.iter().chain([&u64::MAX])) {
            // None lies beyond the longest.
            let upper = (*upper).min(self.max_ns.max(lower));
            if *count > 0 && (below + count) as f64 >= wanted {
                let part = (wanted - below as f64) / *count as f64;
                let within = Duration::from_nanos(upper - lower).mul_f64(part.clamp(0.0, 1.0));
                return Duration::from_nanos(lower) + within;
            }
            below += count;
            lower = upper;
        }
        self.max()
    }

    /// What came since an earlier reading. The longest is this one's.
    #[must_use]
    pub fn since(&self, before: &Spread) -> Spread {
        let boxes = self.boxes.iter().zip(&before.boxes).map(|(now, before)| now.saturating_sub(*before));
        Spread {
            boxes: boxes.collect(),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(nanos: impl Iterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        for nanos in nanos {
            spread.boxes[place(nanos)] += 1;
            spread.sum_us += nanos / 1_000;
            spread.max_ns = spread.max_ns.max(nanos);
        }
        spread
    }

    #[test]
    fn bounds_rise_and_hold_the_ones_people_ask_for() {
        assert!(BOUNDS.is_sorted_by(|a, b| a < b));
        for power in 3..15 {
            for lead in [10, 25, 50] {
                let bound = lead * 10_u64.pow(power) / 10;
                assert!(BOUNDS.contains(&bound), "{bound}");
            }
        }
        assert_eq!(place(0), 0);
        assert_eq!(place(1_000), 0);
        assert_eq!(place(1_001), 1);
        assert_eq!(place(u64::MAX), BOUNDS.len());
    }

    #[test]
    fn quantiles_are_near_the_truth() {
        let even = spread((1..=100_000).map(|nth| nth * 1_000));
        for (share, micros) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0)] {
            let found = even.quantile(share).as_secs_f64() * 1e6;
            assert!((found - micros).abs() < micros * 0.05, "{share}: {found} instead of {micros}");
        }
        assert_eq!(even.quantile(1.0), even.max());
        let one = spread([7_777_777].into_iter());
        assert!(one.quantile(0.5) <= one.max());
        assert_eq!(Spread::default().quantile(0.99), Duration::ZERO);
    }

    #[test]
    fn what_was_at_most_so_long_is_exact() {
        let two = spread([1_000_000, 1_000_001].into_iter());
        assert_eq!(two.at_most(Duration::from_millis(1)), 1);
        assert_eq!(two.at_most(Duration::from_micros(2_500)), 2);
        let later = spread([1_000_000, 1_000_001, 5].into_iter());
        assert_eq!(later.since(&two).count(), 1);
    }
}
