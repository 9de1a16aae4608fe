//! Path of each message: to the console, to the server, back to the agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, interval_at, timeout};

use super::super::console_session::{ConsoleSession, PermittedRun};
use super::super::message::{self, MessageLine, OwnToolOutcome, ToolCall};
use super::END_TIMEOUT;
use super::own_tool::{self, OwnTool};
use super::pending_requests::{PendingRequests, RequestStage};
use crate::gateway::call::CallFault;
use crate::gateway::client::CallError;
use crate::gateway::questions;
use crate::gateway::rpc::RpcId;
use crate::gateway::wording::{KeyRemedy, denial};

/// Delay of the first progress notification, and interval of later ones. Agents give up on a call that
/// shows no progress for long.
const FIRST_PROGRESS_DELAY: Duration = Duration::from_millis(300);
const BEAT: Duration = Duration::from_secs(10);

/// State of the proxy, shared by both directions.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) gate: ConsoleSession,
    /// Name of the server in actions.
    pub(super) server: String,
    pub(super) pending: Arc<Mutex<PendingRequests>>,
    pub(super) own_tool: OwnTool,
    pub(super) to_server: mpsc::Sender<MessageLine>,
    pub(super) to_agent: mpsc::Sender<MessageLine>,
}

impl ProxyState {
    /// Handles a tool call of the agent.
    pub(super) async fn call(self: &Arc<Self>, call: Box<ToolCall>) {
        let (held, called_back) = oneshot::channel();
        let noted = self
            .pending
            .lock()
            .await
            .note(call.id.clone(), RequestStage::Held(held));
        if !noted {
            return self.twice(&call.id).await;
        }
        let calls = Arc::clone(self);
        if self.own_tool.is_named(&call.tool) {
            tokio::spawn(async move { calls.answer(*call, called_back).await });
        } else {
            tokio::spawn(async move { calls.gated(*call, called_back).await });
        }
    }

    /// Sends an agent's answers to a checkpoint. The held call passes when the agent repeats it.
    async fn answer(&self, call: ToolCall, called_back: oneshot::Receiver<()>) {
        let answered = async {
            let params = own_tool::read(&call.arguments)?;
            let gate = params.get("gate").and_then(Value::as_str);
            let gate = gate.unwrap_or_default().to_owned();
            let said = self.gate.say("checkpoint.answer", params).await;
            let said = said.map_err(|error| self.not_run(&error))?;
            Ok::<_, String>(questions::taken(&gate, &said))
        };
        let answered = tokio::select! {
            answered = answered => answered,
            _ = called_back => return,
        };
        if self.pending.lock().await.take(&call.id).is_none() {
            return;
        }
        let told = match answered {
            Ok(words) => message::own_result(&call.id, &words, OwnToolOutcome::Done),
            Err(words) => message::own_result(&call.id, &words, OwnToolOutcome::Failed),
        };
        self.tell(told).await;
    }

    /// Describes why a call does not reach the server: the questions to the agent, or the denial.
    fn not_run(&self, error: &CallError) -> String {
        let Some(asked) = questions::asked(error) else {
            return denial(error, KeyRemedy::Key);
        };
        let (gate, tool) = (&asked.gate, self.own_tool.name());
        let described = questions::describe(&asked);
        let arguments = json!({"gate": gate, "answers": questions::template(&asked)});
        format!(
            "cra: held at {gate}, and its questions are yours to answer.\n{described}\nAnswer with the tool `{tool}` and \
             these arguments, with your answers filled in:\n{arguments}\nThen repeat this call with the same arguments: \
             it is let through once."
        )
    }

    async fn gated(&self, call: ToolCall, called_back: oneshot::Receiver<()>) {
        let asked = tokio::select! {
            asked = self.ask(&call) => asked,
            _ = called_back => return,
        };
        match asked {
            Ok(run) => self.release(call, run).await,
            Err(error) => {
                // A cancelled call gets no answer.
                if self.pending.lock().await.take(&call.id).is_some() {
                    let words = self.not_run(&error);
                    self.tell(message::denied(&call.id, &words)).await;
                }
            }
        }
    }

    /// Asks the console for permission, and sends progress notifications to the agent meanwhile.
    async fn ask(&self, call: &ToolCall) -> Result<PermittedRun, CallError> {
        let action = format!("mcp.{}.{}", self.server, call.tool);
        let asking = self.gate.ask(&action, &call.arguments);
        tokio::pin!(asking);
        let begun = Instant::now();
        let mut beats = interval_at(begun + FIRST_PROGRESS_DELAY, BEAT);
        let mut beat = 0;
        loop {
            tokio::select! {
                asked = &mut asking => return asked,
                _ = beats.tick() => {
                    let Some(token) = &call.progress else { continue };
                    beat += 1;
                    let waited = begun.elapsed().as_secs();
                    let words = format!("waiting for an operator at the console, {waited} s so far");
                    self.tell(message::progress(token, beat, &words)).await;
                }
            }
        }
    }

    /// Forwards a permitted call.
    async fn release(&self, call: ToolCall, run: PermittedRun) {
        let room = self.to_server.reserve().await;
        let mut pending = self.pending.lock().await;
        let Ok(room) = room else {
            // The server has ended: the agent gets this answer together with all others.
            drop(pending);
            self.report(&run, Err(not_run("the server was gone"))).await;
            return;
        };
        match pending.release(&call.id, run) {
            // The lock is still held: so a cancellation comes after the call, or replaces it.
            Ok(()) => room.send(call.line),
            Err(run) => {
                drop(pending);
                self.report(&run, Err(not_run("the agent cancelled it")))
                    .await;
            }
        }
    }

    /// Handles any other request of the agent.
    pub(super) async fn request(&self, id: RpcId, line: MessageLine, stage: RequestStage) {
        let noted = self.pending.lock().await.note(id.clone(), stage);
        if noted {
            self.pass(line).await;
        } else {
            self.twice(&id).await;
        }
    }

    /// Cancels a request.
    pub(super) async fn cancel(&self, id: &RpcId, line: MessageLine) {
        let mut pending = self.pending.lock().await;
        match pending.get(id) {
            // The server never got the call. Dropping the stage cancels the task that asks the console.
            Some(RequestStage::Held(_)) => drop(pending.take(id)),
            Some(RequestStage::Running(_)) => {
                let stage = pending.take(id);
                drop(pending);
                self.pass(line).await;
                if let Some(RequestStage::Running(run)) = stage {
                    let why = "the agent cancelled it".to_owned();
                    self.report(&run, Err(("cancelled".to_owned(), why))).await;
                }
            }
            Some(RequestStage::Asked | RequestStage::Listing) => {
                pending.take(id);
                drop(pending);
                self.pass(line).await;
            }
            None => {}
        }
    }

    /// Handles a response of the server. Ignores a response to an unknown or still held request.
    pub(super) async fn answered(
        self: &Arc<Self>,
        id: &RpcId,
        message: &Value,
        mut line: MessageLine,
    ) {
        let mut pending = self.pending.lock().await;
        if matches!(pending.get(id), None | Some(RequestStage::Held(_))) {
            return;
        }
        let stage = pending.take(id);
        drop(pending);
        match stage {
            Some(RequestStage::Running(run)) => {
                let outcome = message::outcome(message);
                if let Some(words) = &run.words {
                    line.append_text(words);
                }
                // The result is on record before the agent makes its next request.
                if let Some(words) = self.report(&run, outcome).await {
                    line.append_text(&words);
                }
            }
            Some(RequestStage::Listing) => {
                if let Some(tool) = self.own_tool.listed(message) {
                    line.add_tool(&tool);
                }
            }
            Some(RequestStage::Held(_) | RequestStage::Asked) | None => {}
        }
        self.tell(line).await;
    }

    /// Handles an ambiguous response of the server: the agent gets an error in place of the response.
    pub(super) async fn refuse_answer(&self, id: &RpcId, why: &str) {
        let mut pending = self.pending.lock().await;
        if matches!(pending.get(id), None | Some(RequestStage::Held(_))) {
            return;
        }
        let stage = pending.take(id);
        drop(pending);
        let words = format!(
            "cra: the answer of the MCP server `{}` is ambiguous {why}",
            self.server
        );
        match stage {
            Some(RequestStage::Running(run)) => {
                let told = message::denied(id, &words);
                let outcome = Err(("ambiguous".to_owned(), words));
                self.report(&run, outcome).await;
                self.tell(told).await;
            }
            Some(RequestStage::Held(_) | RequestStage::Listing | RequestStage::Asked) | None => {
                let fault = CallFault::new(INTERNAL_ERROR, words);
                self.tell(message::fault(Some(id), &fault)).await;
            }
        }
    }

    /// Cancels all unanswered requests. If there is a reason, sends it to the agent.
    pub(super) async fn give_up(&self, why: Option<&str>) {
        let all = self.pending.lock().await.take_all();
        for (id, stage) in all {
            let words = format!(
                "cra: the MCP server `{}` ended ({})",
                self.server,
                why.unwrap_or("the agent left")
            );
            let told = match stage {
                RequestStage::Held(_) => message::denied(&id, &words),
                RequestStage::Running(run) => {
                    let told = message::denied(&id, &words);
                    self.report(&run, Err(("lost".to_owned(), words))).await;
                    told
                }
                RequestStage::Listing | RequestStage::Asked => {
                    message::fault(Some(&id), &CallFault::new(INTERNAL_ERROR, words))
                }
            };
            if why.is_some() {
                self.tell(told).await;
            }
        }
    }

    /// Forwards a message to the server.
    pub(super) async fn pass(&self, line: MessageLine) {
        // A message to an ended server is lost; its request is answered when the proxy notices the end.
        let _ = self.to_server.send(line).await;
    }

    /// Sends a message to the agent.
    pub(super) async fn tell(&self, message: impl Into<MessageLine>) {
        // A message to an ended agent is lost.
        let _ = self.to_agent.send(message.into()).await;
    }

    /// Answers a malformed message.
    pub(super) async fn wrong(&self, id: Option<&RpcId>, fault: &CallFault) {
        self.tell(message::fault(id, fault)).await;
    }

    async fn twice(&self, id: &RpcId) {
        let why = "a request with this id has no answer yet";
        self.wrong(Some(id), &CallFault::new(CallFault::REQUEST, why))
            .await;
    }

    /// Reports the outcome of a run to the console. A missing or slow console does not delay results beyond
    /// a timeout. Returns texts that checkpoints inject for the agent after the run.
    async fn report(
        &self,
        run: &PermittedRun,
        outcome: Result<String, (String, String)>,
    ) -> Option<String> {
        let completed = timeout(END_TIMEOUT, self.gate.completed(run, outcome)).await;
        completed.ok()?.ok()?
    }
}

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

fn not_run(why: &str) -> (String, String) {
    ("not_run".to_owned(), why.to_owned())
}
