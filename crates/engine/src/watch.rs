//! Telling the dead from the living (rule 2), from the watcher's side. Pure: it is told what was read, and when.
//!
//! Dead is who was seen with the same version in seven consecutive reads, one a second. A read that failed, or a gap of
//! more than two seconds between two reads, starts the count again: a watcher that slept, or a store that was away,
//! condemns nobody. Time counts from the answer to the first read to the sending of the last: what lies in between
//! has certainly passed since the beat that was seen was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_store::seam::Version;

use crate::flaws::Flaw;
use crate::lease::LEASE;
use crate::surroundings::Surroundings;

/// Between two reads.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// The longest gap between two reads that belong together.
const GAP: Duration = Duration::from_secs(2);
/// How many reads without a change make dead.
const READS: u32 = 7;

/// One read of the documents of all nodes, by the clock that only goes forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) sent: Duration,
    pub(crate) answered: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    version: Version,
    reads: u32,
    first_answered: Duration,
    last_sent: Duration,
}

pub(crate) struct Watch {
    seen: BTreeMap<NodeId, Seen>,
    surroundings: Surroundings,
}

impl Watch {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self { seen: BTreeMap::new(), surroundings }
    }

    /// A read that was sent at this instant failed.
    pub(crate) fn failed(&mut self, sent: Duration) {
        if !self.surroundings.has(Flaw::FailedReadsCount) {
            self.seen.clear();
        }
        for seen in self.seen.values_mut() {
            seen.reads += 1;
            seen.last_sent = sent;
        }
    }

    pub(crate) fn forget(&mut self, node: NodeId) {
        self.seen.remove(&node);
    }

    /// A node's document was read. Says whether it must be dead.
    pub(crate) fn saw(&mut self, node: NodeId, version: Version, read: Read) -> bool {
        let counts_sleep = self.surroundings.has(Flaw::CountsOwnSleep);
        let fresh = Seen { version, reads: 1, first_answered: read.answered, last_sent: read.sent };
        let seen = self.seen.entry(node).or_insert(fresh);
        let gap = read.sent.saturating_sub(seen.last_sent);
        if seen.version != version || (gap > GAP && !counts_sleep) {
            *seen = fresh;
            return false;
        }
        seen.reads += u32::from(seen.last_sent != read.sent);
        seen.last_sent = read.sent;
        let passed = read.sent.saturating_sub(seen.first_answered);
        passed >= LEASE && (seen.reads >= READS || counts_sleep)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::surroundings::Clock;
    use rota_model::time::UnixMillis;

    struct NoClock;

    impl Clock for NoClock {
        fn now(&self) -> UnixMillis {
            UnixMillis(0)
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn watch() -> Watch {
        Watch::new(Surroundings::new(Arc::new(NoClock), [0; 32]))
    }

    /// Reads at these milliseconds, each answered 10 ms later. The nth read, from 1, at which it was found dead.
    fn dead_at(watch: &mut Watch, reads: &[(u64, u64)]) -> Option<usize> {
        let millis = Duration::from_millis;
        let saw = |(sent, version): &(u64, u64)| {
            let read = Read { sent: millis(*sent), answered: millis(*sent + 10) };
            watch.saw(NodeId::derived(&["other"]), Version(*version), read)
        };
        reads.iter().map(saw).position(|dead| dead).map(|nth| nth + 1)
    }

    fn every(step: u64, count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|nth| (nth * step, 1)).collect()
    }

    #[test]
    fn seven_reads_over_six_seconds_make_dead() {
        assert_eq!(dead_at(&mut watch(), &every(1_010, 9)), Some(7));
        // Sent a second apart, the seventh comes ten milliseconds too early after the first was answered.
        assert_eq!(dead_at(&mut watch(), &every(1_000, 9)), Some(8));
        assert_eq!(dead_at(&mut watch(), &every(100, 20)), None, "seven reads in a moment are not enough");
    }

    #[test]
    fn a_change_a_gap_and_a_failure_start_the_count_again() {
        let mut reads = every(1_010, 14);
        reads.iter_mut().skip(5).for_each(|(_, version)| *version = 2);
        assert_eq!(dead_at(&mut watch(), &reads), Some(12));
        let mut reads = every(1_010, 14);
        reads.iter_mut().skip(3).for_each(|(sent, _)| *sent += 60_000);
        assert_eq!(dead_at(&mut watch(), &reads), Some(10), "who slept counts anew");
        let mut watch = watch();
        assert_eq!(dead_at(&mut watch, &every(1_010, 6)), None);
        watch.failed(Duration::from_millis(6_000));
        assert_eq!(dead_at(&mut watch, &[(6_060, 1)]), None);
    }
}
