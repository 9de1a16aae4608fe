//! Simulated agents: they ask for what a script says, take the turns it says, again and again, and do
//! nothing else.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::base::id::SessionId;
use crate::engine::command::{
    ActionCompleted, ActionRequest, Denied, EndSession, FinalStatus, StartSession,
};
use crate::memento::{MementoError, Name, Turn};
use crate::runtime::{Agents, Requested, TakeTurn};

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
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Sets all agents to work. They work until their sessions are used up or the console stops.
    pub fn start(self, agents: &Agents) {
        // What one run left frozen is not how the next one begins.
        let run = tail(4);
        for agent in self.agents {
            tokio::spawn(agent.work(agents.clone(), run.clone()));
        }
    }
}

impl Agent {
    async fn work(self, agents: Agents, run: String) {
        let mut number = 0;
        while self.sessions.is_none_or(|most| number < most) {
            number += 1;
            if let Err(denied) = self.session(&agents, &run, number).await {
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
    async fn session(&self, agents: &Agents, run: &str, number: u64) -> Result<(), Denied> {
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
            match step {
                Step::Ask { action, params } => {
                    let params = numbered(params, number);
                    ask(agents, &session, action, params).await?;
                }
                Step::Turn { thread, turn } => {
                    let thread = thread.as_ref();
                    let thread = thread.map(|it| it.replace("{n}", &number.to_string()));
                    let thread = thread.map(|it| it.replace("{run}", run));
                    self.turn(agents, &session, thread, (turn, number)).await;
                }
            }
        }
        let end = EndSession {
            session,
            status: FinalStatus::Completed,
            summary: None,
        };
        agents.end_session(end).await
    }

    /// Takes a turn. One that is refused is not an error either.
    async fn turn(
        &self,
        agents: &Agents,
        session: &SessionId,
        thread: Option<String>,
        (turn, number): (&Value, u64),
    ) {
        let thread = thread.map(|it| it.parse::<Name>()).transpose();
        let taken = match (read_turn(turn, number), thread) {
            (Ok(turn), Ok(thread)) => {
                let session = session.clone();
                let take = TakeTurn {
                    session,
                    thread,
                    turn,
                };
                agents.turn(take).await.map_err(|denied| denied.reason)
            }
            (Err(error), _) => Err(error.to_string()),
            (_, Err(error)) => Err(error),
        };
        if let Err(reason) = taken {
            tracing::warn!(agent = self.agent, reason, "simulated turn");
        }
    }
}

/// Asks for an action, and reports what came of it where it may run.
async fn ask(
    agents: &Agents,
    session: &SessionId,
    action: &str,
    params: Value,
) -> Result<(), Denied> {
    let request = ActionRequest {
        session: session.clone(),
        action: action.to_owned(),
        params,
        deadline: None,
        resolution: None,
    };
    let Ok(Requested::Allowed(allowed)) = agents.request_action(request).await else {
        return Ok(());
    };
    let completed = ActionCompleted {
        session: session.clone(),
        execution: allowed.execution,
        result: Ok("simulated".to_owned()),
    };
    agents.complete_action(completed).await
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
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shipped_script_reads() {
        let script = Script::read(include_str!("../../assets/demo/agents.json")).unwrap();
        assert_eq!(script.agents.len(), 4);
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
