//! A terminal governance console for AI agents.
//!
//! Agents act; a steward writes down, in an Atlas, where they must stop; an operator answers at those
//! stops; everything is recorded in TRACE, a hash chain that a reviewer can browse and verify. The
//! binary `cra` runs all of it in one process.
//!
//! # The one promise
//!
//! **An agent never proceeds past a gate that was not passed.** Whatever fails (a bad pattern, a full
//! disk, a crashed console, a lost connection, silence) the answer is "blocked", with a reason that a
//! person can act on.
//!
//! # The map of the house
//!
//! | room | owns |
//! |---|---|
//! | [`base`] | time, identifiers, digests, canonical JSON, wildcard patterns, limits |
//! | [`atlas`] | the steward's manifest, from text to a proven [`atlas::Atlas`], and every problem with its place |
//! | [`engine`] | decisions: `(state, command, now) -> effects`; no I/O, no clock, no dice |
//! | [`memento`] | what a conversation has come to: turns, the breakpoint decision, the peak guardrail |
//! | [`reconstruct`] | snapshot files: four phases to a text that a conversation goes on with, and writing one |
//! | [`trace`] | event types, the hash chain, the log and its heads, verification, replay, comparison, exports |
//! | [`store`] | where record, state, signed heads and Atlases are kept: SQLite, and for tests a journal on a disk that fails |
//! | [`runtime`] | the one actor that carries effects out and seals the log; a way in for agents, another for the operator; upkeep of the record |
//! | [`gateway`] | doors for agents |
//! | [`console`] | the terminal: screens, dialogs, keys, colours |
//! | [`cli`] | the command line |
//!
//! Rooms name only what lies below them: `cli -> console | gateway -> runtime -> memento | reconstruct | engine
//! -> atlas -> base` and `runtime -> store -> trace -> base`. A test reads the sources and holds this.
//!
//! # Invariants
//!
//! - An `Allowed` reply exists only after every gate in the way was passed, and is sent only after
//!   its records are durable. Where all Atlases say `acknowledge: early`, a run that no gate stood
//!   before, of low or medium risk, does not wait for the disk.
//! - The state that a restart relies on is sealed with the log's key. State that another process
//!   changed lets nothing run.
//! - A decision is bound to the hash of the request and of the Atlases it was judged under.
//! - The screen shows only what is durable.
//! - A batch is acknowledged only after the paths of the store were found to lead to the files that it was
//!   written to.
//! - After a failed write, or when what was written does not read back, nothing is recorded and nothing
//!   is allowed.
//! - A head of the log is signed only after everything it covers was read back from the store. Nobody is
//!   let in before what a store holds is signed.
//! - Agents hold a type that has no call to decide. They answer only what an Atlas says is theirs to
//!   answer, and an approval never is.
//! - A decision and a request's hash go by the real request. Only its records leave out what a steward
//!   wants left out, before they are hashed, and they say where and by which rule.
//! - What decided about a gate is recorded whatever level of detail a steward wants.
//! - A session that has not passed the gate before it is handed nothing and unlocked nothing.
//! - One approval releases one run.
//! - State that the console did not write last, by the seal over it, lets nothing run.
//! - An extension is asked by the runtime and answers as data. What it does not answer, in time and as
//!   it should, counts against the agent.
//! - A notice is written together with the record that causes it, and sent when both are on disk. Nobody
//!   waits for it, and it has no parameters, answers or reasons in it.
//!
//! # Words
//!
//! - *gate*: a blocking checkpoint, or a policy's wish for approval, in a request's way.
//! - *held*: waiting in the operator's queue, under an identifier such as `c-12`.
//! - *permit*: the right to run exactly one approved request once, left for an asker that had gone. Two approvals
//!   of identical requests are two permits.
//! - *override*: an operator's permit against a denial that says it may be overruled.
//! - *resolution*: what a session may do now, with what stands in the way; relied on until it expires.
//! - *extension*: a plugin, module, address or program that has a say in a checkpoint.
//! - *notice*: what a steward asked to be told of; kept with its record until somebody takes it.
//! - *record*: one event of TRACE, chained; kept as the text that its hash covers.
//! - *log*: the session of its own whose entries say where every other session's chain stands.
//! - *head*: where a chain ends; of the log: how many entries it has, and the root of the tree over them.
//! - *seal*: a signed head of the log. What no seal covers is *unsealed*.
//! - *witness*: a head of the log that is kept elsewhere.

#![cfg_attr(
    not(feature = "app"),
    expect(dead_code, unused_imports, reason = "items that only the program uses")
)]

pub mod atlas;
pub mod base;
#[cfg(feature = "app")]
pub mod cli;
#[cfg(feature = "app")]
pub mod console;
pub mod engine;
#[cfg(feature = "app")]
pub mod gateway;
pub mod memento;
pub mod reconstruct;
#[cfg(feature = "app")]
pub mod runtime;
#[cfg(feature = "app")]
pub mod store;
pub mod trace;

pub use atlas::document::{
    AnswerValidation, AtlasManifest, CheckpointMode, CheckpointQuestion, CheckpointTrigger,
    GuidanceBlock, StewardCheckpointDef,
};
pub use engine::checkpoint::{
    CheckpointAction, CheckpointAnswers, CheckpointConfig, CheckpointEvaluator,
    CheckpointValidation, CheckpointValidator, TriggeredCheckpoint,
};
