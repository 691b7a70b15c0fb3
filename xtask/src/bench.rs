//! `cargo xtask bench`: builds the crate `rota-bench` for release and hands it the rest of the command line.

use crate::invocation::Invocation;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure: `walk`.
    name: String,
    /// One JSON object per measurement instead of a table.
    #[arg(long)]
    json: bool,
    /// Handed to the bench as they are.
    #[arg(last = true)]
    args: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> bool {
    invocation(arguments).run_with_clean_stdout()
}

pub(crate) fn invocation(arguments: &Arguments) -> Invocation {
    Invocation::cargo(["run", "--release", "--package", "rota-bench", "--"])
        .args([&arguments.name])
        .args(arguments.json.then_some("--json"))
        .args(&arguments.args)
}
