//! Exit codes. Scripts rely on them: a number never changes its meaning.

/// All is well.
pub(super) const OK: u8 = 0;
/// Something failed that none of the others names.
pub(super) const FAILURE: u8 = 1;
/// The command line makes no sense, or there is no terminal to work in.
pub(super) const USAGE: u8 = 2;
/// An Atlas has errors.
pub(super) const LINT: u8 = 3;
/// An expectation of a scenario does not hold.
pub(super) const EXPECTATION: u8 = 4;
/// A request would be denied.
pub(super) const DENIED: u8 = 5;
/// A chain does not hold.
pub(super) const BROKEN: u8 = 6;
