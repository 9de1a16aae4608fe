//! The steward's manifest: where agents must stop, and for what.
//!
//! A [`Manifest`](document::AtlasManifest) is what was written; an [`Atlas`] is what
//! was proven: every reference resolved, every pattern compiled, every limit applied. Only an `Atlas`
//! reaches the engine, and an `Atlas` with an error does not exist: loading gives either all of it or
//! every problem at once, each with its place.
//!
//! The way of a file: text, then a tree of nodes that know their places (`yaml`), then the manifest
//! (`decode`), then the Atlas (`prove`). Each step reports into the same list of problems. A proven
//! Atlas is [indexed](index), so that nobody has to read through it to decide.
//!
//! This room reads files and text; it decides nothing about agents.

pub mod builder;
pub mod compare;
pub mod compiled;
pub mod condition;
mod decode;
pub mod diagnostic;
pub mod document;
pub mod index;
pub mod keyword;
pub mod load;
mod nearest;
pub mod origin;
mod prove;
pub mod recording;
pub mod redact;
pub mod reference;
pub(crate) mod written;
mod yaml;

pub use compiled::Atlas;
pub use diagnostic::Diagnostic;
pub use load::{
    Configure, LoadError, Loaded, lint_file, lint_file_with, load_file, load_file_with, load_str,
    load_str_with,
};
pub use prove::KnownExtensions;
