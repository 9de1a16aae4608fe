//! Lines of a connection, each of bounded size and in bounded time.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::base::limits::{LARGE_MESSAGE, MAX_MESSAGE_BYTES, MESSAGE_TIME};

/// Why there is no further line.
#[derive(Debug)]
pub(in crate::gateway) enum Over {
    /// The other side has closed.
    Closed,
    /// A line is longer than any may be.
    TooLong,
    /// A line was begun and not finished.
    TooSlow,
    /// The connection failed.
    Failed(io::Error),
}

/// Lines, read one after the other. Dropping [`Lines::next`] loses nothing.
#[derive(Debug)]
pub(in crate::gateway) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    /// When the line that was begun has to be finished.
    due: Option<Instant>,
    /// Room for large messages: the caller's own share, and what all share.
    large: Vec<Arc<Semaphore>>,
    room: Vec<OwnedSemaphorePermit>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(in crate::gateway) fn new(reader: R, large: Vec<Arc<Semaphore>>) -> Self {
        Self {
            reader,
            line: Vec::new(),
            due: None,
            large,
            room: Vec::new(),
        }
    }

    /// The next line, without its end.
    pub(in crate::gateway) async fn next(&mut self) -> Result<Vec<u8>, Over> {
        loop {
            let Some(due) = self.due else {
                // Nothing was begun: they may be silent for as long as they like.
                self.reader.fill_buf().await.map_err(Over::Failed)?;
                self.due = Some(Instant::now() + MESSAGE_TIME);
                continue;
            };
            if self.line.len() > LARGE_MESSAGE && self.room.len() < self.large.len() {
                // That there is no room is not their fault: the wait for it does not count.
                let since = Instant::now();
                // Always in the same order, so that no two callers wait for each other.
                if let Some(large) = self.large.get(self.room.len()) {
                    let room = Arc::clone(large).acquire_owned().await;
                    self.room.push(room.map_err(|_| Over::Closed)?);
                }
                self.due = Some(due + since.elapsed());
                continue;
            }
            match timeout_at(due, self.more()).await {
                Ok(Ok(true)) => {
                    self.due = None;
                    self.room.clear();
                    return Ok(std::mem::take(&mut self.line));
                }
                Ok(Ok(false)) => {}
                Ok(Err(over)) => return Err(over),
                Err(_) => return Err(Over::TooSlow),
            }
        }
    }

    /// Takes what has come; whether that ends a line.
    async fn more(&mut self) -> Result<bool, Over> {
        let come = self.reader.fill_buf().await.map_err(Over::Failed)?;
        if come.is_empty() {
            return Err(Over::Closed);
        }
        let end = memchr::memchr(b'\n', come);
        let part = come.get(..end.unwrap_or(come.len())).unwrap_or_default();
        if self.line.len() + part.len() > MAX_MESSAGE_BYTES {
            return Err(Over::TooLong);
        }
        self.line.extend_from_slice(part);
        let taken = part.len() + usize::from(end.is_some());
        self.reader.consume(taken);
        Ok(end.is_some())
    }
}
