//! The steward's manifest: the points where agents must stop, and the reasons.
//!
//! A [`Manifest`](document::AtlasManifest) holds the text as the steward wrote it. An [`Atlas`] is a validated
//! manifest: every reference is resolved, every pattern compiled, every limit applied. Only an `Atlas` reaches the
//! engine. An `Atlas` with an error cannot exist: loading returns either the complete Atlas or every problem at
//! once, each with its position.
//!
//! The stages of loading: text, then a tree of nodes with their positions (`yaml`), then the manifest (`decode`),
//! then the Atlas (`prove`). All stages report into one list of problems. A validated Atlas is [indexed](index), so
//! that a decision does not need to scan it.
//!
//! This module reads files and text; it makes no decision about agents.

pub mod builder;
pub mod comparison;
pub mod condition;
mod decoder;
pub mod diagnostic;
pub mod document;
pub mod index;
pub mod keyword;
pub mod loader;
pub(crate) mod located_values;
pub mod model;
pub mod origin;
pub mod recording;
pub mod redaction;
pub mod reference;
mod suggest;
mod validate;
mod yaml;

pub use diagnostic::Diagnostic;
pub use loader::{
    LoadError, LoadOutcome, ManifestTransform, lint_file, lint_file_with, load_file,
    load_file_with, load_str, load_str_with,
};
pub use model::Atlas;
pub use validate::KnownExtensions;
