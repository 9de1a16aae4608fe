//! Extensions: the calls that a command needs, their answers, and the effects of those answers.
//!
//! This folder owns the data of calls (`protocol`), commands that wait for answers (`suspension`), the
//! answers of custom triggers and handlers, and their records.
//!
//! Contract: the engine calls no extension itself. A call is an effect, and its answer comes back as a
//! command. A missing or unusable answer counts against the agent.

pub mod consultation;
pub(crate) mod custom_triggers;
pub(crate) mod handler_effects;
pub(crate) mod handler_outcomes;
pub(crate) mod handler_records;
mod protocol;
pub(crate) mod required_calls;
pub(crate) mod suspension;

pub use protocol::{
    AgentInput, CallId, CallQuestion, CallResult, CheckpointContext, CheckpointResult, EventType,
    ExtensionCall, Extensions, Plugin, PolicyDecision, PolicyDecisionKind, RequestedAction,
    SessionState, TraceNote, YesNo,
};
