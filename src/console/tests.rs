//! Keys in; requests and the screen out. Time is told, never waited for.

mod archive;
mod atlas;
mod batch;
mod beside;
mod chrome;
mod drafts;
pub(super) mod fixture;
mod gate;
mod gate_ends;
mod hostile;
mod inputs;
mod ladder;
mod linear;
mod never;
mod picture;
mod queue;
mod queue_keys;
mod rules;
mod stage;
mod states;
mod steward;
mod studied;
mod studies;
mod svg;
mod trace;
mod trace_looks;
mod trace_reads;
