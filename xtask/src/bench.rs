//! `cargo xtask bench`: builds the program and the crate `rota-bench` for release, and hands the latter the rest of the
//! command line. It finds the program beside itself.

use crate::invocation::Invocation;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure: `jobs`, `store` or `calendar`.
    name: String,
    /// The store that is measured, where there is a choice: `sqlite` or `postgres`.
    #[arg(long)]
    on: Option<String>,
    /// One JSON object per measurement instead of a table.
    #[arg(long)]
    json: bool,
    /// Handed to the bench as they are.
    #[arg(last = true)]
    args: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> bool {
    let program = Invocation::cargo(["build", "--release", "--package", "rota"]);
    program.run_with_clean_stdout() && invocation(arguments).run_with_clean_stdout()
}

pub(crate) fn invocation(arguments: &Arguments) -> Invocation {
    Invocation::cargo(["run", "--release", "--package", "rota-bench", "--"])
        .args([&arguments.name])
        .args(arguments.json.then_some("--json"))
        .args(arguments.on.iter().flat_map(|on| ["--on", on]))
        .args(&arguments.args)
}
