//! `cra answer`: an agent's answers at a checkpoint, from its shell.

use std::io::{self, Write};

use super::args::AnswerArgs;
use super::error::Failure;
use super::settings::{Settings, SocketOwner};
use super::{answer_key, exit};
use crate::gateway::hook::{self, AnswerLine, AnswerOutcome, AnswerSender};

/// Sends the answers. Standard output tells the agent its next step.
pub(super) fn answer(settings: &Settings, given: AnswerArgs) -> Result<u8, Failure> {
    let folder = settings.data_dir()?;
    let secret = hook::secret(&folder);
    let answerer = AnswerSender {
        socket: settings.socket(SocketOwner::Console)?,
        key: answer_key::read(settings)?,
        secret: secret.map_err(|error| Failure::Read(folder.join("hook.key"), error))?,
        command: hook::AnswerCommand {
            program: std::env::current_exe().map_err(super::error::ConnectFailure::Program)?,
            location_args: settings.console_options()?,
        },
    };
    let line = AnswerLine {
        session: given.session,
        gate: given.gate,
        token: given.token,
        answers: given.answers,
    };
    let (text, code) = match hook::send_answers(&answerer, &line) {
        AnswerOutcome::Accepted(text) => (text, exit::OK),
        AnswerOutcome::Refused(text) => (text, exit::FAILURE),
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(code)
}
