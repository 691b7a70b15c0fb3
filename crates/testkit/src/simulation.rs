//! The real engine, many nodes on one thread, in a world where things go wrong.
//!
//! A run follows from its seed alone. Time is virtual: it passes when everybody waits, so that minutes take milliseconds and
//! every instant is exact. Each node is a process with its own clocks, its own way to the store and a gate before all its
//! tasks; it crashes, freezes, is cut off from the store, and its wall clock jumps. The store fails, answers late or not at
//! all, and writes land long after their callers gave up or died. People hand in jobs, cancel, requeue and delete them. Then
//! all is calm for a while, and what was promised must have come about.
//!
//! ```text
//!   people ─▶ desks ┐
//!                   │   node ─ Witness ─ FaultyStore ┐
//!   world ─▶ gates ─┼─  node ─ Witness ─ FaultyStore ┼─ Truth ─ Recorder ─ MemoryStore
//!            clocks │   node ─ Witness ─ FaultyStore ┘
//!            skies  ┘            ╰──────── what happened ────────╯ ─▶ checks, coverage, trace
//! ```
//!
//! - [`plan`]: what a seed is drawn to
//! - [`world`]: the course of a run; [`process`], [`gate`], [`clock`]: one life of a node; [`work`]: what jobs do;
//!   [`people`]: what people do; [`forms`]: what they hand in; [`attic`]: what was there before
//! - [`record`]: what happened, in order, as [`recorder`] below the faults and [`witness`] above them saw it
//! - [`story`]: the same, sorted by whom it is about; [`eras`]: what was limited when; [`checks`]: what was promised; [`coverage`]: what was exercised;
//!   [`trace`]: lines for people
//! - [`batch`]: many seeds; [`found`]: the seeds by which each broken engine is found

pub mod attic;
pub mod batch;
pub mod checks;
pub mod clock;
pub mod coverage;
pub mod eras;
pub mod forms;
pub mod found;
pub mod gate;
pub mod lives;
pub mod people;
pub mod plan;
pub mod process;
pub mod record;
pub mod recorder;
pub mod story;
pub mod trace;
pub mod witness;
pub mod work;
pub mod world;

use std::sync::Arc;

use rota_engine::flaws::Flaw;

use checks::Violation;
use coverage::Coverage;
use plan::Plan;
use record::Entry;
use story::{Circumstances, Story};
use world::World;

/// What came of one seed.
pub struct Run {
    pub seed: u64,
    pub plan: Arc<Plan>,
    pub entries: Vec<Entry>,
    pub violations: Vec<Violation>,
    pub coverage: Coverage,
}

/// Runs one seed, on a thread that belongs to it, with an engine that is right or has a flaw.
pub fn run(seed: u64, flaw: Option<Flaw>) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (entries, plan) = runtime
        .expect("a runtime needs no more than memory")
        .block_on(async { World::new(Plan::draw(seed), flaw).run().await });
    let circumstances = Circumstances { lag: plan.lag.unwrap_or_default(), is_smooth: plan.is_smooth() };
    let story = Story::of(&entries, circumstances);
    let (violations, coverage) = (checks::violations(&story), Coverage::of(&story));
    Run { seed, plan, entries, violations, coverage }
}
