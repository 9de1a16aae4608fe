//! Servers for agents. Each server translates its own protocol into calls of [`crate::runtime::Agents`].
//!
//! A server has only that handle and plain data: it cannot decide, and it does not know the console. All
//! servers translate what an agent sends into a [`call::Call`]. The [`visitor::Visitor`] knows which
//! sessions a connection may act for.

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
