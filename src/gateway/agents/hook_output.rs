//! Answers, in each agent's own format.

use serde_json::{Map, Value, json};

use super::hook_event::{HookEvent, HookEventKind, UnreadablePayload};
use crate::gateway::hook::Host;
use crate::gateway::hook::verdict::HookVerdict;

/// Output and exit code of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOutput {
    /// Standard output, for the agent.
    pub out: String,
    /// Standard error, for people, and for agents that read nothing else.
    pub err: String,
    /// The exit code.
    pub code: u8,
}

impl HookOutput {
    fn empty() -> Self {
        Self {
            out: String::new(),
            err: String::new(),
            code: 0,
        }
    }

    fn json(value: &Value) -> Self {
        Self {
            out: format!("{value}\n"),
            ..Self::empty()
        }
    }

    /// Creates a denial of an unreadable payload.
    #[must_use]
    pub fn unreadable(host: Host, why: &UnreadablePayload) -> Self {
        Self::denial(&format!(
            "cra: this hook cannot be read, so nothing goes on: {why}. Is `cra hook {}` the right one?",
            host.as_str()
        ))
    }

    /// Creates a denial that every agent understands, for requests whose kind is unknown.
    #[must_use]
    pub fn denial(reason: &str) -> Self {
        Self {
            err: format!("{reason}\n"),
            code: 2,
            ..Self::empty()
        }
    }
}

/// Encodes a verdict in the format of the agent.
pub(in crate::gateway) fn encode(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match &told.kind {
        HookEventKind::BeforeTool { .. } => encode_before_tool(told, verdict),
        HookEventKind::Prompt { .. } => encode_prompt(told, verdict),
        HookEventKind::Start | HookEventKind::AfterTool { .. } => {
            encode_context(told, verdict.context())
        }
        HookEventKind::End
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => empty_output(told.host),
    }
}

/// Encodes a verdict before a tool call.
fn encode_before_tool(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match (told.host, verdict) {
        (Host::Codex | Host::Cursor, HookVerdict::Ask { reason })
        | (_, HookVerdict::Deny { reason }) => encode_denial(told, reason),
        (Host::ClaudeCode, HookVerdict::Ask { reason }) => nested_output(
            told,
            &[
                ("permissionDecision", "ask"),
                ("permissionDecisionReason", reason),
            ],
        ),
        (Host::Gemini, HookVerdict::Ask { reason }) => {
            HookOutput::json(&json!({"decision": "ask", "reason": reason}))
        }
        (Host::Copilot, HookVerdict::Ask { reason }) => encode_copilot(told, "ask", reason),
        (Host::ClaudeCode, HookVerdict::Pass { context, approved }) => {
            let mut said = Vec::new();
            if let Some(why) = approved {
                said.push(("permissionDecision", "allow".to_owned()));
                said.push(("permissionDecisionReason", why.clone()));
            }
            said.extend(context.clone().map(|text| ("additionalContext", text)));
            let said: Vec<_> = said
                .iter()
                .map(|(name, text)| (*name, text.as_str()))
                .collect();
            if said.is_empty() {
                return empty_output(told.host);
            }
            nested_output(told, &said)
        }
        // Codex treats a bare `allow` as an error, and runs the tool.
        (Host::Codex, HookVerdict::Pass { context, .. }) => {
            encode_context(told, context.as_deref())
        }
        (Host::Gemini, HookVerdict::Pass { .. }) => HookOutput::json(&json!({"decision": "allow"})),
        // Cursor blocks on an empty answer, so the answer must say `allow`.
        (Host::Cursor, HookVerdict::Pass { .. }) => {
            HookOutput::json(&json!({"permission": "allow"}))
        }
        (
            Host::Copilot,
            HookVerdict::Pass {
                approved: Some(why),
                ..
            },
        ) => encode_copilot(told, "allow", why),
        (Host::Copilot, HookVerdict::Pass { approved: None, .. }) => empty_output(told.host),
    }
}

fn encode_denial(told: &HookEvent, reason: &str) -> HookOutput {
    match told.host {
        Host::ClaudeCode | Host::Codex => nested_output(
            told,
            &[
                ("permissionDecision", "deny"),
                ("permissionDecisionReason", reason),
            ],
        ),
        Host::Gemini => HookOutput::json(&json!({"decision": "deny", "reason": reason})),
        // Cursor shows only the user message to its model.
        Host::Cursor => HookOutput::json(
            &json!({"permission": "deny", "user_message": reason, "agent_message": reason}),
        ),
        Host::Copilot => encode_copilot(told, "deny", reason),
    }
}

/// Encodes a verdict before a user's prompt reaches the agent.
fn encode_prompt(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match (told.host, verdict) {
        // Agents cannot ask their user here, so a question is a denial.
        (host, HookVerdict::Deny { reason } | HookVerdict::Ask { reason }) => match host {
            Host::ClaudeCode | Host::Codex => {
                HookOutput::json(&json!({"decision": "block", "reason": reason}))
            }
            Host::Gemini => HookOutput::json(&json!({"decision": "deny", "reason": reason})),
            Host::Cursor => HookOutput::json(&json!({"continue": false, "user_message": reason})),
            // Copilot ignores the answer: the prompt reaches the agent in any case.
            Host::Copilot => empty_output(host),
        },
        (Host::Cursor, HookVerdict::Pass { .. }) => HookOutput::json(&json!({"continue": true})),
        (_, HookVerdict::Pass { context, .. }) => encode_context(told, context.as_deref()),
    }
}

/// Encodes context for the agent, if the agent accepts it.
fn encode_context(told: &HookEvent, context: Option<&str>) -> HookOutput {
    let Some(context) = context else {
        return empty_output(told.host);
    };
    match told.host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => {
            nested_output(told, &[("additionalContext", context)])
        }
        Host::Cursor => HookOutput::json(&json!({"additional_context": context})),
        Host::Copilot => {
            let mut said = nested_fields(told, &[("additionalContext", context)]);
            said.insert("additionalContext".to_owned(), context.into());
            HookOutput::json(&said.into())
        }
    }
}

/// Returns an empty answer. Codex takes any text for a decision; the other agents expect an object.
fn empty_output(host: Host) -> HookOutput {
    match host {
        Host::Codex => HookOutput::empty(),
        Host::ClaudeCode | Host::Gemini | Host::Cursor | Host::Copilot => {
            HookOutput::json(&json!({}))
        }
    }
}

fn nested_output(told: &HookEvent, said: &[(&str, &str)]) -> HookOutput {
    HookOutput::json(&nested_fields(told, said).into())
}

fn nested_fields(told: &HookEvent, said: &[(&str, &str)]) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("hookEventName".to_owned(), told.event.clone().into());
    for (name, value) in said {
        fields.insert((*name).to_owned(), (*value).into());
    }
    Map::from_iter([("hookSpecificOutput".to_owned(), fields.into())])
}

/// Encodes a decision in Copilot's format. When Copilot runs hooks meant for Claude Code, adds the nested
/// format too.
fn encode_copilot(told: &HookEvent, decision: &str, reason: &str) -> HookOutput {
    let said = [
        ("permissionDecision", decision),
        ("permissionDecisionReason", reason),
    ];
    let mut fields = if told.event.starts_with(char::is_uppercase) {
        nested_fields(told, &said)
    } else {
        Map::new()
    };
    for (name, value) in said {
        fields.insert(name.to_owned(), value.into());
    }
    HookOutput::json(&fields.into())
}

#[cfg(test)]
mod tests;
