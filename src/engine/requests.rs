//! Commands of agents, except start and end of a session (`sessions`) and answers (`gates`).
//!
//! The stages of a request to run an action are in `pipeline`.
//!
//! Contract: every command gets exactly one reply, at once or when its gates are decided.

pub(crate) mod attempt;
pub(crate) mod completion;
pub(crate) mod context_request;
pub(crate) mod events;
pub(crate) mod report;
pub mod resolution;
