//! The real engine in a world where things go wrong: the promises hold, the same seed is the same run, and whoever breaks
//! a rule on purpose is found out.

use std::time::Duration;

use rota_engine::flaws::Flaw;
use rota_testkit::simulation::found::FOUND;
use rota_testkit::simulation::trace::fingerprint;
use rota_testkit::simulation::{batch, run};
use tokio::time::Instant;

/// How long seeds are run for.
const SPAN: Duration = Duration::from_secs(120);
/// How many are run at least, however long it takes.
const LEAST: u64 = 200;

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[test]
fn the_promises_hold_whatever_goes_wrong() {
    let began = Instant::now();
    let is_enough =
        |batch: &batch::Batch| !batch.failed.is_empty() || (batch.runs >= LEAST && began.elapsed() >= SPAN);
    let batch = batch::run_all(0, threads(), None, is_enough);
    println!("{}", batch.report());
    assert!(batch.failed.is_empty(), "{}", batch.report());
    for (what, count) in batch.coverage.counts() {
        assert_ne!(count, 0, "{what}: none in {} seeds, and so nothing is proven about it", batch.runs);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut prints = Vec::new();
    for seed in 0..6 {
        let print = fingerprint(&run(seed, None).entries);
        assert_eq!(fingerprint(&run(seed, None).entries), print, "seed {seed}");
        prints.push(print);
    }
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 6, "each seed is a run of its own");
}

#[test]
fn every_broken_engine_is_found_by_its_seed() {
    let known: Vec<Flaw> = FOUND.iter().map(|(flaw, ..)| *flaw).collect();
    assert_eq!(known, Flaw::ALL, "cargo xtask simulate --find-flaws prints the table");
    for (flaw, seed, check) in FOUND {
        let found: Vec<_> =
            run(seed, Some(flaw)).violations.iter().map(|violation| violation.check).collect();
        assert!(found.contains(&check), "{flaw:?} is not found by {check} in seed {seed}, only by {found:?}");
    }
}
