//! Sessions: their state, start, end and succession, and the changes that concern all of them.
//!
//! This folder owns the state of a session, restoration after a restart, reloads of Atlases, and steps of the
//! wall clock.
//!
//! Contract: a session acts only while its start gates are passed under the loaded Atlases. The identifier of
//! an ended session is never used again.

pub(crate) mod clock_step;
pub(crate) mod ended_sessions;
pub(crate) mod lifecycle;
pub mod reload;
pub(crate) mod restoration;
pub mod session;
pub(crate) mod successor;
