//! Hooks: commands that agents run before and after each step, each agent in its own format.
//!
//! Each of these agents continues when a hook gives no answer in time, crashes, or gives an answer that the
//! agent cannot read. So the hook always answers, before the agent's own timer, in the agent's own format.
//! Every failure becomes a denial that says what to do. If no gate stood before a step, the answer is empty
//! where the agent permits that: the agent's own rules and questions stay in force. Only a step that an
//! operator let pass is explicitly allowed.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::agents::CodingAgent;
use super::agents::hook_output::{self, HookVerdict};
use super::protocol::call::CallError;
use super::protocol::wording::{KeyRemedy, denial_text};
use super::transport::agent_connection::AgentConnection;
use crate::base::digest::Digest;

mod answer_command;
mod answer_sender;
mod console_calls;
mod secret;
mod settings_change;
mod verdict;
mod wrapper;

pub use super::agents::hook_event::{HookEvent, HookEventKind, UnreadablePayload};
pub use super::agents::hook_output::HookOutput;
pub use super::agents::tool_actions::{ToolAction, actions};
pub use answer_command::{AnswerCommand, AnswerLine};
pub use answer_sender::{AnswerOutcome, AnswerSender, send_answers};
pub use console_calls::ConsoleSocket;
pub use secret::secret;
pub(super) use secret::secret_named;

/// Behaviour when no console runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OfflineBehavior {
    /// Denies everything.
    Deny,
    /// Lets the agent ask its own user, if it can.
    Ask,
}

impl OfflineBehavior {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }

    /// Finds a value by its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = [Self::Deny, Self::Ask].into_iter();
        all.find(|offline| offline.as_str() == name)
    }
}

/// Settings of one hook run.
#[derive(Clone, Debug)]
pub struct HookOptions {
    /// Agent that runs the hook.
    pub agent: CodingAgent,
    /// Time at which the agent began to wait.
    pub started_at: Instant,
    /// Time that the agent waits, if known.
    pub timeout: Option<Duration>,
    /// Behaviour when no console runs.
    pub offline: OfflineBehavior,
    /// Secret from which session keys are derived. Each hook is a separate process: it proves with this
    /// secret that a session belongs to it.
    pub secret: Digest,
    /// Key that the agent presents, if an Atlas requires one.
    pub api_key: Option<String>,
    /// Command by which the agent answers a checkpoint from its shell.
    pub answer_command: AnswerCommand,
}

/// Asks the console at a socket about an event, and returns the answer for the agent.
#[must_use]
pub fn answer_event(
    event: &HookEvent,
    options: &HookOptions,
    socket: &ConsoleSocket,
) -> HookOutput {
    let verdict = verdict::decide_over_socket(event, options, socket);
    hook_output::encode(event, &verdict)
}

/// Asks this process' own console about an event of an admitted caller, and returns the answer for the
/// agent.
pub(super) async fn answer_event_here(
    event: &HookEvent,
    options: &HookOptions,
    caller: AgentConnection,
) -> HookOutput {
    let verdict = verdict::decide_here(event, options, caller).await;
    hook_output::encode(event, &verdict)
}

/// Returns the deadline for an answer, and the output if none came by then.
#[must_use]
pub fn too_late(event: &HookEvent, options: &HookOptions) -> (Instant, HookOutput) {
    let reason = denial_text(
        &CallError::TimedOut,
        KeyRemedy::Connect(options.agent.as_str()),
    );
    let printed = hook_output::encode(event, &HookVerdict::Deny { reason });
    (verdict::answer_deadline(event, options), printed)
}
