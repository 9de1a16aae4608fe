//! The command with which an agent answers a checkpoint from its shell.
//!
//! A denial shows it, with a token that only the hook can make. Contract: a shell command passes without
//! the console only if it is exactly this command, with this session's token and one JSON object in single
//! quotes. A command with any difference, such as a second command, an operator, a variable or another tool
//! parameter, is judged like every other shell command.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::HookOptions;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::json;
use crate::engine::command::AgentQuestions;
use crate::gateway::agents::hook_event::{HookEvent, HookEventKind};
use crate::gateway::agents::hook_output::HookVerdict;
use crate::gateway::agents::tool_actions::ToolAction;
use crate::gateway::connect::quote;
use crate::gateway::protocol::questions;

/// Length of a token in characters: too long to guess.
const TOKEN_LEN: usize = 32;

/// Parameters of a shell tool that do not change which program runs.
const HARMLESS_PARAMS: [&str; 14] = [
    "command",
    "description",
    "timeout",
    "timeout_ms",
    "cwd",
    "asked_cwd",
    "workdir",
    "tool",
    "subagent",
    "run_in_background",
    "is_background",
    "explanation",
    "goal",
    "mode",
];

/// Shell tools in whose language characters other than `'` end a quoted text.
const POWERSHELL_TOOLS: [&str; 2] = ["PowerShell", "powershell"];

/// The part of the command that all sessions share.
#[derive(Clone, Debug)]
pub struct AnswerCommand {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Options that tell where the console is.
    pub location_args: Vec<String>,
}

/// Identity of a conversation for which hooks act.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConversationIdentity<'s> {
    /// Secret from which session keys are derived.
    pub(super) secret: Digest,
    /// First session of the conversation.
    pub(super) conversation: &'s SessionId,
}

impl ConversationIdentity<'_> {
    /// Returns the secret that all sessions of the conversation present.
    pub(super) fn key(self) -> Digest {
        let (secret, conversation) = (self.secret, self.conversation);
        Digest::of(format!("{secret}\n{conversation}"))
    }

    /// Returns the token for the answers of one session at one gate.
    pub(super) fn token(self, session: &SessionId, gate: &str) -> String {
        let parts = [
            b"cra answer token 1".as_slice(),
            self.secret.to_string().as_bytes(),
            self.conversation.as_str().as_bytes(),
            session.as_str().as_bytes(),
            gate.as_bytes(),
        ]
        .map(<[u8]>::to_vec);
        let digest = Digest::of_parts(parts.iter().map(Vec::as_slice)).to_string();
        digest.chars().take(TOKEN_LEN).collect()
    }
}

/// Arguments of the command.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerLine {
    /// The session.
    pub session: SessionId,
    /// The held request.
    pub gate: HeldRequestId,
    /// Token that the hook made for this session and gate.
    pub token: String,
    /// Answers by checkpoint, then by question.
    pub answers: Map<String, Value>,
}

impl AnswerLine {
    /// Returns the secret of the session, if the hook made the token for it.
    #[must_use]
    pub fn key(&self, secret: Digest) -> Option<String> {
        let mut conversation = self.session.clone();
        loop {
            let identity = ConversationIdentity {
                secret,
                conversation: &conversation,
            };
            if identity.token(&self.session, self.gate.as_str()) == self.token {
                return Some(identity.key().to_string());
            }
            // A resumed session has the name of the first session and a number.
            let (first, number) = conversation.as_str().rsplit_once('.')?;
            number.parse::<u32>().ok()?;
            conversation = first.parse().ok()?;
        }
    }
}

impl AnswerCommand {
    /// Returns the command with a template for the answers.
    pub(super) fn line(&self, session: &SessionId, token: &str, asked: &AgentQuestions) -> String {
        let answers = questions::template(asked).to_string();
        // A quote would end the text. JSON can escape it.
        let answers = answers.replace('\'', "\\u0027");
        format!(
            "{}{session} {} {token} '{answers}'",
            self.command_prefix(),
            asked.gate
        )
    }

    fn command_prefix(&self) -> String {
        let program = quote(&self.program.to_string_lossy());
        let place: Vec<_> = self.location_args.iter().map(|word| quote(word)).collect();
        format!("{program} answer {} ", place.join(" "))
    }

    /// Reads a shell command that is exactly this one.
    fn read(&self, command: &str) -> Option<AnswerLine> {
        let rest = command
            .trim_matches(' ')
            .strip_prefix(&self.command_prefix())?;
        let (words, answers) = rest.split_once(" '")?;
        let answers = answers.strip_suffix('\'')?;
        if answers.contains('\'') {
            return None;
        }
        let words: Vec<_> = words.split(' ').collect();
        let [session, gate, token] = words.as_slice() else {
            return None;
        };
        Some(AnswerLine {
            session: session.parse().ok()?,
            gate: gate.parse().ok()?,
            token: (*token).to_owned(),
            answers: json::read(answers.as_bytes()).ok()?,
        })
    }

    /// Returns true if a tool call only answers a checkpoint of this conversation.
    pub(super) fn is_answer_call(
        &self,
        actions: &[ToolAction],
        identity: ConversationIdentity<'_>,
    ) -> bool {
        let [action] = actions else { return false };
        let harmless = |(name, value): (&String, &Value)| {
            let plain = value.is_string() || value.is_number() || value.is_boolean();
            plain && HARMLESS_PARAMS.contains(&name.as_str())
        };
        let tool = action.params.get("tool").and_then(Value::as_str);
        if action.name != "shell.run"
            || !action.params.iter().all(harmless)
            || tool.is_none_or(|tool| POWERSHELL_TOOLS.contains(&tool))
        {
            return false;
        }
        let command = action.params.get("command").and_then(Value::as_str);
        let Some(line) = command.and_then(|command| self.read(command)) else {
            return false;
        };
        let own = identity.key().to_string();
        line.key(identity.secret) == Some(own)
    }
}

/// Returns the verdict on a shell command that only answers a checkpoint. It is not a step of the agent, so
/// the hook does not ask the console; the console records the answer when it arrives.
pub(super) fn verdict(
    event: &HookEvent,
    options: &HookOptions,
    conversation: &SessionId,
) -> Option<HookVerdict> {
    let identity = ConversationIdentity {
        secret: options.secret,
        conversation,
    };
    let is_use = |actions: &[ToolAction]| options.answer_command.is_answer_call(actions, identity);
    match &event.kind {
        HookEventKind::BeforeTool {
            actions: Ok(actions),
            ..
        } if is_use(actions) => Some(HookVerdict::Pass {
            context: None,
            approved: Some("cra: this command only answers a checkpoint".to_owned()),
        }),
        HookEventKind::AfterTool { actions, .. } if is_use(actions) => {
            Some(HookVerdict::pass(None))
        }
        HookEventKind::BeforeTool { .. }
        | HookEventKind::AfterTool { .. }
        | HookEventKind::Start
        | HookEventKind::End
        | HookEventKind::Prompt { .. }
        | HookEventKind::SettingsChange { .. }
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => None,
    }
}

#[cfg(test)]
mod tests;
