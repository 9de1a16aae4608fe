//! The memento: a short summary of a conversation, and the rules for changing it.
//!
//! A thread's memento holds the direction of the conversation (its arc), the active and parked topics, the
//! decisions, the next steps, and the intensity. Every turn of the conversation is classified ([`decide`]): it
//! must, should or need not change the memento. While the conversation is at its peak, only a turn that must change
//! the memento does so ([`Freeze`]); other proposals of a model are held back and kept.
//!
//! A thread belongs to the session that started it ([`ThreadOwner`]): other sessions neither read nor write it.
//! Once a memento is stored, a client's copy never replaces it; an agent changes it only through proposals.
//!
//! This module is pure: callers pass in time and identifiers, and nothing is read or written. [`Thread::take`]
//! processes a complete turn.

mod ack;
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

pub use ack::is_ack_only;
pub use affect::{
    Affect, Confidence, Intensity, Phase, Point, PointSource, Rollup, rollup, within_window,
};
pub use baseline::{Baseline, BaselineSource};
pub(crate) use contract::strictly_all;
pub use contract::{
    MEMENTO_VERSION, MementoError, SignalItem, SignalSource, Signals, Summarised, ThreadMemento,
    Version,
};
pub use decision::{Decided, Decision, Inputs, Rule, decide};
pub use freeze::{Freeze, ThawedBy};
pub use owner::{RefusedWrites, ThreadOwner};
pub use retry::TurnAnswer;
pub use shape::{Change, Shape, Side};
pub use signal::{Category, SignalKind};
pub use text::{Datetime, Name, Text};
pub use thread::{Given, HeldBack, Named, Thread, Turned};
pub use turn::{
    AffectSignal, Author, Kept, Outcome, Pressure, Refusal, Summary, Turn, TurnContext,
};

#[cfg(test)]
mod tests;
