//! TRACE: the record. Event types, the hash chain, and its verification.
//!
//! An event is drafted by whoever saw it happen ([`event::Draft`]), sealed into its session's chain
//! ([`chain::Chain`]) and from then on never changed. Verification is a module of its own that shares
//! no code with the writer but the hash itself.

pub mod chain;
pub mod event;
pub mod hash;
pub mod head;
pub mod jsonl;
pub mod note;
pub mod record;
pub mod tree;
pub mod verify;

#[cfg(test)]
mod tests;
