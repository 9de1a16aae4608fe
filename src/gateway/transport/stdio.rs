//! Parts of the proxies over standard streams: message lines, their readers and writers, and the program
//! behind a proxy.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::unix_server::lines::LineReader;
use crate::base::json;
use crate::base::limits::MAX_LARGE_MESSAGES;

/// Most messages in the queue to one side. The sender waits when the queue is full.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Time for a program to end after its input is closed, and for the console to accept final reports.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A message to be forwarded: one line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageLine(Vec<u8>);

impl MessageLine {
    /// Creates a line from received bytes. A carriage return can only stand between tokens there, and some
    /// parsers end a line at it: it becomes a space.
    pub(super) fn received(bytes: &[u8]) -> Self {
        let mut line = bytes.trim_ascii().to_vec();
        for byte in line.iter_mut().filter(|byte| **byte == b'\r') {
            *byte = b' ';
        }
        Self(line)
    }

    /// Returns the bytes, with the end of the line.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.0.push(b'\n');
        self.0
    }

    /// Appends a text to the content of a tool's result. All other bytes stay as written.
    pub(super) fn append_text(&mut self, words: &str) {
        self.append_item("content", &json!({"type": "text", "text": words}));
    }

    /// Appends a tool to a list of tools. All other bytes stay as written.
    pub(super) fn add_tool(&mut self, tool: &Value) {
        self.append_item("tools", tool);
    }

    /// Appends an item to a list in a result.
    fn append_item(&mut self, list: &str, item: &Value) {
        let Some(place) = json::locate(&self.0, &["result", list]) else {
            return;
        };
        let content = self.0.get(place.clone()).unwrap_or_default();
        let Some(items) = content.strip_prefix(b"[") else {
            return;
        };
        let is_first = items.trim_ascii() == b"]";
        let comma = if is_first { "" } else { "," };
        let added = format!("{comma}{item}");
        let end = place.end.saturating_sub(1);
        self.0.splice(end..end, added.into_bytes());
    }
}

impl From<Value> for MessageLine {
    fn from(message: Value) -> Self {
        Self(message.to_string().into_bytes())
    }
}

/// Spawns a task that writes messages to one side, one per line, until the queue closes or a write fails.
pub(super) fn spawn_writer(
    mut side: impl AsyncWrite + Unpin + Send + 'static,
) -> (mpsc::Sender<MessageLine>, JoinHandle<()>) {
    let (sender, mut messages) = mpsc::channel::<MessageLine>(MAX_QUEUED_MESSAGES);
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

/// Returns a reader of the lines of one side.
pub(super) fn lines<R: AsyncRead + Unpin>(side: R) -> LineReader<BufReader<R>> {
    let large = Arc::new(Semaphore::new(MAX_LARGE_MESSAGES));
    LineReader::new(BufReader::new(side), vec![large])
}

/// Starts the program behind a proxy.
///
/// # Errors
/// Fails when there is no command, or it cannot be run.
pub(super) fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is missing"))?;
    Command::new(program)
        .args(arguments)
        // The program must not see the key of the agent.
        .env_remove("CRA_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// Describes the end of a program whose output has ended.
pub(super) async fn describe_exit(program: &mut Child) -> String {
    let status = timeout(END_TIMEOUT, program.wait()).await;
    let status: Option<ExitStatus> = status.ok().and_then(Result::ok);
    status.map_or_else(
        || "it closed its output".to_owned(),
        |status| status.to_string(),
    )
}

/// Waits for a program to end, and kills it after a timeout.
pub(super) async fn stop(mut program: Child, writing: JoinHandle<()>) {
    // Messages in the queue are still written; then the program's input is closed.
    let finished = async {
        let _ = writing.await;
        program.wait().await
    };
    if timeout(END_TIMEOUT, finished).await.is_err() {
        let _ = program.kill().await;
    }
}
