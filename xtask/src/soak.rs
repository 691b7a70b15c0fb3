//! `cargo xtask soak`: what takes too long for every run, before a release and whenever its subject changes. A soak is
//! what the suite runs too, told to go on for longer.

use clap::ValueEnum;

use crate::invocation::Invocation;
use crate::simulate::simulator;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Soak {
    /// `kill -9` of a process that writes, 200 times, in a store with a million documents.
    Store,
    /// 20,000 seeds of the simulator, and a search for each broken engine.
    Simulate,
    /// `kill -9` of Rota under load, 200 times, on one store.
    Jobs,
    /// 100,000 jobs on several nodes and one PostgreSQL, while nodes and store come and go.
    Cluster,
    /// A program of the version before, built from the history, replaced node by node under load.
    Upgrade,
}

/// A commit whose tables in PostgreSQL are those of version 2; the store makes those of version 3 since f3c5f25.
const PREVIOUS: &str = "f41d7377ed5592ba5e04f56ed0d02b9d0620b206";

pub(crate) fn run(soak: Soak) -> bool {
    // All of them, even after one failed.
    let succeeded: Vec<bool> = invocations(soak).iter().map(Invocation::run).collect();
    succeeded.into_iter().all(|succeeded| succeeded)
}

fn invocations(soak: Soak) -> Vec<Invocation> {
    match soak {
        Soak::Simulate => {
            vec![simulator().args(["--seeds", "20000"]), simulator().args(["--find-flaws", "--seeds", "500"])]
        }
        Soak::Store => vec![
            Invocation::cargo(["test", "--release", "--package", "rota-store-sqlite", "--test", "kill"])
                .args(["--", "--nocapture", "nothing_acknowledged_is_missing_after_a_kill"])
                .env("ROTA_KILL_ROUNDS", "200")
                .env("ROTA_KILL_CROWD", "1000000"),
        ],
        Soak::Jobs => vec![
            Invocation::cargo(["test", "--release", "--package", "rota", "--test", "kill"])
                .args(["--", "--nocapture", "nothing_acknowledged_is_lost_and_nothing_is_recorded_twice"])
                .env("ROTA_KILL_ROUNDS", "200"),
        ],
        Soak::Cluster => vec![
            cluster("nothing_is_lost_or_doubled_while_nodes_and_store_come_and_go")
                .env("ROTA_CLUSTER_JOBS", "100000"),
            cluster("a_dead_node_is_taken_over_and_a_frozen_one_refused"),
        ],
        Soak::Upgrade => vec![
            Invocation::new("sh", ["-c"]).args([format!(
                "mkdir -p target/previous && git archive {PREVIOUS} | tar -x -C target/previous"
            )]),
            Invocation::cargo(["build", "--release", "--package", "rota"]).args([
                "--manifest-path",
                "target/previous/Cargo.toml",
                "--target-dir",
                "target/previous/target",
            ]),
            cluster("a_rolling_restart_and_upgrade_lose_no_request_that_is_tried_once_more")
                .env("ROTA_PREVIOUS_PROGRAM", "../../target/previous/target/release/rota"),
        ],
    }
}

fn cluster(test: &str) -> Invocation {
    let cluster = Invocation::cargo(["test", "--release", "--package", "rota", "--test", "cluster"]);
    cluster.args(["--", "--nocapture", test])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_a_test_that_goes_on_for_longer() {
        assert_eq!(
            invocations(Soak::Store)[0].to_string(),
            "ROTA_KILL_ROUNDS=200 ROTA_KILL_CROWD=1000000 cargo test --release --package rota-store-sqlite --test kill -- \
             --nocapture nothing_acknowledged_is_missing_after_a_kill"
        );
        assert_eq!(
            invocations(Soak::Jobs)[0].to_string(),
            "ROTA_KILL_ROUNDS=200 cargo test --release --package rota --test kill -- --nocapture \
             nothing_acknowledged_is_lost_and_nothing_is_recorded_twice"
        );
    }
}
