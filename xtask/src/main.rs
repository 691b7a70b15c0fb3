//! `cargo xtask`: the one way to test, measure and tidy Rota, for a person and for CI.
//!
//! - [`mod@test`]: every step that CI asks for, set-up included, and a summary
//! - [`tidy`]: what the compiler and the linter do not check about the tree
//! - [`bless`]: takes what the program now produces as the new golden files
//! - [`mod@bench`]: builds and runs one measurement
//! - [`simulate`]: runs the engine in a world where things go wrong
//! - [`soak`]: runs a test for much longer

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to a person is what this program is for"
)]

mod bench;
mod bless;
mod invocation;
mod setup;
mod simulate;
mod soak;
mod summary;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// The tasks of this repository.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", max_term_width = 110)]
enum Task {
    /// Set up and run everything that CI asks for, with a summary at the end.
    ///
    /// The steps run in the order listed below. All of them run, even after one failed, unless the tests do not
    /// build: then nothing after them can.
    Test {
        /// Run this step alone.
        #[arg(long, value_name = "STEP")]
        only: Option<test::Step>,
    },
    /// Check what neither compiler nor linter check: sizes, names, arrows between crates, stray text.
    ///
    /// Every problem is printed as `path:line: sentence`. CONTRIBUTING.md says what is asked and why.
    Tidy,
    /// Write the golden files anew, from what the program now produces.
    ///
    /// Runs the tests whose names begin with `golden_` with ROTA_BLESS=1. Afterwards `git diff` shows what changed.
    Bless,
    /// Build and run one measurement: `jobs`, `store` or `calendar`, e.g. `cargo xtask bench jobs --json`.
    Bench(bench::Arguments),
    /// Run the engine in a world where things go wrong, seed by seed, and check that the promises hold.
    ///
    /// A seed that fails is told with the command that replays it: `cargo xtask simulate --seed 7`.
    Simulate(simulate::Arguments),
    /// Run a test for much longer than every run allows.
    Soak { name: soak::Soak },
}

fn main() -> ExitCode {
    let succeeded = match Task::parse() {
        Task::Test { only } => test::run(only),
        Task::Tidy => tidy::run(),
        Task::Bless => bless::run(),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Simulate(arguments) => simulate::run(&arguments),
        Task::Soak { name } => soak::run(name),
    };
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Task::command().debug_assert();
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let error = Task::try_parse_from(["xtask", "test", "--only", "everything"]).unwrap_err().to_string();
        for step in ["set-up", "format", "clippy", "tidy", "tests", "doc-tests", "docs"] {
            assert!(error.contains(step), "{step} is missing in: {error}");
        }
    }

    #[test]
    fn what_follows_two_dashes_belongs_to_the_bench() {
        let task = Task::try_parse_from(["xtask", "bench", "jobs", "--json", "--", "--jobs", "10"]).unwrap();
        let Task::Bench(arguments) = task else { panic!("{task:?}") };
        assert_eq!(
            bench::invocation(&arguments).to_string(),
            "cargo run --release --package rota-bench -- jobs --json --jobs 10"
        );
    }
}
