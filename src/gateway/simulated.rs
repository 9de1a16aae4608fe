//! Simulated agents: they ask for what a script says, take the turns it says, again and again, and do
//! nothing else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{CallError, Speaker};
use crate::base::id::SessionId;
use crate::base::json::{self, JsonError};
use crate::memento::{MementoError, Turn};

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
    /// What it shows to be let in.
    #[serde(default)]
    pub api_key: Option<String>,
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

/// One thing that a simulated agent does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Step {
    /// It asks to run an action.
    Ask {
        /// The action.
        action: String,
        /// Its parameters. `{n}` in a text is the number of the session.
        params: Value,
    },
    /// It takes a turn of a conversation.
    Turn {
        /// The conversation, with `{n}` as in parameters and `{run}` for a name of this run; without a name it
        /// is the session's own.
        thread: Option<String>,
        /// The turn, with `{n}` as in parameters.
        turn: Value,
    },
}

/// A step as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    action: Option<String>,
    #[serde(default)]
    params: Value,
    turn: Option<Value>,
    thread: Option<String>,
}

impl TryFrom<Written> for Step {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match (written.action, written.turn) {
            (Some(action), None) if written.thread.is_none() => Ok(Self::Ask {
                action,
                params: written.params,
            }),
            (None, Some(turn)) if written.params.is_null() => {
                // A turn that is none is found when the script is read, and not when it is due.
                read_turn(&turn, 1).map_err(|error| format!("a turn that is none: {error}"))?;
                Ok(Self::Turn {
                    thread: written.thread,
                    turn,
                })
            }
            (Some(_) | None, Some(_) | None) => Err(
                "a step has an `action`, and may have `params`; or a `turn`, and may have a `thread`"
                    .to_owned(),
            ),
        }
    }
}

fn default_pause_ms() -> u64 {
    2000
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When it is not one, with line and column.
    pub fn read(text: &str) -> Result<Self, JsonError> {
        json::read(text.as_bytes())
    }

    /// Sets all agents to work, at the socket as any other. They work until their sessions are used up or the
    /// console stops.
    pub fn start(self, socket: &Path) {
        // What one run left frozen is not how the next one begins.
        let run = tail(4);
        for agent in self.agents {
            tokio::spawn(agent.work(socket.to_owned(), run.clone()));
        }
    }
}

impl Agent {
    async fn work(self, socket: PathBuf, run: String) {
        let mut number = 0;
        while self.sessions.is_none_or(|most| number < most) {
            number += 1;
            if let Err(error) = self.session(&socket, &run, number).await {
                let reason = error.to_string();
                tracing::warn!(agent = self.agent, reason, "simulated agent");
                return;
            }
        }
    }

    /// One session. An action that is denied is not an error: the agent goes on with the next.
    async fn session(&self, socket: &Path, run: &str, number: u64) -> Result<(), CallError> {
        let mut console = Speaker::connect(socket).await?;
        let session = session_id();
        let start = json!({"session": session, "agent": self.agent, "intent": self.intent,
            "api_key": self.api_key});
        console.call("session.start", &start).await?;
        for step in &self.steps {
            tokio::time::sleep(Duration::from_millis(self.pause_ms)).await;
            match step {
                Step::Ask { action, params } => {
                    let params = numbered(params, number);
                    ask(&mut console, &session, action, params).await?;
                }
                Step::Turn { thread, turn } => {
                    let thread = thread.as_ref();
                    let thread = thread.map(|it| it.replace("{n}", &number.to_string()));
                    let thread = thread.map(|it| it.replace("{run}", run));
                    let turn = numbered(turn, number);
                    let turn = json!({"session": session, "thread": thread, "turn": turn});
                    self.tell(&mut console, "turn", &turn).await?;
                }
            }
        }
        let end = json!({"session": session});
        console.call("session.end", &end).await.map(drop)
    }

    /// Says something that is no action. That it is refused is not an error either.
    async fn tell(
        &self,
        console: &mut Speaker,
        method: &str,
        params: &Value,
    ) -> Result<(), CallError> {
        match console.call(method, params).await {
            Err(CallError::Fault(fault)) => {
                tracing::warn!(agent = self.agent, reason = fault.message, "simulated turn");
                Ok(())
            }
            told => told.map(drop),
        }
    }
}

/// Asks for an action, and reports what came of it where it may run.
async fn ask(
    console: &mut Speaker,
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

/// A turn as it is in a session of this number.
fn read_turn(turn: &Value, number: u64) -> Result<Turn, MementoError> {
    Turn::read(numbered(turn, number).to_string().as_bytes())
}

/// A short name that people can tell apart.
fn session_id() -> SessionId {
    // INVARIANT: hexadecimal digits and a dash make an identifier.
    format!("s-{}", tail(6))
        .parse()
        .unwrap_or_else(|_| Uuid::now_v7().into())
}

/// So many random letters.
fn tail(letters: usize) -> String {
    let random = Uuid::now_v7().simple().to_string();
    let skipped = random.len().saturating_sub(letters);
    random.chars().skip(skipped).collect()
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
    use super::*;

    #[test]
    fn the_shipped_script_reads() {
        let script = Script::read(include_str!("../../assets/demo/agents.json")).unwrap();
        assert_eq!(script.agents.len(), 5);
    }

    #[test]
    fn a_step_that_is_neither_an_action_nor_a_turn_is_refused() {
        let read = |step: Value| {
            let script = json!({"agents": [{"agent": "x", "steps": [step]}]});
            Script::read(&script.to_string()).map_err(|error| error.to_string())
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
            let told = read(step).unwrap_err();
            assert!(told.contains("a step has an `action`"), "{told}");
        }
        let told = read(json!({"turn": {"message_id": "m", "message": 4}})).unwrap_err();
        assert!(told.contains("a turn that is none: message"), "{told}");
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
