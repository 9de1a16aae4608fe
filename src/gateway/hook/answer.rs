//! Answers, in each agent's own format.

use serde_json::{Map, Value, json};

use super::Host;
use super::ask::Verdict;
use super::told::{Moment, Told, Unreadable};

/// Output and exit code of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Standard output, for the agent.
    pub out: String,
    /// Standard error, for people, and for agents that read nothing else.
    pub err: String,
    /// The exit code.
    pub code: u8,
}

impl Printed {
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
    pub fn unreadable(host: Host, why: &Unreadable) -> Self {
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
pub(super) fn encode(told: &Told, verdict: &Verdict) -> Printed {
    match &told.moment {
        Moment::Before { .. } => before(told, verdict),
        Moment::Prompt { .. } => prompt(told, verdict),
        Moment::Start | Moment::After { .. } => beside(told, verdict.context()),
        Moment::End | Moment::Said(_) | Moment::Failed { .. } | Moment::Other => quiet(told.host),
    }
}

/// Encodes a verdict before a tool call.
fn before(told: &Told, verdict: &Verdict) -> Printed {
    match (told.host, verdict) {
        (Host::Codex | Host::Cursor, Verdict::Ask { reason }) | (_, Verdict::Deny { reason }) => {
            deny(told, reason)
        }
        (Host::ClaudeCode, Verdict::Ask { reason }) => specific(
            told,
            &[
                ("permissionDecision", "ask"),
                ("permissionDecisionReason", reason),
            ],
        ),
        (Host::Gemini, Verdict::Ask { reason }) => {
            Printed::json(&json!({"decision": "ask", "reason": reason}))
        }
        (Host::Copilot, Verdict::Ask { reason }) => flat(told, "ask", reason),
        (Host::ClaudeCode, Verdict::Pass { context, approved }) => {
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
        (Host::Codex, Verdict::Pass { context, .. }) => beside(told, context.as_deref()),
        (Host::Gemini, Verdict::Pass { .. }) => Printed::json(&json!({"decision": "allow"})),
        // Cursor blocks on an empty answer, so the answer must say `allow`.
        (Host::Cursor, Verdict::Pass { .. }) => Printed::json(&json!({"permission": "allow"})),
        (
            Host::Copilot,
            Verdict::Pass {
                approved: Some(why),
                ..
            },
        ) => flat(told, "allow", why),
        (Host::Copilot, Verdict::Pass { approved: None, .. }) => quiet(told.host),
    }
}

fn deny(told: &Told, reason: &str) -> Printed {
    match told.host {
        Host::ClaudeCode | Host::Codex => specific(
            told,
            &[
                ("permissionDecision", "deny"),
                ("permissionDecisionReason", reason),
            ],
        ),
        Host::Gemini => Printed::json(&json!({"decision": "deny", "reason": reason})),
        // Cursor shows only the user message to its model.
        Host::Cursor => Printed::json(
            &json!({"permission": "deny", "user_message": reason, "agent_message": reason}),
        ),
        Host::Copilot => flat(told, "deny", reason),
    }
}

/// Encodes a verdict before a user's prompt reaches the agent.
fn prompt(told: &Told, verdict: &Verdict) -> Printed {
    match (told.host, verdict) {
        // Agents cannot ask their user here, so a question is a denial.
        (host, Verdict::Deny { reason } | Verdict::Ask { reason }) => match host {
            Host::ClaudeCode | Host::Codex => {
                Printed::json(&json!({"decision": "block", "reason": reason}))
            }
            Host::Gemini => Printed::json(&json!({"decision": "deny", "reason": reason})),
            Host::Cursor => Printed::json(&json!({"continue": false, "user_message": reason})),
            // Copilot ignores the answer: the prompt reaches the agent in any case.
            Host::Copilot => quiet(host),
        },
        (Host::Cursor, Verdict::Pass { .. }) => Printed::json(&json!({"continue": true})),
        (_, Verdict::Pass { context, .. }) => beside(told, context.as_deref()),
    }
}

/// Encodes context for the agent, if the agent accepts it.
fn beside(told: &Told, context: Option<&str>) -> Printed {
    let Some(context) = context else {
        return quiet(told.host);
    };
    match told.host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => {
            specific(told, &[("additionalContext", context)])
        }
        Host::Cursor => Printed::json(&json!({"additional_context": context})),
        Host::Copilot => {
            let mut said = nested(told, &[("additionalContext", context)]);
            said.insert("additionalContext".to_owned(), context.into());
            Printed::json(&said.into())
        }
    }
}

/// Returns an empty answer. Codex takes any text for a decision; the other agents expect an object.
fn quiet(host: Host) -> Printed {
    match host {
        Host::Codex => Printed::nothing(),
        Host::ClaudeCode | Host::Gemini | Host::Cursor | Host::Copilot => Printed::json(&json!({})),
    }
}

fn specific(told: &Told, said: &[(&str, &str)]) -> Printed {
    Printed::json(&nested(told, said).into())
}

fn nested(told: &Told, said: &[(&str, &str)]) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("hookEventName".to_owned(), told.event.clone().into());
    for (name, value) in said {
        fields.insert((*name).to_owned(), (*value).into());
    }
    Map::from_iter([("hookSpecificOutput".to_owned(), fields.into())])
}

/// Encodes a decision in Copilot's format. When Copilot runs hooks meant for Claude Code, adds the nested
/// format too.
fn flat(told: &Told, decision: &str, reason: &str) -> Printed {
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
    Printed::json(&fields.into())
}

#[cfg(test)]
mod tests;
