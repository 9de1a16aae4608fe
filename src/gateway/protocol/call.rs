//! Calls of agents, common to all servers.
//!
//! No call decides anything. Only an action that may run is answered with a result. Every other outcome of
//! a request is an error, so that an agent that ignores details does not run the action.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

mod call_error;
mod call_fault;
mod params;
mod session_key;
mod wrapper;

pub use call_error::CallError;
pub use call_fault::CallFault;
pub(in crate::gateway) use call_fault::answer_with;
pub use params::*;
pub use session_key::SessionKey;
pub use wrapper::{WrapperConstructed, WrapperVerified};

/// A call of an agent.
#[derive(Clone, Debug)]
pub enum AgentCall {
    /// Starts a session, or resumes it.
    Start(StartParams),
    /// Ends a session.
    End(EndParams),
    /// Reports input that the agent received.
    Input(InputParams),
    /// Asks to run an action. The answer comes when the request is decided.
    Request(RequestParams),
    /// Reports the result of an action.
    Completed(CompletedParams),
    /// Asks for context, or for a checkpoint by its name.
    Context(ContextParams),
    /// Reports whether a context helped.
    Feedback(FeedbackParams),
    /// Records a turn of a conversation.
    Turn(Box<TurnParams>),
    /// Transfers a thread to another session.
    HandOver(HandOverParams),
    /// Answers checkpoint questions that an Atlas directs to the agent.
    Answer(AnswerParams),
    /// Reports an error.
    Error(ErrorParams),
    /// Reports that an error was handled.
    Recovered(RecoveryParams),
    /// Reports output of the agent.
    Output(OutputParams),
    /// Asks which actions the agent may run now.
    Resolve(ResolveParams),
    /// Reports the parts of the agent's wrapper.
    WrapperConstructed(WrapperConstructed),
    /// Reports the result of a check of the agent's wrapper.
    WrapperVerified(WrapperVerified),
    /// Asks whether the console records. `cra doctor` sends it; it belongs to no session.
    Status,
}

/// Name of the call that asks whether the console records.
pub const STATUS: &str = "status";

/// Name of a call, and the function that reads its parameters.
type CallReader = (&'static str, fn(Value) -> Result<AgentCall, CallFault>);

/// All calls with parameters.
const CALLS: [CallReader; 16] = [
    ("session.start", |params| {
        read_params(params).map(AgentCall::Start)
    }),
    ("session.end", |params| {
        read_params(params).map(AgentCall::End)
    }),
    ("input", |params| read_params(params).map(AgentCall::Input)),
    ("action.request", |params| {
        read_params(params).map(AgentCall::Request)
    }),
    ("action.completed", |params| {
        read_params(params).map(AgentCall::Completed)
    }),
    ("context.request", |params| {
        read_params(params).map(AgentCall::Context)
    }),
    ("context.feedback", |params| {
        read_params(params).map(AgentCall::Feedback)
    }),
    ("turn", |params| {
        read_params(params).map(Box::new).map(AgentCall::Turn)
    }),
    ("thread.hand_over", |params| {
        read_params(params).map(AgentCall::HandOver)
    }),
    ("checkpoint.answer", |params| {
        read_params(params).map(AgentCall::Answer)
    }),
    ("error", |params| read_params(params).map(AgentCall::Error)),
    ("error.recovered", |params| {
        read_params(params).map(AgentCall::Recovered)
    }),
    ("output", |params| {
        read_params(params).map(AgentCall::Output)
    }),
    ("resolve", |params| {
        read_params(params).map(AgentCall::Resolve)
    }),
    ("wrapper.constructed", |params| {
        read_params(params).map(AgentCall::WrapperConstructed)
    }),
    ("wrapper.verified", |params| {
        read_params(params).map(AgentCall::WrapperVerified)
    }),
];

/// A call together with the session secret that came with it, if any.
#[derive(Clone, Debug)]
pub struct AuthenticatedCall {
    /// The call.
    pub call: AgentCall,
    /// Secret of the session.
    pub key: Option<SessionKey>,
}

impl AuthenticatedCall {
    /// Reads a call by its name.
    ///
    /// # Errors
    /// Fails when the call is unknown, or its parameters do not fit.
    pub fn read_params(method: &str, params: Value) -> Result<Self, CallFault> {
        if method == STATUS {
            let call = AgentCall::Status;
            return Ok(Self { call, key: None });
        }
        let (_, read) = CALLS
            .iter()
            .find(|(name, _)| *name == method)
            .ok_or_else(|| CallFault::unknown_call(method))?;
        let Value::Object(mut fields) = params else {
            return Err(CallFault::wrong_params(
                "",
                "the parameters must be an object",
            ));
        };
        let key = take_key(&mut fields)?;
        let call = read(Value::Object(fields))?;
        Ok(Self { call, key })
    }
}

/// Returns the names of all calls.
pub fn names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

fn take_key(fields: &mut Map<String, Value>) -> Result<Option<SessionKey>, CallFault> {
    let key = fields.remove("key");
    key.map(|key| SessionKey::try_from(key).map_err(|why| CallFault::wrong_params("key", why)))
        .transpose()
}

/// Reads parameters. An error names the path of the wrong value.
fn read_params<T: DeserializeOwned>(params: Value) -> Result<T, CallFault> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "" } else { &path };
        CallFault::wrong_params(path, error.inner())
    })
}

impl AgentCall {
    /// Returns true for calls that only report something. The agent does not wait for their answer.
    #[must_use]
    pub fn is_report(&self) -> bool {
        matches!(
            self,
            Self::Feedback(_)
                | Self::Turn(_)
                | Self::HandOver(_)
                | Self::Error(_)
                | Self::Recovered(_)
                | Self::Output(_)
                | Self::WrapperConstructed(_)
                | Self::WrapperVerified(_)
        )
    }

    /// Returns the session of the call; `None` if the call names none.
    #[must_use]
    pub fn session(&self) -> Option<&crate::base::id::SessionId> {
        match self {
            Self::Start(call) => call.session.as_ref(),
            Self::End(call) => Some(&call.session),
            Self::Input(call) => Some(&call.session),
            Self::Request(call) => Some(&call.session),
            Self::Completed(call) => Some(&call.session),
            Self::Context(call) => Some(&call.session),
            Self::Feedback(call) => Some(&call.session),
            Self::Turn(call) => Some(&call.session),
            Self::HandOver(call) => Some(&call.session),
            Self::Answer(call) => Some(&call.session),
            Self::Error(call) => Some(&call.session),
            Self::Recovered(call) => Some(&call.session),
            Self::Output(call) => Some(&call.session),
            Self::Resolve(call) => Some(&call.session),
            Self::WrapperConstructed(call) => Some(&call.session),
            Self::WrapperVerified(call) => Some(&call.session),
            Self::Status => None,
        }
    }
}
