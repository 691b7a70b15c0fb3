//! Handlers at work: `http` against real servers, `exec` with real programs.
//!
//! - [`calls`]: what `http` sends, what comes of the answer, and that a call has bounds
//! - [`reach`]: what it can be brought to connect to
//! - [`programs`]: what `exec` runs, what becomes of what it says, and that nothing outlives the job
//! - [`stage`]: servers, a resolver that says what it is told to, and a job to run
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

mod calls;
mod programs;
mod reach;
mod stage;
