//! `cra hook`: one step of an agent, asked about.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::args::Hook;
use super::error::Failure;
use super::settings::{Settings, Whose};
use crate::base::limits::MAX_MESSAGE_BYTES;
use crate::gateway::client::Leash;
use crate::gateway::hook::{self, Options, Printed};

/// Answers a hook. Whatever happens, the agent hears no.
pub(super) fn hook(settings: &Settings, hook: &Hook) -> u8 {
    let answered = catch_unwind(AssertUnwindSafe(|| answer(settings, hook)));
    let printed = match answered {
        Ok(Ok(printed)) => printed,
        Ok(Err(reason)) => refused(&reason),
        Err(_) => refused("something went wrong inside cra hook"),
    };
    print(&printed)
}

fn answer(settings: &Settings, hook: &Hook) -> Result<Printed, String> {
    let options = options(settings, hook).map_err(|failure| failure.report())?;
    let payload = payload().map_err(|error| format!("the payload cannot be read: {error}"))?;
    Ok(hook::run(&payload, &options))
}

fn refused(why: &str) -> Printed {
    Printed::refused(&format!("cra: nothing is allowed, because {why}"))
}

fn print(printed: &Printed) -> u8 {
    let said = io::stdout().lock().write_all(printed.out.as_bytes());
    let said = said.and_then(|()| io::stdout().lock().flush());
    // The agent never heard the answer: only the exit code is left to say no.
    let code = if said.is_ok() { printed.code } else { 2 };
    let _ = io::stderr().lock().write_all(printed.err.as_bytes());
    code
}

fn options(settings: &Settings, hook: &Hook) -> Result<Options, Failure> {
    let folder = settings.data_dir()?;
    let secret = hook::secret(&folder);
    Ok(Options {
        host: hook.agent.into(),
        timer: hook.timer.map(Duration::from_secs),
        offline: hook.offline.into(),
        socket: settings.socket(Whose::Console)?,
        secret: secret.map_err(|error| Failure::Read(folder.join("hook.key"), error))?,
        api_key: hook.api_key.clone(),
        leash: Leash::default(),
    })
}

fn payload() -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    let most = MAX_MESSAGE_BYTES as u64;
    io::stdin()
        .lock()
        .take(most + 1)
        .read_to_end(&mut payload)?;
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(payload)
}
