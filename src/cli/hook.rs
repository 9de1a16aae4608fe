//! `cra hook`: asks the console about one step of an agent.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getppid;

use super::args::HookArgs;
use super::error::{ConnectFailure, Failure};
use super::settings::{Settings, SocketOwner};
use crate::base::limits::MAX_MESSAGE_BYTES;
use crate::gateway::hook::{
    self, AnswerCommand, ConsoleSocket, HookEvent, HookOptions, HookOutput,
};
use crate::gateway::protocol::proof::ProofError;

/// Longest time for an agent to send its payload.
const PAYLOAD_TIME: Duration = Duration::from_secs(10);

/// Answers a hook. Every failure is a denial, and the answer always comes before the agent's timeout.
pub(super) fn hook(settings: &Settings, hook: &HookArgs) -> u8 {
    let begun = Instant::now();
    let (answered, watched) = mpsc::channel();
    let done = answered.clone();
    let timer = hook.timer.map(Duration::from_secs);
    let timer = timer.unwrap_or(hook.agent.adapter().default_timeout());
    let first = begun + (timer / 2).min(PAYLOAD_TIME);
    let (settings, hook) = (settings.clone(), hook.clone());
    let left = answered.clone();
    // Without this thread a hook only waits longer than its agent.
    let _ = thread::Builder::new().spawn(move || {
        wait_until_agent_left();
        let _ = left.send(HookProgress::AgentLeft);
    });
    let asking = thread::Builder::new().spawn(move || {
        let printed = catch_unwind(AssertUnwindSafe(|| answer(&settings, &hook, begun, &done)));
        let printed = match printed {
            Ok(Ok(printed)) => printed,
            Ok(Err(reason)) => denial(&reason),
            Err(_) => denial("cra hook had an internal error"),
        };
        // If the receiver is gone, the answer was already printed.
        let _ = done.send(HookProgress::Answered(printed));
    });
    drop(answered);
    match asking {
        Ok(_) => print(&await_answer(&watched, first)),
        Err(error) => print(&denial(&format!(
            "cra hook could not start a thread: {error}"
        ))),
    }
}

/// Progress of an answer.
enum HookProgress {
    /// The payload was read: the deadline, and the output to print at the deadline.
    Read(Instant, HookOutput),
    /// The answer.
    Answered(HookOutput),
    /// The agent no longer waits. When this process ends, the console withdraws the request.
    AgentLeft,
}

/// Interval of checks whether the agent's shell has ended.
const PARENT_CHECK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Waits until the agent cannot read the answer any more: its end of the pipe or socket is closed, or the
/// process that started the hook has ended.
fn wait_until_agent_left() {
    let parent = getppid();
    let stdout = io::stdout();
    loop {
        let mut pipe = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = poll(&mut pipe, Some(&PARENT_CHECK_INTERVAL));
        let closed = pipe
            .iter()
            .any(|pipe| pipe.revents().intersects(PollFlags::ERR | PollFlags::HUP));
        if closed || getppid() != parent {
            return;
        }
        match polled {
            // A descriptor that cannot be polled is ready at once.
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => thread::sleep(Duration::from_millis(250)),
        }
    }
}

/// The answer, or the late output if the deadline passes.
fn await_answer(watched: &Receiver<HookProgress>, first: Instant) -> HookOutput {
    let mut until = first;
    let mut late = denial("the agent did not send the whole payload in time");
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match watched.recv_timeout(left) {
            Ok(HookProgress::Read(moment, printed)) => (until, late) = (moment, printed),
            Ok(HookProgress::Answered(printed)) => return printed,
            Ok(HookProgress::AgentLeft) => {
                return denial("the agent ended or cancelled the step before it was decided");
            }
            Err(RecvTimeoutError::Timeout) => return late,
            Err(RecvTimeoutError::Disconnected) => {
                return denial("cra hook had an internal error");
            }
        }
    }
}

fn answer(
    settings: &Settings,
    hook: &HookArgs,
    begun: Instant,
    progress: &Sender<HookProgress>,
) -> Result<HookOutput, String> {
    let (options, socket) = options(settings, hook, begun).map_err(|failure| failure.report())?;
    let payload =
        payload().map_err(|error| format!("cra hook cannot read the payload: {error}"))?;
    match HookEvent::read(options.agent, &payload) {
        Ok(event) => {
            let (until, late) = hook::too_late(&event, &options);
            let _ = progress.send(HookProgress::Read(until, late));
            Ok(hook::answer_event(&event, &options, &socket))
        }
        Err(unreadable) => Ok(HookOutput::unreadable(options.agent, &unreadable)),
    }
}

fn denial(why: &str) -> HookOutput {
    HookOutput::denial(&format!("cra: this step is denied because {why}"))
}

fn print(printed: &HookOutput) -> u8 {
    let written = io::stdout().lock().write_all(printed.out.as_bytes());
    let written = written.and_then(|()| io::stdout().lock().flush());
    // The agent did not receive the answer: only the exit code can deny, and it needs a message on
    // standard error.
    let (code, err) = match written {
        Ok(()) => (printed.code, printed.err.as_str()),
        Err(_) => (
            2,
            "cra: this step is denied because cra hook could not write the answer\n",
        ),
    };
    let _ = io::stderr().lock().write_all(err.as_bytes());
    code
}

fn options(
    settings: &Settings,
    hook: &HookArgs,
    begun: Instant,
) -> Result<(HookOptions, ConsoleSocket), Failure> {
    let folder = settings.data_dir()?;
    let secret = hook::secret(&folder);
    let key = match &hook.key {
        Some(key) => key.parse().map_err(|error: ProofError| error.to_string()),
        None => Err("it is missing".to_owned()),
    };
    let options = HookOptions {
        agent: hook.agent,
        started_at: begun,
        timeout: hook.timer.map(Duration::from_secs),
        offline: hook.offline.into(),
        secret: secret.map_err(|error| Failure::Read(folder.join("hook.key"), error))?,
        api_key: hook.api_key.clone(),
        answer_command: AnswerCommand {
            program: std::env::current_exe().map_err(ConnectFailure::Program)?,
            location_args: settings.console_options()?,
        },
    };
    let socket = ConsoleSocket {
        path: settings.socket(SocketOwner::Console)?,
        key,
        folder,
    };
    Ok((options, socket))
}

fn payload() -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    let most = MAX_MESSAGE_BYTES as u64;
    io::stdin()
        .lock()
        .take(most + 1)
        .read_to_end(&mut payload)?;
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(payload)
}
