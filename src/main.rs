//! `cra`: parse, run, exit code. Everything else is in the library.

use std::process::ExitCode;

/// Requests are made on one thread and dropped on another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cra_core::cli::main(std::env::args_os())
}
