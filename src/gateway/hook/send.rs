//! Sending an agent's answers to the console, for the command that its denial named.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Host;
use super::answering::{AnswerCommand, AnswerLine};
use crate::base::digest::Digest;
use crate::gateway::client::{CallError, Client};
use crate::gateway::proof::AnswerVerifier;
use crate::gateway::questions;
use crate::gateway::words::{Remedy, denial};

/// Time for the console to take answers: custom validators may look at them.
const TIME: Duration = Duration::from_mins(1);

/// Caller that sends answers.
#[derive(Clone, Debug)]
pub struct Answerer {
    /// Socket of the console.
    pub socket: PathBuf,
    /// Key that the console's answers are verified with.
    pub key: Option<AnswerVerifier>,
    /// Secret that tokens and keys of sessions are made from.
    pub secret: Digest,
    /// The command itself, for questions that are left.
    pub command: AnswerCommand,
}

/// Outcome of sending answers, in words for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The console took them.
    Taken(String),
    /// It did not, or more has to be answered.
    Refused(String),
}

/// Sends answers to the console.
#[must_use]
pub fn send_answers(answerer: &Answerer, line: &AnswerLine) -> Answered {
    let Some(key) = line.key(answerer.secret) else {
        let (session, gate) = (&line.session, &line.gate);
        return Answered::Refused(format!(
            "cra: the token is not the one for `{session}` at `{gate}`: run the command as the denial has it"
        ));
    };
    let params = json!({
        "session": line.session,
        "key": key,
        "gate": line.gate,
        "answers": line.answers,
        "release": "repeat",
    });
    match send(answerer, &params) {
        Ok(result) => Answered::Taken(questions::taken(line.gate.as_str(), &result)),
        Err(error) => Answered::Refused(refusal(answerer, line, &error)),
    }
}

fn send(answerer: &Answerer, params: &Value) -> Result<Value, CallError> {
    // A store without a key has never had a console.
    let unreachable = || CallError::Unreachable(answerer.socket.clone());
    let key = answerer.key.clone().ok_or_else(unreachable)?;
    let mut client = Client::connect(&answerer.socket, key, Instant::now() + TIME)?;
    client.call("checkpoint.answer", params)
}

/// Step that puts the agent's connection right.
fn remedy(line: &AnswerLine) -> Remedy {
    let is_of = |host: &&Host| line.session.as_str().starts_with(host.as_str());
    let host = Host::ALL.iter().find(is_of);
    host.map_or(Remedy::Key, |host| Remedy::Connect(host.as_str()))
}

fn refusal(answerer: &Answerer, line: &AnswerLine, error: &CallError) -> String {
    let Some(asked) = questions::asked(error) else {
        return denial(error, remedy(line));
    };
    let command = answerer.command.line(&line.session, &line.token, &asked);
    format!(
        "cra: your answers were taken, and there is more to answer at {}.\n{}\n{command}",
        asked.gate,
        questions::describe(&asked)
    )
}
