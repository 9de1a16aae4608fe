//! The Model Context Protocol: in front of a server, and as a server.

mod gate;
mod message;
pub mod proxy;
pub mod tools;
mod transport;

pub use gate::Guest;
