//! `cra` with checkpoints written in Rust: every command of the shipped program, and a plugin of one's own.
//!
//! ```text
//! cargo run --example sentiment -- atlas types
//! cargo run --example sentiment -- run examples/sentiment/scenario.yaml
//! cargo run --example sentiment -- --atlas examples/sentiment/atlas.yaml
//! ```
//!
//! Denied requests are also written to the file that `SUPPORT_BLOCKED` names.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

mod plugin;

fn main() -> ExitCode {
    let blocked = std::env::var_os("SUPPORT_BLOCKED").map(PathBuf::from);
    match plugin::registry(blocked) {
        Ok(registry) => cra_core::cli::main_with(registry, std::env::args_os()),
        Err(error) => {
            // The exit code says it too.
            let _ = writeln!(std::io::stderr().lock(), "{error}");
            ExitCode::FAILURE
        }
    }
}
