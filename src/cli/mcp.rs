//! `cra mcp-proxy`, `cra acp-proxy` and `cra mcp`: proxies over standard streams, and an MCP server.

use std::io::{self, Write};
use std::path::Path;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{AcpProxyArgs, McpArgs, McpProxyArgs};
use super::error::Failure;
use super::exit;
use super::settings::{Settings, SocketOwner};
use crate::gateway::transport::acp::{self, AcpProxyOptions};
use crate::gateway::transport::console_session::ConsoleIdentity;
use crate::gateway::transport::mcp::proxy::{self, ProxyOptions};
use crate::gateway::transport::mcp::tool_server;

/// Runs the proxy until the agent or the server is gone.
pub(super) fn run_proxy(settings: &Settings, given: McpProxyArgs) -> Result<u8, Failure> {
    let server = given.server.unwrap_or_else(|| program_name(&given.command));
    let options = ProxyOptions {
        identity: ConsoleIdentity {
            program: "cra mcp-proxy",
            socket: settings.socket(SocketOwner::Console)?,
            answers: given.key,
            folder: settings.data_dir()?,
            agent: given.agent,
            intent: Some(format!("use the MCP server {server}")),
            api_key: given.api_key,
        },
        server,
        command: given.command,
    };
    let threads = Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(Failure::Tokio)?;
    let ended = threads.block_on(async {
        let mut stop = signal(SignalKind::terminate()).map_err(Failure::Tokio)?;
        let stop = async move {
            stop.recv().await;
        };
        let agent = (tokio::io::stdin(), tokio::io::stdout());
        Ok(proxy::run(options, agent, stop, print_message).await?)
    });
    // A blocked reader of standard input cannot be cancelled: it is abandoned.
    threads.shutdown_background();
    ended.map(|()| exit::OK)
}

/// Runs the proxy in front of an agent until the editor or the agent is gone.
pub(super) fn run_acp_proxy(settings: &Settings, given: AcpProxyArgs) -> Result<u8, Failure> {
    let agent = given.agent.unwrap_or_else(|| program_name(&given.command));
    let options = AcpProxyOptions {
        identity: ConsoleIdentity {
            program: "cra acp-proxy",
            socket: settings.socket(SocketOwner::Console)?,
            answers: given.key,
            folder: settings.data_dir()?,
            agent,
            intent: Some("work for an editor".to_owned()),
            api_key: given.api_key,
        },
        command: given.command,
    };
    let threads = Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(Failure::Tokio)?;
    let ended = threads.block_on(async {
        let mut stop = signal(SignalKind::terminate()).map_err(Failure::Tokio)?;
        let stop = async move {
            stop.recv().await;
        };
        let editor = (tokio::io::stdin(), tokio::io::stdout());
        Ok(acp::run(options, editor, stop).await?)
    });
    threads.shutdown_background();
    ended.map(|()| exit::OK)
}

/// Serves tools until the agent is gone.
pub(super) fn serve_tools(settings: &Settings, given: McpArgs) -> Result<u8, Failure> {
    let identity = ConsoleIdentity {
        program: "cra mcp",
        socket: settings.socket(SocketOwner::Console)?,
        answers: given.key,
        folder: settings.data_dir()?,
        agent: given.agent,
        intent: None,
        api_key: given.api_key,
    };
    let threads = Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(Failure::Tokio)?;
    let agent = (tokio::io::stdin(), tokio::io::stdout());
    let served = threads.block_on(tool_server::serve(identity, agent));
    threads.shutdown_background();
    served?;
    Ok(exit::OK)
}

/// Prints a message to standard error: standard output belongs to the agent's protocol.
fn print_message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "cra: {text}");
}

/// Name of a command's program, as the record accepts it.
fn program_name(command: &[std::ffi::OsString]) -> String {
    let program = command.first().map(Path::new);
    let name = program.and_then(Path::file_stem).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.to_string_lossy()
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}
