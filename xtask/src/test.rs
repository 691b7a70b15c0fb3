//! `cargo xtask test`: the steps that CI asks for, in order.
//!
//! Every step runs, so that a stray space does not hide a broken test. The exception are tests that do not build:
//! what comes after them would print the same errors again.

use std::env;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::invocation::Invocation;
use crate::summary::{self, Line, Outcome, Style};
use crate::{setup, tidy};

/// Everything that has tests, except benches, which measure and take their time over it.
pub(crate) const TARGETS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Install what the other steps need.
    SetUp,
    /// Formatting, as rustfmt.toml asks.
    Format,
    /// The linter on all code, tests and benches included.
    Clippy,
    /// What `cargo xtask tidy` checks.
    Tidy,
    /// Unit and integration tests, and those of the examples.
    Tests,
    /// The examples in the documentation.
    DocTests,
    /// The documentation itself: links lead somewhere.
    Docs,
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self) -> Outcome {
        match self {
            Self::SetUp => Outcome::of(setup::run()),
            Self::Format => Outcome::of(format(Style::of_stdout()).run()),
            Self::Clippy => Outcome::of(clippy().run()),
            Self::Tidy => Outcome::of(tidy::run()),
            Self::Tests => tests(),
            Self::DocTests => Outcome::of(doc_tests().run()),
            Self::Docs => Outcome::of(docs().run()),
        }
    }
}

/// What a person may leave out where it cannot run, by the variable that says so.
const LEFT_OUT: [(&str, &str); 2] = [
    ("ROTA_TEST_WITHOUT_MOUNT", "a full disk (crates/store-sqlite/tests/full_disk.rs)"),
    (setup::python::WITHOUT, "requests generated from the contract (crates/rota/tests/generated)"),
];

/// Runs all steps or one, shows the summary, and says whether all went well.
pub(crate) fn run(only: Option<Step>) -> bool {
    let steps = only.map_or_else(|| Step::value_variants().to_vec(), |step| vec![step]);
    let style = Style::of_stdout();
    let lines = run_each(&steps, |step| {
        println!("{}", style.bold(&format!("── {}", step.name())));
        let (outcome, took) = timed(|| step.run());
        let line = Line { step: step.name(), outcome, took };
        println!("── {}\n", line.show(style));
        line
    });
    let left_out = left_out(|variable| env::var_os(variable).is_some());
    for test in &left_out {
        println!("{}", style.bold(&format!("LEFT OUT: {test}")));
    }
    println!("{}", summary::show(&lines, style));
    summary::passed(&lines) && may_be_left_out(&left_out, env::var_os("CI").is_some())
}

fn left_out(is_set: impl Fn(&str) -> bool) -> Vec<String> {
    let said = LEFT_OUT.iter().filter(|(variable, _)| is_set(variable));
    said.map(|(variable, test)| format!("{test}, since {variable} is set")).collect()
}

/// Where nobody looks at the words, nothing may be missing.
fn may_be_left_out(left_out: &[String], in_ci: bool) -> bool {
    let may = left_out.is_empty() || !in_ci;
    if !may {
        eprintln!("in CI nothing may be left out");
    }
    may
}

fn run_each(steps: &[Step], mut run: impl FnMut(Step) -> Line) -> Vec<Line> {
    let mut builds = true;
    let mut run_or_pass_over = |&step: &Step| {
        if !builds {
            return Line { step: step.name(), outcome: Outcome::NotRun, took: Duration::ZERO };
        }
        let line = run(step);
        builds = line.outcome != Outcome::FailedToBuild;
        line
    };
    steps.iter().map(&mut run_or_pass_over).collect()
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing here is simulated")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}

/// rustfmt colours its diff even where nobody sees colours, unless it is told.
fn format(style: Style) -> Invocation {
    let plain: &[&str] = if style.has_colour() { &[] } else { &["--", "--color", "never"] };
    Invocation::cargo(["fmt", "--all", "--check"]).args(plain.iter().copied())
}

fn clippy() -> Invocation {
    Invocation::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Builds first, on its own: that is how a broken build is told from a failing test.
fn tests() -> Outcome {
    let tests = test_runner();
    if !tests.clone().args(["--no-run"]).run() {
        return Outcome::FailedToBuild;
    }
    Outcome::of(tests.args(["--no-fail-fast"]).run())
}

/// cargo-nextest where it is installed: it runs the tests of all crates side by side.
fn test_runner() -> Invocation {
    let has_nextest = Invocation::cargo(["nextest", "--version"]).works();
    let runner: &[&str] = if has_nextest { &["nextest", "run"] } else { &["test"] };
    Invocation::cargo(runner.iter().copied()).args(["--workspace"]).args(TARGETS)
}

fn doc_tests() -> Invocation {
    Invocation::cargo(["test", "--workspace", "--doc", "--no-fail-fast"])
}

fn docs() -> Invocation {
    Invocation::cargo(["doc", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", "-D warnings")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(outcome_of: impl Fn(Step) -> Outcome) -> Vec<(String, Outcome)> {
        let line = |step: Step| Line { step: step.name(), outcome: outcome_of(step), took: Duration::ZERO };
        let lines = run_each(Step::value_variants(), line);
        lines.into_iter().map(|line| (line.step, line.outcome)).collect()
    }

    #[test]
    fn steps_run_in_the_order_of_their_needs() {
        let names: Vec<_> = outcomes(|_| Outcome::Passed).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["set-up", "format", "clippy", "tidy", "tests", "doc-tests", "docs"]);
    }

    #[test]
    fn a_failure_does_not_hide_what_comes_after_it() {
        let all = outcomes(|step| Outcome::of(!matches!(step, Step::Format | Step::Tests)));
        assert!(all.iter().all(|(_, outcome)| *outcome != Outcome::NotRun), "{all:?}");
    }

    #[test]
    fn a_broken_build_ends_the_run() {
        let broken = |step| if step == Step::Tests { Outcome::FailedToBuild } else { Outcome::Passed };
        let last: Vec<_> = outcomes(broken).into_iter().skip(5).collect();
        assert_eq!(last, [("doc-tests".to_owned(), Outcome::NotRun), ("docs".to_owned(), Outcome::NotRun)]);
    }

    #[test]
    fn what_is_left_out_is_named_and_fails_ci() {
        assert!(may_be_left_out(&left_out(|_| false), true));
        let named = left_out(|variable| variable == setup::python::WITHOUT);
        assert!(named.len() == 1 && named[0].contains("generated"), "{named:?}");
        assert!(may_be_left_out(&named, false) && !may_be_left_out(&named, true));
    }

    #[test]
    fn broken_links_fail_the_documentation() {
        assert_eq!(
            docs().to_string(),
            "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items"
        );
    }

    #[test]
    fn benches_are_not_tests() {
        let command = test_runner().to_string();
        assert!(!command.contains("--all-targets") && !command.contains("--benches"), "{command}");
    }
}
