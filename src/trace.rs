//! TRACE: the record. Event types, the hash chain, and its verification.
//!
//! An event is drafted by whoever saw it happen ([`event::Draft`]), sealed into its session's chain
//! ([`chain::Chain`]) and from then on never changed. Verification is a module of its own that shares
//! no code with the writer but the hash itself.
//!
//! Reading it back is here too, over anything that is a [`source::Source`]: step by step
//! ([`replay`]), one session against another ([`diff`]), and as a file for others ([`export`]).

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
pub mod note;
pub mod outline;
pub mod record;
pub mod replay;
pub mod source;
mod spans;
pub mod tell;
pub mod tree;
pub mod verify;

pub use spans::Depths;

#[cfg(test)]
mod tests;
