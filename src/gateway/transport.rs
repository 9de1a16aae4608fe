//! Transports that carry calls: the unix socket, HTTP, MCP and ACP over standard streams, and the clients.
//!
//! Owns sockets and listeners, the admission of connections, limits per connection and per caller, the
//! check that a caller owns its session, and the execution of calls with the runtime's agent handle.
//!
//! Contract: a caller reaches [`crate::runtime::AgentHandle`] only through
//! [`agent_connection::AgentConnection`], which checks the owner of the session. A caller that disconnects
//! withdraws its request. A server that is dropped closes its connections, which is a denial for every
//! caller that waits.
//!
//! Does not decide, and does not know the formats of coding agents: [`super::agents`] does.

pub mod acp;
mod admission;
pub mod agent_connection;
mod call_execution;
mod caller_limits;
pub mod client;
pub mod console_session;
pub mod gateway_state;
pub mod http;
pub mod mcp;
pub mod socket_lock;
mod stdio;
pub mod unix_server;
