//! The screens. Each owns its view state; what is true is in the snapshot.

pub(crate) mod atlas;
pub(crate) mod queue;
pub(crate) mod threads;
pub(crate) mod trace;
