//! Model Context Protocol: a proxy in front of a server, and a server of tools.

mod message;
pub mod proxy;
mod strict_transport;
pub mod tool_server;
