//! TRACE: the record. Event types, the hash chain, and its verification.
//!
//! A component that observes an event drafts it ([`event::Draft`]). [`chain::Chain`] seals the draft
//! into its session's chain; after that the event never changes. Verification is a separate module that
//! shares only the hash with the writer.
//!
//! This module also reads records back from any [`source::EventSource`]: step by step ([`replay`]), one
//! session compared with another ([`diff`]), and as a file for other tools ([`export`]).

pub mod chain;
pub(crate) mod details;
pub mod diff;
pub mod event;
pub mod export;
pub mod filter;
pub mod governance;
pub mod hash;
pub mod head;
pub mod jsonl;
pub mod merkle_tree;
pub mod note;
pub mod outline;
pub mod record;
pub mod replay;
pub mod source;
mod spans;
pub mod summary;
pub mod verification;

pub use spans::SpanDepths;

#[cfg(test)]
mod tests;
