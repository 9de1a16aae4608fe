//! What agents say, at every door alike.
//!
//! There is no call that decides. An action that may run is the only thing that is answered with a result;
//! whatever else comes of asking for one is an error, so that an agent that looks no closer does not run it.

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

/// One call.
#[derive(Clone, Debug)]
pub enum Call {
    /// Begins a session, or takes it up again.
    Start(Start),
    /// Ends a session.
    End(End),
    /// Says what input the agent was given.
    Input(Heard),
    /// Asks to run an action; answered when that is decided.
    Request(Request),
    /// Says what came of an action.
    Completed(Completed),
    /// Asks for context, or for a checkpoint by its name.
    Context(Wanted),
    /// Says whether a context helped.
    Feedback(Helped),
    /// Takes a turn of a conversation.
    Turn(Box<Taken>),
    /// Hands a thread over to another session.
    HandOver(HandsOver),
    /// Answers what is the agent's to answer.
    Answer(Answers),
    /// Reports an error.
    Error(Erred),
    /// Says that an error was dealt with.
    Recovered(Recovered),
    /// Says what the agent produced.
    Output(Produced),
    /// Asks what the agent may do now.
    Resolve(Resolve),
    /// Tells what the agent's wrapper is made of.
    WrapperConstructed(WrapperConstructed),
    /// Tells the result of a check of the agent's wrapper.
    WrapperVerified(WrapperVerified),
    /// Asks whether the console records. `cra doctor` does; it is about no session.
    Status,
}

/// The name of the call that asks whether the console records.
pub const STATUS: &str = "status";

/// The name of a call, and how its parameters are read.
type Reader = (&'static str, fn(Value) -> Result<Call, Fault>);

/// Every call.
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

/// A call, with the secret of the session that it is about, where one is shown.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// The call.
    pub call: Call,
    /// The secret.
    pub key: Option<Key>,
}

impl Spoken {
    /// Reads a call by its name.
    ///
    /// # Errors
    /// When there is no such call, or its parameters are not its own.
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

/// The names of all calls.
pub fn names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

fn take_key(fields: &mut Map<String, Value>) -> Result<Option<Key>, Fault> {
    let key = fields.remove("key");
    key.map(|key| Key::try_from(key).map_err(|why| Fault::params("key", why)))
        .transpose()
}

/// Reads parameters, and says where they are wrong.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "" } else { &path };
        Fault::params(path, error.inner())
    })
}

impl Call {
    /// True for calls that only tell something: nothing waits for their answer to go on.
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

    /// The session it is about; `None` where it names none yet.
    #[must_use]
    pub fn session(&self) -> Option<&crate::base::id::SessionId> {
        match self {
            Self::Start(it) => it.session.as_ref(),
            Self::End(it) => Some(&it.session),
            Self::Input(it) => Some(&it.session),
            Self::Request(it) => Some(&it.session),
            Self::Completed(it) => Some(&it.session),
            Self::Context(it) => Some(&it.session),
            Self::Feedback(it) => Some(&it.session),
            Self::Turn(it) => Some(&it.session),
            Self::HandOver(call) => Some(&call.session),
            Self::Answer(it) => Some(&it.session),
            Self::Error(it) => Some(&it.session),
            Self::Recovered(it) => Some(&it.session),
            Self::Output(it) => Some(&it.session),
            Self::Resolve(it) => Some(&it.session),
            Self::WrapperConstructed(call) => Some(&call.session),
            Self::WrapperVerified(call) => Some(&call.session),
            Self::Status => None,
        }
    }
}
