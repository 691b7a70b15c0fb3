//! `cargo xtask simulate`: the real engine in a world where things go wrong. Builds the simulator of `rota-testkit`, fast
//! and with its checks of arithmetic on, and hands it the command line as it is.

use crate::invocation::Invocation;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many seeds to run; 1,000 if left out.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of them.
    #[arg(long)]
    from: Option<u64>,
    /// Run this seed alone, and tell what happened line by line.
    #[arg(long)]
    seed: Option<u64>,
    /// With an engine that is broken in this way, e.g. `LossCostsAttempt`.
    #[arg(long)]
    flaw: Option<String>,
    /// Stop after this many minutes, whatever is left.
    #[arg(long)]
    minutes: Option<u64>,
    /// Look for a seed that finds each broken engine, and print the table of them.
    #[arg(long)]
    find_flaws: bool,
}

pub(crate) fn run(arguments: &Arguments) -> bool {
    simulator().args(passed_on(arguments)).run_with_clean_stdout()
}

pub(crate) fn simulator() -> Invocation {
    Invocation::cargo([
        "run",
        "--profile",
        "simulation",
        "--package",
        "rota-testkit",
        "--bin",
        "simulate",
        "--",
    ])
}

fn passed_on(arguments: &Arguments) -> Vec<String> {
    let numbers = [
        ("--seeds", arguments.seeds),
        ("--from", arguments.from),
        ("--seed", arguments.seed),
        ("--minutes", arguments.minutes),
    ];
    let numbers =
        numbers.into_iter().filter_map(|(name, number)| Some([name.to_owned(), number?.to_string()]));
    let flaw = arguments.flaw.iter().map(|flaw| ["--flaw".to_owned(), flaw.clone()]);
    let find = arguments.find_flaws.then(|| "--find-flaws".to_owned());
    numbers.chain(flaw).flatten().chain(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_passed_on() {
        let arguments = Arguments {
            seeds: None,
            from: None,
            seed: Some(7),
            flaw: Some("LossCostsAttempt".to_owned()),
            minutes: None,
            find_flaws: false,
        };
        assert_eq!(
            simulator().args(passed_on(&arguments)).to_string(),
            "cargo run --profile simulation --package rota-testkit --bin simulate -- --seed 7 --flaw LossCostsAttempt"
        );
    }
}
