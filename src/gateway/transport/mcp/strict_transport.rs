//! Line transport of the MCP server, with checks before each message is parsed.
//!
//! The MCP library parses messages without these checks: it rounds numbers and takes the last of two equal
//! keys. So every line is checked first; a refused line is answered here and never reaches the library.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};

use super::message;
use crate::base::json::{self, StrictJsonError};
use crate::base::limits::MAX_LARGE_MESSAGES;
use crate::gateway::protocol::call::CallFault;
use crate::gateway::transport::unix_server::lines::LineReader;

/// Transport that checks each line.
pub(super) struct StrictTransport<R, W> {
    lines: LineReader<BufReader<R>>,
    writer: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> StrictTransport<R, W> {
    pub(super) fn new((reader, writer): (R, W)) -> Self {
        let large = Arc::new(Semaphore::new(MAX_LARGE_MESSAGES));
        Self {
            lines: LineReader::new(BufReader::new(reader), vec![large]),
            writer: Arc::new(Mutex::new(Some(writer))),
        }
    }
}

/// Handling of a line.
enum ReceivedLine {
    /// Passed to the library.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Refused with this answer.
    Refused(Value),
    /// Ignored: the agent expects no answer.
    Ignored,
}

fn read(line: &[u8]) -> ReceivedLine {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return ReceivedLine::Ignored;
    }
    let message: Value = match json::read(line) {
        Ok(message) => message,
        Err(StrictJsonError::Ambiguous(fault)) => {
            let refused = CallFault::ambiguous(&fault, "params");
            return ReceivedLine::Refused(message::fault_response(
                message::message_id(line).as_ref(),
                &refused,
            ));
        }
        // Text that is not JSON has no id to answer.
        Err(_) => return ReceivedLine::Ignored,
    };
    match serde_json::from_slice(line) {
        Ok(message) => ReceivedLine::Message(Box::new(message)),
        Err(_) if message.get("id").is_none() => ReceivedLine::Ignored,
        Err(error) => {
            let refused = CallFault::new(CallFault::REQUEST, format!("invalid request: {error}"));
            ReceivedLine::Refused(message::fault_response(
                message::message_id(line).as_ref(),
                &refused,
            ))
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(
    writer: &Mutex<Option<W>>,
    mut line: Vec<u8>,
) -> io::Result<()> {
    line.push(b'\n');
    let mut writer = writer.lock().await;
    let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    writer.write_all(&line).await?;
    writer.flush().await
}

impl<R, W> Transport<RoleServer> for StrictTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move { write(&writer, serde_json::to_vec(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let line = self.lines.next().await.ok()?;
            match read(&line) {
                ReceivedLine::Message(message) => return Some(*message),
                ReceivedLine::Refused(refusal) => {
                    // This future may be dropped at any time. A separate task makes sure that the whole
                    // line is written.
                    let writer = Arc::clone(&self.writer);
                    let refusal = refusal.to_string().into_bytes();
                    tokio::spawn(async move { write(&writer, refusal).await });
                }
                ReceivedLine::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}
