//! Admission: the checks before a command of an agent is evaluated.
//!
//! This folder owns API keys, session ownership, request rates, malformed requests, bounds on live sessions,
//! and the tallies of misuse.
//!
//! Contract: a command that is not admitted gets a denial with a reason, and changes nothing except the
//! tallies. Admission grants no right: it never lets an action run.

pub(crate) mod access;
pub(crate) mod misuse;
pub(crate) mod request_admission;
pub(crate) mod session_limits;
