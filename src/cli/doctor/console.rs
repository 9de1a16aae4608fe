//! State of the console: its answers and its recording.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::ANSWER_TIMEOUT;
use crate::base::text::one_line;
use crate::gateway::protocol::call::STATUS;
use crate::gateway::protocol::proof::AnswerVerifier;
use crate::gateway::transport::client::BlockingClient;
use crate::store::StoreUrl;
use crate::store::key;

/// State of the console, as far as it can be reached.
pub(super) enum ConsoleStatus {
    /// The console answers and records.
    Healthy,
    /// The console answers but does not record, for this reason.
    NotRecording(String),
    /// The console records and denies every agent, for this reason.
    Denying(String),
    /// The console does not answer, for this reason.
    Unreachable(String),
}

impl ConsoleStatus {
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Healthy => None,
            Self::NotRecording(why) => Some(format!(
                "the console cannot record and denies every agent: {why}"
            )),
            Self::Denying(why) => Some(format!("the console denies every agent: {why}")),
            Self::Unreachable(why) => Some(why.clone()),
        }
    }
}

/// Reason why the key to verify an answer is missing, and the remedy.
pub(super) fn missing_key(folder: &Path, socket: &Path) -> String {
    let shown = one_line(&folder.to_string_lossy());
    let listens = UnixStream::connect(socket).is_ok();
    if listens || StoreUrl::in_folder(folder).has_traces() {
        let what = if folder.is_dir() {
            format!("the key `{shown}/{}`", key::FILE_NAME)
        } else {
            format!("the data folder `{shown}`")
        };
        return format!(
            "{what} is missing: restore it from a backup, then restart cra; a console that still runs \
             keeps recording while it can, but its answers cannot be verified"
        );
    }
    if folder.is_dir() {
        return "no console has used this store yet, so it has no key".to_owned();
    }
    format!(
        "the data folder `{shown}` does not exist: no console has used it yet, or it was removed; restore it from \
         a backup, or name another folder with --data-dir"
    )
}

/// Asks the console for its recording state. Only the console with that key can prove its answer.
pub(super) fn ask_console(socket: &Path, key: AnswerVerifier) -> ConsoleStatus {
    let answer = BlockingClient::connect(socket, key, Instant::now() + ANSWER_TIMEOUT)
        .and_then(|mut client| client.call(STATUS, &json!({})));
    match answer {
        Ok(status) => {
            let problem = status.get("problem").and_then(Value::as_str);
            match (status.get("recording").and_then(Value::as_bool), problem) {
                (Some(true), None) => ConsoleStatus::Healthy,
                (Some(true), Some(why)) => ConsoleStatus::Denying(one_line(why)),
                (Some(false), why) => {
                    ConsoleStatus::NotRecording(one_line(why.unwrap_or("unknown")))
                }
                (None, _) => ConsoleStatus::Unreachable(
                    "the program at the socket is not a cra console".to_owned(),
                ),
            }
        }
        Err(error) => ConsoleStatus::Unreachable(one_line(&error.to_string())),
    }
}
