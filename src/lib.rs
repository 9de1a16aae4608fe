//! A terminal governance console for AI agents.
//!
//! An Atlas, written by a steward, defines checkpoints where agents must stop. An operator answers at
//! these checkpoints. Every step is recorded in TRACE, a hash chain that a reviewer can browse and
//! verify. The binary `cra` runs all of it in one process.
//!
//! # Safety rule
//!
//! **An agent never proceeds past a gate that was not passed.** On every failure (an invalid pattern, a
//! full disk, a crashed console, a lost connection, a missing answer) the agent is blocked, with a
//! reason that an operator can act on.
//!
//! # Modules
//!
//! | module | responsibility |
//! |---|---|
//! | [`base`] | time, identifiers, digests, canonical JSON, wildcard patterns, limits |
//! | [`atlas`] | the steward's manifest: from text to a valid [`atlas::Atlas`], and the position of each problem |
//! | [`engine`] | decisions as a pure function: `(state, command, now) -> effects`; no I/O, no clock, no randomness |
//! | [`memento`] | state of a conversation: turns, the breakpoint decision, the peak guardrail |
//! | [`reconstruct`] | snapshot files: four phases from a file to a text for the next agent, and writing of files |
//! | [`trace`] | event types, the hash chain, the log and its heads, verification, replay, comparison, exports |
//! | [`store`] | storage of records, state, signed heads and Atlases: SQLite, or a simulated faulty disk in tests |
//! | [`runtime`] | the actor that executes effects and seals the log; handles for agents and operators; maintenance |
//! | [`gateway`] | servers and adapters for agents |
//! | [`console`] | the terminal: screens, dialogs, keys, colours |
//! | [`cli`] | the command line |
//!
//! A module uses only modules below it: `cli -> console | gateway -> runtime -> memento | reconstruct |
//! engine -> atlas -> base` and `runtime -> store -> trace -> base`. A test reads the sources and checks
//! this.
//!
//! # Invariants
//!
//! - An `Allowed` reply exists only after every gate for the request was passed. It is sent only after
//!   its records are durable. Exception: if all Atlases say `acknowledge: early`, a run of low or medium
//!   risk without a gate does not wait for the disk.
//! - The state that a restart relies on is sealed with the log's key. If another process changed the
//!   state, nothing may run.
//! - A decision is bound to the hash of the request and to the Atlases it was judged under.
//! - The screen shows only durable data.
//! - A batch is acknowledged only after a check that the paths of the store lead to the files that it was
//!   written to.
//! - After a failed write, or if written data does not read back, nothing is recorded and nothing is
//!   allowed.
//! - A head of the log is signed only after everything it covers was read back from the store. No agent
//!   is admitted before the content of the store is signed.
//! - The handle of agents has no method to decide. Agents answer only questions that an Atlas assigns to
//!   them, and an approval is never one of these.
//! - A decision and a request's hash are based on the unredacted request. Redaction applies to records
//!   only, before they are hashed, and each record states the redacted paths and the rule.
//! - Decisions about a gate are recorded at every level of detail that a steward can choose.
//! - A session that has not passed its start gate gets no context and no capability.
//! - One approval releases one run.
//! - If the seal over the state shows that the console did not write it last, nothing may run.
//! - The runtime calls extensions, and they answer with data. A late, missing or invalid answer counts
//!   against the agent.
//! - A notice is written together with the record that causes it, and sent after both are on disk. Nothing
//!   waits for it, and it contains no parameters, answers or reasons.
//!
//! # Glossary
//!
//! - *gate*: a blocking checkpoint, or a policy that requires approval, for a request.
//! - *held*: waiting in the operator's queue, under an identifier such as `c-12`.
//! - *permit*: the right to run exactly one approved request once, kept for a requester that has
//!   disconnected. Two approvals of identical requests are two permits.
//! - *override*: an operator's permit against a denial that allows an override.
//! - *resolution*: the actions that a session may take now, with the obstacles; valid until it expires.
//! - *extension*: a plugin, module, address or program that takes part in a checkpoint.
//! - *notice*: a message that a steward subscribed to; stored with its record until it is delivered.
//! - *record*: one event of TRACE in its chain; stored as the text that its hash covers.
//! - *log*: a session of its own whose entries state the end of every other session's chain.
//! - *head*: the end of a chain; for the log, the number of its entries and the root of the tree over them.
//! - *seal*: a signed head of the log. Records that no seal covers are *unsealed*.
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
