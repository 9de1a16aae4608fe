//! Requests of a hook to the console, and the verdict that follows from the answers.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer_command::{self, ConversationIdentity};
use super::console_calls::{ConsoleCalls, ConsoleSocket, ProcessCalls, SocketCalls};
use super::{HookOptions, OfflineBehavior, settings_change, wrapper};
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::base::digest::Digest;
use crate::base::id::{SessionId, is_restricted};
use crate::base::limits::MAX_RESUMPTIONS;
use crate::base::text::one_line;
use crate::engine::command::{AgentQuestions, DeliveryTime, DenyCode, Injected, OnDisconnect};
use crate::gateway::agents::hook_event::{HookEvent, HookEventKind};
use crate::gateway::agents::hook_output::HookVerdict;
use crate::gateway::agents::tool_actions::ToolAction;
use crate::gateway::protocol::call::CallError;
use crate::gateway::protocol::questions;
use crate::gateway::protocol::rejected_answers::RejectedAnswer;
use crate::gateway::protocol::wording::{
    KeyRemedy, denial_text, injected_in, injected_text, join_texts,
};
use crate::gateway::transport::agent_connection::AgentConnection;

/// Most of a timer that is kept back, so that an answer is there before it runs out.
const HOOK_MARGIN: Duration = Duration::from_secs(5);

/// Longest part of the hook's time that is reserved for the arrival of the console's answer.
const CONSOLE_MARGIN: Duration = Duration::from_secs(1);

/// Time that a hook has at the end of a session: agents hardly wait when they end.
const END_TIMEOUT: Duration = Duration::from_millis(900);

/// Asks the console at a socket about an event of an agent.
pub(super) fn decide_over_socket(
    event: &HookEvent,
    options: &HookOptions,
    socket: &ConsoleSocket,
) -> HookVerdict {
    if let HookEventKind::SettingsChange { cwd, .. } = &event.kind {
        let verdict = settings_change::verdict(event.agent, cwd.as_deref(), socket);
        if let HookVerdict::Deny { reason } = &verdict {
            report_settings_change(event, options, socket, reason);
        }
        return verdict;
    }
    let session = match local_verdict(event, options) {
        Ok(session) => session,
        Err(verdict) => return verdict,
    };
    let deadline = call_deadline(event, options);
    let asked = SocketCalls::connect(socket, deadline).and_then(|calls| {
        let asking = HookConversation::new(calls, session.clone(), event, options).decide();
        // A call over the socket blocks and never yields, so one poll finishes the conversation.
        let answered = asking.now_or_never();
        answered.unwrap_or(Err(CallError::Disconnected))
    });
    asked.unwrap_or_else(|error| {
        if let CallError::Unproven { reason, .. } = &error {
            report_rejected(options, socket, &session, &reason.to_string());
        }
        verdict_on_error(event, options, &error)
    })
}

/// Asks this process' own console about an event of an agent.
pub(super) async fn decide_here(
    event: &HookEvent,
    options: &HookOptions,
    caller: AgentConnection,
) -> HookVerdict {
    let session = match local_verdict(event, options) {
        Ok(session) => session,
        Err(verdict) => return verdict,
    };
    let calls = ProcessCalls::new(caller, call_deadline(event, options));
    let asking = HookConversation::new(calls, session, event, options);
    let asked = asking.decide().await;
    asked.unwrap_or_else(|error| verdict_on_error(event, options, &error))
}

/// Returns the session for which the console has to be asked.
///
/// # Errors
/// The verdict, if it does not depend on the console.
fn local_verdict(event: &HookEvent, options: &HookOptions) -> Result<SessionId, HookVerdict> {
    // Settings of a hook over HTTP are not known here.
    if matches!(
        event.kind,
        HookEventKind::Other | HookEventKind::SettingsChange { .. }
    ) {
        return Err(HookVerdict::pass(None));
    }
    let Some(session) = session(event) else {
        let reason = "cra: the hook names no session, so it is denied".to_owned();
        return Err(HookVerdict::Deny { reason });
    };
    match answer_command::verdict(event, options, &session) {
        Some(verdict) => Err(verdict),
        None => Ok(session),
    }
}

/// Reports refused settings for the record, if the console can be reached.
fn report_settings_change(
    event: &HookEvent,
    options: &HookOptions,
    socket: &ConsoleSocket,
    reason: &str,
) {
    let Some(session) = session(event) else {
        return;
    };
    let failed = HookEvent {
        kind: HookEventKind::Failed {
            kind: "settings_change_refused".to_owned(),
            message: reason.to_owned(),
        },
        ..event.clone()
    };
    let deadline = call_deadline(event, options);
    let _ = SocketCalls::connect(socket, deadline).map(|calls| {
        let asking = HookConversation::new(calls, session, &failed, options).decide();
        // A failed report changes nothing: the settings are refused in any case.
        let _ = asking.now_or_never();
    });
}

/// Reports to the console that another process answered in its place.
fn report_rejected(
    options: &HookOptions,
    socket: &ConsoleSocket,
    session: &SessionId,
    reason: &str,
) {
    let by = format!("cra hook {}", options.agent.as_str());
    let session = Some(session.to_string());
    let report = RejectedAnswer::new(&by, session, &socket.path, reason.to_owned());
    // A failed report changes nothing: the agent is denied in any case.
    let _ = report.write_report(&socket.folder);
}

/// Returns the time by which the console must have answered all calls of a hook.
fn call_deadline(event: &HookEvent, options: &HookOptions) -> Instant {
    options.started_at + hook_time(timeout(event, options))
}

/// Returns the time by which the agent must have an answer, even if the console gave none.
pub(super) fn answer_deadline(event: &HookEvent, options: &HookOptions) -> Instant {
    let timer = timeout(event, options);
    // Halfway between the last moment for the console and the agent's own timer.
    options.started_at + timer.saturating_sub(timer.saturating_sub(hook_time(timer)) / 2)
}

fn timeout(event: &HookEvent, options: &HookOptions) -> Duration {
    options.timeout.unwrap_or_else(|| default_timeout(event))
}

/// Returns the part of a timer in which the hook may wait for an operator.
fn hook_time(timer: Duration) -> Duration {
    timer.saturating_sub((timer / 10).min(HOOK_MARGIN))
}

/// Returns the console's part of the time that the hook has left. The console answers before the hook gives
/// up, and reports that the request expired.
fn console_time(left: Duration) -> Duration {
    left.saturating_sub((left / 20).min(CONSOLE_MARGIN))
}

/// Returns the default timeout of the agent for this hook.
fn default_timeout(event: &HookEvent) -> Duration {
    let agent = event.agent.adapter();
    match &event.kind {
        HookEventKind::End => END_TIMEOUT,
        HookEventKind::Prompt { .. } => agent.prompt_timeout(),
        HookEventKind::BeforeTool { .. }
        | HookEventKind::AfterTool { .. }
        | HookEventKind::Start
        | HookEventKind::SettingsChange { .. }
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => agent.default_timeout(),
    }
}

/// Returns the console's name for a session, made of the agent's name and the agent's session name.
fn session(event: &HookEvent) -> Option<SessionId> {
    let named = event.session.as_deref()?;
    let agent = event.agent.as_str();
    let name = format!("{agent}.{named}");
    let name = if is_restricted(&name) {
        name
    } else {
        // Other names are replaced by their digest, which is always equal for one name.
        format!("{agent}.{}", Digest::of(named))
    };
    name.parse().ok()
}

/// Conversation of one hook with the console.
struct HookConversation<'a, C> {
    calls: C,
    /// Name of the first session. It names the thread of the conversation, also after the agent resumes it.
    conversation: SessionId,
    session: SessionId,
    event: &'a HookEvent,
    options: &'a HookOptions,
    deadline: Instant,
    /// Contexts for the agent so far.
    injected: Injected,
    /// Questions to the agent, each with the command that answers them.
    questions: Vec<String>,
}

impl<'a, C: ConsoleCalls> HookConversation<'a, C> {
    fn new(calls: C, session: SessionId, event: &'a HookEvent, options: &'a HookOptions) -> Self {
        Self {
            calls,
            conversation: session.clone(),
            session,
            event,
            options,
            deadline: call_deadline(event, options),
            injected: Injected::default(),
            questions: Vec::new(),
        }
    }

    async fn decide(mut self) -> Result<HookVerdict, CallError> {
        if self.event.kind == HookEventKind::End {
            return self.end().await;
        }
        let started = self.start_or_resume().await?;
        self.injected.extend(injected_in(&started));
        self.report_wrapper(&started).await?;
        for asked in asked_at_start(&started) {
            self.note_questions(&asked);
        }
        match &self.event.kind {
            HookEventKind::Start => Ok(HookVerdict::pass(self.context(None))),
            HookEventKind::Prompt { id, text } => match text {
                Some(text) => self.handle_prompt(id.as_deref(), text).await,
                None => Ok(HookVerdict::Deny {
                    reason: "cra: the prompt is not text, so it is denied".to_owned(),
                }),
            },
            HookEventKind::BeforeTool {
                reference,
                call,
                actions,
            } => match actions {
                Ok(_) if !self.questions.is_empty() => Ok(self.deny_until_answered()),
                Ok(actions) => {
                    self.request_actions((reference, call.as_deref()), actions)
                        .await
                }
                Err(why) => Ok(HookVerdict::Deny {
                    reason: format!("cra: this call cannot be evaluated, so it is denied: {why}"),
                }),
            },
            HookEventKind::AfterTool {
                reference,
                tool,
                used,
                result,
                ..
            } => {
                self.report_result(reference, (tool, used.as_deref()), result)
                    .await?;
                Ok(HookVerdict::pass(self.context(None)))
            }
            HookEventKind::Output(text) => self
                .call("output", json!({"text": text}))
                .await
                .map(|_| HookVerdict::pass(None)),
            HookEventKind::Failed { kind, message } => {
                let error = json!({"error_type": kind, "message": message, "recoverable": true});
                self.call("error", error)
                    .await
                    .map(|_| HookVerdict::pass(None))
            }
            HookEventKind::End | HookEventKind::SettingsChange { .. } | HookEventKind::Other => {
                Ok(HookVerdict::pass(None))
            }
        }
    }

    /// Ends the session, or its continuation. Starts none for that purpose.
    async fn end(&mut self) -> Result<HookVerdict, CallError> {
        let first = self.session.clone();
        for again in 1..=MAX_RESUMPTIONS {
            match self.call("session.end", json!({"given": "later"})).await {
                Err(CallError::Fault(fault)) if fault.deny_code() == Some(DenyCode::Ended) => {
                    let next = format!("{first}.{again}").parse();
                    self.session = next.map_err(|_| CallError::Fault(fault))?;
                }
                // The session is unknown or belongs to another caller: the hook has nothing to end.
                Ok(_) | Err(CallError::Fault(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(HookVerdict::pass(None))
    }

    /// Reports the result of a tool call. A tool that ran without a request is reported as an error, with
    /// its input.
    async fn report_result(
        &mut self,
        reference: &str,
        (tool, used): (&str, Option<&str>),
        result: &Result<String, String>,
    ) -> Result<(), CallError> {
        let params = match result {
            Ok(result) => json!({"reference": reference, "result": result}),
            Err(message) => json!({"reference": reference,
                "error": {"code": "failed", "message": message}}),
        };
        match self.call("action.completed", params).await {
            Ok(completed) => {
                self.injected.extend(injected_in(&completed));
                Ok(())
            }
            Err(CallError::Fault(_)) => {
                let used = used.map_or_else(String::new, |used| format!(": `{used}`"));
                let message = format!(
                    "`{tool}` ran without a request ({reference}), or cra restarted since then{used}"
                );
                let kind = "ran_unasked";
                let error = json!({"error_type": kind, "message": message, "recoverable": true});
                self.call("error", error).await.map(|_| ())
            }
            Err(error) => Err(error),
        }
    }

    /// Starts or resumes the session. An agent may continue an ended session under its old name; the record
    /// then has another session.
    async fn start_or_resume(&mut self) -> Result<Value, CallError> {
        let first = self.session.clone();
        for again in 1..=MAX_RESUMPTIONS {
            match self.start().await {
                Err(CallError::Fault(fault)) if fault.deny_code() == Some(DenyCode::Ended) => {
                    let next = format!("{first}.{again}").parse();
                    self.session = next.map_err(|_| CallError::Fault(fault))?;
                }
                begun => return begun,
            }
        }
        self.start().await
    }

    /// Starts or resumes a session. Each hook is a separate process, so each one does this.
    async fn start(&mut self) -> Result<Value, CallError> {
        let mut start = json!({"agent": self.event.agent.as_str(), "given": self.delivery()});
        if let (Some(key), Some(fields)) = (&self.options.api_key, start.as_object_mut()) {
            fields.insert("api_key".to_owned(), key.clone().into());
        }
        self.call("session.start", start).await
    }

    async fn call(&mut self, method: &str, mut params: Value) -> Result<Value, CallError> {
        // All sessions of a conversation present one secret, because they share the thread of the first
        // session.
        let key = self.identity().key();
        if let Some(fields) = params.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), key.to_string().into());
        }
        self.calls.call(method, params).await
    }

    fn identity(&self) -> ConversationIdentity<'_> {
        ConversationIdentity {
            secret: self.options.secret,
            conversation: &self.conversation,
        }
    }

    /// Reports the parts of this hook, in the first hook of a session.
    async fn report_wrapper(&mut self, started: &Value) -> Result<(), CallError> {
        if started.get("wrapper_reported") == Some(&json!(true)) {
            return Ok(());
        }
        let (agent, transport) = (self.options.agent, self.calls.transport());
        let constructed = wrapper::construction_report(agent, transport, &self.session);
        let verified =
            wrapper::check_report(agent, transport).map(|check| ("wrapper.verified", check));
        let reports = std::iter::once(("wrapper.constructed", constructed)).chain(verified);
        for (method, report) in reports {
            match self.call(method, report).await {
                // A report decides nothing about a step, so a refused report changes nothing.
                Ok(_) | Err(CallError::Fault(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Collects questions to the agent, with the command that answers them.
    fn note_questions(&mut self, asked: &AgentQuestions) {
        let token = self.identity().token(&self.session, asked.gate.as_str());
        let command = self
            .options
            .answer_command
            .line(&self.session, &token, asked);
        self.questions.push(format!(
            "cra: held at {}. You must answer its questions.\n{}\nTo answer, run exactly this command in your \
             shell, with your answers filled in (write a single quote as \\u0027), and add nothing \
             else:\n{command}",
            asked.gate,
            questions::describe(asked)
        ));
    }

    fn deny_until_answered(&self) -> HookVerdict {
        let questions = self.questions.join("\n\n");
        HookVerdict::Deny {
            reason: format!(
                "{questions}\nThen repeat this tool call unchanged. After your answers, cra checks the call again \
                 and, if nothing else blocks it, allows it once."
            ),
        }
    }

    /// Returns the reply that can carry contexts: this one, or that of the hook after the tool.
    fn delivery(&self) -> DeliveryTime {
        match self.event.kind {
            HookEventKind::BeforeTool { .. }
                if !self.event.agent.adapter().takes_context_before_tools() =>
            {
                DeliveryTime::Later
            }
            _ => DeliveryTime::Now,
        }
    }

    /// Returns the time by which the console has to decide.
    fn console_deadline(&self) -> Timestamp {
        let left = self.deadline.saturating_duration_since(Instant::now());
        SystemClock.now().plus(console_time(left))
    }

    /// Returns all texts for the agent besides the verdict: contexts, `more`, and open questions.
    fn context(&mut self, more: Option<String>) -> Option<String> {
        let handed = injected_text(&std::mem::take(&mut self.injected));
        let texts = handed.into_iter().chain(more);
        join_texts(texts.chain(std::mem::take(&mut self.questions)).collect())
    }

    /// Reports a user's prompt as input and as a turn of the conversation. If the agent is asked about it,
    /// it has to read the prompt: the prompt passes, and every step is denied until the questions are
    /// answered.
    async fn handle_prompt(
        &mut self,
        id: Option<&str>,
        text: &str,
    ) -> Result<HookVerdict, CallError> {
        let input = json!({
            "text": text,
            "reaches_asked_agent": true,
            "waits_for_start": true,
            "deadline": self.console_deadline(),
        });
        match self.call("input", input).await {
            Ok(accepted) => self.injected.extend(injected_in(&accepted)),
            Err(error) => match questions::agent_questions(&error) {
                Some(asked) => self.note_questions(&asked),
                None => return Err(error),
            },
        }
        let id = id.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let id: String = id.chars().take(100).collect();
        let turn = json!({"message_id": id, "message": text, "author": "user"});
        let summary = match self.take_turn(&turn).await {
            Ok(turned) => {
                self.injected.extend(injected_in(&turned));
                turn_words(&turned)
            }
            // A conversation's summary decides nothing about actions.
            Err(CallError::Fault(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(HookVerdict::pass(self.context(summary)))
    }

    /// Takes a turn in the conversation's thread. If the session may not write there, uses the session's
    /// own thread.
    async fn take_turn(&mut self, turn: &Value) -> Result<Value, CallError> {
        let thread = self.conversation.to_string();
        let taken = self
            .call("turn", json!({"thread": thread, "turn": turn}))
            .await;
        match taken {
            Err(CallError::Fault(fault))
                if fault.deny_code() == Some(DenyCode::Thread)
                    && self.session != self.conversation =>
            {
                self.call("turn", json!({"turn": turn})).await
            }
            taken => taken,
        }
    }

    /// Requests all actions of a tool call. All of them have to pass. A call without an identifier from the
    /// agent gets one here, so that an identical concurrent call is a separate one.
    async fn request_actions(
        &mut self,
        (reference, call): (&str, Option<&str>),
        actions: &[ToolAction],
    ) -> Result<HookVerdict, CallError> {
        let call = call.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let mut approved = Vec::new();
        for action in actions {
            let request = json!({
                "action": action.name,
                "params": action.params,
                "deadline": self.console_deadline(),
                "reference": reference,
                "call": call,
                "given": self.delivery(),
                "on_disconnect": OnDisconnect::Denied,
            });
            let allowed = match self.call("action.request", request).await {
                Ok(allowed) => allowed,
                Err(error) => match questions::agent_questions(&error) {
                    // Collect all questions about one tool call: each answer is valid for one call.
                    Some(asked) => {
                        self.note_questions(&asked);
                        continue;
                    }
                    None => return Err(error),
                },
            };
            // Only an answer with the name of a run is a permission.
            if !allowed.get("execution").is_some_and(Value::is_string) {
                let why = "`execution` is missing or not a string".to_owned();
                return Err(CallError::Unreadable(why));
            }
            self.injected.extend(injected_in(&allowed));
            let by = allowed.get("approved_by").and_then(Value::as_str);
            approved.extend(by.map(one_line));
        }
        if !self.questions.is_empty() {
            return Ok(self.deny_until_answered());
        }
        // If an action passed without an operator's approval, the agent's own rules stay in force.
        let all = approved.len() == actions.len();
        Ok(HookVerdict::Pass {
            context: self.context(None),
            approved: approved
                .pop()
                .filter(|_| all)
                .map(|by| format!("cra: approved by {by}")),
        })
    }
}

/// Returns the verdict on an event for which the console gave no permission.
fn verdict_on_error(event: &HookEvent, options: &HookOptions, error: &CallError) -> HookVerdict {
    let reason = denial_text(error, KeyRemedy::Connect(options.agent.as_str()));
    match (error, options.offline) {
        (CallError::Unreachable(_), OfflineBehavior::Ask) if event.is_gate() => {
            HookVerdict::Ask { reason }
        }
        _ => HookVerdict::Deny { reason },
    }
}

/// Returns the questions to the agent at the start of a session.
fn asked_at_start(started: &Value) -> Vec<AgentQuestions> {
    let asked = started.get("asked").cloned().unwrap_or_default();
    serde_json::from_value(asked).unwrap_or_default()
}

/// Describes the result of a turn to the agent: closed points, and a frozen summary.
fn turn_words(turned: &Value) -> Option<String> {
    let closed = turned.get("closed").and_then(Value::as_array);
    let closed = closed.into_iter().flatten().filter_map(Value::as_str);
    let mut words: Vec<_> = closed.map(|point| format!("Closed: {point}")).collect();
    if turned.get("frozen") == Some(&json!(true)) {
        words.push("This conversation is at its peak: its summary stays unchanged.".to_owned());
    }
    join_texts(words)
}

#[cfg(test)]
mod tests;
