//! Doors for agents. Each turns its own protocol into calls of [`crate::runtime::Agents`].
//!
//! A door sees nothing but that handle and plain data: it cannot decide, and it does not know the
//! console.

pub mod simulated;
