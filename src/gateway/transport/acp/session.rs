//! One session of the protocol: its session at the console, and the tool calls of the agent.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::message::text;
use super::tool_call::{AnnouncedWrite, announced_writes};
use crate::gateway::agents::tool_actions::ToolAction;
use crate::gateway::protocol::call::CallError;
use crate::gateway::protocol::wording::{injected_in, injected_text, join_texts};
use crate::gateway::transport::console_session::{ConsoleIdentity, ConsoleSession, PermittedRun};

/// Most unfinished tool calls of a session that are remembered. A call beyond that runs without a record of
/// its result.
const MAX_TOOL_CALLS: usize = 1000;

/// Kinds of tool calls that have no effect outside the agent.
const INNER_KINDS: [&str; 2] = ["think", "switch_mode"];

/// Kinds of tool calls that change something, also when they fail.
const EFFECTIVE_KINDS: [&str; 4] = ["execute", "edit", "delete", "move"];

/// A session of the protocol.
#[derive(Debug)]
pub(super) struct AcpSession {
    console: ConsoleSession,
    pub(super) cwd: Option<String>,
    state: Mutex<SessionState>,
}

#[derive(Debug, Default)]
struct SessionState {
    calls: HashMap<String, TrackedCall>,
    /// Text of the agent since the last prompt.
    output: String,
    /// Contexts that wait for the next prompt: a permission cannot carry them.
    contexts: Vec<String>,
}

/// A tool call of the agent that has not ended.
#[derive(Debug, Default)]
struct TrackedCall {
    /// Fields of the call, as the agent told them so far.
    fields: Map<String, Value>,
    /// Permitted runs.
    runs: Vec<PermittedRun>,
    /// Announced changes that were permitted with the call.
    writes: Vec<AnnouncedWrite>,
    /// Set if the agent asked about the call.
    asked: bool,
}

/// Outcome of a run: its result, or a code and a message.
pub(super) type RunOutcome = Result<String, (String, String)>;

impl AcpSession {
    /// Creates a session.
    ///
    /// # Errors
    /// Fails when the system provides no randomness.
    pub(super) fn new(
        identity: ConsoleIdentity,
        cwd: Option<String>,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self {
            console: ConsoleSession::new(identity)?,
            cwd,
            state: Mutex::default(),
        })
    }

    /// Asks about all actions. If one is not permitted, none runs.
    ///
    /// # Errors
    /// Every outcome other than a permission.
    pub(super) async fn request_actions(
        &self,
        actions: &[ToolAction],
    ) -> Result<Vec<PermittedRun>, CallError> {
        let mut runs = Vec::new();
        for action in actions {
            match self
                .console
                .request_action(&action.name, &action.params)
                .await
            {
                Ok(mut run) => {
                    let text = run.text.take();
                    self.state.lock().await.contexts.extend(text);
                    runs.push(run);
                }
                Err(error) => {
                    let why = "another part of the call was not permitted";
                    self.report_all(runs, &Err(not_run(why))).await;
                    return Err(error);
                }
            }
        }
        Ok(runs)
    }

    /// Reports the outcome of runs. A report that does not arrive changes nothing for the agent.
    pub(super) async fn report_all(&self, runs: Vec<PermittedRun>, outcome: &RunOutcome) {
        for run in runs {
            let reported = self.console.report_result(&run, outcome.clone()).await;
            if let Ok(Some(text)) = reported {
                self.state.lock().await.contexts.push(text);
            }
        }
    }

    /// Reports a prompt of the user. Returns the text that the prompt gets in addition.
    ///
    /// # Errors
    /// Every outcome other than an acceptance.
    pub(super) async fn report_prompt(
        &self,
        id: &str,
        prompt: &str,
    ) -> Result<Option<String>, CallError> {
        let accepted = self.console.call("input", json!({"text": prompt})).await?;
        let turn = json!({"message_id": id, "message": prompt, "author": "user"});
        // A conversation's summary decides nothing about actions.
        let _ = self.console.call("turn", json!({"turn": turn})).await;
        let mut injected = self.console.take_first_injected().await;
        injected.extend(injected_in(&accepted));
        let mut texts: Vec<_> = injected_text(&injected).into_iter().collect();
        texts.append(&mut self.state.lock().await.contexts);
        Ok(join_texts(texts))
    }

    /// Takes a permission request: merges its fields into the known call and returns them.
    pub(super) async fn note_asked(&self, call: &Map<String, Value>) -> Map<String, Value> {
        let Some(id) = text(call, "toolCallId") else {
            return call.clone();
        };
        let mut state = self.state.lock().await;
        let Some(tracked) = state.track(&id) else {
            return call.clone();
        };
        tracked.asked = true;
        tracked.merge(call);
        tracked.fields.clone()
    }

    /// Takes the runs of a permitted call, with the changes of files that were shown.
    pub(super) async fn note_permitted(&self, call: &Map<String, Value>, runs: Vec<PermittedRun>) {
        let id = text(call, "toolCallId").unwrap_or_default();
        let mut state = self.state.lock().await;
        if let Some(tracked) = state.track(&id) {
            tracked.runs.extend(runs);
            tracked.writes.extend(announced_writes(call));
        }
    }

    /// Returns true if a permitted call showed exactly this change of a file. It counts once.
    pub(super) async fn take_announced_write(&self, write: &AnnouncedWrite) -> bool {
        let mut state = self.state.lock().await;
        state.calls.values_mut().any(|call| {
            let place = call.writes.iter().position(|known| known == write);
            place.map(|place| call.writes.swap_remove(place)).is_some()
        })
    }

    /// Takes an update that the agent sends to the editor.
    pub(super) async fn note_update(&self, update: &Map<String, Value>) {
        match text(update, "sessionUpdate").as_deref() {
            Some("agent_message_chunk") => {
                let said = update
                    .get("content")
                    .and_then(|content| content.get("text"));
                let said = said.and_then(Value::as_str).unwrap_or_default();
                self.state.lock().await.output.push_str(said);
            }
            Some("tool_call" | "tool_call_update") => self.note_tool_call(update).await,
            _ => {}
        }
    }

    async fn note_tool_call(&self, update: &Map<String, Value>) {
        let Some(id) = text(update, "toolCallId") else {
            return;
        };
        let status = text(update, "status");
        let ended = {
            let mut state = self.state.lock().await;
            let Some(tracked) = state.track(&id) else {
                return;
            };
            tracked.merge(update);
            match status.as_deref() {
                Some("completed" | "failed") => state.calls.remove(&id),
                _ => None,
            }
        };
        let Some(ended) = ended else { return };
        let said = content_text(update);
        let outcome = match status.as_deref() {
            Some("failed") => Err(("failed".to_owned(), said)),
            _ => Ok(said),
        };
        if !ended.asked && may_have_run(&ended.fields) {
            self.report_unasked(&ended.fields).await;
        }
        self.report_all(ended.runs, &outcome).await;
    }

    /// Reports a tool that the agent ran without asking.
    async fn report_unasked(&self, fields: &Map<String, Value>) {
        let kind = text(fields, "kind").unwrap_or_else(|| "other".to_owned());
        if INNER_KINDS.contains(&kind.as_str()) {
            return;
        }
        let title = text(fields, "title").unwrap_or_default();
        let message = format!("the agent ran a tool without asking ({kind}): `{title}`");
        let error = json!({"error_type": "ran_unasked", "message": message, "recoverable": true});
        let _ = self.console.call("error", error).await;
    }

    /// Reports the end of a prompt: the agent's text, and calls of which no end was told.
    pub(super) async fn end_prompt(&self) {
        let (output, calls) = {
            let mut state = self.state.lock().await;
            (
                std::mem::take(&mut state.output),
                std::mem::take(&mut state.calls),
            )
        };
        for call in calls.into_values() {
            let why = ("unknown".to_owned(), "the agent told no result".to_owned());
            self.report_all(call.runs, &Err(why)).await;
        }
        if !output.is_empty() {
            let _ = self.console.call("output", json!({"text": output})).await;
        }
    }

    /// Ends the session at the console.
    pub(super) async fn end(&self) {
        self.end_prompt().await;
        let _ = self.console.end().await;
    }
}

impl SessionState {
    /// Returns the record of a call, unless there are too many.
    fn track(&mut self, id: &str) -> Option<&mut TrackedCall> {
        if self.calls.len() >= MAX_TOOL_CALLS && !self.calls.contains_key(id) {
            return None;
        }
        Some(self.calls.entry(id.to_owned()).or_default())
    }
}

impl TrackedCall {
    /// Adds the fields of a message. A later message replaces what an earlier one told, but fields of raw
    /// inputs add up: agents leave some out when they ask.
    fn merge(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields {
            match (self.fields.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::Object(known)), Value::Object(new)) if name == "rawInput" => {
                    let new = new
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone()));
                    known.extend(new);
                }
                _ => {
                    self.fields.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

/// Returns true if a call that ended may have had an effect. A failed call can be one whose tool does not
/// exist, so it counts only if its kind changes something.
fn may_have_run(fields: &Map<String, Value>) -> bool {
    let kind = text(fields, "kind").unwrap_or_default();
    text(fields, "status").as_deref() != Some("failed") || EFFECTIVE_KINDS.contains(&kind.as_str())
}

/// Returns the reason of a run that did not take place.
pub(super) fn not_run(why: &str) -> (String, String) {
    ("not_run".to_owned(), why.to_owned())
}

/// Returns the texts of an update's content.
fn content_text(update: &Map<String, Value>) -> String {
    let content = update.get("content").and_then(Value::as_array);
    let texts = content.into_iter().flatten().filter_map(|item| {
        let text = item.get("content")?.get("text")?;
        text.as_str()
    });
    texts.collect::<Vec<_>>().join("\n")
}
