//! Random histories. One after the other, every answer must be the in-memory store's. Many at once, nobody can say what
//! the answer must be; but each applied write names its predecessor, and from these chains it can be said afterwards
//! whether the answers were possible.
//!
//! - [`wishes`]: random documents, changes and questions, made from what is declared
//! - [`twins`]: a store and its model, asked the same
//! - [`crowd`]: writers and claimers at once, and what they remember
//! - [`chains`]: whether what they remember can be true

mod chains;
mod crowd;
mod twins;
mod wishes;

use super::Subject;

/// Histories that differ, and are the same at each run.
const SEEDS: u64 = 20;
const STEPS: usize = 300;

pub async fn random_histories_are_the_models(store: Subject) {
    let mut twins = twins::Twins::new(store);
    for seed in 0..SEEDS {
        twins.live_through(seed, STEPS).await;
    }
}

pub async fn concurrent_histories_are_chains(store: Subject) {
    for seed in 0..2 {
        let crowd = crowd::Crowd::new(&store, seed);
        let events = crowd.live().await;
        crowd::judge(&store, seed, &events).await;
    }
}
