//! Basics for all modules: time, identity, digests, canonical JSON, wildcard patterns, limits.
//!
//! This module does not know agents or gates; of events it knows only the names.

pub mod address;
pub mod atomic_file;
pub mod canonical_json;
pub mod clock;
pub mod clock_step;
pub mod digest;
pub mod event_type;
pub mod id;
pub mod json;
pub mod limits;
#[cfg(feature = "app")]
pub mod open_files;
pub mod operator;
pub mod pattern;
pub mod retention;
pub mod text;
