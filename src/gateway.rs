//! Everything between agents and the runtime.
//!
//! The servers of [`transport`] run in the console's process; [`hook`], [`connect`] and the clients run in processes of
//! their own (`cra hook`, `cra connect`). A hook over HTTP runs in the console. Each server translates its own protocol
//! into calls of [`crate::runtime::AgentHandle`].
//!
//! A server has only that handle and plain data: it cannot decide, and it does not know the console. All
//! servers translate what an agent sends into a [`protocol::call::AgentCall`]. The
//! [`transport::agent_connection::AgentConnection`] knows which sessions a connection may act for.
//!
//! - [`protocol`]: the calls, their faults, and the proof of an answer. It does no I/O.
//! - [`transport`]: the servers (socket, HTTP, MCP) and the clients that carry calls.
//! - [`agents`]: the coding agents, one adapter each: events, tools, answers, settings.
//! - [`hook`]: one step of a coding agent, from its event to a verdict of the console.
//! - [`connect`]: the hook entries in the settings of coding agents.
//! - [`simulated_agents`]: scripted agents for the demo.

pub mod agents;
pub mod connect;
pub mod hook;
pub mod protocol;
pub mod simulated_agents;
pub mod transport;
