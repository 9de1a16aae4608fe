//! What a conversation has come to, kept short, and when that may change.
//!
//! A thread's memento says where the conversation is going (its arc), what is active and parked, what was
//! decided and what comes next, and how heated it is. Every turn of the conversation is classified
//! ([`decide`]): it must, should or need not change the memento. While the conversation is at its peak, only
//! what must change it does ([`Freeze`]); what a model proposed meanwhile is held back and kept.
//!
//! A thread belongs to the session that began it ([`ThreadOwner`]): other sessions neither read nor write it. Once
//! a memento is stored, a client's copy of it never replaces it; an agent changes it by proposals only.
//!
//! Pure: time and identifiers are handed in, nothing is read or written. [`Thread::take`] is the whole way of a
//! turn.

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
