//! Calls of agents, common to all servers.
//!
//! No call decides anything. Only an action that may run is answered with a result. Every other outcome of
//! a request is an error, so that an agent that ignores details does not run the action.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

mod answer;
mod carry;
mod key;
mod params;
mod wrapper;

pub use answer::Fault;
pub use key::Key;
pub use params::*;
pub use wrapper::{WrapperConstructed, WrapperVerified};

/// A call of an agent.
#[derive(Clone, Debug)]
pub enum Call {
    /// Starts a session, or resumes it.
    Start(Start),
    /// Ends a session.
    End(End),
    /// Reports input that the agent received.
    Input(Heard),
    /// Asks to run an action. The answer comes when the request is decided.
    Request(Request),
    /// Reports the result of an action.
    Completed(Completed),
    /// Asks for context, or for a checkpoint by its name.
    Context(Wanted),
    /// Reports whether a context helped.
    Feedback(Helped),
    /// Records a turn of a conversation.
    Turn(Box<Taken>),
    /// Transfers a thread to another session.
    HandOver(HandsOver),
    /// Answers checkpoint questions that an Atlas directs to the agent.
    Answer(Answers),
    /// Reports an error.
    Error(Erred),
    /// Reports that an error was handled.
    Recovered(Recovered),
    /// Reports output of the agent.
    Output(Produced),
    /// Asks which actions the agent may run now.
    Resolve(Resolve),
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
type Reader = (&'static str, fn(Value) -> Result<Call, Fault>);

/// All calls with parameters.
const CALLS: [Reader; 16] = [
    ("session.start", |params| read(params).map(Call::Start)),
    ("session.end", |params| read(params).map(Call::End)),
    ("input", |params| read(params).map(Call::Input)),
    ("action.request", |params| read(params).map(Call::Request)),
    ("action.completed", |params| {
        read(params).map(Call::Completed)
    }),
    ("context.request", |params| read(params).map(Call::Context)),
    ("context.feedback", |params| {
        read(params).map(Call::Feedback)
    }),
    ("turn", |params| read(params).map(Box::new).map(Call::Turn)),
    ("thread.hand_over", |params| {
        read(params).map(Call::HandOver)
    }),
    ("checkpoint.answer", |params| read(params).map(Call::Answer)),
    ("error", |params| read(params).map(Call::Error)),
    ("error.recovered", |params| {
        read(params).map(Call::Recovered)
    }),
    ("output", |params| read(params).map(Call::Output)),
    ("resolve", |params| read(params).map(Call::Resolve)),
    ("wrapper.constructed", |params| {
        read(params).map(Call::WrapperConstructed)
    }),
    ("wrapper.verified", |params| {
        read(params).map(Call::WrapperVerified)
    }),
];

/// A call together with the session secret that came with it, if any.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// The call.
    pub call: Call,
    /// Secret of the session.
    pub key: Option<Key>,
}

impl Spoken {
    /// Reads a call by its name.
    ///
    /// # Errors
    /// Fails when the call is unknown, or its parameters do not fit.
    pub fn read(method: &str, params: Value) -> Result<Self, Fault> {
        if method == STATUS {
            let call = Call::Status;
            return Ok(Self { call, key: None });
        }
        let (_, read) = CALLS
            .iter()
            .find(|(name, _)| *name == method)
            .ok_or_else(|| Fault::no_such_call(method))?;
        let Value::Object(mut fields) = params else {
            return Err(Fault::params("", "the parameters are an object"));
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

fn take_key(fields: &mut Map<String, Value>) -> Result<Option<Key>, Fault> {
    let key = fields.remove("key");
    key.map(|key| Key::try_from(key).map_err(|why| Fault::params("key", why)))
        .transpose()
}

/// Reads parameters. An error names the path of the wrong value.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "" } else { &path };
        Fault::params(path, error.inner())
    })
}

impl Call {
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
