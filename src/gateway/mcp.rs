//! Model Context Protocol: a proxy in front of a server, and a server of tools.

mod gate;
mod message;
pub mod proxy;
pub mod tools;
mod transport;

pub use gate::ConsoleIdentity;
