//! The type `http` against real servers.
//!
//! - [`calls`]: what is sent, what comes of the answer, and that a call has bounds
//! - [`reach`]: what it can be brought to connect to
//! - [`stage`]: the servers, a resolver that says what it is told to, and a job to run
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

mod calls;
mod reach;
mod stage;
