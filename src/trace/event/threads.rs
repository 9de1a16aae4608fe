//! What is recorded of conversations.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declare::payload;
use super::parts::Redaction;

payload! {
    /// A turn of a conversation was classified.
    BreakpointDecided {
        /// What decides: the name that the contract has for it.
        actor: String,
        /// `breakpoint`.
        phase: String,
        /// `completed`.
        status: String,
        /// In words.
        summary: String,
        /// What was decided, as the contract has it.
        metadata: Breakpoint,
        /// The conversation, and the message in it.
        thread: BreakpointThread,
    }
}

payload! {
    /// An operator wrote the summary of a conversation anew.
    MementoEdited {
        /// The conversation.
        thread_id: String,
        /// Who.
        by: String,
        /// What tells the memento from others, before and now.
        before: String,
        /// See `before`.
        now: String,
        /// Summary before the edit, as far as the rules of redaction keep it. Earlier versions kept none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_before: Option<Value>,
        /// Summary after the edit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_now: Option<Value>,
        /// Parts that were left out of the two texts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redacted: Vec<Redaction>,
    }
}

payload! {
    /// An operator says that a conversation drifts.
    DriftFlagged {
        /// The conversation.
        thread_id: String,
        /// Who.
        by: String,
    }
}

payload! {
    /// A thread was handed over to another session.
    ThreadHandedOver {
        /// The thread.
        thread_id: String,
        /// Session that owned it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Session that may take it up.
        to: String,
        /// The operator, or the session that owned it.
        by: String,
    }
}

payload! {
    /// A stored thread was dropped to make room for a new one.
    ThreadDropped {
        /// The thread.
        thread_id: String,
        /// Session that owned it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// Session that began the new one.
        dropped_for: String,
        /// Why this one.
        reason: String,
        /// `ETag` of its newest memento.
        etag: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

/// What was decided about a turn, as the contract of the breakpoint engine has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Breakpoint {
    /// `breakpoint_engine`.
    pub kind: String,
    /// `must`, `should` or `skip`.
    pub decision: String,
    /// Whether the summary is frozen.
    pub peak_guardrail_active: bool,
    /// Where the baseline came from.
    pub source: String,
}

/// The conversation that a turn is in, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointThread {
    /// The conversation.
    pub thread_id: String,
    /// The message.
    pub message_id: String,
    /// The number of the rule that decided.
    pub rule: u8,
    /// What happened in the turn.
    pub signals: Vec<String>,
    /// How heated it is behind the turn.
    pub affect_phase: String,
    /// See `affect_phase`.
    pub intensity: String,
    /// What became of the summary.
    pub update: String,
    /// Summaries that were accepted by then.
    pub version: u64,
    /// What tells the memento from others.
    pub etag: String,
}
