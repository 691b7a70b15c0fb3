//! What a seed is drawn to: how many nodes, how rough the store, what happens how often. Seeds differ in character, so that
//! each kind of trouble is met pure as well as mixed with others.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rota_model::domain::Domain;
use rota_model::job_type::{Bounds, TypeLimits};

use super::forms::DOMAINS;
use super::work::TYPES;
use crate::faults::Rates;

/// What a run is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The store does everything right; nodes crash.
    Crashes,
    Freezes,
    /// Writes land long after their callers gave up.
    LateWrites,
    /// Writes and claims happen and are not answered.
    LostAnswers,
    Partitions,
    /// Wall clocks jump while nodes freeze and are cut off.
    Clocks,
    UniqueKeys,
    /// People cancel, requeue and delete.
    Housekeeping,
    /// One node after the other is stopped in good order.
    RollingRestarts,
    /// Nodes are paused, drained and resumed.
    Pauses,
    /// One tenant has a great many jobs, and another a few.
    Tenants,
    /// Types and keys are limited, and there is more work than their limits let through.
    Limits,
    /// What is kept no longer goes, and what nodes say and measure is stored, while nodes come and go.
    Clearing,
    /// All of it at once.
    Everything,
}

impl Profile {
    pub const ALL: [Profile; 14] = [
        Profile::Crashes,
        Profile::Freezes,
        Profile::LateWrites,
        Profile::LostAnswers,
        Profile::Partitions,
        Profile::Clocks,
        Profile::UniqueKeys,
        Profile::Housekeeping,
        Profile::RollingRestarts,
        Profile::Pauses,
        Profile::Tenants,
        Profile::Limits,
        Profile::Clearing,
        Profile::Everything,
    ];
}

/// What may befall the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Crash,
    Freeze,
    CutOff,
    Outage,
    Jump,
    Stop,
    Join,
}

/// What people may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    Submit,
    /// Work that takes long, and nothing else.
    SubmitLong,
    SubmitBatch,
    /// A great many at once, of one tenant.
    Flood,
    Cancel,
    Requeue,
    Delete,
    DeleteMatching,
    /// To pause, drain or resume a node.
    Direct,
    /// To limit a type in another way than before, or no longer.
    Limit,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub profile: Profile,
    /// How many nodes are there from the beginning.
    pub nodes: usize,
    /// How many may join later.
    pub spare: usize,
    /// How long things go wrong.
    pub chaos: Duration,
    /// By how much finds may lag, if they do.
    pub lag: Option<Duration>,
    pub rates: Rates,
    /// When what befalls the world.
    pub troubles: Vec<(Duration, Trouble)>,
    pub errands: Vec<(Duration, Errand)>,
    /// Shares of what is submitted.
    pub unique: f64,
    pub named: f64,
    pub long: f64,
    /// How long clocks jump at most.
    pub jump_ms: i64,
    /// What is limited, by domain and type.
    pub limits: Vec<(Domain, String, TypeLimits)>,
    /// The share of jobs that have a limit key.
    pub keyed: f64,
    /// Whether there is something of former times, and nodes say and measure what they do.
    pub has_attic: bool,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let dice = &mut part(seed, "plan", 0);
        let profile = *Profile::ALL.choose(dice).expect("there are profiles");
        let chaos = Duration::from_millis(dice.random_range(40_000..=120_000));
        let lag = dice.random_bool(0.5).then(|| Duration::from_millis(dice.random_range(100..=1_500)));
        let nodes = draw_nodes(dice);
        let rates = Rates { lag_max: lag.unwrap_or_default(), ..rates(profile, dice) };
        let troubles = troubles(profile, chaos, dice);
        let errands = errands(profile, chaos, dice);
        let small_jumps = dice.random_bool(0.5);
        Self {
            seed,
            profile,
            nodes,
            spare: 9_usize.saturating_sub(nodes).min(2),
            chaos,
            lag,
            rates,
            troubles,
            errands,
            unique: match profile {
                Profile::UniqueKeys => 0.7,
                Profile::Clearing => 0.3,
                _ => 0.1,
            },
            named: dice.random_range(0.1..0.5),
            long: dice.random_range(0.1..0.6),
            jump_ms: if small_jumps { 20_000 } else { 600_000 },
            limits: limits(profile, seed),
            keyed: if profile == Profile::Limits { 0.7 } else { 0.2 },
            has_attic: matches!(profile, Profile::Clearing | Profile::Everything),
        }
    }

    /// Whether the store does everything right from the beginning, and at once.
    pub fn is_smooth(&self) -> bool {
        let Rates { fails, unanswered, torn, late, slow, .. } = self.rates;
        fails + unanswered + torn + late + slow == 0.0
    }

    /// Chance for one part of the run, on its own: what another part draws changes nothing here.
    pub fn dice(&self, what: &str, number: u64) -> StdRng {
        part(self.seed, what, number)
    }
}

fn part(seed: u64, what: &str, number: u64) -> StdRng {
    let mut mixed = seed;
    for byte in what.bytes().chain(number.to_le_bytes()) {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    StdRng::seed_from_u64(mixed)
}

fn draw_nodes(dice: &mut StdRng) -> usize {
    match dice.random_range(0..20) {
        0..=1 => 1,
        2..=6 => 2,
        7..=12 => 3,
        13..=16 => 4,
        17..=18 => 5,
        _ => dice.random_range(6..=9),
    }
}

/// The types that a node runs: the first node all of them, so that nothing waits for ever; others some.
pub fn types_of(node: usize, dice: &mut StdRng) -> Vec<String> {
    let mut types: Vec<String> =
        TYPES.iter().filter(|_| node == 0 || dice.random_bool(0.6)).map(|&kind| kind.to_owned()).collect();
    if types.is_empty() {
        types.push(TYPES[node % TYPES.len()].to_owned());
    }
    types
}

/// What is limited: of some types much, where the run is about that; now and then a little.
fn limits(profile: Profile, seed: u64) -> Vec<(Domain, String, TypeLimits)> {
    let dice = &mut part(seed, "limits", 0);
    let share = if profile == Profile::Limits { 0.6 } else { 0.1 };
    let mut drawn = Vec::new();
    for domain in DOMAINS.map(|domain| domain.parse::<Domain>().expect("a good name")) {
        for kind in TYPES {
            let limits = draw_limits(dice);
            if dice.random_bool(share) && !limits.is_none() {
                drawn.push((domain.clone(), kind.to_owned(), limits));
            }
        }
    }
    drawn
}

pub fn draw_limits(dice: &mut StdRng) -> TypeLimits {
    TypeLimits { whole: bounds(dice, 4), per_key: bounds(dice, 2) }
}

/// So few that there is always more to do, and so many that it is done before a run ends.
fn bounds(dice: &mut StdRng, most: u32) -> Bounds {
    Bounds {
        concurrency: dice.random_bool(0.6).then(|| dice.random_range(1..=most)),
        starts_per_second: dice.random_bool(0.4).then(|| f64::from(dice.random_range(3..=6_u32)) / 2.0),
    }
}

fn rates(profile: Profile, dice: &mut StdRng) -> Rates {
    let secs = Duration::from_secs;
    let light = |dice: &mut StdRng| Rates {
        fails: dice.random_range(0.0..0.03),
        unanswered: dice.random_range(0.0..0.03),
        torn: dice.random_range(0.0..0.02),
        late: dice.random_range(0.0..0.02),
        late_max: secs(20),
        slow: 0.2,
        slow_max: Duration::from_millis(dice.random_range(5..=400)),
        lag_max: Duration::ZERO,
        hint_lost: 0.2,
        hint_doubled: 0.1,
        hint_late: 0.2,
        hint_late_max: secs(2),
    };
    match profile {
        Profile::Crashes
        | Profile::RollingRestarts
        | Profile::Pauses
        | Profile::Tenants
        | Profile::Limits
            if dice.random_bool(0.7) =>
        {
            Rates::default()
        }
        Profile::Freezes | Profile::Clocks | Profile::Partitions if dice.random_bool(0.4) => Rates::default(),
        Profile::LateWrites => Rates { late: dice.random_range(0.05..0.2), torn: 0.03, ..light(dice) },
        Profile::LostAnswers => {
            Rates { unanswered: dice.random_range(0.05..0.25), fails: 0.05, torn: 0.05, ..light(dice) }
        }
        Profile::UniqueKeys => {
            Rates { unanswered: 0.1, late: 0.1, slow: 0.4, slow_max: secs(3), ..light(dice) }
        }
        Profile::Housekeeping => Rates { late: 0.08, late_max: secs(10), ..light(dice) },
        _ => light(dice),
    }
}

fn troubles(profile: Profile, chaos: Duration, dice: &mut StdRng) -> Vec<(Duration, Trouble)> {
    use Trouble::{Crash, CutOff, Freeze, Join, Jump, Outage, Stop};
    // How long it is between two of them, and what they are, more often what stands there more often.
    let (gap_ms, kinds): (u64, &[Trouble]) = match profile {
        Profile::Crashes => (9_000, &[Crash, Crash, Crash, Join]),
        Profile::Freezes => (6_000, &[Freeze, Freeze, Freeze, Freeze, Crash]),
        Profile::LateWrites => (12_000, &[Crash, Crash, Freeze, Stop]),
        Profile::LostAnswers => (15_000, &[Crash, Stop, CutOff]),
        Profile::Partitions => (8_000, &[CutOff, CutOff, CutOff, Outage, Freeze]),
        Profile::Clocks => (4_000, &[Jump, Jump, Jump, Jump, CutOff, CutOff, Freeze, Crash]),
        Profile::UniqueKeys => (20_000, &[Crash, Freeze, CutOff]),
        Profile::Housekeeping => (20_000, &[Crash, Freeze, Stop]),
        Profile::RollingRestarts => (7_000, &[Stop, Stop, Stop, Join, Crash]),
        Profile::Pauses => (15_000, &[Stop, Crash, Join]),
        Profile::Tenants => (30_000, &[Crash, Stop, Join, Freeze]),
        Profile::Clearing => (25_000, &[Crash, Crash, Stop, Freeze, CutOff, Jump, Join]),
        Profile::Limits => (8_000, &[Freeze, Freeze, Freeze, Crash, Stop, CutOff, Jump, Join]),
        Profile::Everything => (6_000, &[Crash, Freeze, CutOff, Outage, Jump, Stop, Join]),
    };
    let mut drawn = Vec::new();
    let mut at = Duration::from_millis(dice.random_range(1_000..=gap_ms));
    while at < chaos {
        drawn.push((at, *kinds.choose(dice).expect("there are kinds")));
        at += Duration::from_millis(dice.random_range(gap_ms / 4..=gap_ms * 7 / 4));
    }
    drawn
}

fn errands(profile: Profile, chaos: Duration, dice: &mut StdRng) -> Vec<(Duration, Errand)> {
    let submissions = dice.random_range(25..=55);
    let others: &[(Errand, usize)] = match profile {
        Profile::Housekeeping => &[
            (Errand::Cancel, 12),
            (Errand::Requeue, 16),
            (Errand::Delete, 14),
            (Errand::DeleteMatching, 3),
            (Errand::Direct, 1),
        ],
        Profile::UniqueKeys => {
            &[(Errand::Cancel, 4), (Errand::Requeue, 12), (Errand::Delete, 4), (Errand::DeleteMatching, 1)]
        }
        Profile::Pauses => &[(Errand::Direct, 12), (Errand::Cancel, 2), (Errand::Requeue, 2)],
        Profile::Clearing => {
            &[(Errand::Cancel, 2), (Errand::Requeue, 14), (Errand::Delete, 4), (Errand::DeleteMatching, 1)]
        }
        // In half of them limits stay as they are: nothing is excused then.
        Profile::Limits if dice.random_bool(0.5) => {
            &[(Errand::Cancel, 3), (Errand::Requeue, 3), (Errand::Direct, 2), (Errand::Limit, 3)]
        }
        Profile::Limits => &[(Errand::Cancel, 3), (Errand::Requeue, 3), (Errand::Direct, 2)],
        _ => &[
            (Errand::Cancel, 3),
            (Errand::Requeue, 3),
            (Errand::Delete, 2),
            (Errand::DeleteMatching, 1),
            (Errand::Direct, 2),
            (Errand::Limit, 1),
        ],
    };
    let floods = if matches!(profile, Profile::Tenants | Profile::Limits) { 3 } else { 0 };
    let submissions = [(Errand::Submit, submissions), (Errand::SubmitBatch, 3), (Errand::Flood, floods)];
    let millis = u64::try_from(chaos.as_millis()).unwrap_or(u64::MAX);
    let mut drawn = Vec::new();
    for &(errand, times) in submissions.iter().chain(others) {
        for _ in 0..times {
            drawn.push((Duration::from_millis(dice.random_range(0..millis)), errand));
        }
    }
    drawn.sort_by_key(|(at, _)| *at);
    drawn
}
