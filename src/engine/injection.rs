//! Injection: contexts and guidance that replies carry to agents.
//!
//! This folder owns the selection of contexts, their budget, their validity, and the delivery with its
//! records.
//!
//! Contract: a session that has not passed its gates gets nothing. Injections that wait for a gate are
//! withheld, and are dropped if the gate is not passed. Nothing here lets an action run.

pub(crate) mod automatic_contexts;
pub(crate) mod cache;
pub(crate) mod contexts;
pub(crate) mod delivery;
pub mod withholding;
