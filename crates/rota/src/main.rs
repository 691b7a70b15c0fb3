//! The program `rota`: one binary that serves, and that asks what serves.
//!
//! - [`cli`], [`arguments`]: what can be said on the command line
//! - [`commands`]: one file per noun
//! - [`connection`], [`credentials`]: which Rota is meant, and with which key
//! - [`output`], [`exit`]: what a person or a script gets back
//! - [`config`], [`clock`], [`first_start`], [`banner`]: the parts of `rota up`

#![expect(clippy::print_stdout, reason = "`rota up` greets whoever started it")]

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

use clap::Parser as _;

use crate::cli::Cli;
use crate::exit::Exit;

/// What one thread allocates another frees here, all the time; the system's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(Cli::parse()).await {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            output::complain(&failure);
            failure.exit.into()
        }
    }
}
