//! The memento: a short summary of a conversation, and the rules for changing it.
//!
//! A thread's memento holds the direction of the conversation (its arc), the active and parked topics, the
//! decisions, the next steps, and the intensity. Every turn of the conversation is classified ([`classify_turn`]): it
//! must, should or need not change the memento. While the conversation is at its peak, only a turn that must change
//! the memento does so ([`Freeze`]); other proposals of a model are held back and kept.
//!
//! A thread belongs to the session that started it ([`ThreadOwner`]): other sessions neither read nor write it.
//! Once a memento is stored, a client's copy never replaces it; an agent changes it only through proposals.
//!
//! This module is pure: callers pass in time and identifiers, and nothing is read or written. [`Thread::process_turn`]
//! processes a complete turn.

mod affect;
mod baseline;
mod contract;
mod decision;
mod edit;
mod freeze;
mod owner;
mod retry;
mod shape;
mod signal;
mod text;
mod thread;
mod turn;

pub use affect::{
    Affect, AffectPhase, AffectPoint, AffectRollup, AffectSource, Confidence, Intensity, rollup,
    within_window,
};
pub use baseline::{Baseline, BaselineSource};
pub(crate) use contract::read_all_strictly;
pub use contract::{
    MEMENTO_VERSION, MementoError, MementoVersion, SignalItem, SignalList, SignalSource,
    SignalSummary, ThreadMemento,
};
pub use decision::{
    DecisionInputs, DecisionRule, TurnClassification, TurnDecision, classify_turn, is_ack_only,
};
pub use freeze::{Freeze, ThawCondition};
pub use owner::{RefusedWrites, ThreadOwner};
pub use retry::TurnResponse;
pub use shape::{ChangeSide, ShapeChange, SummaryShape};
pub use signal::{SignalCategory, SignalKind};
pub use text::{BoundedText, Datetime, ExternalName};
pub use thread::{DecisionFlags, HeldProposal, ProcessedTurn, Thread, TurnIds};
pub use turn::{
    AffectSignal, ContextPressure, KeptReason, MessageAuthor, SummaryResult, Turn, TurnContext,
    TurnOutcome, TurnRefusal,
};

#[cfg(test)]
mod tests;
