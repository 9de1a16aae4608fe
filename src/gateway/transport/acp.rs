//! Proxy for the Agent Client Protocol, by which editors run agents.
//!
//! The editor starts the proxy in place of the agent, and the proxy starts the agent. It owns the agent's
//! process and one session at the console for each session of the protocol.
//!
//! Contracts:
//! - A permission that the agent asks for (`session/request_permission`), a file that it reads or writes
//!   and a terminal that it opens through the editor reach the editor only after the console permitted
//!   them. What an operator approved is permitted at once; otherwise the editor asks its own user.
//! - A permission is valid for one call: options that would permit more never reach the editor.
//! - A mode in which the agent asks for no permission needs a permission itself.
//! - A prompt reaches the agent only after the console took it.
//! - Every request of either side gets an answer, even after a cancellation.
//!
//! The proxy offers to read and write files if the editor does not, so that the agent asks for them. A tool
//! that the agent runs without asking cannot be held; it is reported to the console. All other messages
//! pass unchanged. The proxy carries messages as bytes and not as types of a schema: fields that a newer
//! version of the protocol adds have to arrive.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::console_session::ConsoleIdentity;
use super::stdio::{self, END_TIMEOUT, lines, spawn_writer};
use super::unix_server::lines::LineEnd;
use crate::base::text::one_line;

mod files;
mod message;
mod operation;
mod permission;
mod proxy_state;
mod session;
mod tool_call;

use message::AcpMessage;
use proxy_state::{AcpProxy, Side};

/// Settings of the proxy.
#[derive(Debug)]
pub struct AcpProxyOptions {
    /// Identity at the console.
    pub identity: ConsoleIdentity,
    /// Command of the agent.
    pub command: Vec<OsString>,
}

/// Reason why the proxy ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum AcpProxyError {
    /// The agent does not start.
    #[error("the agent `{}` does not start: {error}", one_line(&command.to_string_lossy()))]
    Start {
        /// Command of the agent.
        command: OsString,
        /// Reason.
        error: io::Error,
    },
    /// The agent ended before the editor did.
    #[error("the agent ended: {0}")]
    Ended(String),
    /// The editor sends a message that is too long or incomplete.
    #[error("the editor's messages cannot be read: {0}")]
    Unreadable(&'static str),
}

impl AcpProxyError {
    /// Returns advice on the error.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Start { .. } => Some("give the agent's command after `--`"),
            Self::Ended(_) => Some("see the agent's output above"),
            Self::Unreadable(_) => None,
        }
    }
}

/// Runs the proxy until the editor or the agent has ended, or until `stop` completes.
///
/// # Errors
/// Fails when the agent does not start, or ends before the editor.
pub async fn run(
    options: AcpProxyOptions,
    editor: (
        impl AsyncRead + Unpin + Send + 'static,
        impl AsyncWrite + Unpin + Send + 'static,
    ),
    stop: impl Future<Output = ()>,
) -> Result<(), AcpProxyError> {
    let mut agent = stdio::start(&options.command).map_err(|error| AcpProxyError::Start {
        command: options.command.first().cloned().unwrap_or_default(),
        error,
    })?;
    let (Some(stdin), Some(stdout)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(AcpProxyError::Ended("it has no pipes".to_owned()));
    };
    let (from_editor, to_editor) = editor;
    let (to_agent, agent_writer) = spawn_writer(stdin);
    let (to_editor, editor_writer) = spawn_writer(to_editor);
    let proxy = Arc::new(AcpProxy::new(options.identity, to_editor, to_agent));
    let ended = {
        let up = read_messages(from_editor, &proxy, Side::Editor);
        let down = read_messages(stdout, &proxy, Side::Agent);
        tokio::select! {
            ended = up => ended,
            () = stop => Ok(()),
            _ = down => Err(AcpProxyError::Ended(String::new())),
        }
    };
    let ended = match ended {
        Err(AcpProxyError::Ended(_)) => {
            let how = stdio::describe_exit(&mut agent).await;
            proxy.refuse_all(&format!("the agent ended: {how}")).await;
            Err(AcpProxyError::Ended(how))
        }
        ended => ended,
    };
    let _ = timeout(END_TIMEOUT, proxy.end_sessions()).await;
    drop(proxy);
    stdio::stop(agent, agent_writer).await;
    let _ = timeout(END_TIMEOUT, editor_writer).await;
    ended
}

/// Handles the messages of one side until it closes.
async fn read_messages(
    side: impl AsyncRead + Unpin,
    proxy: &Arc<AcpProxy>,
    from: Side,
) -> Result<(), AcpProxyError> {
    let mut lines = lines(side);
    loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(LineEnd::Closed | LineEnd::Failed(_)) => return Ok(()),
            Err(LineEnd::TooLong) => {
                return Err(AcpProxyError::Unreadable("a message is too long"));
            }
            Err(LineEnd::TooSlow) => {
                return Err(AcpProxyError::Unreadable("a message is incomplete"));
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        proxy.handle_message(from, AcpMessage::read(&line)).await;
    }
}
