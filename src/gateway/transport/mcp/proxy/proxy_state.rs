//! Path of each message: to the console, to the server, back to the agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, interval_at, timeout};

use super::super::message::{self, OwnToolOutcome, ToolCall};
use super::own_tool::{self, OwnTool};
use super::pending_requests::{PendingRequests, RequestStage};
use crate::gateway::protocol::call::{CallError, CallFault};
use crate::gateway::protocol::questions;
use crate::gateway::protocol::rpc::RpcId;
use crate::gateway::protocol::wording::{KeyRemedy, denial_text};
use crate::gateway::transport::console_session::{ConsoleSession, PermittedRun};
use crate::gateway::transport::stdio::{END_TIMEOUT, MessageLine};

/// Delay of the first progress notification, and interval of later ones. Agents give up on a call that
/// shows no progress for long.
const FIRST_PROGRESS_DELAY: Duration = Duration::from_millis(300);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// State of the proxy, shared by both directions.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) session: ConsoleSession,
    /// Name of the server in actions.
    pub(super) server: String,
    pub(super) pending: Arc<Mutex<PendingRequests>>,
    pub(super) own_tool: OwnTool,
    pub(super) to_server: mpsc::Sender<MessageLine>,
    pub(super) to_agent: mpsc::Sender<MessageLine>,
}

impl ProxyState {
    /// Handles a tool call of the agent.
    pub(super) async fn handle_tool_call(self: &Arc<Self>, call: Box<ToolCall>) {
        let (held, called_back) = oneshot::channel();
        let noted = self
            .pending
            .lock()
            .await
            .add(call.id.clone(), RequestStage::Held(held));
        if !noted {
            return self.refuse_duplicate_id(&call.id).await;
        }
        let calls = Arc::clone(self);
        if self.own_tool.is_named(&call.tool) {
            tokio::spawn(async move { calls.answer_checkpoint(*call, called_back).await });
        } else {
            tokio::spawn(async move { calls.ask_and_forward(*call, called_back).await });
        }
    }

    /// Sends an agent's answers to a checkpoint. The held call passes when the agent repeats it.
    async fn answer_checkpoint(&self, call: ToolCall, called_back: oneshot::Receiver<()>) {
        let answered = async {
            let params = own_tool::read(&call.arguments)?;
            let gate = params.get("gate").and_then(Value::as_str);
            let gate = gate.unwrap_or_default().to_owned();
            let result = self.session.call("checkpoint.answer", params).await;
            let result = result.map_err(|error| self.describe_denial(&error))?;
            Ok::<_, String>(questions::describe_accepted(&gate, &result))
        };
        let answered = tokio::select! {
            answered = answered => answered,
            _ = called_back => return,
        };
        if self.pending.lock().await.take(&call.id).is_none() {
            return;
        }
        let message = match answered {
            Ok(words) => message::own_result(&call.id, &words, OwnToolOutcome::Done),
            Err(words) => message::own_result(&call.id, &words, OwnToolOutcome::Failed),
        };
        self.send_to_agent(message).await;
    }

    /// Describes why a call does not reach the server: the questions to the agent, or the denial.
    fn describe_denial(&self, error: &CallError) -> String {
        let Some(asked) = questions::agent_questions(error) else {
            return denial_text(error, KeyRemedy::Key);
        };
        let (gate, tool) = (&asked.gate, self.own_tool.name());
        let described = questions::describe(&asked);
        let arguments = json!({"gate": gate, "answers": questions::template(&asked)});
        format!(
            "cra: held at {gate}. You must answer its questions.\n{described}\nAnswer with the tool `{tool}` and \
             these arguments, with your answers filled in:\n{arguments}\nThen repeat this call with the same \
             arguments: it is allowed once."
        )
    }

    async fn ask_and_forward(&self, call: ToolCall, called_back: oneshot::Receiver<()>) {
        let asked = tokio::select! {
            asked = self.request_permission(&call) => asked,
            _ = called_back => return,
        };
        match asked {
            Ok(run) => self.forward_permitted(call, run).await,
            Err(error) => {
                // A cancelled call gets no answer.
                if self.pending.lock().await.take(&call.id).is_some() {
                    let words = self.describe_denial(&error);
                    self.send_to_agent(message::denied_result(&call.id, &words))
                        .await;
                }
            }
        }
    }

    /// Asks the console for permission, and sends progress notifications to the agent meanwhile.
    async fn request_permission(&self, call: &ToolCall) -> Result<PermittedRun, CallError> {
        let action = format!("mcp.{}.{}", self.server, call.tool);
        let asking = self.session.request_action(&action, &call.arguments);
        tokio::pin!(asking);
        let begun = Instant::now();
        let mut ticker = interval_at(begun + FIRST_PROGRESS_DELAY, PROGRESS_INTERVAL);
        let mut ticks = 0;
        loop {
            tokio::select! {
                asked = &mut asking => return asked,
                _ = ticker.tick() => {
                    let Some(token) = &call.progress else { continue };
                    ticks += 1;
                    let waited = begun.elapsed().as_secs();
                    let words = format!("waiting for an operator at the console, {waited} s so far");
                    self.send_to_agent(message::progress_notification(token, ticks, &words)).await;
                }
            }
        }
    }

    /// Forwards a permitted call.
    async fn forward_permitted(&self, call: ToolCall, run: PermittedRun) {
        let room = self.to_server.reserve().await;
        let mut pending = self.pending.lock().await;
        let Ok(room) = room else {
            // The server has ended: the agent gets this answer together with all others.
            drop(pending);
            self.report_result(&run, Err(describe_denial("the server had ended")))
                .await;
            return;
        };
        match pending.release(&call.id, run) {
            // The lock is still held: so a cancellation comes after the call, or replaces it.
            Ok(()) => room.send(call.line),
            Err(run) => {
                drop(pending);
                self.report_result(&run, Err(describe_denial("the agent cancelled the call")))
                    .await;
            }
        }
    }

    /// Handles any other request of the agent.
    pub(super) async fn forward_request(&self, id: RpcId, line: MessageLine, stage: RequestStage) {
        let noted = self.pending.lock().await.add(id.clone(), stage);
        if noted {
            self.send_to_server(line).await;
        } else {
            self.refuse_duplicate_id(&id).await;
        }
    }

    /// Cancels a request.
    pub(super) async fn cancel_request(&self, id: &RpcId, line: MessageLine) {
        let mut pending = self.pending.lock().await;
        match pending.get(id) {
            // The server never got the call. Dropping the stage cancels the task that asks the console.
            Some(RequestStage::Held(_)) => drop(pending.take(id)),
            Some(RequestStage::Running(_)) => {
                let stage = pending.take(id);
                drop(pending);
                self.send_to_server(line).await;
                if let Some(RequestStage::Running(run)) = stage {
                    let why = "the agent cancelled the call".to_owned();
                    self.report_result(&run, Err(("cancelled".to_owned(), why)))
                        .await;
                }
            }
            Some(RequestStage::Other | RequestStage::Listing) => {
                pending.take(id);
                drop(pending);
                self.send_to_server(line).await;
            }
            None => {}
        }
    }

    /// Handles a response of the server. Ignores a response to an unknown or still held request.
    pub(super) async fn handle_answer(
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
                if let Some(words) = &run.text {
                    line.append_text(words);
                }
                // The result is on record before the agent makes its next request.
                if let Some(words) = self.report_result(&run, outcome).await {
                    line.append_text(&words);
                }
            }
            Some(RequestStage::Listing) => {
                if let Some(tool) = self.own_tool.note_page(message) {
                    line.add_tool(&tool);
                }
            }
            Some(RequestStage::Held(_) | RequestStage::Other) | None => {}
        }
        self.send_to_agent(line).await;
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
                let message = message::denied_result(id, &words);
                let outcome = Err(("ambiguous".to_owned(), words));
                self.report_result(&run, outcome).await;
                self.send_to_agent(message).await;
            }
            Some(RequestStage::Held(_) | RequestStage::Listing | RequestStage::Other) | None => {
                let fault = CallFault::new(INTERNAL_ERROR, words);
                self.send_to_agent(message::fault_response(Some(id), &fault))
                    .await;
            }
        }
    }

    /// Cancels all unanswered requests. If there is a reason, sends it to the agent.
    pub(super) async fn cancel_all(&self, why: Option<&str>) {
        let all = self.pending.lock().await.take_all();
        for (id, stage) in all {
            let words = format!(
                "cra: the MCP server `{}` ended ({})",
                self.server,
                why.unwrap_or("the agent disconnected")
            );
            let message = match stage {
                RequestStage::Held(_) => message::denied_result(&id, &words),
                RequestStage::Running(run) => {
                    let message = message::denied_result(&id, &words);
                    self.report_result(&run, Err(("lost".to_owned(), words)))
                        .await;
                    message
                }
                RequestStage::Listing | RequestStage::Other => {
                    message::fault_response(Some(&id), &CallFault::new(INTERNAL_ERROR, words))
                }
            };
            if why.is_some() {
                self.send_to_agent(message).await;
            }
        }
    }

    /// Forwards a message to the server.
    pub(super) async fn send_to_server(&self, line: MessageLine) {
        // A message to an ended server is lost; its request is answered when the proxy notices the end.
        let _ = self.to_server.send(line).await;
    }

    /// Sends a message to the agent.
    pub(super) async fn send_to_agent(&self, message: impl Into<MessageLine>) {
        // A message to an ended agent is lost.
        let _ = self.to_agent.send(message.into()).await;
    }

    /// Answers a malformed message.
    pub(super) async fn send_fault(&self, id: Option<&RpcId>, fault: &CallFault) {
        self.send_to_agent(message::fault_response(id, fault)).await;
    }

    async fn refuse_duplicate_id(&self, id: &RpcId) {
        let why = "a request with this id has no answer yet";
        self.send_fault(Some(id), &CallFault::new(CallFault::REQUEST, why))
            .await;
    }

    /// Reports the outcome of a run to the console. A missing or slow console does not delay results beyond
    /// a timeout. Returns texts that checkpoints inject for the agent after the run.
    async fn report_result(
        &self,
        run: &PermittedRun,
        outcome: Result<String, (String, String)>,
    ) -> Option<String> {
        let completed = timeout(END_TIMEOUT, self.session.report_result(run, outcome)).await;
        completed.ok()?.ok()?
    }
}

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

fn describe_denial(why: &str) -> (String, String) {
    ("not_run".to_owned(), why.to_owned())
}
