//! Each thing that can happen to a store, and that it happens as the simulator says. The clock is paused: a span passes
//! when everybody waits.
//!
//! - [`script`]: a fate that a test writes down, and the jobs it is tried on
//! - [`effects`]: calls that fail, are not answered, are torn, come late or take long
//! - [`past`]: finds, counts and claims that lag
//! - [`hints`]: hints that are lost, doubled and late
//! - [`runs`]: whole runs by dice, the same for the same seed
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

mod effects;
mod hints;
mod past;
mod runs;
mod script;
