//! Taking turns by weight: whoever has had least for its weight is next. Who comes anew is next at once, and has no claim to
//! what was handed out while it wanted nothing.

use std::collections::{BTreeMap, BTreeSet};

/// What one job costs who has the weight 1.
const STRIDE: u64 = 1 << 20;

pub(super) struct Turns<K> {
    takers: BTreeMap<K, Taker>,
    /// How much whoever has had least has had, of those who want something.
    level: u64,
    /// How many times something was handed out.
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Taker {
    /// How much it has had, for its weight.
    had: u64,
    /// When it had something last, to tell equals apart.
    last: u64,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { takers: BTreeMap::new(), level: 0, times: 0 }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// How much of `n` is for each, whose turn it is first; nothing for some, if there is not enough.
    pub(super) fn share<'a>(
        &self,
        wanting: impl Iterator<Item = &'a K>,
        n: usize,
        weight: impl Fn(&K) -> u32,
    ) -> Vec<(K, usize)>
    where
        K: 'a,
    {
        let mut shares: Vec<(Taker, &K, usize)> = wanting.map(|key| (self.taker(key), key, 0)).collect();
        shares.sort_by_key(|(taker, key, _)| (*taker, *key));
        let mut turns: BTreeSet<(Taker, usize)> =
            shares.iter().enumerate().map(|(nth, (taker, _, _))| (*taker, nth)).collect();
        for time in 1..=n as u64 {
            let Some((taker, nth)) = turns.pop_first() else { break };
            let Some((_, key, count)) = shares.get_mut(nth) else { break };
            *count += 1;
            turns.insert((Taker { had: taker.had + stride(weight(key)), last: self.times + time }, nth));
        }
        shares.into_iter().map(|(_, key, count)| (key.clone(), count)).collect()
    }

    /// This is what each has had, of those who were asked, in this order, for what they want: their share first, and then
    /// whatever there was. Whoever has had less than its share, or left something for those behind it, wants nothing more or
    /// cannot be served: nobody waits for it, and it is not owed anything. What one has had beyond its share, others had left.
    pub(super) fn charge(
        &mut self,
        had: &BTreeMap<K, usize>,
        shares: &[(K, usize)],
        weight: impl Fn(&K) -> u32,
    ) {
        self.times += 1;
        for (key, share) in shares {
            let Some(n) = had.get(key).map(|n| (*share).max(1).min(*n)).filter(|n| *n > 0) else { continue };
            let before = self.taker(key).had;
            let cost = stride(weight(key)).saturating_mul(n as u64);
            self.takers.insert(key.clone(), Taker { had: before + cost, last: self.times });
        }
        let count = |key: &K| had.get(key).copied().unwrap_or(0);
        let last = shares.iter().rposition(|(key, share)| count(key) > *share).unwrap_or(0);
        let want_more = shares.iter().skip(last).filter(|(key, share)| count(key) >= *share);
        let least = want_more.map(|(key, _)| self.taker(key).had).min();
        let most = shares.iter().map(|(key, _)| self.taker(key).had).max();
        self.level = self.level.max(least.or(most).unwrap_or(0));
        // Whoever is no further than the others is remembered only for as long as it wants something.
        let wanting: BTreeSet<&K> = shares.iter().map(|(key, _)| key).collect();
        self.takers.retain(|key, taker| taker.had > self.level || wanting.contains(key));
    }

    fn taker(&self, key: &K) -> Taker {
        let known = self.takers.get(key);
        let had = known.map_or(0, |taker| taker.had);
        Taker { had: had.max(self.level), last: known.map_or(0, |taker| taker.last) }
    }
}

fn stride(weight: u32) -> u64 {
    (STRIDE / u64::from(weight.max(1))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out `n` at a time until `total` are out, and says who had how many.
    fn hand_out(
        turns: &mut Turns<&str>,
        wanting: &[(&'static str, u32)],
        n: usize,
        total: usize,
    ) -> Vec<usize> {
        let weight =
            |key: &&str| wanting.iter().find(|(name, _)| name == key).map_or(1, |(_, weight)| *weight);
        let names: Vec<&str> = wanting.iter().map(|(name, _)| *name).collect();
        let mut had = vec![0; wanting.len()];
        for _ in 0..total / n {
            let shares: BTreeMap<_, _> =
                turns.share(names.iter(), n, weight).into_iter().filter(|(_, count)| *count > 0).collect();
            assert_eq!(shares.values().sum::<usize>(), n);
            let all = names.iter().map(|name| (*name, shares.get(name).copied().unwrap_or(0)));
            turns.charge(&shares, &all.collect::<Vec<_>>(), weight);
            for (nth, name) in names.iter().enumerate() {
                had[nth] += shares.get(name).copied().unwrap_or(0);
            }
        }
        had
    }

    #[test]
    fn each_has_as_much_as_its_weight_says_however_many_are_handed_out_at_once() {
        for n in [1, 7, 60] {
            let had = hand_out(&mut Turns::default(), &[("a", 1), ("b", 3), ("c", 2)], n, 840);
            for (had, expected) in had.iter().zip([140_usize, 420, 280]) {
                assert!(had.abs_diff(expected) <= 2, "{n} at once: {had} instead of {expected}");
            }
        }
    }

    #[test]
    fn who_comes_anew_is_next_and_is_owed_nothing() {
        let mut turns = Turns::default();
        hand_out(&mut turns, &[("a", 1)], 8, 80_000);
        for name in ["b", "0"] {
            let next = turns.share(["a", name].iter(), 1, |_| 1);
            assert_eq!(next[0], (name, 1));
        }
        assert_eq!(hand_out(&mut turns, &[("a", 1), ("b", 1)], 8, 80), [40, 40]);
        // Having had its turn and gone, it comes back as one of two.
        hand_out(&mut turns, &[("a", 1)], 8, 800);
        assert_eq!(hand_out(&mut turns, &[("a", 1), ("b", 1)], 4, 8), [4, 4]);
        assert!(turns.takers.len() <= 2);
    }

    #[test]
    fn who_wants_more_than_the_others_leave_is_not_held_back_for_it_later() {
        let mut turns = Turns::default();
        // For a long time only "a" wants much: "b" takes one in ten.
        for _ in 0..100 {
            turns.charge(&BTreeMap::from([("a", 9), ("b", 1)]), &[("b", 5), ("a", 5)], |_| 1);
        }
        assert_eq!(hand_out(&mut turns, &[("a", 1), ("b", 1)], 10, 100), [50, 50]);
    }

    #[test]
    fn what_others_left_is_nobodys_debt() {
        let mut turns = Turns::default();
        turns.charge(&BTreeMap::from([("a", 500), ("b", 2)]), &[("a", 10), ("b", 10)], |_| 1);
        assert_eq!(hand_out(&mut turns, &[("a", 1), ("b", 1)], 10, 100), [50, 50]);
    }

    #[test]
    fn nobody_waits_for_one_that_cannot_be_served() {
        let mut turns = Turns::default();
        for _ in 0..1_000 {
            turns.charge(&BTreeMap::from([("a", 1)]), &[("stuck", 1), ("stuck too", 0), ("a", 0)], |_| 1);
        }
        // Who comes anew shares with the one that was served all the time, and is not owed what the stuck were not given.
        assert_eq!(hand_out(&mut turns, &[("a", 1), ("new", 1), ("stuck too", 1)], 10, 90), [30, 30, 30]);
    }
}
