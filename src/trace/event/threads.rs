//! Events about conversations (threads).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::macros::payload;
use super::parts::Redaction;

payload! {
    /// A turn of a conversation was classified.
    BreakpointDecided {
        /// Name of the deciding component, as the contract defines it.
        actor: String,
        /// `breakpoint`.
        phase: String,
        /// `completed`.
        status: String,
        /// Human-readable summary.
        summary: String,
        /// The decision, in the form of the contract.
        metadata: Breakpoint,
        /// The conversation and the message in it.
        thread: BreakpointThread,
    }
}

payload! {
    /// An operator rewrote the summary of a conversation.
    MementoEdited {
        /// The conversation.
        thread_id: String,
        /// The operator.
        by: String,
        /// Identifier of the memento before the edit.
        before: String,
        /// Identifier of the memento after the edit.
        now: String,
        /// Summary before the edit, after redaction. Earlier versions kept none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_before: Option<Value>,
        /// Summary after the edit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_now: Option<Value>,
        /// Parts that were redacted from the two texts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redacted: Vec<Redaction>,
    }
}

payload! {
    /// An operator flagged drift in a conversation.
    DriftFlagged {
        /// The conversation.
        thread_id: String,
        /// The operator.
        by: String,
    }
}

payload! {
    /// A thread was handed over to another session.
    ThreadHandedOver {
        /// The thread.
        thread_id: String,
        /// Session that owned it, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Session that may continue it.
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
        /// Session that owned it, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// Session that began the new thread.
        dropped_for: String,
        /// Reason why this thread was dropped.
        reason: String,
        /// `ETag` of its newest memento.
        etag: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

/// Decision about a turn, in the form of the breakpoint engine's contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Breakpoint {
    /// `breakpoint_engine`.
    pub kind: String,
    /// `must`, `should` or `skip`.
    pub decision: String,
    /// True if the summary is frozen.
    pub peak_guardrail_active: bool,
    /// Origin of the baseline.
    pub source: String,
}

/// Conversation of a turn, and the effect of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointThread {
    /// The conversation.
    pub thread_id: String,
    /// The message.
    pub message_id: String,
    /// Number of the deciding rule.
    pub rule: u8,
    /// Signals found in the turn.
    pub signals: Vec<String>,
    /// Affect phase after the turn.
    pub affect_phase: String,
    /// Affect intensity after the turn.
    pub intensity: String,
    /// Effect on the summary.
    pub update: String,
    /// Number of summaries accepted so far.
    pub version: u64,
    /// Identifier of the memento.
    pub etag: String,
}
