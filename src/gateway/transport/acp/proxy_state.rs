//! Path of each message: to the console, to the other side, back to its sender.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};
use uuid::Uuid;

use super::files;
use super::message::{self, AcpMessage, AcpRequest, text};
use super::operation::{
    EditorFiles, is_gated, mode_action, offer_files, operation_actions, permissive_change,
};
use super::permission::{self, PermissionOptions};
use super::session::{AcpSession, RunOutcome, not_run};
use super::tool_call::{AnnouncedWrite, tool_actions};
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::rpc::RpcId;
use crate::gateway::protocol::wording::{KeyRemedy, denial_text};
use crate::gateway::transport::console_session::{ConsoleIdentity, PermittedRun};
use crate::gateway::transport::stdio::MessageLine;

/// Most sessions of one agent.
const MAX_SESSIONS: usize = 256;

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Editor,
    Agent,
}

/// The proxy, shared by both directions.
#[derive(Debug)]
pub(super) struct AcpProxy {
    identity: ConsoleIdentity,
    to_editor: mpsc::Sender<MessageLine>,
    to_agent: mpsc::Sender<MessageLine>,
    state: Mutex<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    /// Operations on files that the editor carries out itself.
    editor_files: EditorFiles,
    sessions: HashMap<String, Arc<AcpSession>>,
    /// Unanswered requests by their sender.
    pending: HashMap<(Side, RpcId), PendingRequest>,
}

/// A request without a response.
#[derive(Debug)]
enum PendingRequest {
    /// Waits for the console, until a message to the task that asks cancels it.
    Held {
        session: Option<String>,
        cancel: oneshot::Sender<()>,
        cancelled: CancelledResponse,
    },
    /// A permission that the console gave and that the editor's user decides as well.
    AtEditor {
        session: String,
        call: Map<String, Value>,
        runs: Vec<PermittedRun>,
        options: PermissionOptions,
    },
    /// A permitted operation of the agent that the editor carries out.
    Running {
        session: String,
        runs: Vec<PermittedRun>,
    },
    /// A request of the editor that creates or loads a session in a folder.
    Opening {
        session: Option<String>,
        cwd: Option<String>,
    },
    /// A prompt at the agent.
    Prompt { session: String },
    /// Any other request.
    Other,
}

impl PendingRequest {
    /// Cancels the task that asks the console, if one does.
    fn cancel(self) {
        if let Self::Held { cancel, .. } = self {
            // A task that has ended needs no message.
            let _ = cancel.send(());
        }
    }
}

/// Response to a request that is cancelled while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CancelledResponse {
    /// A permission request is answered as cancelled.
    Permission,
    /// A prompt ends as cancelled.
    Prompt,
    /// Any other request fails.
    Error,
}

impl AcpProxy {
    pub(super) fn new(
        identity: ConsoleIdentity,
        to_editor: mpsc::Sender<MessageLine>,
        to_agent: mpsc::Sender<MessageLine>,
    ) -> Self {
        Self {
            identity,
            to_editor,
            to_agent,
            state: Mutex::default(),
        }
    }

    /// Handles a message of one side.
    pub(super) async fn handle_message(self: &Arc<Self>, from: Side, message: AcpMessage) {
        match message {
            AcpMessage::Request(request) => {
                let known = (from, request.id.clone());
                if self.state.lock().await.pending.contains_key(&known) {
                    let why = "a request with this id has no response yet";
                    let fault = CallFault::new(CallFault::REQUEST, why);
                    let refused = message::error(Some(&request.id), &fault);
                    return self.send(from, refused).await;
                }
                match from {
                    Side::Editor => self.handle_editor_request(request).await,
                    Side::Agent => self.handle_agent_request(request).await,
                }
            }
            AcpMessage::Notification {
                method,
                params,
                line,
            } => {
                let session = text(&params, "sessionId");
                match (from, method.as_str()) {
                    (Side::Editor, "session/cancel") => {
                        self.cancel_held(session.as_deref()).await;
                    }
                    (Side::Agent, "session/update") => {
                        let update = params.get("update").and_then(Value::as_object);
                        let session = self.known_session(session.as_deref()).await;
                        if let (Some(session), Some(update)) = (session, update) {
                            session.note_update(update).await;
                        }
                    }
                    _ => {}
                }
                self.send(other(from), line).await;
            }
            AcpMessage::Response { id, message, line } => {
                self.handle_response(from, &id, &message, line).await;
            }
            AcpMessage::Malformed(id, fault) => {
                self.send(from, message::error(id.as_ref(), &fault)).await;
            }
        }
    }

    async fn handle_editor_request(self: &Arc<Self>, mut request: AcpRequest) {
        match request.method.as_str() {
            "initialize" => {
                self.state.lock().await.editor_files = offer_files(&mut request.params);
                let line = message::request(&request.id, &request.method, &request.params);
                self.forward(Side::Editor, request.id, PendingRequest::Other, line)
                    .await;
            }
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                let stage = PendingRequest::Opening {
                    session: request.session(),
                    cwd: text(&request.params, "cwd"),
                };
                self.forward(Side::Editor, request.id, stage, request.line)
                    .await;
            }
            "session/prompt" => {
                self.hold(Side::Editor, request, CancelledResponse::Prompt)
                    .await;
            }
            "session/set_mode" | "session/set_config_option"
                if permissive_change(&request).is_some() =>
            {
                self.hold(Side::Editor, request, CancelledResponse::Error)
                    .await;
            }
            _ => {
                self.forward(
                    Side::Editor,
                    request.id,
                    PendingRequest::Other,
                    request.line,
                )
                .await;
            }
        }
    }

    async fn handle_agent_request(self: &Arc<Self>, request: AcpRequest) {
        let method = request.method.as_str();
        if let Some(fault) = request.inexact.clone().filter(|_| is_gated(method)) {
            let refused = message::error(Some(&request.id), &fault);
            return self.send(Side::Agent, refused).await;
        }
        if method == "session/request_permission" {
            self.hold(Side::Agent, request, CancelledResponse::Permission)
                .await;
        } else if is_gated(method) {
            self.hold(Side::Agent, request, CancelledResponse::Error)
                .await;
        } else {
            self.forward(Side::Agent, request.id, PendingRequest::Other, request.line)
                .await;
        }
    }

    /// Asks the console about a request in a task of its own.
    async fn hold(self: &Arc<Self>, from: Side, request: AcpRequest, cancelled: CancelledResponse) {
        let (cancel, called_off) = oneshot::channel();
        let stage = PendingRequest::Held {
            session: request.session(),
            cancel,
            cancelled,
        };
        let key = (from, request.id.clone());
        self.state.lock().await.pending.insert(key, stage);
        let proxy = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = proxy.decide(from, request) => {}
                Ok(()) = called_off => {}
            }
        });
    }

    async fn decide(&self, from: Side, request: AcpRequest) {
        let Some(name) = request.session() else {
            let reason = "cra: the request names no session, so it is denied";
            return self.deny(from, &request.id, reason).await;
        };
        let session = match self.open_session(&name, None).await {
            Ok(session) => session,
            Err(reason) => return self.deny(from, &request.id, &reason).await,
        };
        match request.method.as_str() {
            "session/prompt" => self.decide_prompt(&name, &session, request).await,
            "session/set_mode" | "session/set_config_option" => {
                self.decide_mode(&session, request).await;
            }
            "session/request_permission" => self.decide_permission(&name, &session, request).await,
            _ => self.decide_operation(&name, &session, request).await,
        }
    }

    async fn decide_prompt(&self, name: &str, session: &AcpSession, mut request: AcpRequest) {
        let id = Uuid::now_v7().to_string();
        match session
            .report_prompt(&id, &prompt_text(&request.params))
            .await
        {
            Ok(more) => {
                let line = match (more, request.params.get_mut("prompt")) {
                    (Some(more), Some(Value::Array(blocks))) => {
                        blocks.push(json!({"type": "text", "text": more}));
                        message::request(&request.id, &request.method, &request.params)
                    }
                    _ => request.line,
                };
                let stage = PendingRequest::Prompt {
                    session: name.to_owned(),
                };
                self.release(Side::Editor, request.id, stage, line).await;
            }
            Err(error) => {
                let reason = denial_text(&error, KeyRemedy::Key);
                let shown = json!({"sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": reason}});
                if self.take(Side::Editor, &request.id).await.is_some() {
                    self.send(Side::Editor, message::update(name, &shown)).await;
                    let refusal = json!({"stopReason": "refusal"});
                    self.send(Side::Editor, message::result(&request.id, &refusal))
                        .await;
                }
            }
        }
    }

    async fn decide_mode(&self, session: &AcpSession, request: AcpRequest) {
        let (setting, value) = permissive_change(&request).unwrap_or_default();
        match session
            .request_actions(&[mode_action(&setting, &value)])
            .await
        {
            Ok(runs) => {
                session.report_all(runs, &Ok(String::new())).await;
                self.release(
                    Side::Editor,
                    request.id,
                    PendingRequest::Other,
                    request.line,
                )
                .await;
            }
            Err(error) => {
                let reason = denial_text(&error, KeyRemedy::Key);
                self.deny(Side::Editor, &request.id, &reason).await;
            }
        }
    }

    async fn decide_permission(&self, name: &str, session: &AcpSession, mut request: AcpRequest) {
        let options = PermissionOptions::read(&request.params);
        let call = request.params.get("toolCall").and_then(Value::as_object);
        let call = match call {
            Some(call) => session.note_asked(call).await,
            None => Map::new(),
        };
        let asked = match (
            tool_actions(&call, session.cwd.as_deref()),
            &options.allow_once,
        ) {
            (Err(why), _) => Err(format!(
                "cra: this call cannot be evaluated, so it is denied: {why}"
            )),
            (Ok(_), None) => {
                Err("cra: the agent offers no permission for one call, so it is denied".to_owned())
            }
            (Ok(actions), Some(allow_once)) => {
                let asked = session.request_actions(&actions).await;
                let asked = asked.map_err(|error| denial_text(&error, KeyRemedy::Key));
                asked.map(|runs| (runs, allow_once.clone()))
            }
        };
        match asked {
            Ok((runs, allow_once)) if runs.iter().all(|run| run.approved_by.is_some()) => {
                session.note_permitted(&call, runs).await;
                let allowed = message::result(&request.id, &permission::selected(&allow_once));
                if self.take(Side::Agent, &request.id).await.is_some() {
                    self.send(Side::Agent, allowed).await;
                }
            }
            // No gate held it: the editor's own question stays in force.
            Ok((runs, _)) => {
                permission::remove_lasting_options(&mut request.params);
                let line = message::request(&request.id, &request.method, &request.params);
                let stage = PendingRequest::AtEditor {
                    session: name.to_owned(),
                    call,
                    runs,
                    options,
                };
                self.release(Side::Agent, request.id, stage, line).await;
            }
            Err(reason) => {
                if self.take(Side::Agent, &request.id).await.is_none() {
                    return;
                }
                self.send(Side::Editor, denied_call(name, &call, &reason))
                    .await;
                let rejected = message::result(&request.id, &options.rejection());
                self.send(Side::Agent, rejected).await;
            }
        }
    }

    /// Decides about an operation on a file or a terminal.
    async fn decide_operation(&self, name: &str, session: &AcpSession, request: AcpRequest) {
        let write = AnnouncedWrite {
            path: text(&request.params, "path").unwrap_or_default(),
            content: text(&request.params, "content").unwrap_or_default(),
        };
        let is_write = request.method == "fs/write_text_file";
        let asked = if is_write && session.take_announced_write(&write).await {
            Ok(Vec::new())
        } else {
            match operation_actions(&request, session.cwd.as_deref()) {
                Ok(actions) => {
                    let asked = session.request_actions(&actions).await;
                    asked.map_err(|error| denial_text(&error, KeyRemedy::Key))
                }
                Err(why) => Err(format!(
                    "cra: this request cannot be evaluated, so it is denied: {why}"
                )),
            }
        };
        let runs = match asked {
            Ok(runs) => runs,
            Err(reason) => return self.deny(Side::Agent, &request.id, &reason).await,
        };
        let editor = self.state.lock().await.editor_files;
        let served = match request.method.as_str() {
            "fs/read_text_file" if !editor.read => Some(files::read(&request.params).await),
            "fs/write_text_file" if !editor.write => Some(files::write(&request.params).await),
            _ => None,
        };
        let Some(served) = served else {
            let stage = PendingRequest::Running {
                session: name.to_owned(),
                runs,
            };
            return self
                .release(Side::Agent, request.id, stage, request.line)
                .await;
        };
        let outcome: RunOutcome = match &served {
            Ok(_) => Ok(String::new()),
            Err(why) => Err(("failed".to_owned(), why.clone())),
        };
        session.report_all(runs, &outcome).await;
        if self.take(Side::Agent, &request.id).await.is_some() {
            let response = match served {
                Ok(result) => message::result(&request.id, &result),
                Err(why) => {
                    message::error(Some(&request.id), &CallFault::new(RESOURCE_NOT_FOUND, why))
                }
            };
            self.send(Side::Agent, response).await;
        }
    }

    async fn handle_response(
        &self,
        from: Side,
        id: &RpcId,
        message: &Map<String, Value>,
        line: MessageLine,
    ) {
        let asker = other(from);
        let stage = {
            let mut state = self.state.lock().await;
            let key = (asker, id.clone());
            // A response to a request that still waits was not asked for.
            match state.pending.get(&key) {
                None | Some(PendingRequest::Held { .. }) => return,
                Some(_) => state.pending.remove(&key),
            }
        };
        match stage {
            Some(PendingRequest::AtEditor {
                session,
                call,
                runs,
                options,
            }) => {
                let selected = permission::selected_option(message);
                let allowed = selected.is_some() && selected == options.allow_once;
                if let Some(session) = self.known_session(Some(&session)).await {
                    if allowed {
                        session.note_permitted(&call, runs).await;
                    } else {
                        let why = "the user of the editor did not allow it";
                        session.report_all(runs, &Err(not_run(why))).await;
                    }
                }
                // An option that the editor was not offered must not become a permission.
                let known =
                    allowed || selected.is_none_or(|selected| options.rejects.contains(&selected));
                let line = if known {
                    line
                } else {
                    message::result(id, &options.rejection())
                };
                self.send(asker, line).await;
            }
            Some(PendingRequest::Running { session, runs }) => {
                if let Some(session) = self.known_session(Some(&session)).await {
                    let outcome = match message.get("error") {
                        None => Ok(String::new()),
                        Some(error) => Err(("failed".to_owned(), error.to_string())),
                    };
                    session.report_all(runs, &outcome).await;
                }
                self.send(asker, line).await;
            }
            Some(PendingRequest::Opening { session, cwd }) => {
                let checked = self.open_from_response(session, cwd, message).await;
                match checked {
                    Ok(()) => self.send(asker, line).await,
                    Err(reason) => self.send(asker, message::denial(id, &reason)).await,
                }
            }
            Some(PendingRequest::Prompt { session }) => {
                if let Some(session) = self.known_session(Some(&session)).await {
                    session.end_prompt().await;
                }
                self.send(asker, line).await;
            }
            Some(PendingRequest::Held { .. } | PendingRequest::Other) | None => {
                self.send(asker, line).await;
            }
        }
    }

    /// Takes the response to a request that opened a session. Settings with which the agent asks for nothing
    /// need a permission.
    async fn open_from_response(
        &self,
        asked: Option<String>,
        cwd: Option<String>,
        message: &Map<String, Value>,
    ) -> Result<(), String> {
        let Some(result) = message.get("result").and_then(Value::as_object) else {
            return Ok(());
        };
        let Some(name) = text(result, "sessionId").or(asked) else {
            return Ok(());
        };
        let session = self.open_session(&name, cwd).await?;
        let settings = permission::permissive_settings(result);
        let actions: Vec<_> = settings
            .iter()
            .map(|(setting, value)| mode_action(setting, value))
            .collect();
        let asked = session.request_actions(&actions).await;
        let runs = asked.map_err(|error| denial_text(&error, KeyRemedy::Key))?;
        session.report_all(runs, &Ok(String::new())).await;
        Ok(())
    }

    async fn open_session(
        &self,
        name: &str,
        cwd: Option<String>,
    ) -> Result<Arc<AcpSession>, String> {
        let mut state = self.state.lock().await;
        if let Some(known) = state.sessions.get(name) {
            return Ok(Arc::clone(known));
        }
        if state.sessions.len() >= MAX_SESSIONS {
            return Err(format!(
                "cra: the agent has {MAX_SESSIONS} sessions, so another one is denied"
            ));
        }
        let session = AcpSession::new(self.identity.clone(), cwd).map_err(|error| {
            format!("cra could not create a secret, so this is denied: {error}")
        })?;
        let session = Arc::new(session);
        state.sessions.insert(name.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    async fn known_session(&self, name: Option<&str>) -> Option<Arc<AcpSession>> {
        let state = self.state.lock().await;
        state.sessions.get(name?).map(Arc::clone)
    }

    /// Cancels the requests of a session that wait for the console.
    async fn cancel_held(&self, session: Option<&str>) {
        let cancelled: Vec<_> = {
            let mut state = self.state.lock().await;
            let held = state.pending.iter().filter_map(|(key, stage)| match stage {
                PendingRequest::Held {
                    session: of,
                    cancelled,
                    ..
                } if of.as_deref() == session => Some((key.clone(), *cancelled)),
                _ => None,
            });
            let held: Vec<_> = held.collect();
            for (key, _) in &held {
                if let Some(stage) = state.pending.remove(key) {
                    stage.cancel();
                }
            }
            held
        };
        for ((from, id), response) in cancelled {
            let line = match response {
                CancelledResponse::Permission => message::result(&id, &permission::cancelled()),
                CancelledResponse::Prompt => {
                    message::result(&id, &json!({"stopReason": "cancelled"}))
                }
                CancelledResponse::Error => {
                    message::denial(&id, "cra: the request was cancelled while it was held")
                }
            };
            self.send(from, line).await;
        }
    }

    /// Answers every unanswered request of the editor: the agent has ended.
    pub(super) async fn refuse_all(&self, why: &str) {
        let pending = std::mem::take(&mut self.state.lock().await.pending);
        for ((from, id), stage) in pending {
            stage.cancel();
            if from == Side::Editor {
                let fault = CallFault::new(INTERNAL_ERROR, format!("cra: {why}"));
                self.send(from, message::error(Some(&id), &fault)).await;
            }
        }
    }

    /// Ends all sessions at the console. Held requests are withdrawn.
    pub(super) async fn end_sessions(&self) {
        let (sessions, pending) = {
            let mut state = self.state.lock().await;
            (
                std::mem::take(&mut state.sessions),
                std::mem::take(&mut state.pending),
            )
        };
        for stage in pending.into_values() {
            stage.cancel();
        }
        for session in sessions.into_values() {
            session.end().await;
        }
    }

    /// Forwards a request to the other side.
    async fn forward(&self, from: Side, id: RpcId, stage: PendingRequest, line: MessageLine) {
        self.state.lock().await.pending.insert((from, id), stage);
        self.send(other(from), line).await;
    }

    /// Forwards a request that was held, unless it was cancelled meanwhile.
    async fn release(&self, from: Side, id: RpcId, next: PendingRequest, line: MessageLine) {
        let mut state = self.state.lock().await;
        if let Some(held @ PendingRequest::Held { .. }) = state.pending.get_mut(&(from, id)) {
            *held = next;
            drop(state);
            self.send(other(from), line).await;
        }
    }

    /// Denies a held request with an error response.
    async fn deny(&self, from: Side, id: &RpcId, reason: &str) {
        let held = self.take(from, id).await;
        if held.is_some() {
            self.send(from, message::denial(id, reason)).await;
        }
    }

    /// Removes a held request. `None` if it was cancelled meanwhile.
    async fn take(&self, from: Side, id: &RpcId) -> Option<PendingRequest> {
        self.state.lock().await.pending.remove(&(from, id.clone()))
    }

    /// Sends a message to one side. A message to a side that has ended is lost.
    async fn send(&self, to: Side, line: MessageLine) {
        let side = match to {
            Side::Editor => &self.to_editor,
            Side::Agent => &self.to_agent,
        };
        let _ = side.send(line).await;
    }
}

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

/// Code of the protocol for a file that cannot be used.
const RESOURCE_NOT_FOUND: i64 = -32002;

fn other(side: Side) -> Side {
    match side {
        Side::Editor => Side::Agent,
        Side::Agent => Side::Editor,
    }
}

/// Returns the text of a prompt: that of its text blocks and embedded files, and the names of linked ones.
fn prompt_text(params: &Map<String, Value>) -> String {
    let blocks = params.get("prompt").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().filter_map(|block| {
        let own = block.get("text");
        let embedded = block
            .get("resource")
            .and_then(|resource| resource.get("text"));
        own.or(embedded).or_else(|| block.get("uri"))?.as_str()
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Builds the update that shows a denied call in the editor.
fn denied_call(session: &str, call: &Map<String, Value>, reason: &str) -> MessageLine {
    let content = json!([{"type": "content", "content": {"type": "text", "text": reason}}]);
    let update = match text(call, "toolCallId") {
        Some(id) => json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
            "status": "failed", "content": content}),
        None => json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": reason}}),
    };
    message::update(session, &update)
}
