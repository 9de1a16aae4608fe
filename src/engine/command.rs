//! What the engine is told, and what it answers with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, GateId, SessionId};
use crate::trace::event::{Draft, Payload};
pub use crate::trace::event::{FinalStatus, InputSource};

use super::consult::Consult;
use super::extension::{Call, CallId, Returned};
use super::notice::Notice;

mod caller;
mod operate;
mod reply;
mod report;

pub use caller::*;
pub use operate::*;
pub use reply::*;
pub use report::*;

/// Who waits for a reply: one number per question asked of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Something that happened. The engine is told; it never looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// An agent begins a session.
    StartSession(AskId, StartSession),
    /// An agent ends its session.
    EndSession(AskId, EndSession),
    /// An agent wants to run an action.
    RequestAction(AskId, ActionRequest),
    /// An agent has run an action.
    CompleteAction(AskId, ActionCompleted),
    /// An agent was given input.
    Input(AskId, Input),
    /// An agent reports an error.
    ReportError(AskId, ErrorReport),
    /// An agent asks for context, or for a checkpoint by its name.
    RequestContext(AskId, ContextRequest),
    /// An agent tells something that is only noted.
    Report(AskId, Report),
    /// Whoever asked is no longer there to hear the answer.
    AskerLeft(AskId),
    /// An operator decides about a held request.
    Decide(AskId, Decide),
    /// An operator does something else, by which nothing passes.
    Operate(AskId, Operate),
    /// Something was found out about a session that is only recorded. Agents cannot say it.
    Note(AskId, SessionId, Box<Finding>),
    /// Every chain was checked, and holds.
    RecordSound,
    /// The wall clock was set. What is measured in time goes on as before.
    ClockMoved(ClockStep),
    /// An agent answers what is its to answer.
    Answer(AskId, Answer),
    /// An agent asks what it may do.
    Resolve(AskId, Resolve),
    /// Somebody asks something that changes nothing.
    Consult(AskId, Consult),
    /// A held request's time is up.
    DeadlineReached(GateId),
    /// An extension answered, or did not.
    Returned(CallId, Returned),
}

impl Command {
    /// The session whose commands are taken up one after the other.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::StartSession(_, it) => Some(&it.session),
            Self::EndSession(_, it) => Some(&it.session),
            Self::RequestAction(_, it) => Some(&it.session),
            Self::CompleteAction(_, it) => Some(&it.session),
            Self::Input(_, it) => Some(&it.session),
            Self::ReportError(_, it) => Some(&it.session),
            Self::RequestContext(_, it) => Some(&it.session),
            Self::Report(_, it) => Some(it.session()),
            Self::Answer(_, it) => Some(&it.session),
            Self::Resolve(_, it) => Some(&it.session),
            // Handlers of a command that waits ask these: they must not wait behind it.
            Self::Consult(..)
            | Self::AskerLeft(_)
            | Self::Decide(..)
            | Self::Operate(..)
            // It stands beside what the session asked for.
            | Self::Note(..)
            | Self::RecordSound
            | Self::ClockMoved(_)
            | Self::DeadlineReached(_)
            | Self::Returned(..) => None,
        }
    }

    /// The session that the command names, if it names one.
    #[must_use]
    pub fn named_session(&self) -> Option<&SessionId> {
        match self {
            Self::Consult(_, consult) => Some(consult.session()),
            Self::Note(_, session, _) => Some(session),
            _ => self.session(),
        }
    }

    /// Who waits for a reply.
    pub(super) fn ask(&self) -> Option<AskId> {
        match self {
            Self::StartSession(ask, _)
            | Self::EndSession(ask, _)
            | Self::RequestAction(ask, _)
            | Self::CompleteAction(ask, _)
            | Self::Input(ask, _)
            | Self::ReportError(ask, _)
            | Self::RequestContext(ask, _)
            | Self::Report(ask, _)
            | Self::Decide(ask, _)
            | Self::Operate(ask, _)
            | Self::Note(ask, ..)
            | Self::Answer(ask, _)
            | Self::Resolve(ask, _)
            | Self::Consult(ask, _) => Some(*ask),
            Self::AskerLeft(_)
            | Self::RecordSound
            | Self::ClockMoved(_)
            | Self::DeadlineReached(_)
            | Self::Returned(..) => None,
        }
    }
}

/// An agent begins a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSession {
    /// The session's identifier, unique for the store.
    pub session: SessionId,
    /// What kind of agent: `claude-code`, `support-bot`.
    pub agent: String,
    /// Its version.
    pub agent_version: Option<String>,
    /// What the session is for, in its own words.
    pub intent: Option<String>,
    /// Whose it is, where it comes in by a door. Nobody else can take it up again.
    #[serde(default)]
    pub owner: Option<Owner>,
}

/// Who begins a session at a door.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The digest of a secret that only they know.
    pub secret: Digest,
    /// What they show to be let in. It is not kept.
    #[serde(skip)]
    pub api_key: Option<String>,
    /// Where they come in, if that is known. It is not kept.
    #[serde(skip)]
    pub from: Option<Caller>,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}

/// The answer with which an agent is handed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GivenWhen {
    /// The answer to the call itself.
    #[default]
    Now,
    /// A later answer: whoever calls cannot show the agent anything now.
    Later,
}

/// An agent ends its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndSession {
    /// The session.
    pub session: SessionId,
    /// How it ended.
    pub status: FinalStatus,
    /// What it did, in its own words.
    pub summary: Option<String>,
    /// The answer that takes along what the agent is handed because of it.
    #[serde(default)]
    pub delivery: GivenWhen,
}

/// An agent wants to run an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The session.
    pub session: SessionId,
    /// The action's name.
    pub action: String,
    /// Its parameters.
    pub params: Value,
    /// When the asker stops waiting, if it does.
    pub deadline: Option<Timestamp>,
    /// The resolution it relies on, if it does.
    #[serde(default)]
    pub resolution: Option<String>,
    /// The agent's own identifier of this call, where it has one: the same call asked again is one run.
    #[serde(default)]
    pub call: Option<String>,
}

/// An agent answers what is its to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The session.
    pub session: SessionId,
    /// The held request.
    pub gate: GateId,
    /// Answers by checkpoint, then by question.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
    /// Caller that may run the action once it passes.
    #[serde(default)]
    pub release: ReleaseTo,
}

/// Caller that may run an action once its agent's answers let it pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseTo {
    /// The caller that answers: the reply names the run.
    #[default]
    Answer,
    /// The next caller that asks for exactly the same: a permit waits for it. Hooks need this, because the process
    /// that answers is not the one that asks.
    Repeat,
}

/// An agent asks what it may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolve {
    /// The session.
    pub session: SessionId,
    /// What it was asked to do: input, looked at as any other.
    pub input: Option<String>,
    /// The actions it asks about; every one that is known by name when empty.
    pub actions: Vec<ResolveAction>,
}

/// An action that an agent asks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveAction {
    /// The action.
    pub action: String,
    /// Its parameters.
    pub params: Value,
}

/// An agent has run an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionCompleted {
    /// The session.
    pub session: SessionId,
    /// The run that was allowed.
    pub execution: ExecutionId,
    /// What came of it.
    pub result: Result<String, ActionError>,
    /// The answer that takes along what the agent is handed because of it.
    #[serde(default)]
    pub delivery: GivenWhen,
}

/// How an action failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionError {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
}

/// An agent was given input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The session.
    pub session: SessionId,
    /// The text. It is looked at, and only its hash is kept.
    pub text: String,
    /// Where it came from.
    pub source: InputSource,
    /// Tells whether the agent gets the text as soon as it is asked something about it: it cannot answer otherwise.
    #[serde(default)]
    pub reaches_asked_agent: bool,
}

/// An agent asks for context, or for a checkpoint by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRequest {
    /// The session.
    pub session: SessionId,
    /// What is looked for.
    pub query: Option<String>,
    /// Contexts by identifier.
    pub hints: Vec<String>,
    /// An interactive checkpoint to fire.
    pub checkpoint: Option<String>,
}

/// Finding of the runtime about a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Event for the session's chain.
    Event(Payload),
    /// Call about a thread that was refused. It is recorded at most once a minute, and answered with the denial.
    ThreadRefused {
        /// Text for the record: the thread, and why.
        what: String,
        /// Answer for the agent.
        denied: Denied,
    },
    /// Turn of a conversation, with its message: contexts that the message calls for are handed over.
    Turn {
        /// Event for the session's chain.
        event: Payload,
        /// Text of the turn.
        message: String,
    },
}

/// An operator decides about a held request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decide {
    /// Which.
    pub gate: GateId,
    /// Who decides.
    pub operator: String,
    /// How: `console`.
    pub method: String,
    /// The request the operator saw. Another one by now: the decision does not count.
    pub request_hash: Digest,
    /// The Atlases the operator saw it under.
    pub atlas_hash: Digest,
    /// Why it passes, where no question asks for it.
    pub justification: Option<String>,
    /// What was decided.
    pub ruling: Ruling,
}

/// What an operator decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Let it pass, with these answers: one map per gate, in the order of `Held::gates`.
    Pass {
        /// Answers by question.
        answers: Vec<BTreeMap<String, Value>>,
    },
    /// Refuse it.
    Deny {
        /// Why; the agent is told.
        reason: String,
    },
    /// Answers that break rules, as the console found: one map per gate. They are recorded and counted, and do what
    /// their questions say about invalid answers. Nothing passes by them.
    Invalid {
        /// Answers by question; only those that break rules.
        answers: Vec<BTreeMap<String, Value>>,
    },
    /// A wrong text where the operator had to confirm a decision. It is recorded, and nothing else.
    Unconfirmed {
        /// The text that was wanted.
        wanted: Confirmation,
        /// The text that was typed.
        typed: String,
    },
}

/// A text that an operator types to confirm a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The first characters of the request's hash.
    RequestHash,
    /// The action's name.
    Action,
    /// The last word that passes a request, line by line.
    PassWord,
    /// The last word that denies a request, line by line.
    DenyWord,
}

/// What happens because of a command, in order. The runtime does it; the engine does not.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append to TRACE.
    Record(Draft),
    /// Append to the log of the record itself: it is about no session, or about one that is over.
    Enter(Payload),
    /// From now on this operator sits at the console.
    Seat(String),
    /// Keep, replace or drop a piece of the engine's state, together with the records around it.
    Persist(StateChange),
    /// Tell whoever asked, once everything before this is as durable as it must be.
    Reply(AskId, Reply),
    /// Wake the engine with `DeadlineReached` at that time.
    SetDeadline(GateId, Timestamp),
    /// Ask an extension, and bring its answer back as `Returned`, always and in bounded time.
    CallOut(Call),
    /// A request is held: people may want to know.
    Held(GateId),
    /// A held request is no longer held.
    Settled(Decided),
    /// A steward asked to be told of this.
    Notify(Notice),
}

/// A piece of the engine's state, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// What kind of piece.
    pub kind: StateKind,
    /// Which.
    pub key: String,
    /// Its content as JSON; `None` drops it.
    pub body: Option<String>,
}

/// The kinds of state that survive a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKind {
    /// A session.
    Session,
    /// A held request.
    Held,
    /// A permit for an agent that had left.
    Permit,
    /// A counter.
    Counter,
    /// What was used of a limit.
    Usage,
    /// A denial that was overruled, and that nobody has acknowledged.
    Overruled,
    /// What an operator knows to be wrong with the record.
    Fault,
}

impl StateKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Session,
        Self::Held,
        Self::Permit,
        Self::Counter,
        Self::Usage,
        Self::Overruled,
        Self::Fault,
    ];

    /// The kind's name in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Held => "held",
            Self::Permit => "permit",
            Self::Counter => "counter",
            Self::Usage => "usage",
            Self::Overruled => "overruled",
            Self::Fault => "fault",
        }
    }
}
