//! Between an agent and a server: every use of a tool is asked about, everything else goes by.
//!
//! It owns the server's process, one session at the console, and which requests nobody has answered yet.
//!
//! Contracts:
//! - A `tools/call` reaches the server only after the console said yes to it, and once.
//! - What is denied is told as a tool's result with an error, so that the model gets to read why.
//! - Every request of the agent is answered, also when the server is gone; one that it cancelled is not.
//! - Each direction waits for nobody but its own reader: neither side can hold up the other.
//!
//! - A tool of the proxy's own stands last in the list of tools: by it the agent answers checkpoints. An answered call is
//!   repeated by the agent and reaches the server then, so that the server gets the bytes of a call whose answer the
//!   agent waits for.
//!
//! It does not change what else is said, and does not know what the methods mean: they are the two sides' own.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::gate::{Gate, Guest};
use super::message::{FromAgent, FromServer, Line};
use crate::base::limits::MAX_LARGE_MESSAGES;
use crate::base::text::one_line;
use crate::gateway::socket::lines::{Lines, Over};

mod calls;
mod own_tool;
mod pending;

use calls::Calls;
use own_tool::OwnTool;
use pending::{Pending, Stage};

/// Messages on their way to one side. Further ones wait until it reads.
const ON_THE_WAY: usize = 64;

/// How long a server has to end after its input is closed, and the console to take last words.
pub(super) const ENDING: Duration = Duration::from_secs(5);

/// What is put between.
#[derive(Debug)]
pub struct Options {
    /// Who asks.
    pub guest: Guest,
    /// What actions call the server.
    pub server: String,
    /// Its command.
    pub command: Vec<OsString>,
}

/// Why nothing can be put between.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server does not start.
    #[error("the MCP server `{}` does not start: {error}", one_line(&command.to_string_lossy()))]
    Start {
        /// Its command.
        command: OsString,
        /// Why.
        error: io::Error,
    },
    /// The server ended before the agent did.
    #[error("the MCP server ended: {0}")]
    Ended(String),
    /// There is no secret for the session.
    #[error("no secret could be made: {0}")]
    Secret(#[from] getrandom::Error),
    /// The agent sends what cannot be read.
    #[error("what the agent sends cannot be read: {0}")]
    Unreadable(&'static str),
}

impl ProxyError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Start { .. } => Some("name the server's own command after `--`"),
            Self::Ended(_) => Some("what it wrote before that may say why"),
            Self::Secret(_) | Self::Unreadable(_) => None,
        }
    }
}

/// Words for whoever looks at what the program says beside the protocol.
pub type Aside = fn(&str);

/// Stands between an agent and a server until one of them is gone, or `stop` is.
///
/// # Errors
/// When the server does not start, or ends first.
pub async fn run(
    options: Options,
    agent: (
        impl AsyncRead + Unpin + Send + 'static,
        impl AsyncWrite + Unpin + Send + 'static,
    ),
    stop: impl Future<Output = ()>,
    aside: Aside,
) -> Result<(), ProxyError> {
    let gate = Gate::new(options.guest)?;
    let mut server = start(&options.command)?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(ProxyError::Ended("it has no pipes".to_owned()));
    };
    let (from_agent, to_agent) = agent;
    let (to_server, server_writer) = writer(stdin);
    let (to_agent, agent_writer) = writer(to_agent);
    let pending = Arc::new(Mutex::new(Pending::default()));
    let calls = Arc::new(Calls {
        gate,
        server: options.server,
        pending,
        own_tool: OwnTool::default(),
        to_server,
        to_agent,
    });
    let told = {
        let down = downward(stdout, &calls, aside);
        let up = upward(from_agent, &calls);
        tokio::select! {
            told = up => told,
            () = stop => Ok(()),
            () = down => Err(ProxyError::Ended(String::new())),
        }
    };
    // Whoever waits at a gate leaves it now.
    let why = match &told {
        Ok(()) | Err(ProxyError::Unreadable(_)) => None,
        Err(_) => Some(ended(&mut server).await),
    };
    calls.give_up(why.as_deref()).await;
    let _ = timeout(ENDING, calls.gate.end()).await;
    drop(calls);
    close(server, server_writer).await;
    // Those who still ask hold a way to the agent as well; they have been told to go.
    let _ = timeout(ENDING, agent_writer).await;
    match (told, why) {
        (Err(ProxyError::Ended(_)), Some(why)) => Err(ProxyError::Ended(why)),
        (told, _) => told,
    }
}

fn start(command: &[OsString]) -> Result<Child, ProxyError> {
    let failed = |error| ProxyError::Start {
        command: command.first().cloned().unwrap_or_default(),
        error,
    };
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| failed(io::Error::other("it has no name")))?;
    Command::new(program)
        .args(arguments)
        // What lets an agent in is none of the server's business.
        .env_remove("CRA_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)
}

/// Writes messages to one side, a line each, until there are no more or it does not take them.
fn writer(
    mut side: impl AsyncWrite + Unpin + Send + 'static,
) -> (mpsc::Sender<Line>, JoinHandle<()>) {
    let (sender, mut messages) = mpsc::channel::<Line>(ON_THE_WAY);
    let writing = tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            let written = side.write_all(&message.into_bytes()).await;
            if written.is_err() || side.flush().await.is_err() {
                return;
            }
        }
    });
    (sender, writing)
}

fn lines<R: AsyncRead + Unpin>(side: R) -> Lines<BufReader<R>> {
    let large = Arc::new(Semaphore::new(MAX_LARGE_MESSAGES));
    Lines::new(BufReader::new(side), vec![large])
}

/// What the agent says, until it says nothing more.
async fn upward(agent: impl AsyncRead + Unpin, calls: &Arc<Calls>) -> Result<(), ProxyError> {
    let mut lines = lines(agent);
    loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(Over::Closed | Over::Failed(_)) => return Ok(()),
            Err(Over::TooLong) => return Err(ProxyError::Unreadable("a message is too long")),
            Err(Over::TooSlow) => {
                return Err(ProxyError::Unreadable("a message was never finished"));
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match FromAgent::read(&line) {
            FromAgent::Call(call) => calls.call(call).await,
            FromAgent::List(id, line) => calls.request(id, line, Stage::Listing).await,
            FromAgent::Request(id, line) => calls.request(id, line, Stage::Asked).await,
            FromAgent::Cancelled(id, line) => calls.cancel(&id, line).await,
            FromAgent::Other(line) => calls.pass(line).await,
            FromAgent::Wrong(id, fault) => calls.wrong(id.as_ref(), &fault).await,
        }
    }
}

/// What the server says, until it says nothing more.
async fn downward(server: impl AsyncRead + Unpin, calls: &Arc<Calls>, aside: Aside) {
    let mut lines = lines(server);
    while let Ok(line) = lines.next().await {
        match FromServer::read(&line) {
            FromServer::Answer(id, message, line) => calls.answered(&id, &message, line).await,
            FromServer::Other(line) => calls.tell(line).await,
            FromServer::Ambiguous(id, why) => calls.refuse_answer(&id, &why).await,
            FromServer::Noise => aside(&format!(
                "the MCP server said what is no message: {}",
                one_line(&String::from_utf8_lossy(&line))
            )),
        }
    }
}

/// How a server ended that says nothing more.
async fn ended(server: &mut Child) -> String {
    let status = timeout(ENDING, server.wait()).await;
    let status: Option<ExitStatus> = status.ok().and_then(Result::ok);
    status.map_or_else(
        || "it closed its output".to_owned(),
        |status| status.to_string(),
    )
}

/// Lets a server end, and ends it if it does not.
async fn close(mut server: Child, writing: JoinHandle<()>) {
    // What is on its way still goes there; then its input is closed.
    let finished = async {
        let _ = writing.await;
        server.wait().await
    };
    if timeout(ENDING, finished).await.is_err() {
        let _ = server.kill().await;
    }
}
