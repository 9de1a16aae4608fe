//! Execution of calls.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::gateway_state::{GatewayState, JoinedRequest, NamedRun, RunLookup};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::engine::command::{
    ActionCompletion, Caller, DenialReply, DenyCode, Injected, SessionOwner, StartSession,
    StartedSession,
};
use crate::engine::held::request_hash;
use crate::gateway::protocol::call::{
    AgentCall, AnswerParams, CallFault, CompletedParams, RequestParams, RunName, SessionKey,
    StartParams, answer_with,
};
use crate::memento::ExternalName;
use crate::runtime::{AgentHandle, AnswerReply, EventReply, RequestReply, SessionTurn, TurnReply};

/// A session that a call has started or resumed.
#[derive(Clone, Debug)]
pub(super) struct OpenedSession {
    pub(super) session: SessionId,
    pub(super) key: SessionKey,
    pub(super) started: StartedSession,
}

impl OpenedSession {
    pub(super) fn result(&self) -> Result<Value, CallFault> {
        let mut result = serialize_result(&self.started)?;
        if let Some(fields) = result.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), self.key.reveal().into());
            if !self.started.asked.is_empty() {
                fields.insert("answer_with".to_owned(), answer_with());
            }
        }
        Ok(result)
    }
}

impl StartParams {
    /// Starts the session, or resumes it with its secret.
    pub(super) async fn start_session(
        self,
        key: Option<SessionKey>,
        from: Option<Caller>,
        agents: &AgentHandle,
    ) -> Result<OpenedSession, CallFault> {
        let key = match key {
            Some(key) => key,
            None => SessionKey::random().map_err(secret_fault)?,
        };
        let session = self.session.unwrap_or_else(|| Uuid::now_v7().into());
        let start = StartSession {
            delivery: self.delivery,
            session: session.clone(),
            agent: self.agent,
            agent_version: self.version,
            intent: self.intent,
            owner: Some(SessionOwner {
                secret: key.digest(),
                api_key: self.api_key,
                from,
            }),
        };
        let started = agents.start_session(start).await?;
        Ok(OpenedSession {
            session,
            key,
            started,
        })
    }
}

fn secret_fault(error: getrandom::Error) -> CallFault {
    CallFault::from(DenialReply {
        code: DenyCode::Unavailable,
        reason: format!("cra could not create a secret: {error}"),
        help: None,
        gate: None,
    })
}

impl AgentCall {
    /// Executes the call. The caller has already checked that the connection may act for the session.
    pub(super) async fn execute(self, gateway: &GatewayState) -> Result<Value, CallFault> {
        let agents = &gateway.agents;
        match self {
            Self::Start(start) => start.start_session(None, None, agents).await?.result(),
            Self::End(call) => {
                gateway.forget_runs(&call.session);
                Ok(injected_result(&agents.end_session(call.into()).await?))
            }
            Self::Input(call) => {
                let session = call.session.clone();
                event_result(
                    gateway
                        .wait_for_answer(session, agents.send_input(call.into()))
                        .await?,
                )
            }
            Self::Request(call) => call.execute(gateway).await,
            Self::Completed(call) => call.execute(gateway).await,
            Self::Context(call) => event_result(agents.send_context_request(call.into()).await?),
            Self::Feedback(call) => empty_result(agents.context_feedback(call.into()).await),
            Self::Turn(call) => Ok(turn_result(&agents.turn(SessionTurn::from(*call)).await?)),
            Self::HandOver(call) => empty_result(agents.hand_over(call.into()).await),
            Self::Answer(call) => call.execute(agents).await,
            Self::Error(call) => event_result(agents.send_error(call.into()).await?),
            Self::Recovered(call) => empty_result(agents.error_recovered(call.into()).await),
            Self::Output(call) => empty_result(agents.output(call.into()).await),
            Self::Resolve(call) => serialize_result(&agents.resolve(call.into()).await?),
            Self::WrapperConstructed(call) => {
                let noted = agents.report_wrapper(call.into()).await?;
                Ok(json!({ "failures": noted.failures }))
            }
            Self::WrapperVerified(call) => {
                empty_result(agents.report_wrapper_check(call.into()).await)
            }
            Self::Status => {
                let problem = agents.store_problem();
                let recording = problem.is_none();
                let problem = problem.or_else(|| agents.record_fault());
                Ok(json!({ "recording": recording, "problem": problem }))
            }
        }
    }
}

impl RequestParams {
    async fn execute(self, gateway: &GatewayState) -> Result<Value, CallFault> {
        let Some(call) = self.call_id() else {
            return self.request_action(gateway).await;
        };
        let params = Value::Object(self.params.clone());
        let what = request_hash(&self.session, &self.action, &params);
        let of = (self.session.clone(), call, what);
        match gateway.join_request(of) {
            JoinedRequest::First(first) => {
                let outcome = self.request_action(gateway).await;
                first.publish(&outcome);
                outcome
            }
            JoinedRequest::Later(mut outcomes) => {
                let outcome = outcomes.wait_for(Option::is_some).await;
                let outcome = outcome.ok().and_then(|shared| shared.clone());
                match outcome {
                    Some(outcome) => outcome,
                    // The first caller disconnected without an answer.
                    None => self.request_action(gateway).await,
                }
            }
        }
    }

    async fn request_action(self, gateway: &GatewayState) -> Result<Value, CallFault> {
        let session = self.session.clone();
        let (name, call) = (self.reference.clone(), self.call_id());
        let asked = gateway.agents.request_action(self.into());
        match gateway.wait_for_answer(session.clone(), asked).await? {
            RequestReply::Allowed(allowed) => {
                if let (Some(name), Some(call)) = (name, call) {
                    let named = NamedRun {
                        name: name.to_string(),
                        call,
                        execution: allowed.execution.clone(),
                    };
                    gateway.name_run(session, named);
                }
                serialize_result(&allowed)
            }
            RequestReply::Asked(asked) => Err(CallFault::answer_first(&asked)),
        }
    }
}

impl CompletedParams {
    async fn execute(self, gateway: &GatewayState) -> Result<Value, CallFault> {
        let runs = match self.run {
            RunName::Execution(execution) => vec![execution],
            RunName::Reference(name) => match gateway.take_runs(&self.session, name.as_str()) {
                RunLookup::Found(runs) => runs,
                RunLookup::Reported => Vec::new(),
                RunLookup::Unknown => return Err(unknown_run(&name)),
            },
        };
        // If one run cannot be completed, the others still are.
        let mut injected = Injected::default();
        let mut outcome: Result<(), CallFault> = Ok(());
        for execution in runs {
            let completed = ActionCompletion {
                delivery: self.delivery,
                session: self.session.clone(),
                execution,
                result: self.result.clone(),
            };
            match gateway.agents.complete_action(completed).await {
                Ok(more) => injected.extend(more),
                Err(denied) => outcome = outcome.and(Err(CallFault::from(denied))),
            }
        }
        outcome.map(|()| injected_result(&injected))
    }
}

fn unknown_run(name: &ExternalName) -> CallFault {
    CallFault::from(DenialReply {
        code: DenyCode::BadRequest,
        reason: format!("no run has the reference `{}`", one_line(name.as_str())),
        help: Some("use its `execution`; references are lost when cra restarts".to_owned()),
        gate: None,
    })
}

impl AnswerParams {
    async fn execute(self, agents: &AgentHandle) -> Result<Value, CallFault> {
        match agents.answer(self.into()).await? {
            AnswerReply::Allowed(allowed) => serialize_result(&allowed),
            AnswerReply::Accepted(accepted) => serialize_result(&accepted),
            AnswerReply::Invalid(invalid) => Err(CallFault::invalid_answers(&invalid)),
            AnswerReply::Asked(asked) => Err(CallFault::answer_first(&asked)),
        }
    }
}

/// Builds a result with the injected contexts, or an empty one.
fn injected_result(injected: &Injected) -> Value {
    if injected.is_empty() {
        return json!({});
    }
    json!({ "given": injected })
}

/// Builds an empty result.
fn empty_result(result: Result<(), DenialReply>) -> Result<Value, CallFault> {
    result.map(|()| json!({})).map_err(CallFault::from)
}

fn event_result(taken: EventReply) -> Result<Value, CallFault> {
    match taken {
        EventReply::Accepted(accepted) => serialize_result(&accepted),
        EventReply::Asked(asked) => Err(CallFault::answer_first(&asked)),
    }
}

fn serialize_result(result: &impl Serialize) -> Result<Value, CallFault> {
    serde_json::to_value(result).map_err(|error| {
        CallFault::from(DenialReply {
            code: DenyCode::Unavailable,
            reason: format!("the answer cannot be serialized: {error}"),
            help: None,
            gate: None,
        })
    })
}

fn turn_result(taken: &TurnReply) -> Value {
    let outcome = &taken.outcome;
    let mut turned = json!({
        "decision": outcome.decided.decision,
        "rule": outcome.decided.rule.number(),
        "frozen": outcome.freeze.is_frozen(),
        "summary": outcome.summary.as_str(),
        "source": outcome.source.as_str(),
        "version": outcome.version,
        "etag": outcome.etag,
        "closed": outcome.closed,
        "notes": outcome.notes,
        "memento": outcome.memento,
        "given": taken.injected,
    });
    if let (Some(fields), false) = (turned.as_object_mut(), taken.held.is_empty()) {
        fields.insert("held".to_owned(), json!(taken.held));
    }
    turned
}
