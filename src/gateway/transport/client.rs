//! Clients of the socket, for commands that call the console.
//!
//! [`BlockingClient`] blocks and needs no async runtime: a command that runs before each step of an agent has to
//! start fast.
//!
//! A caller that relies on an answer verifies it with the console's key: see [`crate::gateway::protocol::proof`]. No part of
//! an unverified answer is used, not even its text.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::base::json;
use crate::gateway::protocol::call::{CallError, CallFault};
use crate::gateway::protocol::proof::{AnswerVerifier, Challenge, ChallengedRequest, ProofError};

/// A connection to a console.
#[derive(Debug)]
pub struct BlockingClient {
    reader: BufReader<UnixStream>,
    proof: AnswerChecker,
    last_id: u64,
    deadline: Instant,
}

/// Verification of a connection's answers.
#[derive(Debug)]
struct AnswerChecker {
    socket: PathBuf,
    /// Expected key; if `None`, answers are not verified.
    key: Option<AnswerVerifier>,
}

#[derive(Deserialize)]
struct RpcAnswer {
    id: Option<u64>,
    result: Option<Value>,
    error: Option<CallFault>,
}

/// A request to be written.
#[derive(Serialize)]
struct ClientRequest<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge: Option<String>,
}

/// A request that was written to the connection.
struct SentRequest {
    id: u64,
    line: String,
    challenged: Option<ChallengedRequest>,
}

impl AnswerChecker {
    fn write(&self, id: u64, method: &str, params: &Value) -> Result<SentRequest, CallError> {
        let challenge = match self.key {
            Some(_) => Some(Challenge::random().map_err(CallError::NoChallenge)?),
            None => None,
        };
        let message = ClientRequest {
            jsonrpc: "2.0",
            id,
            method,
            params,
            challenge: challenge.map(|challenge| challenge.to_string()),
        };
        let unwritable = |error: serde_json::Error| CallError::Unwritable(error.to_string());
        let mut line = serde_json::to_string(&message).map_err(unwritable)?;
        let noted = |challenge| ChallengedRequest::new(challenge, line.as_bytes());
        let challenged = challenge.map(noted);
        line.push('\n');
        Ok(SentRequest {
            id,
            line,
            challenged,
        })
    }

    /// Returns the answer in a line; `None` if the line answers another request.
    fn read(&self, line: &[u8], sent: &SentRequest) -> Option<Result<Value, CallError>> {
        let unproven = |reason| CallError::Unproven {
            socket: self.socket.clone(),
            reason,
        };
        let answer = match (read_answer(line), &self.key) {
            (Ok(answer), _) => answer,
            (Err(error), None) => return Some(Err(error)),
            // The console writes only answers. Text of another process is not shown to the caller.
            (Err(_), Some(_)) => return Some(Err(unproven(ProofError::Missing))),
        };
        // An answer without an id is about the connection, not about a request.
        if answer.id.is_some_and(|found| found != sent.id) {
            return None;
        }
        let (Some(key), Some(challenged)) = (&self.key, &sent.challenged) else {
            return Some(into_result(answer));
        };
        if let (None, Some(fault)) = (answer.id, &answer.error) {
            return Some(Err(CallError::Refused(fault.code)));
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let proven = key.verify(challenged, line).map_err(unproven);
        // Read again, so that only the signed bytes count.
        Some(proven.and_then(|answer| into_result(read_answer(&answer)?)))
    }
}

fn read_answer(line: &[u8]) -> Result<RpcAnswer, CallError> {
    json::read(line).map_err(|error| CallError::Unreadable(error.to_string()))
}

fn into_result(answer: RpcAnswer) -> Result<Value, CallError> {
    match (answer.error, answer.result) {
        (Some(fault), _) => Err(CallError::Fault(fault)),
        (None, Some(result)) if answer.id.is_some() => Ok(result),
        (None, Some(_) | None) => {
            let why = "neither a result nor an error".to_owned();
            Err(CallError::Unreadable(why))
        }
    }
}

impl BlockingClient {
    /// Connects to the console with that key. Every call has to be answered before `until`.
    ///
    /// # Errors
    /// Fails when no process listens.
    pub fn connect(path: &Path, key: AnswerVerifier, until: Instant) -> Result<Self, CallError> {
        let unreachable = |_| CallError::Unreachable(path.to_owned());
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        Ok(Self {
            reader: BufReader::new(stream),
            proof: AnswerChecker {
                socket: path.to_owned(),
                key: Some(key),
            },
            last_id: 0,
            deadline: until,
        })
    }

    /// Sends a request, and waits for the answer of the console with the expected key.
    ///
    /// # Errors
    /// Every outcome other than a result. Only a result means permission.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.last_id += 1;
        let left = self.time_left()?;
        let stream = self.reader.get_mut();
        stream
            .set_write_timeout(Some(left))
            .map_err(|error| io_call_error(&error))?;
        let sent = self.proof.write(self.last_id, method, params)?;
        stream
            .write_all(sent.line.as_bytes())
            .map_err(|error| io_call_error(&error))?;
        loop {
            let line = self.read()?;
            if let Some(answered) = self.proof.read(&line, &sent) {
                return answered;
            }
        }
    }

    fn read(&mut self) -> Result<Vec<u8>, CallError> {
        let mut line = Vec::new();
        loop {
            let left = self.time_left()?;
            let stream = self.reader.get_ref();
            stream
                .set_read_timeout(Some(left))
                .map_err(|error| io_call_error(&error))?;
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) => return Err(CallError::Disconnected),
                Ok(_) if line.last() == Some(&b'\n') => return Ok(line),
                // The connection was cut off within a line: the next read returns 0 bytes.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_call_error(&error)),
            }
        }
    }

    /// Returns the time that is left. Never zero: a zero timeout would mean no timeout.
    fn time_left(&self) -> Result<Duration, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(CallError::TimedOut)
        } else {
            Ok(left)
        }
    }
}

/// An asynchronous connection to a console.
#[derive(Debug)]
pub struct GatewayClient {
    reader: tokio::io::BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    proof: AnswerChecker,
    last_id: u64,
}

impl GatewayClient {
    /// Connects. Answers are not verified: no action may run because of them.
    ///
    /// # Errors
    /// Fails when no process listens.
    pub async fn connect(path: &Path) -> Result<Self, CallError> {
        Self::connect_to(path, None).await
    }

    /// Connects to the console with that key. An answer of any other process is an error.
    ///
    /// # Errors
    /// Fails when no process listens.
    pub async fn connect_verified(path: &Path, key: AnswerVerifier) -> Result<Self, CallError> {
        Self::connect_to(path, Some(key)).await
    }

    async fn connect_to(path: &Path, key: Option<AnswerVerifier>) -> Result<Self, CallError> {
        let stream = tokio::net::UnixStream::connect(path).await;
        let stream = stream.map_err(|_| CallError::Unreachable(path.to_owned()))?;
        let (reader, writer) = stream.into_split();
        Ok(Self {
            reader: tokio::io::BufReader::new(reader),
            writer,
            proof: AnswerChecker {
                socket: path.to_owned(),
                key,
            },
            last_id: 0,
        })
    }

    /// Sends a request, and waits for the answer without a time limit. If this future is dropped, the
    /// connection must not be used again: the next line might answer the dropped request.
    ///
    /// # Errors
    /// Every outcome other than a result.
    pub async fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.last_id += 1;
        let sent = self.proof.write(self.last_id, method, params)?;
        let written = self.writer.write_all(sent.line.as_bytes()).await;
        written.map_err(|error| io_call_error(&error))?;
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line).await;
            if read.map_err(|error| io_call_error(&error))? == 0 {
                return Err(CallError::Disconnected);
            }
            if let Some(answered) = self.proof.read(&line, &sent) {
                return answered;
            }
        }
    }
}

fn io_call_error(error: &io::Error) -> CallError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CallError::TimedOut,
        _ => CallError::Disconnected,
    }
}
