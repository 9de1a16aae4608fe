//! Proxy between an agent and an MCP server: asks about each tool call, and forwards all other messages.
//!
//! The proxy owns the server's process, one session at the console, and the list of unanswered requests.
//!
//! Contracts:
//! - A `tools/call` reaches the server only after the console permitted it, and only once.
//! - A denial is sent as a tool result with an error, so that the model reads the reason.
//! - Every request of the agent is answered, even when the server has ended. A cancelled request is not
//!   answered.
//! - Each direction waits only for its own reader: neither side can block the other.
//!
//! - The proxy adds its own tool at the end of the list of tools: with it the agent answers checkpoints.
//!   After an answer, the agent repeats the held call, which then reaches the server. So the server gets
//!   the bytes of a call whose response the agent waits for.
//!
//! The proxy does not change other messages and does not know the meaning of their methods.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::message::{AgentMessage, ServerMessage};
use crate::base::text::one_line;
use crate::gateway::transport::console_session::{ConsoleIdentity, ConsoleSession};
use crate::gateway::transport::stdio::{self, END_TIMEOUT, lines, spawn_writer};
use crate::gateway::transport::unix_server::lines::LineEnd;

mod own_tool;
mod pending_requests;
mod proxy_state;

use own_tool::OwnTool;
use pending_requests::{PendingRequests, RequestStage};
use proxy_state::ProxyState;

/// Settings of the proxy.
#[derive(Debug)]
pub struct ProxyOptions {
    /// Identity at the console.
    pub identity: ConsoleIdentity,
    /// Name of the server in actions.
    pub server: String,
    /// Command of the server.
    pub command: Vec<OsString>,
}

/// Reason why the proxy ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server does not start.
    #[error("the MCP server `{}` does not start: {error}", one_line(&command.to_string_lossy()))]
    Start {
        /// Command of the server.
        command: OsString,
        /// Reason.
        error: io::Error,
    },
    /// The server ended before the agent did.
    #[error("the MCP server ended: {0}")]
    Ended(String),
    /// The secret of the session could not be created.
    #[error("cra could not create a secret: {0}")]
    Secret(#[from] getrandom::Error),
    /// The agent sends unreadable messages.
    #[error("the agent's messages cannot be read: {0}")]
    Unreadable(&'static str),
}

impl ProxyError {
    /// Returns advice on the error.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Start { .. } => Some("give the server's command after `--`"),
            Self::Ended(_) => Some("see the server's output above"),
            Self::Secret(_) | Self::Unreadable(_) => None,
        }
    }
}

/// Writes a message for the user outside the protocol.
pub type UserMessageFn = fn(&str);

/// Runs the proxy until the agent or the server has ended, or until `stop` completes.
///
/// # Errors
/// Fails when the server does not start, or ends before the agent.
pub async fn run(
    options: ProxyOptions,
    agent: (
        impl AsyncRead + Unpin + Send + 'static,
        impl AsyncWrite + Unpin + Send + 'static,
    ),
    stop: impl Future<Output = ()>,
    aside: UserMessageFn,
) -> Result<(), ProxyError> {
    let gate = ConsoleSession::new(options.identity)?;
    let mut server = stdio::start(&options.command).map_err(|error| ProxyError::Start {
        command: options.command.first().cloned().unwrap_or_default(),
        error,
    })?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(ProxyError::Ended("the server has no pipes".to_owned()));
    };
    let (from_agent, to_agent) = agent;
    let (to_server, server_writer) = spawn_writer(stdin);
    let (to_agent, agent_writer) = spawn_writer(to_agent);
    let pending = Arc::new(Mutex::new(PendingRequests::default()));
    let calls = Arc::new(ProxyState {
        session: gate,
        server: options.server,
        pending,
        own_tool: OwnTool::default(),
        to_server,
        to_agent,
    });
    let ended = {
        let down = downward(stdout, &calls, aside);
        let up = upward(from_agent, &calls);
        tokio::select! {
            ended = up => ended,
            () = stop => Ok(()),
            () = down => Err(ProxyError::Ended(String::new())),
        }
    };
    // Requests that are still held are withdrawn now.
    let why = match &ended {
        Ok(()) | Err(ProxyError::Unreadable(_)) => None,
        Err(_) => Some(stdio::describe_exit(&mut server).await),
    };
    calls.cancel_all(why.as_deref()).await;
    let _ = timeout(END_TIMEOUT, calls.session.end()).await;
    drop(calls);
    stdio::stop(server, server_writer).await;
    // Tasks that still wait for the console hold a sender to the agent as well; they were told to end.
    let _ = timeout(END_TIMEOUT, agent_writer).await;
    match (ended, why) {
        (Err(ProxyError::Ended(_)), Some(why)) => Err(ProxyError::Ended(why)),
        (ended, _) => ended,
    }
}

/// Handles messages of the agent until its input ends.
async fn upward(agent: impl AsyncRead + Unpin, calls: &Arc<ProxyState>) -> Result<(), ProxyError> {
    let mut lines = lines(agent);
    loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(LineEnd::Closed | LineEnd::Failed(_)) => return Ok(()),
            Err(LineEnd::TooLong) => return Err(ProxyError::Unreadable("a message is too long")),
            Err(LineEnd::TooSlow) => {
                return Err(ProxyError::Unreadable("a message is incomplete"));
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match AgentMessage::read(&line) {
            AgentMessage::Call(call) => calls.handle_tool_call(call).await,
            AgentMessage::List(id, line) => {
                calls.forward_request(id, line, RequestStage::Listing).await;
            }
            AgentMessage::Request(id, line) => {
                calls.forward_request(id, line, RequestStage::Other).await;
            }
            AgentMessage::Cancelled(id, line) => calls.cancel_request(&id, line).await,
            AgentMessage::Other(line) => calls.send_to_server(line).await,
            AgentMessage::Malformed(id, fault) => calls.send_fault(id.as_ref(), &fault).await,
        }
    }
}

/// Handles messages of the server until its output ends.
async fn downward(server: impl AsyncRead + Unpin, calls: &Arc<ProxyState>, aside: UserMessageFn) {
    let mut lines = lines(server);
    while let Ok(line) = lines.next().await {
        match ServerMessage::read(&line) {
            ServerMessage::Answer(id, message, line) => {
                calls.handle_answer(&id, &message, line).await;
            }
            ServerMessage::Other(line) => calls.send_to_agent(line).await,
            ServerMessage::Ambiguous(id, why) => calls.refuse_answer(&id, &why).await,
            ServerMessage::Invalid => aside(&format!(
                "the MCP server sent an invalid message: {}",
                one_line(&String::from_utf8_lossy(&line))
            )),
        }
    }
}
