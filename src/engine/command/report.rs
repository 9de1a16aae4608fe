//! What agents tell without asking for anything.

use serde::{Deserialize, Serialize};

use crate::base::canon::canonical;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::trace::event::{OutputType, UsageOutcome, WrapperCapabilities, WrapperConstructed};

/// An agent reports an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// The session.
    pub session: SessionId,
    /// What kind of error.
    pub error_type: String,
    /// For programs.
    #[serde(default)]
    pub error_code: Option<String>,
    /// For people.
    pub message: String,
    /// Whether work can go on.
    pub recoverable: bool,
    /// Where it happened.
    #[serde(default)]
    pub stack_trace: Option<String>,
}

/// Something that an agent tells and that is only noted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// How it is wrapped.
    Wrapper(Wrapper),
    /// Result of a check of its wrapper.
    WrapperCheck(WrapperCheck),
    /// Whether a context helped.
    Feedback(Feedback),
    /// What it produced.
    Output(Output),
    /// That an error was dealt with.
    Recovery(Recovery),
}

impl Report {
    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Wrapper(it) => &it.session,
            Self::WrapperCheck(check) => &check.session,
            Self::Feedback(it) => &it.session,
            Self::Output(it) => &it.session,
            Self::Recovery(it) => &it.session,
        }
    }
}

/// How an agent is wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrapper {
    /// The session.
    pub session: SessionId,
    /// The wrapper's version.
    pub wrapper_version: String,
    /// Its parts.
    pub components: Vec<String>,
    /// Plugins in it.
    pub plugins: Vec<String>,
    /// `mcp`, `rest` or `direct`.
    pub transport: String,
    /// Where it caches.
    pub cache_backend: String,
    /// What it can intercept.
    pub capabilities: WrapperCapabilities,
    /// Proof of construction: [`Wrapper::proof`] of all of the above.
    pub construction_hash: String,
}

impl Wrapper {
    /// The proof that it is made of what it says: the SHA-256 of the canonical JSON of every field of
    /// `wrapper_constructed` but the proof itself.
    #[must_use]
    pub fn proof(&self) -> Digest {
        let record = WrapperConstructed::from(self.clone());
        let mut fields = crate::trace::event::Payload::from(record).fields();
        fields.remove("construction_hash");
        Digest::of(canonical(&fields))
    }
}

/// Result of a check that an agent, or its wrapper, made of the wrapper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrapperCheck {
    /// The session.
    pub session: SessionId,
    /// Tells whether every test passed.
    pub verification_passed: bool,
    /// Names of the tests.
    pub tests_run: Vec<String>,
    /// Descriptions of what failed.
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

/// Whether a context helped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The session.
    pub session: SessionId,
    /// The context.
    pub context_id: String,
    /// Whether it did.
    pub helpful: bool,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// What the agent made of it.
    #[serde(default)]
    pub usage_outcome: Option<UsageOutcome>,
}

/// What an agent produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash and its size are kept.
    pub text: String,
    /// What kind of output.
    pub output_type: OutputType,
    /// Whether it asks for an action.
    pub contains_action: bool,
}

/// That an error was dealt with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The session.
    pub session: SessionId,
    /// The error, by the event that recorded it.
    pub error: EventId,
    /// How.
    pub method: String,
    /// Whether it worked.
    pub success: bool,
}
