//! Binary `cra`: parses the arguments, runs the command, returns the exit code. The library does the rest.

use std::process::ExitCode;

/// Allocator that is fast when one thread allocates requests and another drops them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cra_core::cli::main(std::env::args_os())
}
