//! How many may start by now.
//!
//! The document knows up to when starts were taken, each of which takes as long as its rate says; more are there when that
//! lies behind the present. The present is told by a clock that the document carries along: whoever takes from it knows
//! what it was at the last time and how long that is ago by a clock of its own that never jumps, and the later of both is
//! true. Wall time only tells who comes for the first time how long nobody came. So clocks that differ or jump neither
//! stop anything nor let more through than they would after a moment of rest.

use std::time::Duration;

use super::Limit;

/// How far ahead starts are taken, so that few writes are needed.
const AHEAD_US: f64 = 100_000.0;
/// What nobody took is still there after this long.
const REST_US: f64 = 400_000.0;
/// So much at a time is worth a write, where as much is needed.
const PORTION: f64 = 0.05;

/// How many may start per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace(pub f64);

impl Pace {
    /// How much time one start takes, in microseconds.
    fn gap_us(self) -> f64 {
        1_000_000.0 / self.0
    }

    /// How many are worth a write, if this many are needed.
    fn portion(self, needed: u32) -> f64 {
        f64::from(needed).min((self.0 * PORTION).ceil()).max(1.0)
    }

    /// How many are taken at most, if this many are needed: more than that would not be used before it is too late.
    fn most(self, needed: u32) -> f64 {
        f64::from(needed).max((self.0 * PORTION * 2.0).ceil()).max(1.0)
    }
}

impl Limit {
    /// Up to when starts are taken, if the clock is there.
    fn taken_until(&self, pace: Pace, clock_us: u64) -> f64 {
        let rested = clock_us as f64 - REST_US.max(pace.gap_us());
        self.started_us.map_or(rested, |taken| (taken as f64).max(rested))
    }

    /// How long it is until enough may start for a write to be worth it; nothing if they may now.
    pub fn wait_for_starts(&self, pace: Pace, clock_us: u64, needed: u32) -> Duration {
        let until = self.taken_until(pace, clock_us) + pace.portion(needed) * pace.gap_us();
        Duration::from_micros(whole((until - AHEAD_US - clock_us as f64).ceil()))
    }

    /// Takes starts for someone who needs so many, at an instant of the clock that the document carries along. Says how
    /// many.
    pub fn take_starts(&mut self, pace: Pace, clock_us: u64, needed: u32) -> u32 {
        let taken = self.taken_until(pace, clock_us);
        let there = ((clock_us as f64 + AHEAD_US - taken) / pace.gap_us()).floor();
        let count = there.min(pace.most(needed)).max(0.0);
        self.clock_us = Some(self.clock_us.unwrap_or(0).max(clock_us));
        if count > 0.0 {
            self.started_us = Some(whole((taken + count * pace.gap_us()).round()));
        }
        u32::try_from(whole(count)).unwrap_or(u32::MAX)
    }
}

/// The whole number; nothing for what is less than that.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast ends at what the type can hold, and no instant of ours comes near that"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::ids::NodeId;
    use crate::limit::LimitName;
    use crate::time::UnixMillis;

    const BEGIN_US: u64 = 1_800_000_000_000_000;

    fn limit() -> Limit {
        let name = LimitName { domain: Domain::default(), kind: "mail".to_owned(), key: None };
        Limit::new(name, UnixMillis(1), NodeId::derived(&["one"]))
    }

    /// How many start in so many seconds where whoever needs some asks as soon as it is worth it, in turns, and how many
    /// writes that takes.
    fn start_for(limit: &mut Limit, pace: Pace, seconds: u64, needed: u32) -> (u64, u64) {
        let (mut now, mut started, mut writes) = (BEGIN_US, 0, 0);
        while now < BEGIN_US + seconds * 1_000_000 {
            let wait = limit.wait_for_starts(pace, now, needed);
            if wait.is_zero() {
                started += u64::from(limit.take_starts(pace, now, needed));
                writes += 1;
            }
            now += u64::try_from(wait.as_micros()).unwrap().max(500);
        }
        (started, writes)
    }

    #[test]
    fn a_rate_holds_over_a_minute_and_takes_few_writes() {
        for rate in [0.1, 0.5, 1.0, 3.0, 7.5, 100.0, 1_000.0, 33_333.0, 100_000.0] {
            for needed in [1, 4, 500] {
                let (started, writes) = start_for(&mut limit(), Pace(rate), 60, needed);
                let expected = rate * 60.0;
                let most = (expected * 1.02).max(expected + 1.0);
                assert!(started as f64 <= most, "{rate}, {needed}: {started} started");
                if needed as f64 * 1_900.0 > rate {
                    assert!(started as f64 >= expected * 0.98, "{rate}, {needed}: {started} started");
                }
                // A write brings what is needed, or at least what comes within some 15 milliseconds.
                let most = (started / u64::from(needed)).max(60 * 70);
                assert!(writes <= started.min(most + 60), "{rate}, {needed}: {writes} writes");
            }
        }
    }

    #[test]
    fn after_a_rest_at_most_half_a_second_is_made_up_for() {
        let (mut limit, pace) = (limit(), Pace(1_000.0));
        start_for(&mut limit, pace, 1, 100);
        let later = BEGIN_US + 3_600_000_000;
        assert!(limit.wait_for_starts(pace, later, 5_000).is_zero());
        assert_eq!(limit.take_starts(pace, later, 5_000), 500);
        assert_eq!(limit.take_starts(pace, later, 5_000), 0);
        assert_eq!(limit.wait_for_starts(pace, later, 5_000), Duration::from_millis(50));
    }

    #[test]
    fn the_first_starts_at_once_however_slow_the_rate() {
        let (mut limit, pace) = (limit(), Pace(0.01));
        assert_eq!(limit.take_starts(pace, BEGIN_US, 7), 1);
        assert_eq!(limit.take_starts(pace, BEGIN_US, 7), 0);
        let wait = limit.wait_for_starts(pace, BEGIN_US, 7);
        assert!(wait > Duration::from_secs(99) && wait <= Duration::from_secs(100), "{wait:?}");
        assert_eq!(limit.take_starts(pace, BEGIN_US + 100_000_000, 7), 1);
    }
}
