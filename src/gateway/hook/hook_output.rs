//! Answers, in each agent's own format.

use serde_json::{Map, Value, json};

use super::Host;
use super::hook_event::{HookEvent, HookEventKind, UnreadablePayload};
use super::verdict::HookVerdict;

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
    fn nothing() -> Self {
        Self {
            out: String::new(),
            err: String::new(),
            code: 0,
        }
    }

    fn json(value: &Value) -> Self {
        Self {
            out: format!("{value}\n"),
            ..Self::nothing()
        }
    }

    /// Creates a denial of an unreadable payload.
    #[must_use]
    pub fn unreadable(host: Host, why: &UnreadablePayload) -> Self {
        Self::refused(&format!(
            "cra: this hook cannot be read, so nothing goes on: {why}. Is `cra hook {}` the right one?",
            host.as_str()
        ))
    }

    /// Creates a denial that every agent understands, for requests whose kind is unknown.
    #[must_use]
    pub fn refused(reason: &str) -> Self {
        Self {
            err: format!("{reason}\n"),
            code: 2,
            ..Self::nothing()
        }
    }
}

/// Encodes a verdict in the format of the agent.
pub(super) fn encode(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match &told.moment {
        HookEventKind::Before { .. } => before(told, verdict),
        HookEventKind::Prompt { .. } => prompt(told, verdict),
        HookEventKind::Start | HookEventKind::After { .. } => beside(told, verdict.context()),
        HookEventKind::End
        | HookEventKind::Said(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => quiet(told.host),
    }
}

/// Encodes a verdict before a tool call.
fn before(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match (told.host, verdict) {
        (Host::Codex | Host::Cursor, HookVerdict::Ask { reason })
        | (_, HookVerdict::Deny { reason }) => deny(told, reason),
        (Host::ClaudeCode, HookVerdict::Ask { reason }) => specific(
            told,
            &[
                ("permissionDecision", "ask"),
                ("permissionDecisionReason", reason),
            ],
        ),
        (Host::Gemini, HookVerdict::Ask { reason }) => {
            HookOutput::json(&json!({"decision": "ask", "reason": reason}))
        }
        (Host::Copilot, HookVerdict::Ask { reason }) => flat(told, "ask", reason),
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
                return quiet(told.host);
            }
            specific(told, &said)
        }
        // Codex treats a bare `allow` as an error, and runs the tool.
        (Host::Codex, HookVerdict::Pass { context, .. }) => beside(told, context.as_deref()),
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
        ) => flat(told, "allow", why),
        (Host::Copilot, HookVerdict::Pass { approved: None, .. }) => quiet(told.host),
    }
}

fn deny(told: &HookEvent, reason: &str) -> HookOutput {
    match told.host {
        Host::ClaudeCode | Host::Codex => specific(
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
        Host::Copilot => flat(told, "deny", reason),
    }
}

/// Encodes a verdict before a user's prompt reaches the agent.
fn prompt(told: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    match (told.host, verdict) {
        // Agents cannot ask their user here, so a question is a denial.
        (host, HookVerdict::Deny { reason } | HookVerdict::Ask { reason }) => match host {
            Host::ClaudeCode | Host::Codex => {
                HookOutput::json(&json!({"decision": "block", "reason": reason}))
            }
            Host::Gemini => HookOutput::json(&json!({"decision": "deny", "reason": reason})),
            Host::Cursor => HookOutput::json(&json!({"continue": false, "user_message": reason})),
            // Copilot ignores the answer: the prompt reaches the agent in any case.
            Host::Copilot => quiet(host),
        },
        (Host::Cursor, HookVerdict::Pass { .. }) => HookOutput::json(&json!({"continue": true})),
        (_, HookVerdict::Pass { context, .. }) => beside(told, context.as_deref()),
    }
}

/// Encodes context for the agent, if the agent accepts it.
fn beside(told: &HookEvent, context: Option<&str>) -> HookOutput {
    let Some(context) = context else {
        return quiet(told.host);
    };
    match told.host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => {
            specific(told, &[("additionalContext", context)])
        }
        Host::Cursor => HookOutput::json(&json!({"additional_context": context})),
        Host::Copilot => {
            let mut said = nested(told, &[("additionalContext", context)]);
            said.insert("additionalContext".to_owned(), context.into());
            HookOutput::json(&said.into())
        }
    }
}

/// Returns an empty answer. Codex takes any text for a decision; the other agents expect an object.
fn quiet(host: Host) -> HookOutput {
    match host {
        Host::Codex => HookOutput::nothing(),
        Host::ClaudeCode | Host::Gemini | Host::Cursor | Host::Copilot => {
            HookOutput::json(&json!({}))
        }
    }
}

fn specific(told: &HookEvent, said: &[(&str, &str)]) -> HookOutput {
    HookOutput::json(&nested(told, said).into())
}

fn nested(told: &HookEvent, said: &[(&str, &str)]) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("hookEventName".to_owned(), told.event.clone().into());
    for (name, value) in said {
        fields.insert((*name).to_owned(), (*value).into());
    }
    Map::from_iter([("hookSpecificOutput".to_owned(), fields.into())])
}

/// Encodes a decision in Copilot's format. When Copilot runs hooks meant for Claude Code, adds the nested
/// format too.
fn flat(told: &HookEvent, decision: &str, reason: &str) -> HookOutput {
    let said = [
        ("permissionDecision", decision),
        ("permissionDecisionReason", reason),
    ];
    let mut fields = if told.event.starts_with(char::is_uppercase) {
        nested(told, &said)
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
