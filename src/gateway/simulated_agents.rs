//! Simulated agents. They make the requests and take the turns of a script, repeatedly, and do nothing
//! else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::protocol::call::CallError;
use super::transport::client::GatewayClient;
use crate::base::id::SessionId;
use crate::base::json::{self, StrictJsonError};
use crate::memento::{MementoError, Turn};

/// A script of simulated agents.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
    /// The agents.
    pub agents: Vec<SimulatedAgent>,
}

/// One simulated agent. It starts a session, takes its steps, ends the session, and repeats.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedAgent {
    /// Kind of agent that it reports.
    pub agent: String,
    /// Key that it presents.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Purpose that it reports for its sessions.
    #[serde(default)]
    pub intent: Option<String>,
    /// Pause before each step.
    #[serde(default = "default_pause_ms")]
    pub pause_ms: u64,
    /// Number of sessions; unlimited if absent.
    #[serde(default)]
    pub sessions: Option<u64>,
    /// Steps of a session.
    pub steps: Vec<ScriptStep>,
}

/// One step of a simulated agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawScriptStep")]
pub enum ScriptStep {
    /// Requests an action.
    Ask {
        /// The action.
        action: String,
        /// Its parameters. `{n}` in a text is the number of the session.
        params: Value,
    },
    /// Takes a turn of a conversation.
    Turn {
        /// Conversation, with `{n}` as in parameters and `{run}` for a name of this run; without a name,
        /// the session's own thread.
        thread: Option<String>,
        /// The turn, with `{n}` as in parameters.
        turn: Value,
    },
}

/// A step before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScriptStep {
    action: Option<String>,
    #[serde(default)]
    params: Value,
    turn: Option<Value>,
    thread: Option<String>,
}

impl TryFrom<RawScriptStep> for ScriptStep {
    type Error = String;

    fn try_from(written: RawScriptStep) -> Result<Self, String> {
        match (written.action, written.turn) {
            (Some(action), None) if written.thread.is_none() => Ok(Self::Ask {
                action,
                params: written.params,
            }),
            (None, Some(turn)) if written.params.is_null() => {
                // An invalid turn is found when the script is read, not when its step is due.
                read_turn(&turn, 1).map_err(|error| format!("the turn is not valid: {error}"))?;
                Ok(Self::Turn {
                    thread: written.thread,
                    turn,
                })
            }
            (Some(_) | None, Some(_) | None) => Err(
                "a step must have an `action` and optional `params`, or a `turn` and an optional `thread`"
                    .to_owned(),
            ),
        }
    }
}

fn default_pause_ms() -> u64 {
    2000
}

impl AgentScript {
    /// Reads a script.
    ///
    /// # Errors
    /// Fails when the text is not a script, with line and column.
    pub fn read(text: &str) -> Result<Self, StrictJsonError> {
        json::read(text.as_bytes())
    }

    /// Starts all agents at the socket, where they connect like any agent. They run until their sessions
    /// are used up or the console stops.
    pub fn start(self, socket: &Path) {
        // A new name for each run, so that a thread that one run froze does not affect the next.
        let run = random_letters(4);
        for agent in self.agents {
            tokio::spawn(agent.run(socket.to_owned(), run.clone()));
        }
    }
}

impl SimulatedAgent {
    async fn run(self, socket: PathBuf, run: String) {
        let mut number = 0;
        while self.sessions.is_none_or(|most| number < most) {
            number += 1;
            if let Err(error) = self.run_session(&socket, &run, number).await {
                let reason = error.to_string();
                tracing::warn!(agent = self.agent, reason, "simulated agent");
                return;
            }
        }
    }

    /// Runs one session. A denied action is not an error: the agent continues with the next step.
    async fn run_session(&self, socket: &Path, run: &str, number: u64) -> Result<(), CallError> {
        let mut console = GatewayClient::connect(socket).await?;
        let session = session_id();
        let start = json!({"session": session, "agent": self.agent, "intent": self.intent,
            "api_key": self.api_key});
        console.call("session.start", &start).await?;
        for step in &self.steps {
            tokio::time::sleep(Duration::from_millis(self.pause_ms)).await;
            match step {
                ScriptStep::Ask { action, params } => {
                    let params = fill_in_number(params, number);
                    request_action(&mut console, &session, action, params).await?;
                }
                ScriptStep::Turn { thread, turn } => {
                    let thread = thread.as_ref();
                    let thread = thread.map(|name| name.replace("{n}", &number.to_string()));
                    let thread = thread.map(|name| name.replace("{run}", run));
                    let turn = fill_in_number(turn, number);
                    let turn = json!({"session": session, "thread": thread, "turn": turn});
                    self.send_turn(&mut console, "turn", &turn).await?;
                }
            }
        }
        let end = json!({"session": session});
        console.call("session.end", &end).await.map(drop)
    }

    /// Sends a call that is not an action. A refusal is not an error either.
    async fn send_turn(
        &self,
        console: &mut GatewayClient,
        method: &str,
        params: &Value,
    ) -> Result<(), CallError> {
        match console.call(method, params).await {
            Err(CallError::Fault(fault)) => {
                tracing::warn!(agent = self.agent, reason = fault.message, "simulated turn");
                Ok(())
            }
            result => result.map(drop),
        }
    }
}

/// Requests an action, and reports its result if it may run.
async fn request_action(
    console: &mut GatewayClient,
    session: &SessionId,
    action: &str,
    params: Value,
) -> Result<(), CallError> {
    let params = match params {
        Value::Null => json!({}),
        params => params,
    };
    let request = json!({"session": session, "action": action, "params": params});
    let allowed = match console.call("action.request", &request).await {
        Err(CallError::Fault(_)) => return Ok(()),
        allowed => allowed?,
    };
    let completed = json!({
        "session": session,
        "execution": allowed.get("execution"),
        "result": "simulated",
    });
    console.call("action.completed", &completed).await.map(drop)
}

/// Reads a turn as it is in the session with this number.
fn read_turn(turn: &Value, number: u64) -> Result<Turn, MementoError> {
    Turn::read(fill_in_number(turn, number).to_string().as_bytes())
}

/// Returns a short session name that people can distinguish.
fn session_id() -> SessionId {
    // INVARIANT: hexadecimal digits and a dash make an identifier.
    format!("s-{}", random_letters(6))
        .parse()
        .unwrap_or_else(|_| Uuid::now_v7().into())
}

/// Returns this many random letters.
fn random_letters(letters: usize) -> String {
    let random = Uuid::now_v7().simple().to_string();
    let skipped = random.len().saturating_sub(letters);
    random.chars().skip(skipped).collect()
}

/// Returns `value` with `{n}` in every text replaced by `number`.
fn fill_in_number(value: &Value, number: u64) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("{n}", &number.to_string())),
        Value::Array(items) => items
            .iter()
            .map(|item| fill_in_number(item, number))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), fill_in_number(field, number)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_script_is_readable() {
        let script = AgentScript::read(include_str!("../../assets/demo/agents.json")).unwrap();
        assert_eq!(script.agents.len(), 5);
    }

    #[test]
    fn a_step_that_is_neither_an_action_nor_a_turn_is_refused() {
        let read = |step: Value| {
            let script = json!({"agents": [{"agent": "x", "steps": [step]}]});
            AgentScript::read(&script.to_string()).map_err(|error| error.to_string())
        };
        let turn = json!({"message_id": "m-{n}", "message": "go"});
        read(json!({"turn": turn, "thread": "t-{n}"})).unwrap();
        let neither = [
            json!({}),
            json!({"action": "x", "turn": turn}),
            json!({"action": "x", "thread": "t"}),
            json!({"turn": turn, "params": {}}),
        ];
        for step in neither {
            let result = read(step).unwrap_err();
            assert!(result.contains("a step must have an `action`"), "{result}");
        }
        let result = read(json!({"turn": {"message_id": "m", "message": 4}})).unwrap_err();
        assert!(
            result.contains("the turn is not valid: message"),
            "{result}"
        );
    }

    #[test]
    fn session_numbers_are_filled_in_at_every_depth() {
        let params = json!({"a": ["T-{n}1", 5], "b": {"c": "{n}"}});
        assert_eq!(
            fill_in_number(&params, 7),
            json!({"a": ["T-71", 5], "b": {"c": "7"}})
        );
    }

    #[test]
    fn an_unknown_field_in_a_script_is_named() {
        let result = AgentScript::read(r#"{"agents": [{"agnt": "x", "steps": []}]}"#).unwrap_err();
        assert!(
            result.to_string().contains("unknown field `agnt`"),
            "{result}"
        );
    }
}
