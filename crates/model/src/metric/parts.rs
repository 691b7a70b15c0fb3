//! One entry from several runs of a node.
//!
//! A process that is started again within five seconds finds in the bucket what the one before it measured. To replace that would
//! lose it; to add to it would count it twice as soon as an answer is lost, or the former process, frozen for a moment, writes
//! once more. So each run has a part of its own, which it alone replaces, and the entry is made from the parts anew:
//!
//! | kind | the entry is |
//! |---|---|
//! | total | the sum |
//! | level | that of the newest run; ids of runs rise |
//! | latency | the mean of all, the longest of all; of the quantiles the worst, since nothing better can be said |

use std::collections::BTreeMap;

use super::{MAX_PARTS, Sample, SampleKind};

impl Sample {
    /// What becomes of an entry that holds `former`. A sample that names no run takes its place.
    #[must_use]
    pub(super) fn beside(self, former: Option<&Sample>) -> Sample {
        let (Some(former), Some(run)) = (former, self.run.clone()) else { return self };
        let mut parts = former.clone().into_parts();
        if parts.keys().all(|other| *other == run) {
            return self;
        }
        parts.insert(run, Sample { run: None, ..self });
        while parts.len() > MAX_PARTS {
            parts.pop_first();
        }
        put_together(parts)
    }

    fn into_parts(mut self) -> BTreeMap<String, Sample> {
        match self.run.take() {
            Some(run) => BTreeMap::from([(run, self)]),
            None => self.parts,
        }
    }
}

fn put_together(parts: BTreeMap<String, Sample>) -> Sample {
    let Some(newest) = parts.values().next_back() else { return Sample::new(0, "") };
    let whole = newest.clone();
    let sum = |of: fn(&Sample) -> i64| parts.values().map(of).fold(0, i64::saturating_add);
    let most = |of: fn(&Sample) -> Option<i64>| parts.values().filter_map(of).max();
    match whole.kind {
        None | Some(SampleKind::Level) => Sample { parts, ..whole },
        Some(SampleKind::Total) => Sample { value: sum(|part| part.value), parts, ..whole },
        Some(SampleKind::Latency) => {
            let count = sum(|part| part.count.unwrap_or_default());
            let spent = sum(|part| part.value.saturating_mul(part.count.unwrap_or_default()));
            Sample {
                value: spent.checked_div(count).unwrap_or_default(),
                count: Some(count),
                p50: most(|part| part.p50),
                p99: most(|part| part.p99),
                max: most(|part| part.max),
                parts,
                ..whole
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(value: i64, run: &str) -> Sample {
        Sample::of(SampleKind::Total, value, "jobs").of_run(run)
    }

    fn latency(mean: i64, count: i64, p99: i64, run: &str) -> Sample {
        let (count, p99) = (Some(count), Some(p99));
        let plain = Sample::of(SampleKind::Latency, mean, "microseconds").of_run(run);
        Sample { count, p50: Some(mean), p99, max: p99, ..plain }
    }

    #[test]
    fn a_run_replaces_its_own_and_adds_to_the_others() {
        let first = total(3, "1");
        assert_eq!(total(4, "1").beside(Some(&first)), total(4, "1"));
        let both = total(5, "2").beside(Some(&first));
        assert_eq!((both.value, both.parts.len(), &both.run), (8, 2, &None));
        assert_eq!(total(5, "2").beside(Some(&both)), both, "again, after an answer that was lost");
        let late = total(4, "1").beside(Some(&both));
        assert_eq!(late.value, 9, "the first one, which was frozen, writes once more");
        assert_eq!(total(7, "2").beside(Some(&late)).value, 11);
    }

    #[test]
    fn latencies_and_levels_of_several_runs_make_one_entry() {
        let both = latency(30, 1, 31, "2").beside(Some(&latency(10, 3, 90, "1")));
        assert_eq!((both.value, both.count, both.p99, both.max), (15, Some(4), Some(90), Some(90)));
        let level = |value, run: &str| Sample::of(SampleKind::Level, value, "jobs").of_run(run);
        assert_eq!(level(2, "2").beside(Some(&level(9, "1"))).value, 2);
        assert_eq!(level(9, "1").beside(Some(&level(2, "2"))).value, 2, "the newest, whoever writes last");
    }

    #[test]
    fn a_node_that_starts_again_and_again_leaves_a_bounded_entry() {
        let mut entry = None;
        for run in 0..MAX_PARTS + 10 {
            entry = Some(total(1, &format!("{run:04}")).beside(entry.as_ref()));
        }
        assert_eq!(entry.map(|entry| entry.parts.len()), Some(MAX_PARTS));
    }

    #[test]
    fn entries_of_older_versions_are_replaced() {
        let old = Sample::new(3, "jobs");
        assert_eq!(total(4, "1").beside(Some(&old)), total(4, "1"));
        assert_eq!(old.clone().beside(Some(&total(4, "1"))), old);
    }
}
