//! Arguments of commands about snapshot files.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReconstructArgs {
    /// Snapshot file, JSON of format 2; - for standard input
    #[arg(value_name = "FILE", required_unless_present = "glossary")]
    pub(in crate::cli) file: Option<PathBuf>,

    /// Phase to print
    #[arg(
        long,
        value_enum,
        default_value = "engage",
        conflicts_with = "artifact"
    )]
    pub(in crate::cli) phase: ReconstructPhase,

    /// Load an artifact that the file names, from the file or from its path
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) artifact: Option<String>,

    /// Explain the terms of snapshot files
    #[arg(long, conflicts_with_all = ["artifact", "phase"])]
    pub(in crate::cli) glossary: bool,

    /// Print JSON: all four phases, or the artifact
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// A phase of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ReconstructPhase {
    /// The values to read, in order
    Retrieve,
    /// The conclusions from these values
    Infer,
    /// The checks, passed and failed; exits with 4 when one fails
    Validate,
    /// The text to continue with
    Engage,
}
