//! The state of the console: whether it answers, and whether it records.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::base::text::one_line;
use crate::gateway::call::STATUS;
use crate::gateway::client::Client;
use crate::gateway::proof::AnswerVerifier;

/// The state of the console, as far as it can be reached.
pub(super) enum Console {
    /// The console answers and records.
    Well,
    /// The console answers and records nothing, for this reason.
    NotRecording(String),
    /// The console does not answer, for this reason.
    Unreachable(String),
}

impl Console {
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Well => None,
            Self::NotRecording(why) => Some(format!(
                "it records nothing, so every agent is denied: {why}"
            )),
            Self::Unreachable(why) => Some(why.clone()),
        }
    }
}

/// Asks the console whether it records. Only the console with that key can prove its answer.
pub(super) fn reach(socket: &Path, key: AnswerVerifier) -> Console {
    let told = Client::connect(socket, key, Instant::now() + PATIENCE)
        .and_then(|mut client| client.call(STATUS, &json!({})));
    match told {
        Ok(status) => match status.get("recording").and_then(Value::as_bool) {
            Some(true) => Console::Well,
            Some(false) => {
                let problem = status.get("problem").and_then(Value::as_str);
                Console::NotRecording(one_line(problem.unwrap_or("unknown")))
            }
            None => Console::Unreachable("something else than a console answers".to_owned()),
        },
        Err(error) => Console::Unreachable(one_line(&error.to_string())),
    }
}
