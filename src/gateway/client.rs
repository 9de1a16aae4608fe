//! The other side of the socket, for commands that ask the console.
//!
//! It waits without a runtime of its own: a command that runs before each step of an agent has to start in
//! no time.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::call::Fault;

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
}

/// A connection to a console.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    asked: u64,
    until: Instant,
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

/// A request as it is written.
fn message(id: u64, method: &str, params: &Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    format!("{message}\n")
}

/// What a line answers; nothing, if it answers something else.
fn answered(line: &[u8], id: u64) -> Option<Result<Value, CallError>> {
    let answer: Answer = match serde_json::from_slice(line) {
        Ok(answer) => answer,
        Err(error) => return Some(Err(CallError::Unreadable(error.to_string()))),
    };
    // An answer without a name is about the connection itself.
    if answer.id.is_some_and(|found| found != id) {
        return None;
    }
    match (answer.error, answer.result) {
        (Some(fault), _) => Some(Err(CallError::Fault(fault))),
        (None, Some(result)) if answer.id.is_some() => Some(Ok(result)),
        (None, Some(_) | None) => {
            let why = "neither a result nor an error".to_owned();
            Some(Err(CallError::Unreadable(why)))
        }
    }
}

impl Client {
    /// Connects. Everything that is asked has to be answered before `until`.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn connect(path: &Path, until: Instant) -> Result<Self, CallError> {
        let unreachable = |_| CallError::Unreachable(path.to_owned());
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        Ok(Self {
            reader: BufReader::new(stream),
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

    /// Asks, and waits for the answer.
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
        let message = message(self.asked, method, params);
        stream
            .write_all(message.as_bytes())
            .map_err(|error| failed(&error))?;
        loop {
            let line = self.read()?;
            if let Some(answered) = answered(&line, self.asked) {
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
    asked: u64,
}

impl Speaker {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(path: &Path) -> Result<Self, CallError> {
        let stream = tokio::net::UnixStream::connect(path).await;
        let stream = stream.map_err(|_| CallError::Unreachable(path.to_owned()))?;
        let (reader, writer) = stream.into_split();
        Ok(Self {
            reader: tokio::io::BufReader::new(reader),
            writer,
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
        let message = message(self.asked, method, params);
        let written = self.writer.write_all(message.as_bytes()).await;
        written.map_err(|error| failed(&error))?;
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line).await;
            if read.map_err(|error| failed(&error))? == 0 {
                return Err(CallError::Gone);
            }
            if let Some(answered) = answered(&line, self.asked) {
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
