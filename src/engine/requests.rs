//! Commands of agents: one file for each kind of request or report, as a list of stages.
//!
//! This folder owns the order of the stages. The stages themselves are in `admission`, `evaluation`,
//! `extensions`, `gates`, `injection` and `records`.
//!
//! Contract: every command gets exactly one reply, at once or when its gates are decided.

pub(crate) mod attempt;
pub(crate) mod completion;
pub(crate) mod context_request;
pub(crate) mod events;
pub(crate) mod report;
pub mod resolution;
