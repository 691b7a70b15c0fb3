//! What Rota costs, measured: `cargo xtask bench NAME`. Nothing is asserted here.
//!
//! - [`calendar`]: instants of schedules, beside cron crates
//! - [`jobs`]: jobs from their submission to their end
//! - [`store`]: stores, beside plain SQLite and plain PostgreSQL
//! - [`ground`]: which store that is
//! - [`report`]: a table for people, or one JSON object per line
//! - [`connection`]: HTTP with as little of a client as possible
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints, and a surprise ends it"
)]

mod calendar;
mod connection;
mod ground;
mod jobs;
mod report;
mod store;

use clap::{Parser, Subcommand};

/// The allocator of the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "bench", about = "Measures Rota on this machine")]
struct Arguments {
    /// One JSON object per line and measurement
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Jobs per second from submit to end, the drain of a queue, and the time from submit to handler start
    Jobs(jobs::Options),
    /// Stores: batches, single writes, claims, reads, a million finished jobs
    Store(store::Options),
    /// Instants of schedules, in UTC and in zones, beside the fastest of three cron crates
    Calendar(calendar::Options),
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let measurements = match arguments.bench {
        Bench::Jobs(options) => jobs::run(&options).await,
        Bench::Store(options) => store::run(&options).await,
        Bench::Calendar(options) => calendar::run(&options),
    };
    report::print(&measurements, arguments.json);
}
