//! The other side of the socket, for commands that ask the console.
//!
//! It waits without a runtime of its own: a command that runs before each step of an agent has to start in
//! no time.
//!
//! A caller that relies on an answer has it verified against the console's key: see [`super::proof`]. Nothing of
//! an answer that does not verify is used, not even its words.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::call::Fault;
use super::proof::{AnswerVerifier, Challenge, Challenged, ProofError};
use crate::base::json;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens.
    #[error("no console listens at `{}`", .0.display())]
    Unreachable(PathBuf),
    /// It was there, and is not any more.
    #[error("the console went away")]
    Gone,
    /// It did not answer in time.
    #[error("the console did not answer in time")]
    Late,
    /// What it answered makes no sense.
    #[error("the console gave an answer that cannot be read: {0}")]
    Unreadable(String),
    /// It says no, or that something is wrong.
    #[error("{}", .0.message)]
    Fault(Fault),
    /// The answer was not given by the console with the expected key.
    #[error("the answer at `{}` was not given by the console: {reason}", socket.display())]
    Unproven {
        /// Socket that the answer came from.
        socket: PathBuf,
        /// Fault of the proof.
        reason: ProofError,
    },
    /// The connection was refused before the request was read, with this code. Nothing proves that.
    #[error("the console takes no request now (code {0})")]
    Refused(i64),
    /// No key was given, so no answer can be verified.
    #[error("no usable `--key` was given: {0}")]
    NoKey(String),
    /// The request cannot be written as JSON.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// The system has no randomness for a challenge.
    #[error("no challenge can be made: {0}")]
    NoChallenge(getrandom::Error),
}

/// A connection to a console.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    proof: Proof,
    asked: u64,
    until: Instant,
}

/// Way in which the answers of a connection are verified.
#[derive(Debug)]
struct Proof {
    socket: PathBuf,
    /// Expected key; nothing, where answers are taken as they come.
    key: Option<AnswerVerifier>,
}

/// Cuts a connection off that somebody else waits at. Before there is one, it is cut off as soon as there is.
#[derive(Clone, Debug, Default)]
pub struct Leash(Arc<Mutex<Rope>>);

#[derive(Debug, Default)]
enum Rope {
    #[default]
    Loose,
    Tied(UnixStream),
    Cut,
}

impl Leash {
    /// Cuts it off when this is dropped.
    #[must_use]
    pub fn cut_when_dropped(&self) -> Cutter {
        Cutter(self.clone())
    }

    fn tie(&self, stream: UnixStream) {
        let mut rope = self.lock();
        match *rope {
            Rope::Loose | Rope::Tied(_) => *rope = Rope::Tied(stream),
            Rope::Cut => shut(&stream),
        }
    }

    fn cut(&self) {
        if let Rope::Tied(stream) = std::mem::replace(&mut *self.lock(), Rope::Cut) {
            shut(&stream);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rope> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shut(stream: &UnixStream) {
    // One that is closed already is as good.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Cuts a connection off when it is dropped.
#[derive(Debug)]
pub struct Cutter(Leash);

impl Drop for Cutter {
    fn drop(&mut self) {
        self.0.cut();
    }
}

#[derive(Deserialize)]
struct Answer {
    id: Option<u64>,
    result: Option<Value>,
    error: Option<Fault>,
}

/// A request to be written.
#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge: Option<String>,
}

/// A request as it was written.
struct Sent {
    id: u64,
    line: String,
    challenged: Option<Challenged>,
}

impl Proof {
    fn write(&self, id: u64, method: &str, params: &Value) -> Result<Sent, CallError> {
        let challenge = match self.key {
            Some(_) => Some(Challenge::random().map_err(CallError::NoChallenge)?),
            None => None,
        };
        let message = Message {
            jsonrpc: "2.0",
            id,
            method,
            params,
            challenge: challenge.map(|challenge| challenge.to_string()),
        };
        let unwritable = |error: serde_json::Error| CallError::Unwritable(error.to_string());
        let mut line = serde_json::to_string(&message).map_err(unwritable)?;
        let noted = |challenge| Challenged::new(challenge, line.as_bytes());
        let challenged = challenge.map(noted);
        line.push('\n');
        Ok(Sent {
            id,
            line,
            challenged,
        })
    }

    /// What a line answers; nothing, if it answers something else.
    fn read(&self, line: &[u8], sent: &Sent) -> Option<Result<Value, CallError>> {
        let unproven = |reason| CallError::Unproven {
            socket: self.socket.clone(),
            reason,
        };
        let answer = match (read_answer(line), &self.key) {
            (Ok(answer), _) => answer,
            (Err(error), None) => return Some(Err(error)),
            // The console writes nothing but answers. What another process writes is not repeated to anyone.
            (Err(_), Some(_)) => return Some(Err(unproven(ProofError::Missing))),
        };
        // An answer without a name is about the connection itself.
        if answer.id.is_some_and(|found| found != sent.id) {
            return None;
        }
        let (Some(key), Some(challenged)) = (&self.key, &sent.challenged) else {
            return Some(taken(answer));
        };
        if let (None, Some(fault)) = (answer.id, &answer.error) {
            return Some(Err(CallError::Refused(fault.code)));
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let proven = key.verify(challenged, line).map_err(unproven);
        // Read again, so that nothing counts but the bytes that were signed.
        Some(proven.and_then(|answer| taken(read_answer(&answer)?)))
    }
}

fn read_answer(line: &[u8]) -> Result<Answer, CallError> {
    json::read(line).map_err(|error| CallError::Unreadable(error.to_string()))
}

fn taken(answer: Answer) -> Result<Value, CallError> {
    match (answer.error, answer.result) {
        (Some(fault), _) => Err(CallError::Fault(fault)),
        (None, Some(result)) if answer.id.is_some() => Ok(result),
        (None, Some(_) | None) => {
            let why = "neither a result nor an error".to_owned();
            Err(CallError::Unreadable(why))
        }
    }
}

impl Client {
    /// Connects to the console with that key. Everything that is asked has to be answered before `until`.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn connect(path: &Path, key: AnswerVerifier, until: Instant) -> Result<Self, CallError> {
        let unreachable = |_| CallError::Unreachable(path.to_owned());
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        Ok(Self {
            reader: BufReader::new(stream),
            proof: Proof {
                socket: path.to_owned(),
                key: Some(key),
            },
            asked: 0,
            until,
        })
    }

    /// Lets somebody else cut it off.
    ///
    /// # Errors
    /// When the system has no further handle for it.
    pub(super) fn tie(&self, leash: &Leash) -> Result<(), CallError> {
        let stream = self.reader.get_ref().try_clone();
        leash.tie(stream.map_err(|error| failed(&error))?);
        Ok(())
    }

    /// Asks, and waits for the answer of the console with the expected key.
    ///
    /// # Errors
    /// Whatever comes that is no result. Nothing but a result means yes.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.asked += 1;
        let left = self.left()?;
        let stream = self.reader.get_mut();
        stream
            .set_write_timeout(Some(left))
            .map_err(|error| failed(&error))?;
        let sent = self.proof.write(self.asked, method, params)?;
        stream
            .write_all(sent.line.as_bytes())
            .map_err(|error| failed(&error))?;
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
            let left = self.left()?;
            let stream = self.reader.get_ref();
            stream
                .set_read_timeout(Some(left))
                .map_err(|error| failed(&error))?;
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) => return Err(CallError::Gone),
                Ok(_) if line.last() == Some(&b'\n') => return Ok(line),
                // Cut off: the next reading tells that it is over.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// The time that is left: never none, which would mean for ever.
    fn left(&self) -> Result<Duration, CallError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(CallError::Late)
        } else {
            Ok(left)
        }
    }
}

/// A connection to a console, for those who have other things to wait for as well.
#[derive(Debug)]
pub struct Speaker {
    reader: tokio::io::BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    proof: Proof,
    asked: u64,
}

impl Speaker {
    /// Connects. Answers are taken as they come: nothing may run because of them.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(path: &Path) -> Result<Self, CallError> {
        Self::connect_to(path, None).await
    }

    /// Connects to the console with that key. An answer of any other process is an error.
    ///
    /// # Errors
    /// When no process listens.
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
            proof: Proof {
                socket: path.to_owned(),
                key,
            },
            asked: 0,
        })
    }

    /// Asks, and waits for the answer, for as long as it takes. Dropping this leaves the connection of no
    /// further use: what comes next might be the answer to it.
    ///
    /// # Errors
    /// Whatever comes that is no result.
    pub async fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.asked += 1;
        let sent = self.proof.write(self.asked, method, params)?;
        let written = self.writer.write_all(sent.line.as_bytes()).await;
        written.map_err(|error| failed(&error))?;
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line).await;
            if read.map_err(|error| failed(&error))? == 0 {
                return Err(CallError::Gone);
            }
            if let Some(answered) = self.proof.read(&line, &sent) {
                return answered;
            }
        }
    }
}

fn failed(error: &io::Error) -> CallError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CallError::Late,
        _ => CallError::Gone,
    }
}
