//! Simulated agents: they ask for what a script says, again and again, and do nothing else.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::base::id::SessionId;
use crate::engine::command::{
    ActionCompleted, ActionRequest, Denied, EndSession, FinalStatus, StartSession,
};
use crate::runtime::{Agents, Requested};

/// Who asks for what.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The agents.
    pub agents: Vec<Agent>,
}

/// One simulated agent. It begins a session, takes its steps, ends the session, and begins anew.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// What it calls itself.
    pub agent: String,
    /// What it says its sessions are for.
    #[serde(default)]
    pub intent: Option<String>,
    /// How long it waits before each step.
    #[serde(default = "default_pause_ms")]
    pub pause_ms: u64,
    /// How many sessions it has; without end when absent.
    #[serde(default)]
    pub sessions: Option<u64>,
    /// What it asks for in a session.
    pub steps: Vec<Step>,
}

/// One thing that a simulated agent asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The action.
    pub action: String,
    /// Its parameters. `{n}` in a text is the number of the session.
    #[serde(default)]
    pub params: Value,
}

fn default_pause_ms() -> u64 {
    2000
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When it is not one, with line and column.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Sets all agents to work. They work until their sessions are used up or the console stops.
    pub fn start(self, agents: &Agents) {
        for agent in self.agents {
            tokio::spawn(agent.work(agents.clone()));
        }
    }
}

impl Agent {
    async fn work(self, agents: Agents) {
        let mut number = 0;
        while self.sessions.is_none_or(|most| number < most) {
            number += 1;
            if let Err(denied) = self.session(&agents, number).await {
                tracing::warn!(
                    agent = self.agent,
                    reason = denied.reason,
                    "simulated agent"
                );
                return;
            }
        }
    }

    /// One session. An action that is denied is not an error: the agent goes on with the next.
    async fn session(&self, agents: &Agents, number: u64) -> Result<(), Denied> {
        let session = session_id();
        let start = StartSession {
            session: session.clone(),
            agent: self.agent.clone(),
            agent_version: None,
            intent: self.intent.clone(),
        };
        agents.start_session(start).await?;
        for step in &self.steps {
            tokio::time::sleep(Duration::from_millis(self.pause_ms)).await;
            let request = ActionRequest {
                session: session.clone(),
                action: step.action.clone(),
                params: numbered(&step.params, number),
                deadline: None,
                resolution: None,
            };
            let Ok(Requested::Allowed(allowed)) = agents.request_action(request).await else {
                continue;
            };
            let completed = ActionCompleted {
                session: session.clone(),
                execution: allowed.execution,
                result: Ok("simulated".to_owned()),
            };
            agents.complete_action(completed).await?;
        }
        let end = EndSession {
            session,
            status: FinalStatus::Completed,
            summary: None,
        };
        agents.end_session(end).await
    }
}

/// A short name that people can tell apart.
fn session_id() -> SessionId {
    let random = Uuid::now_v7().simple().to_string();
    let tail: String = random.chars().skip(random.len() - 6).collect();
    // INVARIANT: hexadecimal digits and a dash make an identifier.
    format!("s-{tail}")
        .parse()
        .unwrap_or_else(|_| Uuid::now_v7().into())
}

/// `value` with `{n}` in every text replaced by `number`.
fn numbered(value: &Value, number: u64) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("{n}", &number.to_string())),
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), numbered(field, number)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shipped_script_reads() {
        let script = Script::read(include_str!("../../assets/demo/agents.json")).unwrap();
        assert_eq!(script.agents.len(), 3);
    }

    #[test]
    fn numbers_are_filled_in_everywhere() {
        let params = json!({"a": ["T-{n}1", 5], "b": {"c": "{n}"}});
        assert_eq!(
            numbered(&params, 7),
            json!({"a": ["T-71", 5], "b": {"c": "7"}})
        );
    }

    #[test]
    fn a_typo_in_a_script_is_named() {
        let told = Script::read(r#"{"agents": [{"agnt": "x", "steps": []}]}"#).unwrap_err();
        assert!(told.to_string().contains("unknown field `agnt`"), "{told}");
    }
}
