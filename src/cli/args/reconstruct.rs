//! Arguments of commands about snapshot files.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReconstructArgs {
    /// The snapshot file, JSON of format 2; - for standard input
    #[arg(value_name = "FILE", required_unless_present = "glossary")]
    pub(in crate::cli) file: Option<PathBuf>,

    /// One phase alone: what is read, what follows from it, what is missing, or the text to go on with
    #[arg(
        long,
        value_enum,
        default_value = "engage",
        conflicts_with = "artifact"
    )]
    pub(in crate::cli) phase: ReconstructPhase,

    /// Load one of the artifacts that the file names: out of the file, or from the path that it gives
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) artifact: Option<String>,

    /// Say what the words of snapshot files mean
    #[arg(long, conflicts_with_all = ["artifact", "phase"])]
    pub(in crate::cli) glossary: bool,

    /// Print JSON: all four phases, or the artifact
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// A phase of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ReconstructPhase {
    /// What is read, in its order
    Retrieve,
    /// What follows from it
    Infer,
    /// What is clear and what is not; exits with 4 when something is not
    Validate,
    /// The text to go on with
    Engage,
}
