//! Many seeds, side by side on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rota_engine::flaws::Flaw;

use super::checks::Violation;
use super::coverage::Coverage;
use super::{Run, run};

/// What came of many runs.
#[derive(Debug, Default)]
pub struct Batch {
    pub runs: u64,
    pub coverage: Coverage,
    /// The seeds that failed, with what was found.
    pub failed: Vec<(u64, Vec<Violation>)>,
}

impl Batch {
    fn take(&mut self, run: Run) {
        self.runs += 1;
        self.coverage.add(&run.coverage);
        if !run.violations.is_empty() {
            self.failed.push((run.seed, run.violations));
        }
    }

    /// For people: what happened, and how to see it again.
    pub fn report(&self) -> String {
        let mut text = format!("{} seeds\n{}\n", self.runs, self.coverage);
        for (seed, violations) in &self.failed {
            text += &format!("\nseed {seed} breaks a promise: cargo xtask simulate --seed {seed}\n");
            for violation in violations.iter().take(5) {
                text += &format!("{violation}\n");
            }
        }
        text
    }
}

/// Runs seeds from the first on, until told that it is enough, or one of them says so.
pub fn run_all(
    first: u64,
    threads: usize,
    flaw: Option<Flaw>,
    is_enough: impl Fn(&Batch) -> bool + Sync,
) -> Batch {
    let (next, batch) = (AtomicU64::new(first), Mutex::new(Batch::default()));
    let work = || {
        while !is_enough(&batch.lock().unwrap()) {
            let run = run(next.fetch_add(1, Ordering::Relaxed), flaw);
            batch.lock().unwrap().take(run);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut batch = batch.into_inner().unwrap();
    batch.failed.sort_by_key(|(seed, _)| *seed);
    batch
}

/// The first seed by which a broken engine is found, and the check that finds it.
pub fn find(flaw: Flaw, first: u64, most: u64, threads: usize) -> Option<(u64, &'static str)> {
    let batch = run_all(first, threads, Some(flaw), |batch| batch.runs >= most || !batch.failed.is_empty());
    batch.failed.first().map(|(seed, violations)| (*seed, violations[0].check))
}
