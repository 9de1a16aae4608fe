//! Exit codes. Scripts rely on them: a number never changes its meaning.

/// Success.
pub(super) const OK: u8 = 0;
/// A failure without a code of its own.
pub(super) const FAILURE: u8 = 1;
/// The command line is invalid, or a terminal is missing.
pub(super) const USAGE: u8 = 2;
/// An Atlas has errors.
pub(super) const LINT: u8 = 3;
/// An expectation of a scenario failed.
pub(super) const EXPECTATION: u8 = 4;
/// A request would be denied.
pub(super) const DENIED: u8 = 5;
/// A chain is broken.
pub(super) const BROKEN: u8 = 6;
