//! A fate that changes: the way of one node to the store is rough, calm, or cut.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_store::hints::Hint;

use super::fate::{Call, Effect, Fate, Lot, RandomFate, Rates};

/// How long a call may hang that gets no answer.
const HANGS: std::ops::RangeInclusive<u64> = 200..=15_000;

/// What the way to the store is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sky {
    /// Things go wrong as often as the rates say.
    Rough,
    /// Nothing goes wrong but that finds lag, as the store promised.
    Calm,
    /// Every call fails at once.
    Refused,
    /// No call arrives, and for long nobody says so.
    Swallowed,
    /// Every call arrives, and its answer does not.
    Mute,
    /// What only looks is answered. Nothing else arrives, and for long nobody says so.
    Deaf,
}

impl Sky {
    /// Whether nothing that changes anything gets through and is answered.
    pub fn is_cut_off(self) -> bool {
        matches!(self, Sky::Refused | Sky::Swallowed | Sky::Mute | Sky::Deaf)
    }
}

pub struct Weather {
    rough: RandomFate,
    lag_max: Duration,
    now: Mutex<(Sky, StdRng)>,
}

impl Weather {
    pub fn new(seed: u64, rates: Rates, sky: Sky) -> Self {
        let dice = StdRng::seed_from_u64(seed ^ 0x5eed);
        Self { rough: RandomFate::new(seed, rates), lag_max: rates.lag_max, now: Mutex::new((sky, dice)) }
    }

    pub fn turn(&self, sky: Sky) {
        self.now().0 = sky;
    }

    pub fn sky(&self) -> Sky {
        self.now().0
    }

    fn now(&self) -> MutexGuard<'_, (Sky, StdRng)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fate for Weather {
    fn of(&self, call: &Call<'_>) -> Lot {
        let (sky, dice) = &mut *self.now();
        let mut span = |range| Duration::from_millis(dice.random_range(range));
        match sky {
            Sky::Rough => self.rough.of(call),
            Sky::Calm => {
                let most = u64::try_from(self.lag_max.as_millis()).unwrap_or(u64::MAX);
                Lot { lag: span(0..=most), ..Lot::CALM }
            }
            Sky::Refused => Lot { before: span(1..=20), effect: Effect::Fails, ..Lot::CALM },
            Sky::Deaf if matches!(call, Call::Read(_) | Call::Find(_) | Call::Count(_)) => Lot::CALM,
            Sky::Swallowed | Sky::Deaf => Lot { before: span(HANGS), effect: Effect::Fails, ..Lot::CALM },
            Sky::Mute => {
                Lot { before: span(1..=20), effect: Effect::Unanswered, after: span(HANGS), ..Lot::CALM }
            }
        }
    }

    fn of_hint(&self, hint: &Hint) -> Vec<Duration> {
        match self.sky() {
            Sky::Rough => self.rough.of_hint(hint),
            Sky::Calm => vec![Duration::ZERO],
            Sky::Refused | Sky::Swallowed | Sky::Mute | Sky::Deaf => Vec::new(),
        }
    }
}
