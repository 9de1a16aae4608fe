//! Doors for agents. Each turns its own protocol into calls of [`crate::runtime::Agents`].
//!
//! A door sees nothing but that handle and plain data: it cannot decide, and it does not know the
//! console. What agents say at every door is a [`call::Call`]; whose sessions they may speak for is known to
//! the [`visitor::Visitor`].

mod admission;
pub mod call;
pub mod client;
pub mod connect;
pub mod hall;
pub mod hook;
pub mod http;
pub mod mcp;
mod peer;
pub mod place;
pub mod proof;
mod questions;
pub mod rejected;
pub mod rpc;
pub mod simulated;
pub mod socket;
pub mod visitor;
mod words;
