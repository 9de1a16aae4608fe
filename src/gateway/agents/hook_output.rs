//! Verdicts, and answers in each agent's own format.

use serde_json::{Map, Value};

use super::CodingAgent;
use super::hook_event::{HookEvent, HookEventKind, UnreadablePayload};

/// Verdict of a hook, independent of the agent's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum HookVerdict {
    /// The step may run.
    Pass {
        /// Context for the agent.
        context: Option<String>,
        /// Reason of an explicit permission, if there is one.
        approved: Option<String>,
    },
    /// The step is denied.
    Deny {
        /// Reason, and advice.
        reason: String,
    },
    /// The agent has to ask its own user.
    Ask {
        /// Reason.
        reason: String,
    },
}

impl HookVerdict {
    pub(in crate::gateway) fn pass(context: Option<String>) -> Self {
        Self::Pass {
            context,
            approved: None,
        }
    }

    /// Returns the context for the agent. At an event that cannot be stopped, this is the reason of the
    /// denial.
    pub(in crate::gateway) fn context(&self) -> Option<&str> {
        match self {
            Self::Pass { context, .. } => context.as_deref(),
            Self::Deny { reason } | Self::Ask { reason } => Some(reason),
        }
    }
}
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
    /// Creates an output without text.
    pub(super) fn empty() -> Self {
        Self {
            out: String::new(),
            err: String::new(),
            code: 0,
        }
    }

    /// Creates an output with a JSON value.
    pub(super) fn json(value: &Value) -> Self {
        Self {
            out: format!("{value}\n"),
            ..Self::empty()
        }
    }

    /// Creates an output with fields under the name of the event.
    pub(super) fn nested(event: &HookEvent, fields: &[(&str, &str)]) -> Self {
        Self::json(&nested_fields(event, fields).into())
    }

    /// Creates an output with a decision under the name of the event.
    pub(super) fn nested_decision(event: &HookEvent, decision: &str, reason: &str) -> Self {
        let fields = [
            ("permissionDecision", decision),
            ("permissionDecisionReason", reason),
        ];
        Self::nested(event, &fields)
    }

    /// Creates an output with an explicit permission and a context, each if there is one.
    pub(super) fn nested_permission(
        event: &HookEvent,
        context: Option<&str>,
        approved: Option<&str>,
    ) -> Self {
        let mut fields = Vec::new();
        if let Some(reason) = approved {
            fields.push(("permissionDecision", "allow"));
            fields.push(("permissionDecisionReason", reason));
        }
        fields.extend(context.map(|text| ("additionalContext", text)));
        if fields.is_empty() {
            return Self::json(&Value::Object(Map::new()));
        }
        Self::nested(event, &fields)
    }

    /// Creates a denial of an unreadable payload.
    #[must_use]
    pub fn unreadable(agent: CodingAgent, why: &UnreadablePayload) -> Self {
        Self::denial(&format!(
            "cra: this hook cannot be read, so it is denied: {why}. Is `cra hook {}` the right command?",
            agent.as_str()
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
pub(in crate::gateway) fn encode(event: &HookEvent, verdict: &HookVerdict) -> HookOutput {
    let agent = event.agent.adapter();
    match &event.kind {
        HookEventKind::BeforeTool { .. } => match verdict {
            HookVerdict::Deny { reason } => agent.deny_tool(event, reason),
            HookVerdict::Ask { reason } => agent.ask_about_tool(event, reason),
            HookVerdict::Pass { context, approved } => {
                agent.pass_tool(event, context.as_deref(), approved.as_deref())
            }
        },
        HookEventKind::Prompt { .. } => match verdict {
            // Agents cannot ask their user here, so a question is a denial.
            HookVerdict::Deny { reason } | HookVerdict::Ask { reason } => {
                agent.deny_prompt(event, reason)
            }
            HookVerdict::Pass { context, .. } => agent.pass_prompt(event, context.as_deref()),
        },
        HookEventKind::Start | HookEventKind::AfterTool { .. } => match verdict.context() {
            Some(context) => agent.add_context(event, context),
            None => agent.empty_output(),
        },
        HookEventKind::SettingsChange { .. } => match verdict {
            HookVerdict::Deny { reason } | HookVerdict::Ask { reason } => {
                agent.deny_settings_change(event, reason)
            }
            HookVerdict::Pass { .. } => agent.empty_output(),
        },
        HookEventKind::End
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => agent.empty_output(),
    }
}

/// Nests fields under the name of the event, as Claude Code and compatible agents expect.
pub(super) fn nested_fields(event: &HookEvent, fields: &[(&str, &str)]) -> Map<String, Value> {
    let mut nested = Map::new();
    nested.insert("hookEventName".to_owned(), event.event.clone().into());
    for (name, value) in fields {
        nested.insert((*name).to_owned(), (*value).into());
    }
    Map::from_iter([("hookSpecificOutput".to_owned(), nested.into())])
}

#[cfg(test)]
mod tests;
