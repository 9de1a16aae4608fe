//! Keys in; requests and the screen out. Time is told, never waited for.

mod archive;
mod chrome;
mod drafts;
mod fixture;
mod gate;
mod gate_ends;
mod never;
mod picture;
mod queue;
mod stage;
mod trace;
mod trace_looks;
mod trace_reads;
