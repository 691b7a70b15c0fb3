//! Handlers that reach out of Rota. What they may reach is a matter of configuration, and little by default.
//!
//! - [`http`]: the job type `http`, a call of a URL
//!
//! A handler gets a checked configuration, and time as part of its surroundings. It knows its job, and no store.

pub mod http;
