//! Reports of agents that request nothing.

use serde::{Deserialize, Serialize};

use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::trace::event::{OutputType, UsageOutcome, WrapperCapabilities, WrapperConstructed};

/// An error that an agent reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// The session.
    pub session: SessionId,
    /// Kind of the error.
    pub error_type: String,
    /// Error code, for programs.
    #[serde(default)]
    pub error_code: Option<String>,
    /// Error message, for people.
    pub message: String,
    /// True when the agent can continue.
    pub recoverable: bool,
    /// Location of the error.
    #[serde(default)]
    pub stack_trace: Option<String>,
}

/// A report of an agent that is only recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReport {
    /// Construction of the agent's wrapper.
    Wrapper(Wrapper),
    /// Result of a check of the agent's wrapper.
    WrapperCheck(WrapperCheck),
    /// Feedback on a context.
    Feedback(Feedback),
    /// Output of the agent.
    Output(OutputReport),
    /// Recovery from an error.
    Recovery(Recovery),
}

impl AgentReport {
    /// Returns the session of the report.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Wrapper(wrapper) => &wrapper.session,
            Self::WrapperCheck(check) => &check.session,
            Self::Feedback(feedback) => &feedback.session,
            Self::Output(output) => &output.session,
            Self::Recovery(recovery) => &recovery.session,
        }
    }
}

/// Construction of an agent's wrapper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrapper {
    /// The session.
    pub session: SessionId,
    /// The wrapper's version.
    pub wrapper_version: String,
    /// The wrapper's components.
    pub components: Vec<String>,
    /// Plugins of the wrapper.
    pub plugins: Vec<String>,
    /// `mcp`, `rest` or `direct`.
    pub transport: String,
    /// Cache backend of the wrapper.
    pub cache_backend: String,
    /// Events that the wrapper can intercept.
    pub capabilities: WrapperCapabilities,
    /// Proof of construction: [`Wrapper::proof`] of all fields above.
    pub construction_hash: String,
}

impl Wrapper {
    /// Returns the proof of construction: the SHA-256 of the canonical JSON of every field of
    /// `wrapper_constructed` except the proof.
    #[must_use]
    pub fn proof(&self) -> Digest {
        let record = WrapperConstructed::from(self.clone());
        let mut fields = crate::trace::event::Payload::from(record).fields();
        fields.remove("construction_hash");
        Digest::of(canonical(&fields))
    }
}

/// Result of a check of the wrapper by the agent or by the wrapper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrapperCheck {
    /// The session.
    pub session: SessionId,
    /// True when every test passed.
    pub verification_passed: bool,
    /// Names of the tests.
    pub tests_run: Vec<String>,
    /// Descriptions of the failures.
    #[serde(default)]
    pub failures: Vec<String>,
}

impl From<Wrapper> for WrapperConstructed {
    fn from(wrapper: Wrapper) -> Self {
        Self {
            wrapper_version: wrapper.wrapper_version,
            components: wrapper.components,
            plugins: wrapper.plugins,
            transport: wrapper.transport,
            cache_backend: wrapper.cache_backend,
            construction_hash: wrapper.construction_hash,
            capabilities: wrapper.capabilities,
            redacted: Vec::new(),
        }
    }
}

/// Feedback on a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The session.
    pub session: SessionId,
    /// The context.
    pub context_id: String,
    /// True when the context helped.
    pub helpful: bool,
    /// Reason of the rating.
    #[serde(default)]
    pub reason: Option<String>,
    /// Use that the agent made of the context.
    #[serde(default)]
    pub usage_outcome: Option<UsageOutcome>,
}

/// Output of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash and its size are kept.
    pub text: String,
    /// Kind of output.
    pub output_type: OutputType,
    /// True when the output requests an action.
    pub contains_action: bool,
}

/// A recovery from an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The session.
    pub session: SessionId,
    /// The error, by the event that recorded it.
    pub error: EventId,
    /// Recovery method.
    pub method: String,
    /// True when the recovery worked.
    pub success: bool,
}
