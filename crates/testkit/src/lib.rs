//! What tests share.
//!
//! - [`contract`]: one suite for every store
//! - [`documents`]: what a store holds, and whether two hold the same
//! - [`faults`]: a store to which things happen, for the simulator
//! - [`simulation`]: the real engine in a world where things go wrong
//! - [`surroundings`]: a clock that the test moves, and chance that repeats itself
//! - [`process`]: the real program as a child process; [`postgres`]: a real database server
//! - [`receiver`]: a real HTTP server that hands over what it was sent; [`relay`]: a network that fails
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this crate is only ever part of tests, where a surprise is a failure"
)]

pub mod contract;
pub mod documents;
pub mod faults;
pub mod postgres;
pub mod process;
pub mod receiver;
pub mod relay;
pub mod simulation;
pub mod surroundings;
