//! The program `rota`: one binary that serves, and that asks what serves.
//!
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

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::runtime::Runtime;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};

/// What one thread allocates another frees here, all the time; the system's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is still under way when a command is done is not waited for much longer.
const LEFTOVERS: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let done = Runtime::new().map_err(|error| Failure::new(Exit::Unreachable, error.to_string())).and_then(
        |runtime| {
            let done = runtime.block_on(commands::run(Cli::parse()));
            runtime.shutdown_timeout(LEFTOVERS);
            done
        },
    );
    match done {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            output::complain(&failure);
            failure.exit.into()
        }
    }
}
