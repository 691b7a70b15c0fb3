//! `cargo xtask soak`: what takes too long for every run, before a release and whenever its subject changes. A soak is a
//! test of the suite, told by its environment to go on for longer.

use clap::ValueEnum;

use crate::invocation::Invocation;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Soak {
    /// `kill -9` of a process that writes, 200 times, in a store with a million documents.
    Store,
    /// `kill -9` of Rota under load, 200 times, on one store.
    Jobs,
}

pub(crate) fn run(soak: Soak) -> bool {
    invocation(soak).run()
}

fn invocation(soak: Soak) -> Invocation {
    match soak {
        Soak::Store => {
            Invocation::cargo(["test", "--release", "--package", "rota-store-sqlite", "--test", "kill"])
                .args(["--", "--nocapture", "nothing_acknowledged_is_missing_after_a_kill"])
                .env("ROTA_KILL_ROUNDS", "200")
                .env("ROTA_KILL_CROWD", "1000000")
        }
        Soak::Jobs => Invocation::cargo(["test", "--release", "--package", "rota", "--test", "kill"])
            .args(["--", "--nocapture", "nothing_acknowledged_is_lost_and_nothing_is_recorded_twice"])
            .env("ROTA_KILL_ROUNDS", "200"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_a_test_that_goes_on_for_longer() {
        assert_eq!(
            invocation(Soak::Store).to_string(),
            "ROTA_KILL_ROUNDS=200 ROTA_KILL_CROWD=1000000 cargo test --release --package rota-store-sqlite --test kill -- \
             --nocapture nothing_acknowledged_is_missing_after_a_kill"
        );
        assert_eq!(
            invocation(Soak::Jobs).to_string(),
            "ROTA_KILL_ROUNDS=200 cargo test --release --package rota --test kill -- --nocapture \
             nothing_acknowledged_is_lost_and_nothing_is_recorded_twice"
        );
    }
}
