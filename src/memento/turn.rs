//! One turn of a conversation: what it brings, and what comes of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::affect::{Confidence, PointSource};
use super::baseline::BaselineSource;
use super::contract::{MementoError, SignalItem, ThreadMemento, few_signals, strictly};
use super::decision::Decided;
use super::freeze::Freeze;
use super::text::{Name, Text};
use crate::base::digest::Digest;

/// What a turn brings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The message's name.
    pub message_id: Name,
    /// The message.
    pub message: String,
    /// The message as it may be kept, where rules left something out of it.
    #[serde(skip)]
    pub kept_message: Option<String>,
    /// Who wrote it.
    #[serde(default)]
    pub author: Author,
    /// What whoever asks knows of the thread.
    #[serde(default)]
    pub context: TurnContext,
    /// What happened in it, beside what the memento that it brings says.
    #[serde(default, deserialize_with = "few_signals")]
    pub signals: Vec<SignalItem>,
    /// What a model wants the summary to be.
    #[serde(default)]
    pub proposed: Option<Value>,
    /// How heated the message is.
    #[serde(default)]
    pub affect: Option<AffectSignal>,
    /// How full the agent's context window is.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// Whether the agent says that the conversation drifts.
    #[serde(default)]
    pub drift: bool,
    /// Whether a turn that only acknowledges takes a proposal as others do. Otherwise it leaves the summary alone.
    #[serde(default)]
    pub skip_updates: bool,
    /// The state of the memento that whoever asks has read. A turn that follows another one is refused.
    #[serde(default)]
    pub if_match: Option<String>,
}

/// What whoever asks knows of the thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnContext {
    /// The memento they have.
    #[serde(default)]
    thread_memento: Option<Box<ThreadMemento>>,
    /// The name of the one they mean.
    #[serde(default)]
    thread_memento_ref: Option<Name>,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person.
    #[default]
    User,
    /// The agent.
    Agent,
}

/// How heated a message is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffectSignal {
    /// In a word.
    pub label: Text<64>,
    /// From 0 to 1.
    #[serde(deserialize_with = "super::affect::from_zero_to_one")]
    pub intensity: f64,
    /// How sure whoever says so is.
    pub confidence: Confidence,
    /// Who says so.
    pub source: PointSource,
}

/// How full a context window is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pressure {
    /// Used.
    pub used: u64,
    /// In all.
    pub limit: u64,
}

impl Pressure {
    /// Whether it is nearly full: four fifths.
    #[must_use]
    pub fn is_high(self) -> bool {
        u128::from(self.used) * 5 >= u128::from(self.limit) * 4
    }
}

impl Turn {
    /// Reads one.
    ///
    /// # Errors
    /// When it is not exactly one, with the place.
    pub fn read(text: &[u8]) -> Result<Self, MementoError> {
        strictly(text, "turn")
    }

    /// Digest of the message and its author: it tells a retry from another message of the same name.
    #[must_use]
    pub fn message_hash(&self) -> Digest {
        Digest::of(format!("{:?}\n{}", self.author, self.message))
    }

    /// Changes every text that is kept of it: what it proposes, its signals, the memento it brings, and its message as
    /// far as that becomes a summary. The message that is classified stays as it is.
    pub fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        self.kept_message = Some(change(&self.message));
        if let Some(proposed) = &mut self.proposed {
            change_strings(proposed, change);
        }
        for signal in &mut self.signals {
            signal.change_texts(change);
        }
        if let Some(memento) = &mut self.context.thread_memento {
            memento.change_texts(change);
        }
    }

    /// The memento it brings.
    #[must_use]
    pub fn memento(&self) -> Option<&ThreadMemento> {
        self.context.thread_memento.as_deref()
    }

    /// The memento it names.
    #[must_use]
    pub fn memento_ref(&self) -> Option<&Name> {
        self.context.thread_memento_ref.as_ref()
    }
}

/// Changes every string of a JSON value.
fn change_strings(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| change_strings(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| change_strings(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What it is worth, and why.
    pub decided: Decided,
    /// The guardrail, with the truth of its parts.
    pub freeze: Freeze,
    /// Where its baseline came from.
    pub source: BaselineSource,
    /// What became of the summary.
    pub summary: Summary,
    /// The memento behind it.
    pub memento: ThreadMemento,
    /// What tells that memento from others.
    pub etag: String,
    /// Summaries that were accepted in this thread, this one included.
    pub version: u64,
    /// What the agent should hear is closed.
    pub closed: Vec<String>,
    /// What was passed over, in words.
    pub notes: Vec<String>,
}

/// What became of the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// It follows the proposal.
    Updated,
    /// It stayed as it was.
    Kept(Kept),
}

/// Why a summary stayed as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Nobody proposed another one.
    NothingProposed,
    /// What was proposed is none.
    Invalid(String),
    /// The peak guardrail held it back.
    AtPeak,
    /// The turn only acknowledged.
    OnlyAcknowledged,
    /// The agent proposed it without having read what an operator wrote.
    BeforeEdit,
}

impl Summary {
    /// What became of it, in a word or two.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Updated => "applied",
            Self::Kept(Kept::NothingProposed) => "unchanged",
            Self::Kept(Kept::Invalid(_)) => "invalid",
            Self::Kept(Kept::AtPeak) => "FROZEN",
            Self::Kept(Kept::OnlyAcknowledged) => "skipped",
            Self::Kept(Kept::BeforeEdit) => "outdated",
        }
    }

    /// Its name, as it is recorded.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Kept(Kept::NothingProposed) => "kept_nothing_proposed",
            Self::Kept(Kept::Invalid(_)) => "kept_invalid_proposal",
            Self::Kept(Kept::AtPeak) => "kept_at_peak",
            Self::Kept(Kept::OnlyAcknowledged) => "kept_only_acknowledged",
            Self::Kept(Kept::BeforeEdit) => "kept_before_edit",
        }
    }
}

/// Why a turn or an edit was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The memento has changed since whoever writes has read it.
    #[error("the memento has changed since it was read: it is `{current}` now")]
    Stale {
        /// What it is now.
        current: String,
    },
    /// The thread belongs to another session.
    #[error("the thread belongs to another session")]
    NotOwner,
    /// There is none to edit.
    #[error("the thread has no memento yet")]
    Nothing,
    /// A message of that name was taken already, and was another one.
    #[error("message `{0}` was taken already with another text")]
    OtherMessage(Name),
    /// A message of that name was taken too long ago to answer it again.
    #[error("message `{0}` was taken already, and its answer is not kept any more")]
    OldMessage(Name),
}
