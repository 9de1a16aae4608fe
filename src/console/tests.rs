//! Keys in; requests and the screen out. Time is told, never waited for.

mod archive;
mod atlas;
mod beside;
mod chrome;
mod drafts;
mod fixture;
mod gate;
mod gate_ends;
mod inputs;
mod ladder;
mod never;
mod picture;
mod queue;
mod stage;
mod states;
mod studied;
mod trace;
mod trace_looks;
mod trace_reads;
