//! The program `rota`: one binary that serves, and that asks what serves.
//!
//! Whoever has a job type of their own writes a program of ten lines that is Rota with that type. It has every command of
//! `rota`; `examples/await-file` is one, and `docs/guides/handlers.md` explains it:
//!
//! ```no_run
//! use rota::{Context, Handler, HandlerError, Map, Program, Value, async_trait, json};
//!
//! struct Greet;
//!
//! #[async_trait]
//! impl Handler for Greet {
//!     async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
//!         Ok(Map::from_iter([("greeted".to_owned(), job.payload["name"].clone())]))
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let schema = json!({"type": "object", "required": ["name"]});
//!     Program::new().job_type("greet", schema, Greet).main()
//! }
//! ```
//!
//! - [`program`]: what is run, and how it ends
//! - [`cli`], [`arguments`]: what can be said on the command line
//! - [`commands`]: one file per noun
//! - [`connection`], [`credentials`]: which Rota is meant, and with which key
//! - [`output`], [`exit`]: what a person or a script gets back
//! - [`config`], [`clock`], [`first_start`], [`banner`]: the parts of `rota up`

mod arguments;
mod banner;
mod cli;
mod clock;
mod commands;
mod config;
mod connection;
mod credentials;
mod exit;
mod first_start;
mod output;
mod program;
mod stores;

pub use program::Program;

pub use async_trait::async_trait;
pub use rota_engine::handler::{Context, Handler, HandlerError};
pub use rota_model::log::Level;
pub use serde_json::{Map, Value, json};
