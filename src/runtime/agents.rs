//! Handle of the runtime for agents.

use tokio::sync::{mpsc, oneshot};

use super::Snapshots;
use super::actor::stalled;
use super::message::{AskIds, HandOverAsked, Message, TurnAsked};
use super::threads::{HandOver, TakeTurn};
use crate::base::digest::Digest;
use crate::base::id::{GateId, SessionId};
use crate::engine::command::{
    Accepted, ActionCompleted, ActionRequest, Allowed, Answer, AskId, Asked, Caller, Command,
    ContextRequest, Denied, DenyCode, EndSession, ErrorReport, Feedback, Given, Input,
    InvalidAnswers, Noted, Output, Recovery, Reply, Report, Resolve, SessionStarted, StartSession,
    Wrapper, WrapperCheck,
};
use crate::engine::consult::{Consult, Consulted};
use crate::engine::resolve::Resolution;
use crate::memento::Outcome;

/// Handle for agents: it asks, and never decides.
///
/// Dropping a call before its answer means that the caller disconnects: a later decision becomes a permit
/// for the identical request.
#[derive(Clone, Debug)]
pub struct Agents {
    messages: mpsc::Sender<Message>,
    ids: AskIds,
    snapshots: Snapshots,
}

impl Agents {
    pub(super) fn new(messages: mpsc::Sender<Message>, ids: AskIds, snapshots: Snapshots) -> Self {
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
        let fault = self.snapshots.borrow().unknown_fault();
        fault.map(|fault| fault.what)
    }

    /// Returns the denial while the store does not respond: a call would have to wait for it.
    fn stalled(&self) -> Option<Denied> {
        let picture = self.snapshots.borrow();
        picture.store.stall().map(stalled)
    }

    /// Starts or resumes a session.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn start_session(&self, start: StartSession) -> Result<SessionStarted, Denied> {
        match self.ask(|ask| Command::StartSession(ask, start)).await {
            Reply::Started(started) => Ok(started),
            other => Err(denied_by(other)),
        }
    }

    /// Checks whether a session belongs to the caller that presents this digest of its secret. A failed
    /// check is recorded in the session.
    ///
    /// # Errors
    /// Fails when it does not, or when the session is unknown.
    pub async fn owns(
        &self,
        session: SessionId,
        owner: Option<Digest>,
        from: Option<Caller>,
    ) -> Result<(), Denied> {
        let consult = Consult::Owner {
            session,
            owner,
            from,
        };
        match self.ask(|ask| Command::Consult(ask, consult)).await {
            Reply::Consulted(Consulted::Owned) => Ok(()),
            other => Err(denied_by(other)),
        }
    }

    /// Ends a session. Returns the last contexts for the agent.
    ///
    /// # Errors
    /// Fails when the session is unknown.
    pub async fn end_session(&self, end: EndSession) -> Result<Given, Denied> {
        match self.ask(|ask| Command::EndSession(ask, end)).await {
            Reply::Ended(given) => Ok(given),
            other => Err(denied_by(other)),
        }
    }

    /// Asks to run an action. Returns when the request is decided, which may take as long as an operator
    /// needs.
    ///
    /// # Errors
    /// Fails when it is denied. Every failure is a denial.
    pub async fn request_action(&self, request: ActionRequest) -> Result<Requested, Denied> {
        match self.ask(|ask| Command::RequestAction(ask, request)).await {
            Reply::Allowed(allowed) => Ok(Requested::Allowed(allowed)),
            Reply::Asked(asked) => Ok(Requested::Asked(asked)),
            other => Err(denied_by(other)),
        }
    }

    /// Answers questions to the agent. If an operator has to answer as well, waits for that.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn answer(&self, answer: Answer) -> Result<Answered, Denied> {
        match self.ask(|ask| Command::Answer(ask, answer)).await {
            Reply::Allowed(allowed) => Ok(Answered::Allowed(allowed)),
            Reply::Accepted(accepted) => Ok(Answered::Accepted(accepted)),
            Reply::Invalid(invalid) => Ok(Answered::Invalid(invalid)),
            Reply::Asked(asked) => Ok(Answered::Asked(asked)),
            other => Err(denied_by(other)),
        }
    }

    /// Asks which actions the agent may run now.
    ///
    /// # Errors
    /// Fails when the session is unknown, or its input is refused.
    pub async fn resolve(&self, resolve: Resolve) -> Result<Resolution, Denied> {
        match self.ask(|ask| Command::Resolve(ask, resolve)).await {
            Reply::Resolved(resolution) => Ok(*resolution),
            other => Err(denied_by(other)),
        }
    }

    /// Reports the result of an allowed action. Returns what checkpoints after the action inject.
    ///
    /// # Errors
    /// Fails when no such run was allowed.
    pub async fn complete_action(&self, completed: ActionCompleted) -> Result<Given, Denied> {
        match self
            .ask(|ask| Command::CompleteAction(ask, completed))
            .await
        {
            Reply::Completed(given) => Ok(given),
            other => Err(denied_by(other)),
        }
    }

    /// Reports input that the agent received. Returns when the agent may work on it.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn input(&self, input: Input) -> Result<Accepted, Denied> {
        accepted(self.take_input(input).await?)
    }

    /// Reports input, and returns questions to the agent as a separate outcome.
    pub(crate) async fn take_input(&self, input: Input) -> Result<Taken, Denied> {
        self.moment(|ask| Command::Input(ask, input)).await
    }

    /// Reports the agent's wrapper. Returns when the report and its check are on disk, with all failures of
    /// the check. A wrapper with failures must not continue.
    ///
    /// # Errors
    /// Fails when the session is unknown, or the report is refused.
    pub async fn report_wrapper(&self, wrapper: Wrapper) -> Result<Noted, Denied> {
        self.report(Report::Wrapper(wrapper)).await
    }

    /// Reports the result of a check of the agent's wrapper. Returns when it is on disk.
    ///
    /// # Errors
    /// Fails when the session is unknown, or the report is refused.
    pub async fn report_wrapper_check(&self, check: WrapperCheck) -> Result<(), Denied> {
        self.report(Report::WrapperCheck(check)).await.map(drop)
    }

    /// Reports whether a context helped.
    ///
    /// # Errors
    /// Fails when the session is unknown, or did not receive that context.
    pub async fn context_feedback(&self, feedback: Feedback) -> Result<(), Denied> {
        self.report(Report::Feedback(feedback)).await.map(drop)
    }

    /// Reports output of the agent. Only its hash and its size are kept.
    ///
    /// # Errors
    /// Fails when the session is unknown.
    pub async fn output(&self, output: Output) -> Result<(), Denied> {
        self.report(Report::Output(output)).await.map(drop)
    }

    /// Reports that the agent recovered from an error, or tried to. [`Agents::report_error`] returned the
    /// error's event.
    ///
    /// # Errors
    /// Fails when the session is unknown, or no such error is open.
    pub async fn error_recovered(&self, recovery: Recovery) -> Result<(), Denied> {
        self.report(Report::Recovery(recovery)).await.map(drop)
    }

    /// Takes a turn of a conversation. Returns when its record and its memento are durable.
    ///
    /// # Errors
    /// Fails when the session is unknown, the thread belongs to another one, or the memento has changed since it
    /// was read.
    pub async fn turn(&self, take: TakeTurn) -> Result<TurnTaken, Denied> {
        if let Some(denied) = self.stalled() {
            return Err(denied);
        }
        let (outcome, told) = oneshot::channel();
        let (reply, answer) = oneshot::channel();
        let asked = TurnAsked {
            ask: self.ids.next(),
            take,
            outcome,
            reply,
        };
        let sent = self.messages.send(Message::Turn(Box::new(asked))).await;
        if sent.is_err() {
            return Err(denied_by(stopped()));
        }
        match answer.await.unwrap_or_else(|_| stopped()) {
            Reply::Noted(noted) => {
                let outcome = told.await.map_err(|_| denied_by(stopped()))?;
                Ok(TurnTaken {
                    outcome,
                    given: noted.given,
                    held: noted.held,
                })
            }
            other => Err(denied_by(other)),
        }
    }

    /// Hands a thread over to another session, which owns it from its first turn on. Returns when the
    /// record is durable.
    ///
    /// # Errors
    /// Fails when the session does not own the thread, or the other session is unknown.
    pub async fn hand_over(&self, hand_over: HandOver) -> Result<(), Denied> {
        let (reply, answer) = oneshot::channel();
        let asked = HandOverAsked {
            ask: self.ids.next(),
            hand_over,
            reply,
        };
        let sent = self.messages.send(Message::HandOver(Box::new(asked))).await;
        if sent.is_err() {
            return Err(denied_by(stopped()));
        }
        match answer.await.unwrap_or_else(|_| stopped()) {
            Reply::Noted(_) => Ok(()),
            other => Err(denied_by(other)),
        }
    }

    async fn report(&self, report: Report) -> Result<Noted, Denied> {
        match self.ask(|ask| Command::Report(ask, report)).await {
            Reply::Noted(noted) => Ok(noted),
            other => Err(denied_by(other)),
        }
    }

    /// Reports an error. Returns the event that recorded it, when the agent may continue.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn report_error(&self, report: ErrorReport) -> Result<Accepted, Denied> {
        accepted(self.take_error(report).await?)
    }

    /// Reports an error, and returns questions to the agent as a separate outcome.
    pub(crate) async fn take_error(&self, report: ErrorReport) -> Result<Taken, Denied> {
        self.moment(|ask| Command::ReportError(ask, report)).await
    }

    /// Asks for context, or for a checkpoint by its name.
    ///
    /// # Errors
    /// Fails when it is denied.
    pub async fn request_context(&self, request: ContextRequest) -> Result<Accepted, Denied> {
        accepted(self.take_context_request(request).await?)
    }

    /// Requests context, and returns questions to the agent as a separate outcome.
    pub(crate) async fn take_context_request(
        &self,
        request: ContextRequest,
    ) -> Result<Taken, Denied> {
        self.moment(|ask| Command::RequestContext(ask, request))
            .await
    }

    async fn moment(&self, command: impl FnOnce(AskId) -> Command) -> Result<Taken, Denied> {
        match self.ask(command).await {
            Reply::Accepted(accepted) => Ok(Taken::Accepted(accepted)),
            Reply::Asked(asked) => Ok(Taken::Asked(asked)),
            other => Err(denied_by(other)),
        }
    }

    async fn ask(&self, command: impl FnOnce(AskId) -> Command) -> Reply {
        if let Some(denied) = self.stalled() {
            return Reply::Denied(denied);
        }
        let ask = self.ids.next();
        let (reply, answer) = oneshot::channel();
        let message = Message::Ask {
            ask,
            command: command(ask),
            reply,
        };
        if self.messages.send(message).await.is_err() {
            return stopped();
        }
        answer.await.unwrap_or_else(|_| stopped())
    }
}

/// A turn that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnTaken {
    /// Decision about the turn, and the resulting memento.
    pub outcome: Outcome,
    /// Contexts that the message triggered, and contexts that the session was still owed.
    pub given: Given,
    /// Gates before the session: until they are passed it gets no contexts.
    pub held: Vec<GateId>,
}

/// Outcome of input, an error or a request for context that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Taken {
    /// The event was accepted.
    Accepted(Accepted),
    /// The event is held, with questions to the agent.
    Asked(Asked),
}

fn accepted(taken: Taken) -> Result<Accepted, Denied> {
    match taken {
        Taken::Accepted(accepted) => Ok(accepted),
        Taken::Asked(asked) => Err(denied_until_answered(asked)),
    }
}

/// Outcome of a request for an action that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub enum Requested {
    /// The action may run once.
    Allowed(Allowed),
    /// The request is held, with questions to the agent.
    Asked(Asked),
}

/// Outcome of an agent's answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The action may run once.
    Allowed(Allowed),
    /// A held event other than an action is released, as far as the agent's answers decide.
    Accepted(Accepted),
    /// The answers break rules; the request is still held.
    Invalid(InvalidAnswers),
    /// The answers were accepted, and the agent has further questions to answer.
    Asked(Asked),
}

fn stopped() -> Reply {
    Reply::Denied(Denied {
        code: DenyCode::Unavailable,
        reason: "the console has stopped, so nothing is allowed".to_owned(),
        help: Some("start cra again, and ask again".to_owned()),
        gate: None,
    })
}

/// Returns a denial until the agent has answered; its reason has the questions.
fn denied_until_answered(asked: Asked) -> Denied {
    let questions = asked.gates.iter().flat_map(|gate| {
        let id = &gate.checkpoint_id;
        let questions = gate.questions.iter();
        questions
            .map(move |question| format!("`{id}` asks `{}`: {}", question.id(), question.text()))
    });
    let questions: Vec<_> = questions.collect();
    Denied {
        code: DenyCode::InvalidAnswer,
        reason: format!("the agent has to answer first: {}", questions.join("; ")),
        help: Some(format!(
            "answer at {}, by checkpoint and question",
            asked.gate
        )),
        gate: Some(asked.gate),
    }
}

/// Converts any other reply into a denial, including one that does not fit.
fn denied_by(reply: Reply) -> Denied {
    match reply {
        Reply::Denied(denied) => denied,
        Reply::Started(_)
        | Reply::Ended(_)
        | Reply::Accepted(_)
        | Reply::Allowed(_)
        | Reply::Asked(_)
        | Reply::Resolved(_)
        | Reply::Consulted(_)
        | Reply::Completed(_)
        | Reply::Noted(_)
        | Reply::Decided(_)
        | Reply::Approved(_)
        | Reply::Acted
        | Reply::Invalid(_)
        | Reply::Refused(_) => Denied {
            code: DenyCode::Unavailable,
            reason: "the console gave an answer that does not fit".to_owned(),
            help: None,
            gate: None,
        },
    }
}
