//! `cra`: parse, run, exit code. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cra_core::cli::main(std::env::args_os())
}
