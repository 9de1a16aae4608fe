//! The agents' way in.

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

/// The agents' way in: asks, and never decides.
///
/// Dropping a call before it has answered is leaving: a decision that comes later becomes a permit
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

    /// The reason why nothing is recorded, if there is one.
    #[must_use]
    pub fn store_problem(&self) -> Option<String> {
        self.snapshots.borrow().store.problem().map(str::to_owned)
    }

    /// The fault of the record that agents are denied for, if there is one.
    #[must_use]
    pub fn record_fault(&self) -> Option<String> {
        let fault = self.snapshots.borrow().unknown_fault();
        fault.map(|fault| fault.what)
    }

    /// The denial while the store does not answer: a call would wait for as long as that takes.
    fn stalled(&self) -> Option<Denied> {
        let picture = self.snapshots.borrow();
        picture.store.stall().map(stalled)
    }

    /// Begins a session, or takes it up again.
    ///
    /// # Errors
    /// When it is denied.
    pub async fn start_session(&self, start: StartSession) -> Result<SessionStarted, Denied> {
        match self.ask(|ask| Command::StartSession(ask, start)).await {
            Reply::Started(started) => Ok(started),
            other => Err(denied_by(other)),
        }
    }

    /// Asks whether a session is theirs who know the secret of that digest. Who does not is on record in the
    /// session.
    ///
    /// # Errors
    /// When it is not, or there is none.
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

    /// Ends a session. Gives what the agent is handed at last.
    ///
    /// # Errors
    /// When there is no such session.
    pub async fn end_session(&self, end: EndSession) -> Result<Given, Denied> {
        match self.ask(|ask| Command::EndSession(ask, end)).await {
            Reply::Ended(given) => Ok(given),
            other => Err(denied_by(other)),
        }
    }

    /// Asks to run an action. Answers when it is decided, which may take as long as a person does.
    ///
    /// # Errors
    /// When it is denied. Whatever goes wrong, it is denied.
    pub async fn request_action(&self, request: ActionRequest) -> Result<Requested, Denied> {
        match self.ask(|ask| Command::RequestAction(ask, request)).await {
            Reply::Allowed(allowed) => Ok(Requested::Allowed(allowed)),
            Reply::Asked(asked) => Ok(Requested::Asked(asked)),
            other => Err(denied_by(other)),
        }
    }

    /// Answers what the agent itself was asked. When an operator has to answer as well, this waits
    /// for that.
    ///
    /// # Errors
    /// When it is denied.
    pub async fn answer(&self, answer: Answer) -> Result<Answered, Denied> {
        match self.ask(|ask| Command::Answer(ask, answer)).await {
            Reply::Allowed(allowed) => Ok(Answered::Allowed(allowed)),
            Reply::Accepted(accepted) => Ok(Answered::Accepted(accepted)),
            Reply::Invalid(invalid) => Ok(Answered::Invalid(invalid)),
            Reply::Asked(asked) => Ok(Answered::Asked(asked)),
            other => Err(denied_by(other)),
        }
    }

    /// Asks what the agent may do now.
    ///
    /// # Errors
    /// When there is no such session, or its input is refused.
    pub async fn resolve(&self, resolve: Resolve) -> Result<Resolution, Denied> {
        match self.ask(|ask| Command::Resolve(ask, resolve)).await {
            Reply::Resolved(resolution) => Ok(*resolution),
            other => Err(denied_by(other)),
        }
    }

    /// Reports what came of an action that was allowed. Answers with what checkpoints after the action hand over.
    ///
    /// # Errors
    /// When no such run was allowed.
    pub async fn complete_action(&self, completed: ActionCompleted) -> Result<Given, Denied> {
        match self
            .ask(|ask| Command::CompleteAction(ask, completed))
            .await
        {
            Reply::Completed(given) => Ok(given),
            other => Err(denied_by(other)),
        }
    }

    /// Says what input the agent was given. Answers when it may be worked on.
    ///
    /// # Errors
    /// When it is denied.
    pub async fn input(&self, input: Input) -> Result<Accepted, Denied> {
        accepted(self.take_input(input).await?)
    }

    /// The same, with what the agent is asked itself as an answer of its own.
    pub(crate) async fn take_input(&self, input: Input) -> Result<Taken, Denied> {
        self.moment(|ask| Command::Input(ask, input)).await
    }

    /// Says how the agent is wrapped. Answers when that, and whether it holds, is on disk: with
    /// everything that is wrong with it. A wrapper with failures must not go on.
    ///
    /// # Errors
    /// When there is no such session, or the report cannot be taken.
    pub async fn report_wrapper(&self, wrapper: Wrapper) -> Result<Noted, Denied> {
        self.report(Report::Wrapper(wrapper)).await
    }

    /// Reports the result of a check of the agent's wrapper. Answers when that is on disk.
    ///
    /// # Errors
    /// When there is no such session, or the report cannot be taken.
    pub async fn report_wrapper_check(&self, check: WrapperCheck) -> Result<(), Denied> {
        self.report(Report::WrapperCheck(check)).await.map(drop)
    }

    /// Says whether a context helped.
    ///
    /// # Errors
    /// When there is no such session, or it was handed no such context.
    pub async fn context_feedback(&self, feedback: Feedback) -> Result<(), Denied> {
        self.report(Report::Feedback(feedback)).await.map(drop)
    }

    /// Says what the agent produced. Only its hash and its size are kept.
    ///
    /// # Errors
    /// When there is no such session.
    pub async fn output(&self, output: Output) -> Result<(), Denied> {
        self.report(Report::Output(output)).await.map(drop)
    }

    /// Says that the agent recovered from an error, or tried to. [`Agents::report_error`] told the
    /// error's event.
    ///
    /// # Errors
    /// When there is no such session, or no such error is open.
    pub async fn error_recovered(&self, recovery: Recovery) -> Result<(), Denied> {
        self.report(Report::Recovery(recovery)).await.map(drop)
    }

    /// Takes a turn of a conversation. Answers when its record and the memento behind it are durable.
    ///
    /// # Errors
    /// When there is no such session, the thread belongs to another one, or the memento has changed since it was read.
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

    /// Hands a thread over to another session, which owns it from its first turn on. Answers when the record of it is
    /// durable.
    ///
    /// # Errors
    /// When the thread is not the session's, or there is no session to hand it over to.
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

    /// Reports an error. Answers when work may go on, with the event that recorded it.
    ///
    /// # Errors
    /// When it is denied.
    pub async fn report_error(&self, report: ErrorReport) -> Result<Accepted, Denied> {
        accepted(self.take_error(report).await?)
    }

    /// The same, with what the agent is asked itself as an answer of its own.
    pub(crate) async fn take_error(&self, report: ErrorReport) -> Result<Taken, Denied> {
        self.moment(|ask| Command::ReportError(ask, report)).await
    }

    /// Asks for context, or for a checkpoint by its name.
    ///
    /// # Errors
    /// When it is denied.
    pub async fn request_context(&self, request: ContextRequest) -> Result<Accepted, Denied> {
        accepted(self.take_context_request(request).await?)
    }

    /// The same, with what the agent is asked itself as an answer of its own.
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
    /// Decision about the turn, and the memento behind it.
    pub outcome: Outcome,
    /// Contexts that its message called for, and what else the session was owed.
    pub given: Given,
    /// Gates that stand before the session: until they are passed it is handed nothing.
    pub held: Vec<GateId>,
}

/// Input, an error or a request for context that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Taken {
    /// It was taken in.
    Accepted(Accepted),
    /// It is held, and some of what is asked is the agent's to answer.
    Asked(Asked),
}

fn accepted(taken: Taken) -> Result<Accepted, Denied> {
    match taken {
        Taken::Accepted(accepted) => Ok(accepted),
        Taken::Asked(asked) => Err(denied_until_answered(asked)),
    }
}

/// What came of asking for an action that was not denied.
#[derive(Clone, Debug, PartialEq)]
pub enum Requested {
    /// It may run, once.
    Allowed(Allowed),
    /// It is held, and some of what is asked is the agent's to answer.
    Asked(Asked),
}

/// What came of an agent's own answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The action may run, once.
    Allowed(Allowed),
    /// What was held beside actions is no longer, as far as the agent is concerned.
    Accepted(Accepted),
    /// The answers break rules; the request is still held.
    Invalid(InvalidAnswers),
    /// They were taken, and there is more that is the agent's to answer.
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

/// Nothing goes on until the agent has answered; what it is asked is in the reason.
fn denied_until_answered(asked: Asked) -> Denied {
    let questions = asked.gates.iter().flat_map(|gate| {
        let id = &gate.checkpoint_id;
        let questions = gate.questions.iter();
        questions.map(move |it| format!("`{id}` asks `{}`: {}", it.id(), it.text()))
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

/// A reply that is not the hoped-for one, as a denial: also one that makes no sense.
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
