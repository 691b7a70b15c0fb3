//! The program `rota`, with the job types that it comes with.

use std::process::ExitCode;

/// What one thread allocates another frees here, all the time; the system's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rota::Program::new().main()
}
