//! Handlers that reach out of Rota. What they may reach is a matter of configuration, and little by default.
//!
//! - [`http`]: the job type `http`, a call of a URL
//! - [`exec`]: the job type `exec`, a program that the operator named
//!
//! A handler gets a checked configuration, and time as part of its surroundings. It knows its job, and no store.

pub mod exec;
pub mod http;
