//! Servers for agents. Each server translates its own protocol into calls of [`crate::runtime::AgentHandle`].
//!
//! A server has only that handle and plain data: it cannot decide, and it does not know the console. All
//! servers translate what an agent sends into a [`call::AgentCall`]. The [`agent_connection::AgentConnection`] knows which
//! sessions a connection may act for.

mod admission;
pub mod agent_connection;
pub mod call;
mod caller_limits;
pub mod client;
pub mod connect;
pub mod gateway_state;
pub mod hook;
pub mod http;
pub mod mcp;
pub mod proof;
mod questions;
pub mod rejected_answers;
pub mod rpc;
pub mod simulated_agents;
pub mod socket_lock;
pub mod unix_server;
mod wording;
