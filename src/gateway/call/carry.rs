//! Execution of calls.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::answer_with;
use super::{Answers, Call, Completed, Fault, Key, Request, Run, Start};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::engine::command::{
    ActionCompleted, Caller, Denied, DenyCode, Given, Owner, SessionStarted, StartSession,
};
use crate::engine::held::request_hash;
use crate::gateway::hall::{Hall, Joined, Named, NamedRun};
use crate::memento::Name;
use crate::runtime::{Agents, Answered, Requested, TakeTurn, Taken, TurnTaken};

/// A session that a call has started or resumed.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Begun {
    pub(in crate::gateway) session: SessionId,
    pub(in crate::gateway) key: Key,
    pub(in crate::gateway) started: SessionStarted,
}

impl Begun {
    pub(in crate::gateway) fn result(&self) -> Result<Value, Fault> {
        let mut result = told(&self.started)?;
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

impl Start {
    /// Starts the session, or resumes it with its secret.
    pub(in crate::gateway) async fn begin(
        self,
        key: Option<Key>,
        from: Option<Caller>,
        agents: &Agents,
    ) -> Result<Begun, Fault> {
        let key = match key {
            Some(key) => key,
            None => Key::random().map_err(no_secret)?,
        };
        let session = self.session.unwrap_or_else(|| Uuid::now_v7().into());
        let start = StartSession {
            session: session.clone(),
            agent: self.agent,
            agent_version: self.version,
            intent: self.intent,
            owner: Some(Owner {
                secret: key.digest(),
                api_key: self.api_key,
                from,
            }),
        };
        let started = agents.start_session(start).await?;
        Ok(Begun {
            session,
            key,
            started,
        })
    }
}

fn no_secret(error: getrandom::Error) -> Fault {
    Fault::from(Denied {
        code: DenyCode::Unavailable,
        reason: format!("no secret could be made: {error}"),
        help: None,
        gate: None,
    })
}

impl Call {
    /// Executes the call. The caller has already checked that the connection may act for the session.
    pub(in crate::gateway) async fn carry_out(self, hall: &Hall) -> Result<Value, Fault> {
        let agents = &hall.agents;
        match self {
            Self::Start(start) => start.begin(None, None, agents).await?.result(),
            Self::End(call) => {
                hall.forget_runs(&call.session);
                Ok(handed(&agents.end_session(call.into()).await?))
            }
            Self::Input(call) => {
                let session = call.session.clone();
                taken(
                    hall.waiting(session, agents.take_input(call.into()))
                        .await?,
                )
            }
            Self::Request(call) => call.carry_out(hall).await,
            Self::Completed(call) => call.carry_out(hall).await,
            Self::Context(call) => taken(agents.take_context_request(call.into()).await?),
            Self::Feedback(call) => done(agents.context_feedback(call.into()).await),
            Self::Turn(call) => Ok(turned(&agents.turn(TakeTurn::from(*call)).await?)),
            Self::HandOver(call) => done(agents.hand_over(call.into()).await),
            Self::Answer(call) => call.carry_out(agents).await,
            Self::Error(call) => taken(agents.take_error(call.into()).await?),
            Self::Recovered(call) => done(agents.error_recovered(call.into()).await),
            Self::Output(call) => done(agents.output(call.into()).await),
            Self::Resolve(call) => told(&agents.resolve(call.into()).await?),
            Self::WrapperConstructed(call) => {
                let noted = agents.report_wrapper(call.into()).await?;
                Ok(json!({ "failures": noted.failures }))
            }
            Self::WrapperVerified(call) => done(agents.report_wrapper_check(call.into()).await),
            Self::Status => {
                let problem = agents.store_problem();
                let recording = problem.is_none();
                let problem = problem.or_else(|| agents.record_fault());
                Ok(json!({ "recording": recording, "problem": problem }))
            }
        }
    }
}

impl Request {
    async fn carry_out(self, hall: &Hall) -> Result<Value, Fault> {
        let Some(call) = self.call_id() else {
            return self.ask(hall).await;
        };
        let params = Value::Object(self.params.clone());
        let what = request_hash(&self.session, &self.action, &params);
        let of = (self.session.clone(), call, what);
        match hall.join(of) {
            Joined::First(first) => {
                let outcome = self.ask(hall).await;
                first.tell(&outcome);
                outcome
            }
            Joined::Later(mut told) => {
                let outcome = told.wait_for(Option::is_some).await;
                let outcome = outcome.ok().and_then(|shared| shared.clone());
                match outcome {
                    Some(outcome) => outcome,
                    // The first caller disconnected without an answer.
                    None => self.ask(hall).await,
                }
            }
        }
    }

    async fn ask(self, hall: &Hall) -> Result<Value, Fault> {
        let session = self.session.clone();
        let (name, call) = (self.reference.clone(), self.call_id());
        let asked = hall.agents.request_action(self.into());
        match hall.waiting(session.clone(), asked).await? {
            Requested::Allowed(allowed) => {
                if let (Some(name), Some(call)) = (name, call) {
                    let named = NamedRun {
                        name: name.to_string(),
                        call,
                        execution: allowed.execution.clone(),
                    };
                    hall.name_run(session, named);
                }
                told(&allowed)
            }
            Requested::Asked(asked) => Err(Fault::answer_first(&asked)),
        }
    }
}

impl Completed {
    async fn carry_out(self, hall: &Hall) -> Result<Value, Fault> {
        let runs = match self.run {
            Run::Execution(execution) => vec![execution],
            Run::Reference(name) => match hall.take_runs(&self.session, name.as_str()) {
                Named::Runs(runs) => runs,
                Named::Done => Vec::new(),
                Named::Unknown => return Err(no_such_run(&name)),
            },
        };
        // If one run cannot be completed, the others still are.
        let mut given = Given::default();
        let mut outcome: Result<(), Fault> = Ok(());
        for execution in runs {
            let completed = ActionCompleted {
                delivery: self.given,
                session: self.session.clone(),
                execution,
                result: self.result.clone(),
            };
            match hall.agents.complete_action(completed).await {
                Ok(more) => given.extend(more),
                Err(denied) => outcome = outcome.and(Err(Fault::from(denied))),
            }
        }
        outcome.map(|()| handed(&given))
    }
}

fn no_such_run(name: &Name) -> Fault {
    Fault::from(Denied {
        code: DenyCode::BadRequest,
        reason: format!(
            "no run is known by the reference `{}`",
            one_line(name.as_str())
        ),
        help: Some("name it by its `execution`; references do not outlive the console".to_owned()),
        gate: None,
    })
}

impl Answers {
    async fn carry_out(self, agents: &Agents) -> Result<Value, Fault> {
        match agents.answer(self.into()).await? {
            Answered::Allowed(allowed) => told(&allowed),
            Answered::Accepted(accepted) => told(&accepted),
            Answered::Invalid(invalid) => Err(Fault::invalid(&invalid)),
            Answered::Asked(asked) => Err(Fault::answer_first(&asked)),
        }
    }
}

/// Builds a result with the injected contexts, or an empty one.
fn handed(given: &Given) -> Value {
    if given.is_empty() {
        return json!({});
    }
    json!({ "given": given })
}

/// Builds an empty result.
fn done(result: Result<(), Denied>) -> Result<Value, Fault> {
    result.map(|()| json!({})).map_err(Fault::from)
}

fn taken(taken: Taken) -> Result<Value, Fault> {
    match taken {
        Taken::Accepted(accepted) => told(&accepted),
        Taken::Asked(asked) => Err(Fault::answer_first(&asked)),
    }
}

fn told(result: &impl Serialize) -> Result<Value, Fault> {
    serde_json::to_value(result).map_err(|error| {
        Fault::from(Denied {
            code: DenyCode::Unavailable,
            reason: format!("the answer cannot be written: {error}"),
            help: None,
            gate: None,
        })
    })
}

fn turned(taken: &TurnTaken) -> Value {
    let outcome = &taken.outcome;
    let mut turned = json!({
        "decision": outcome.decided.decision,
        "rule": outcome.decided.rule.number(),
        "frozen": outcome.freeze.holds(),
        "summary": outcome.summary.as_str(),
        "source": outcome.source.as_str(),
        "version": outcome.version,
        "etag": outcome.etag,
        "closed": outcome.closed,
        "notes": outcome.notes,
        "memento": outcome.memento,
        "given": taken.given,
    });
    if let (Some(fields), false) = (turned.as_object_mut(), taken.held.is_empty()) {
        fields.insert("held".to_owned(), json!(taken.held));
    }
    turned
}
