//! Protocol between agents and the console: what is said, independent of the way it is carried.
//!
//! Owns the calls with their parameters and faults, JSON-RPC lines, questions to an agent, the texts for
//! agents that read only text, and the proof that an answer is the console's.
//!
//! Contract: only an action that may run is answered with a result; every other outcome is a fault. A
//! message that two parsers could read in two ways is refused. An answer without a valid proof is never
//! used by a caller that has a key.
//!
//! Does not open connections, know sessions or decide. [`super::transport`] carries and executes calls.

pub mod call;
pub mod proof;
pub(super) mod questions;
pub mod rejected_answers;
pub mod rpc;
pub(super) mod wording;
