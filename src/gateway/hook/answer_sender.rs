//! Delivery of an agent's answers to the console, for the command that a denial showed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer_command::{AnswerCommand, AnswerLine};
use crate::base::digest::Digest;
use crate::gateway::agents::CodingAgent;
use crate::gateway::protocol::call::CallError;
use crate::gateway::protocol::proof::AnswerVerifier;
use crate::gateway::protocol::questions;
use crate::gateway::protocol::wording::{KeyRemedy, denial_text};
use crate::gateway::transport::client::BlockingClient;

/// Time for the console to accept answers: custom validators may check them.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Caller that sends answers.
#[derive(Clone, Debug)]
pub struct AnswerSender {
    /// Socket of the console.
    pub socket: PathBuf,
    /// Key that the console's answers are verified with.
    pub key: Option<AnswerVerifier>,
    /// Secret from which tokens and session keys are derived.
    pub secret: Digest,
    /// The command, to be shown again for open questions.
    pub command: AnswerCommand,
}

/// Outcome of sending answers, as a text for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The console accepted the answers.
    Accepted(String),
    /// The console refused the answers, or has further questions.
    Refused(String),
}

/// Sends answers to the console.
#[must_use]
pub fn send_answers(answerer: &AnswerSender, line: &AnswerLine) -> AnswerOutcome {
    let Some(key) = line.key(answerer.secret) else {
        let (session, gate) = (&line.session, &line.gate);
        return AnswerOutcome::Refused(format!(
            "cra: the token is not valid for session `{session}` at `{gate}`: run the command \
             exactly as in the denial"
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
        Ok(result) => {
            AnswerOutcome::Accepted(questions::describe_accepted(line.gate.as_str(), &result))
        }
        Err(error) => AnswerOutcome::Refused(refusal(answerer, line, &error)),
    }
}

fn send(answerer: &AnswerSender, params: &Value) -> Result<Value, CallError> {
    // A store without a key has never had a console.
    let unreachable = || CallError::Unreachable(answerer.socket.clone());
    let key = answerer.key.clone().ok_or_else(unreachable)?;
    let mut client =
        BlockingClient::connect(&answerer.socket, key, Instant::now() + ANSWER_TIMEOUT)?;
    client.call("checkpoint.answer", params)
}

/// Returns the command that repairs the agent's connection.
fn remedy(line: &AnswerLine) -> KeyRemedy {
    let is_of = |agent: &CodingAgent| line.session.as_str().starts_with(agent.as_str());
    let agent = CodingAgent::ALL.into_iter().find(is_of);
    agent.map_or(KeyRemedy::Key, |agent| KeyRemedy::Connect(agent.as_str()))
}

fn refusal(answerer: &AnswerSender, line: &AnswerLine, error: &CallError) -> String {
    let Some(asked) = questions::agent_questions(error) else {
        return denial_text(error, remedy(line));
    };
    let command = answerer.command.line(&line.session, &line.token, &asked);
    format!(
        "cra: your answers were accepted. There are more questions at {}.\n{}\n{command}",
        asked.gate,
        questions::describe(&asked)
    )
}
