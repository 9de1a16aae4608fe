//! What every room may use: time, identity, digests, canonical JSON, wildcard patterns, limits.
//!
//! Nothing here knows what an agent, a gate or an event is.

pub mod canon;
pub mod clock;
pub mod digest;
pub mod id;
pub mod limits;
pub mod pattern;
pub mod text;
