//! What may happen to a call, and to a hint.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_store::hints::Hint;
use rota_store::query::Query;
use rota_store::seam::{Claim, Key, Write};

/// A call, before anything became of it. Whatever is refused is not asked about.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    Write(&'a [Write]),
    Read(&'a [Key]),
    Find(&'a Query),
    Count(&'a Query),
    Claim(&'a Claim),
    Sequence(&'static str, u64),
}

/// Decides what becomes of each call of one node.
pub trait Fate: Send + Sync + 'static {
    fn of(&self, call: &Call<'_>) -> Lot;

    /// After which spans a hint arrives: once, unless it is lost or doubled.
    fn of_hint(&self, _hint: &Hint) -> Vec<Duration> {
        vec![Duration::ZERO]
    }
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lot {
    /// How long it is on its way. A caller that goes meanwhile never sent it, unless the effect is late.
    pub before: Duration,
    pub effect: Effect,
    /// How long the answer is on its way.
    pub after: Duration,
    /// By how much the past that a find, a count or a claim looks at lies behind; at most what was promised.
    pub lag: Duration,
}

impl Lot {
    /// Nothing goes wrong.
    pub const CALM: Lot =
        Lot { before: Duration::ZERO, effect: Effect::Done, after: Duration::ZERO, lag: Duration::ZERO };
}

/// Whether a call does what it should. One that changes nothing either succeeds or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Done,
    /// Nothing happens, and the caller is told so.
    Fails,
    /// Nothing happens, and the caller is told that it never will: no store takes that.
    Refused,
    /// It happens, and the caller is told that nobody knows.
    Unanswered,
    /// Only those documents of a batch are written whose bit is set, the first one's being the lowest, and from the 65th
    /// on all over again; or only as many are claimed as bits are set. The caller is told that nobody knows.
    Torn(u64),
    /// The caller is told that nobody knows, and it happens this much later, even if the caller is no more.
    Late(Duration),
}

/// Nothing goes wrong but that finds lag, always by the same span.
#[derive(Clone, Copy, Debug)]
pub struct Calm {
    pub lag: Duration,
}

impl Fate for Calm {
    fn of(&self, _call: &Call<'_>) -> Lot {
        Lot { lag: self.lag, ..Lot::CALM }
    }
}

/// How often things happen, as shares of one, and how long they take at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub fails: f64,
    pub unanswered: f64,
    pub torn: f64,
    pub late: f64,
    pub late_max: Duration,
    /// How often a call or its answer is on its way for long.
    pub slow: f64,
    pub slow_max: Duration,
    pub lag_max: Duration,
    pub hint_lost: f64,
    pub hint_doubled: f64,
    pub hint_late: f64,
    pub hint_late_max: Duration,
}

/// Throws dice. The same seed and the same calls in the same order give the same fate.
#[derive(Debug)]
pub struct RandomFate {
    rates: Rates,
    dice: Mutex<StdRng>,
}

impl RandomFate {
    pub fn new(seed: u64, rates: Rates) -> Self {
        Self { rates, dice: Mutex::new(StdRng::seed_from_u64(seed)) }
    }

    fn effect(&self, dice: &mut StdRng) -> Effect {
        let Rates { fails, unanswered, torn, late, late_max, .. } = self.rates;
        let mut thrown: f64 = dice.random();
        for (share, effect) in [
            (fails, Effect::Fails),
            (unanswered, Effect::Unanswered),
            (torn, Effect::Torn(dice.random())),
            (late, Effect::Late(up_to(dice, late_max))),
        ] {
            if thrown < share {
                return effect;
            }
            thrown -= share;
        }
        Effect::Done
    }

    fn travel(&self, dice: &mut StdRng) -> Duration {
        if dice.random_bool(self.rates.slow) { up_to(dice, self.rates.slow_max) } else { Duration::ZERO }
    }
}

impl Fate for RandomFate {
    fn of(&self, _call: &Call<'_>) -> Lot {
        let dice = &mut *self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let effect = self.effect(dice);
        Lot {
            before: self.travel(dice),
            effect,
            after: self.travel(dice),
            lag: up_to(dice, self.rates.lag_max),
        }
    }

    fn of_hint(&self, _hint: &Hint) -> Vec<Duration> {
        let dice = &mut *self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let Rates { hint_lost, hint_doubled, hint_late, hint_late_max, .. } = self.rates;
        let times = match (dice.random_bool(hint_lost), dice.random_bool(hint_doubled)) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        let mut arrival =
            || if dice.random_bool(hint_late) { up_to(dice, hint_late_max) } else { Duration::ZERO };
        (0..times).map(|_| arrival()).collect()
    }
}

/// Whole milliseconds, so that a paused clock meets them exactly.
fn up_to(dice: &mut StdRng, most: Duration) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(dice.random_range(0..=most))
}
