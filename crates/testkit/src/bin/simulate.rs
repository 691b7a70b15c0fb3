//! Runs the simulator from the command line; `cargo xtask simulate` builds and calls it.
#![expect(clippy::print_stdout, reason = "talking to a person is what this program is for")]

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rota_engine::flaws::Flaw;
use rota_testkit::simulation::{batch, run, trace};
use tokio::time::Instant;

/// Most of a run is small pieces of memory, and the system's allocator takes its time over them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Many nodes in a world where things go wrong, and whether the promises hold.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask simulate", max_term_width = 110)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them; alone, it is replayed and told line by line.
    #[arg(long)]
    from: Option<u64>,
    /// Run this seed alone, and tell what happened.
    #[arg(long)]
    seed: Option<u64>,
    /// With an engine that is broken in this way.
    #[arg(long, value_parser = flaw)]
    flaw: Option<Flaw>,
    /// Stop after this many minutes, whatever is left.
    #[arg(long)]
    minutes: Option<u64>,
    /// Look for a seed that finds each broken engine, and print the table of them.
    #[arg(long)]
    find_flaws: bool,
}

fn flaw(name: &str) -> Result<Flaw, String> {
    let known = Flaw::ALL.into_iter();
    known.clone().find(|flaw| format!("{flaw:?}") == name).ok_or_else(|| {
        let names: Vec<_> = known.map(|flaw| format!("{flaw:?}")).collect();
        format!("known are: {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_well = match arguments.seed {
        Some(seed) => replay(seed, arguments.flaw),
        None if arguments.find_flaws => find_flaws(arguments.seeds),
        None => run_many(&arguments),
    };
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn replay(seed: u64, flaw: Option<Flaw>) -> bool {
    let run = run(seed, flaw);
    println!("seed {seed}: {:?}", run.plan);
    print!("{}", trace::lines(&run.entries));
    println!("{}", run.coverage);
    for violation in &run.violations {
        println!("{violation}");
    }
    println!("seed {seed}: {} promises broken", run.violations.len());
    run.violations.is_empty()
}

fn run_many(arguments: &Arguments) -> bool {
    let began = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let is_enough = |batch: &batch::Batch| {
        let in_time = limit.is_none_or(|limit| began.elapsed() < limit);
        batch.runs + 1 > arguments.seeds || !in_time
    };
    let batch = batch::run_all(arguments.from.unwrap_or(0), threads(), arguments.flaw, is_enough);
    print!("{}", batch.report());
    println!("{} of {} seeds break a promise; {:.0?}", batch.failed.len(), batch.runs, began.elapsed());
    batch.failed.is_empty()
}

fn find_flaws(most: u64) -> bool {
    let mut all_found = true;
    for flaw in Flaw::ALL {
        match batch::find(flaw, 0, most, threads()) {
            Some((seed, check)) => println!("    (Flaw::{flaw:?}, {seed}, \"{check}\"),"),
            None => {
                println!("    // Flaw::{flaw:?} was not found in {most} seeds");
                all_found = false;
            }
        }
    }
    all_found
}
