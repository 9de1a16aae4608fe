//! Handle of the runtime for agents.

use tokio::sync::{mpsc, oneshot};

use super::SnapshotReceiver;
use super::actor::stall_denial;
use super::message::{ActorMessage, HandOverRequest, ReplyIds, ReplySender, TurnRequest};
use super::threads::{SessionTurn, ThreadHandOver};
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};
use crate::engine::command::{
    AcceptedEvent, ActionCompletion, ActionRequest, AgentAnswer, AgentQuestions, AgentReply,
    AgentReport, Caller, ContextRequest, DenialReply, DenyCode, EndSession, EngineCommand,
    ErrorReport, Feedback, Injected, InputReport, InvalidAnswers, OutputReport, Recovery, ReplyId,
    ReportReceipt, ResolveRequest, RunPermission, StartSession, StartedSession, Wrapper,
    WrapperCheck,
};
use crate::engine::consultation::{Consultation, ConsultationAnswer};
use crate::engine::resolution::Resolution;
use crate::memento::TurnOutcome;

/// Handle for agents: it asks, and never decides.
///
/// Dropping a call before its answer means that the caller disconnects: a later decision becomes a permit
/// for the identical request.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    messages: mpsc::Sender<ActorMessage>,
    ids: ReplyIds,
    snapshots: SnapshotReceiver,
}

impl AgentHandle {
    pub(super) fn new(
        messages: mpsc::Sender<ActorMessage>,
        ids: ReplyIds,
        snapshots: SnapshotReceiver,
    ) -> Self {
        Self {
            messages,
            ids,
            snapshots,
        }
    }

    /// Returns the reason why nothing is recorded, if there is one.
    #[must_use]
    pub fn store_problem(&self) -> Option<String> {
        self.snapshots.borrow().store.problem().map(str::to_owned)
    }

    /// Returns the fault of the record for which agents are denied, if there is one.
    #[must_use]
    pub fn record_fault(&self) -> Option<String> {
        let fault = self.snapshots.borrow().unacknowledged_fault();
        fault.map(|fault| fault.what)
    }

    /// Returns the denial while the store does not respond: a call would have to wait for it.
    fn stall_denial(&self) -> Option<DenialReply> {
        let picture = self.snapshots.borrow();
        picture.store.stall().map(stall_denial)
    }

    /// Starts or resumes a session.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn start_session(&self, start: StartSession) -> Result<StartedSession, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::StartSession(reply_id, start))
            .await
        {
            AgentReply::Started(started) => Ok(started),
            other => Err(into_denial(other)),
        }
    }

    /// Checks whether a session belongs to the caller that presents this digest of its secret. A failed
    /// check is recorded in the session.
    ///
    /// # Errors
    /// Fails when it does not, or when the session is unknown.
    pub async fn check_owner(
        &self,
        session: SessionId,
        owner: Option<Digest>,
        from: Option<Caller>,
    ) -> Result<(), DenialReply> {
        let consult = Consultation::Owner {
            session,
            owner,
            from,
        };
        match self
            .send_command(|reply_id| EngineCommand::Consult(reply_id, consult))
            .await
        {
            AgentReply::Consulted(ConsultationAnswer::Owned) => Ok(()),
            other => Err(into_denial(other)),
        }
    }

    /// Ends a session. Returns the last contexts for the agent.
    ///
    /// # Errors
    /// Fails when the session is unknown.
    pub async fn end_session(&self, end: EndSession) -> Result<Injected, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::EndSession(reply_id, end))
            .await
        {
            AgentReply::Ended(injected) => Ok(injected),
            other => Err(into_denial(other)),
        }
    }

    /// Asks to run an action. Returns when the request is decided, which may take as long as an operator
    /// needs.
    ///
    /// # Errors
    /// Fails when it is denied. Every failure is a denial.
    pub async fn request_action(
        &self,
        request: ActionRequest,
    ) -> Result<RequestReply, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::RequestAction(reply_id, request))
            .await
        {
            AgentReply::Allowed(allowed) => Ok(RequestReply::Allowed(allowed)),
            AgentReply::Asked(asked) => Ok(RequestReply::Asked(asked)),
            other => Err(into_denial(other)),
        }
    }

    /// Answers questions to the agent. If an operator has to answer as well, waits for that.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn answer(&self, answer: AgentAnswer) -> Result<AnswerReply, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::Answer(reply_id, answer))
            .await
        {
            AgentReply::Allowed(allowed) => Ok(AnswerReply::Allowed(allowed)),
            AgentReply::Accepted(accepted) => Ok(AnswerReply::Accepted(accepted)),
            AgentReply::Invalid(invalid) => Ok(AnswerReply::Invalid(invalid)),
            AgentReply::Asked(asked) => Ok(AnswerReply::Asked(asked)),
            other => Err(into_denial(other)),
        }
    }

    /// Asks which actions the agent may run now.
    ///
    /// # Errors
    /// Fails when the session is unknown, or its input is refused.
    pub async fn resolve(&self, resolve: ResolveRequest) -> Result<Resolution, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::Resolve(reply_id, resolve))
            .await
        {
            AgentReply::Resolved(resolution) => Ok(*resolution),
            other => Err(into_denial(other)),
        }
    }

    /// Reports the result of an allowed action. Returns what checkpoints after the action inject.
    ///
    /// # Errors
    /// Fails when no such run was allowed.
    pub async fn complete_action(
        &self,
        completed: ActionCompletion,
    ) -> Result<Injected, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::CompleteAction(reply_id, completed))
            .await
        {
            AgentReply::Completed(injected) => Ok(injected),
            other => Err(into_denial(other)),
        }
    }

    /// Reports input that the agent received. Returns when the agent may work on it.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn input(&self, input: InputReport) -> Result<AcceptedEvent, DenialReply> {
        accepted_or_denied(self.send_input(input).await?)
    }

    /// Reports input, and returns questions to the agent as a separate outcome.
    pub(crate) async fn send_input(&self, input: InputReport) -> Result<EventReply, DenialReply> {
        self.send_event(|reply_id| EngineCommand::Input(reply_id, input))
            .await
    }

    /// Reports the agent's wrapper. Returns when the report and its check are on disk, with all failures of
    /// the check. A wrapper with failures must not continue.
    ///
    /// # Errors
    /// Fails when the session is unknown, or the report is refused.
    pub async fn report_wrapper(&self, wrapper: Wrapper) -> Result<ReportReceipt, DenialReply> {
        self.report(AgentReport::Wrapper(wrapper)).await
    }

    /// Reports the result of a check of the agent's wrapper. Returns when it is on disk.
    ///
    /// # Errors
    /// Fails when the session is unknown, or the report is refused.
    pub async fn report_wrapper_check(&self, check: WrapperCheck) -> Result<(), DenialReply> {
        self.report(AgentReport::WrapperCheck(check))
            .await
            .map(drop)
    }

    /// Reports whether a context helped.
    ///
    /// # Errors
    /// Fails when the session is unknown, or did not receive that context.
    pub async fn context_feedback(&self, feedback: Feedback) -> Result<(), DenialReply> {
        self.report(AgentReport::Feedback(feedback)).await.map(drop)
    }

    /// Reports output of the agent. Only its hash and its size are kept.
    ///
    /// # Errors
    /// Fails when the session is unknown.
    pub async fn output(&self, output: OutputReport) -> Result<(), DenialReply> {
        self.report(AgentReport::Output(output)).await.map(drop)
    }

    /// Reports that the agent recovered from an error, or tried to. [`AgentHandle::report_error`] returned the
    /// error's event.
    ///
    /// # Errors
    /// Fails when the session is unknown, or no such error is open.
    pub async fn error_recovered(&self, recovery: Recovery) -> Result<(), DenialReply> {
        self.report(AgentReport::Recovery(recovery)).await.map(drop)
    }

    /// Takes a turn of a conversation. Returns when its record and its memento are durable.
    ///
    /// # Errors
    /// Fails when the session is unknown, the thread belongs to another one, or the memento has changed since it
    /// was read.
    pub async fn turn(&self, take: SessionTurn) -> Result<TurnReply, DenialReply> {
        if let Some(denied) = self.stall_denial() {
            return Err(denied);
        }
        let (outcome, outcome_receiver) = oneshot::channel();
        let (reply, answer) = oneshot::channel();
        let asked = TurnRequest {
            reply_id: self.ids.next(),
            take,
            outcome,
            reply,
        };
        let sent = self
            .messages
            .send(ActorMessage::Turn(Box::new(asked)))
            .await;
        if sent.is_err() {
            return Err(into_denial(stopped_reply()));
        }
        match answer.await.unwrap_or_else(|_| stopped_reply()) {
            AgentReply::Noted(noted) => {
                let outcome = outcome_receiver
                    .await
                    .map_err(|_| into_denial(stopped_reply()))?;
                Ok(TurnReply {
                    outcome,
                    injected: noted.injected,
                    held: noted.held,
                })
            }
            other => Err(into_denial(other)),
        }
    }

    /// Hands a thread over to another session, which owns it from its first turn on. Returns when the
    /// record is durable.
    ///
    /// # Errors
    /// Fails when the session does not own the thread, or the other session is unknown.
    pub async fn hand_over(&self, hand_over: ThreadHandOver) -> Result<(), DenialReply> {
        let (reply, answer) = oneshot::channel();
        let asked = HandOverRequest {
            reply_id: self.ids.next(),
            hand_over,
            reply,
        };
        let sent = self
            .messages
            .send(ActorMessage::HandOver(Box::new(asked)))
            .await;
        if sent.is_err() {
            return Err(into_denial(stopped_reply()));
        }
        match answer.await.unwrap_or_else(|_| stopped_reply()) {
            AgentReply::Noted(_) => Ok(()),
            other => Err(into_denial(other)),
        }
    }

    async fn report(&self, report: AgentReport) -> Result<ReportReceipt, DenialReply> {
        match self
            .send_command(|reply_id| EngineCommand::Report(reply_id, report))
            .await
        {
            AgentReply::Noted(noted) => Ok(noted),
            other => Err(into_denial(other)),
        }
    }

    /// Reports an error. Returns the event that recorded it, when the agent may continue.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn report_error(&self, report: ErrorReport) -> Result<AcceptedEvent, DenialReply> {
        accepted_or_denied(self.send_error(report).await?)
    }

    /// Reports an error, and returns questions to the agent as a separate outcome.
    pub(crate) async fn send_error(&self, report: ErrorReport) -> Result<EventReply, DenialReply> {
        self.send_event(|reply_id| EngineCommand::ReportError(reply_id, report))
            .await
    }

    /// Asks for context, or for a checkpoint by its name.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn request_context(
        &self,
        request: ContextRequest,
    ) -> Result<AcceptedEvent, DenialReply> {
        accepted_or_denied(self.send_context_request(request).await?)
    }

    /// Requests context, and returns questions to the agent as a separate outcome.
    pub(crate) async fn send_context_request(
        &self,
        request: ContextRequest,
    ) -> Result<EventReply, DenialReply> {
        self.send_event(|reply_id| EngineCommand::RequestContext(reply_id, request))
            .await
    }

    async fn send_event(
        &self,
        command: impl FnOnce(ReplyId) -> EngineCommand,
    ) -> Result<EventReply, DenialReply> {
        match self.send_command(command).await {
            AgentReply::Accepted(accepted) => Ok(EventReply::Accepted(accepted)),
            AgentReply::Asked(asked) => Ok(EventReply::Asked(asked)),
            other => Err(into_denial(other)),
        }
    }

    async fn send_command(&self, command: impl FnOnce(ReplyId) -> EngineCommand) -> AgentReply {
        if let Some(denied) = self.stall_denial() {
            return AgentReply::Denied(denied);
        }
        let reply_id = self.ids.next();
        let command = command(reply_id);
        // Declared before the channel, so that the channel is closed when the notice is sent.
        let mut notice = DisconnectNotice {
            messages: is_withdrawn_with_caller(&command).then(|| self.messages.clone()),
            reply_id,
        };
        let (reply, answer) = oneshot::channel();
        let message = ActorMessage::Command {
            reply_id,
            command,
            reply: ReplySender::Agent(reply),
        };
        if self.messages.send(message).await.is_err() {
            return stopped_reply();
        }
        let answer = answer.await;
        notice.messages = None;
        answer.unwrap_or_else(|_| stopped_reply())
    }
}

/// Returns true if a request ends when its caller disconnects.
fn is_withdrawn_with_caller(command: &EngineCommand) -> bool {
    matches!(command, EngineCommand::RequestAction(_, request) if !request.on_disconnect.is_kept())
}

/// Tells the actor that a caller disconnected before its reply. If the actor's queue is full, the next
/// decision notices it.
struct DisconnectNotice {
    /// Queue of the actor; `None` if there is nothing to tell.
    messages: Option<mpsc::Sender<ActorMessage>>,
    reply_id: ReplyId,
}

impl Drop for DisconnectNotice {
    fn drop(&mut self) {
        if let Some(messages) = &self.messages {
            let _ = messages.try_send(ActorMessage::CallerDisconnected(self.reply_id));
        }
    }
}

/// A turn that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReply {
    /// Decision about the turn, and the resulting memento.
    pub outcome: TurnOutcome,
    /// Contexts that the message triggered, and contexts that the session was still owed.
    pub injected: Injected,
    /// Gates before the session: until they are passed it gets no contexts.
    pub held: Vec<HeldRequestId>,
}

/// Outcome of input, an error or a request for context that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventReply {
    /// The event was accepted.
    Accepted(AcceptedEvent),
    /// The event is held, with questions to the agent.
    Asked(AgentQuestions),
}

fn accepted_or_denied(taken: EventReply) -> Result<AcceptedEvent, DenialReply> {
    match taken {
        EventReply::Accepted(accepted) => Ok(accepted),
        EventReply::Asked(asked) => Err(denied_until_answered(asked)),
    }
}

/// Outcome of a request for an action that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestReply {
    /// The action may run once.
    Allowed(RunPermission),
    /// The request is held, with questions to the agent.
    Asked(AgentQuestions),
}

/// Outcome of an agent's answers.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerReply {
    /// The action may run once.
    Allowed(RunPermission),
    /// A held event other than an action is released, as far as the agent's answers decide.
    Accepted(AcceptedEvent),
    /// The answers break rules; the request is still held.
    Invalid(InvalidAnswers),
    /// The answers were accepted, and the agent has further questions to answer.
    Asked(AgentQuestions),
}

fn stopped_reply() -> AgentReply {
    AgentReply::Denied(DenialReply {
        code: DenyCode::Unavailable,
        reason: "the console has stopped, so nothing is allowed".to_owned(),
        help: Some("start cra again, and repeat the request".to_owned()),
        gate: None,
    })
}

/// Returns a denial until the agent has answered; its reason has the questions.
fn denied_until_answered(asked: AgentQuestions) -> DenialReply {
    let questions = asked.gates.iter().flat_map(|gate| {
        let id = &gate.checkpoint_id;
        let questions = gate.questions.iter();
        questions
            .map(move |question| format!("`{id}` asks `{}`: {}", question.id(), question.text()))
    });
    let questions: Vec<_> = questions.collect();
    DenialReply {
        code: DenyCode::InvalidAnswer,
        reason: format!("the agent must answer first: {}", questions.join("; ")),
        help: Some(format!(
            "answer at {}, by checkpoint and question",
            asked.gate
        )),
        gate: Some(asked.gate),
    }
}

/// Converts any other reply into a denial, including one that does not fit.
fn into_denial(reply: AgentReply) -> DenialReply {
    match reply {
        AgentReply::Denied(denied) => denied,
        AgentReply::Started(_)
        | AgentReply::Ended(_)
        | AgentReply::Accepted(_)
        | AgentReply::Allowed(_)
        | AgentReply::Asked(_)
        | AgentReply::Resolved(_)
        | AgentReply::Consulted(_)
        | AgentReply::Completed(_)
        | AgentReply::Noted(_)
        | AgentReply::Invalid(_) => DenialReply {
            code: DenyCode::Unavailable,
            reason: "the console gave an unexpected answer".to_owned(),
            help: None,
            gate: None,
        },
    }
}
