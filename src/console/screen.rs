//! The screens. Each owns its view state; the data itself is in the snapshot.

pub(crate) mod atlas;
pub(crate) mod queue;
pub(crate) mod threads;
pub(crate) mod trace;
