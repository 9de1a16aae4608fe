//! One turn of a conversation: its input and its outcome.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::affect::{AffectSource, Confidence};
use super::baseline::BaselineSource;
use super::contract::{
    MementoError, SignalItem, ThreadMemento, deserialize_signals, read_strictly,
};
use super::decision::TurnClassification;
use super::freeze::Freeze;
use super::text::{BoundedText, ExternalName};
use crate::base::digest::Digest;

/// The input of a turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Id of the message.
    pub message_id: ExternalName,
    /// Text of the message.
    pub message: String,
    /// Message as it may be stored, if rules redacted parts of it.
    #[serde(skip)]
    pub kept_message: Option<String>,
    /// Author of the message.
    #[serde(default)]
    pub author: MessageAuthor,
    /// The caller's knowledge of the thread.
    #[serde(default)]
    pub context: TurnContext,
    /// Signals of the turn, in addition to those in the included memento.
    #[serde(default, deserialize_with = "deserialize_signals")]
    pub signals: Vec<SignalItem>,
    /// Summary that a model proposes.
    #[serde(default)]
    pub proposed: Option<Value>,
    /// Emotional intensity of the message.
    #[serde(default)]
    pub affect: Option<AffectSignal>,
    /// Fill level of the agent's context window.
    #[serde(default)]
    pub pressure: Option<ContextPressure>,
    /// True if the agent reports that the conversation drifts.
    #[serde(default)]
    pub drift: bool,
    /// True if a turn that only acknowledges may still change the summary. Otherwise its proposal is not applied.
    #[serde(default)]
    pub skip_updates: bool,
    /// Tag of the memento state that the caller has read. A turn based on another state is rejected.
    #[serde(default)]
    pub if_match: Option<String>,
}

/// The caller's knowledge of the thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnContext {
    /// The caller's copy of the memento.
    #[serde(default)]
    thread_memento: Option<Box<ThreadMemento>>,
    /// Id of the memento that the caller refers to.
    #[serde(default)]
    thread_memento_ref: Option<ExternalName>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageAuthor {
    /// A person.
    #[default]
    User,
    /// The agent.
    Agent,
}

/// The emotional intensity of a message.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffectSignal {
    /// One-word label.
    pub label: BoundedText<64>,
    /// From 0 to 1.
    #[serde(deserialize_with = "super::affect::deserialize_unit_interval")]
    pub intensity: f64,
    /// Confidence of the source.
    pub confidence: Confidence,
    /// Source of the intensity.
    pub source: AffectSource,
}

/// The fill level of a context window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPressure {
    /// Used tokens.
    pub used: u64,
    /// Total tokens.
    pub limit: u64,
}

impl ContextPressure {
    /// Returns true if the window is nearly full: at least four fifths.
    #[must_use]
    pub fn is_high(self) -> bool {
        u128::from(self.used) * 5 >= u128::from(self.limit) * 4
    }
}

impl Turn {
    /// Reads a turn.
    ///
    /// # Errors
    /// Fails when the text is not exactly a turn, with the path.
    pub fn read(text: &[u8]) -> Result<Self, MementoError> {
        read_strictly(text, "turn")
    }

    /// Returns the digest of the message and its author; it distinguishes a retry from another message with the
    /// same id.
    #[must_use]
    pub fn message_hash(&self) -> Digest {
        Digest::of(format!("{:?}\n{}", self.author, self.message))
    }

    /// Changes every text that is stored: the proposal, the signals, the included memento, and the copy of the
    /// message for summaries. The message used for classification stays unchanged.
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

    /// Returns the included memento.
    #[must_use]
    pub fn memento(&self) -> Option<&ThreadMemento> {
        self.context.thread_memento.as_deref()
    }

    /// Returns the id of the memento that the turn refers to.
    #[must_use]
    pub fn memento_ref(&self) -> Option<&ExternalName> {
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

/// The outcome of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    /// Classification, with its rule.
    pub decided: TurnClassification,
    /// Evaluation of the peak guardrail, with the value of each part.
    pub freeze: Freeze,
    /// Origin of the baseline.
    pub source: BaselineSource,
    /// Result for the summary.
    pub summary: SummaryResult,
    /// Memento after the turn.
    pub memento: ThreadMemento,
    /// Tag of that memento.
    pub etag: String,
    /// Number of accepted summaries in this thread, including this one.
    pub version: u64,
    /// Closed topics to report to the agent.
    pub closed: Vec<String>,
    /// Notes about ignored input.
    pub notes: Vec<String>,
}

/// The result of a turn for the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryResult {
    /// The summary follows the proposal.
    Updated,
    /// The summary stays unchanged.
    Kept(KeptReason),
}

/// The reason why a summary stays unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptReason {
    /// The turn proposed no summary.
    NothingProposed,
    /// The proposal is invalid.
    Invalid(String),
    /// The peak guardrail held the proposal back.
    AtPeak,
    /// The turn only acknowledged.
    OnlyAcknowledged,
    /// The agent made the proposal without having read an operator's edit.
    BeforeEdit,
}

impl SummaryResult {
    /// Returns the result in a word or two, for display.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Updated => "applied",
            Self::Kept(KeptReason::NothingProposed) => "unchanged",
            Self::Kept(KeptReason::Invalid(_)) => "invalid",
            Self::Kept(KeptReason::AtPeak) => "FROZEN",
            Self::Kept(KeptReason::OnlyAcknowledged) => "skipped",
            Self::Kept(KeptReason::BeforeEdit) => "outdated",
        }
    }

    /// Returns the result's name in records.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Kept(KeptReason::NothingProposed) => "kept_nothing_proposed",
            Self::Kept(KeptReason::Invalid(_)) => "kept_invalid_proposal",
            Self::Kept(KeptReason::AtPeak) => "kept_at_peak",
            Self::Kept(KeptReason::OnlyAcknowledged) => "kept_only_acknowledged",
            Self::Kept(KeptReason::BeforeEdit) => "kept_before_edit",
        }
    }
}

/// The reason why a turn or an edit was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnRefusal {
    /// The memento has changed since the writer read it.
    #[error("the memento has changed since it was read: its tag is now `{current}`")]
    Stale {
        /// The current tag.
        current: String,
    },
    /// The thread belongs to another session.
    #[error("the thread belongs to another session")]
    NotOwner,
    /// The thread has no memento to edit.
    #[error("the thread has no memento yet")]
    NoMemento,
    /// A message with that id was already processed, with another text.
    #[error("message `{0}` was already processed with another text")]
    MessageIdReused(ExternalName),
    /// A message with that id was processed too long ago; its response is no longer stored.
    #[error("message `{0}` was already processed, and its answer is no longer stored")]
    ResponseExpired(ExternalName),
}
