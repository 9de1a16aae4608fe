//! Lines of a connection, limited in size and time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::base::limits::{LARGE_MESSAGE, MAX_MESSAGE_BYTES, MESSAGE_TIMEOUT};
use crate::base::limits::{LARGE_MESSAGE_GRACE, LARGE_MESSAGE_RATE};

/// Reason why a connection has no further line.
#[derive(Debug)]
pub(in crate::gateway) enum LineEnd {
    /// The other side has closed.
    Closed,
    /// A line exceeds the limit.
    TooLong,
    /// A line was begun and not finished in time.
    TooSlow,
    /// The connection failed.
    Failed(io::Error),
}

/// Reader of lines. Dropping the future of [`LineReader::next`] loses nothing.
#[derive(Debug)]
pub(in crate::gateway) struct LineReader<R> {
    reader: R,
    line: Vec<u8>,
    /// Time by which the current line has to be complete.
    due: Option<Instant>,
    /// Permits for large messages: the caller's own, and the shared ones.
    large: Vec<Arc<Semaphore>>,
    permits: Vec<OwnedSemaphorePermit>,
    /// Time at which the line got all its permits, and its length then.
    permits_since: Option<(Instant, usize)>,
    rate: LineRate,
}

/// Rate at which a line has to arrive once it has permits for large messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineRate {
    /// Any rate within the time for a message: the permits belong to this connection alone.
    Unlimited,
    /// At least [`LARGE_MESSAGE_RATE`]: other connections wait for the permits.
    Bounded,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(in crate::gateway) fn new(reader: R, large: Vec<Arc<Semaphore>>) -> Self {
        Self {
            reader,
            line: Vec::new(),
            due: None,
            large,
            permits: Vec::new(),
            permits_since: None,
            rate: LineRate::Unlimited,
        }
    }

    /// Cuts off large lines that arrive too slowly, because other connections wait for their permits.
    pub(in crate::gateway) fn with_bounded_rate(self) -> Self {
        Self {
            rate: LineRate::Bounded,
            ..self
        }
    }

    /// Returns the next line, without its end.
    pub(in crate::gateway) async fn next(&mut self) -> Result<Vec<u8>, LineEnd> {
        loop {
            let Some(due) = self.due else {
                // No line has begun: the client may be silent without a limit.
                self.reader.fill_buf().await.map_err(LineEnd::Failed)?;
                self.due = Some(Instant::now() + MESSAGE_TIMEOUT);
                continue;
            };
            if self.line.len() > LARGE_MESSAGE && self.permits.len() < self.large.len() {
                // The client did not cause the wait for a permit, so that time does not count.
                let since = Instant::now();
                // Always in one order, so that no two callers wait for each other.
                if let Some(large) = self.large.get(self.permits.len()) {
                    let room = Arc::clone(large).acquire_owned().await;
                    self.permits.push(room.map_err(|_| LineEnd::Closed)?);
                }
                self.due = Some(due + since.elapsed());
                if self.permits.len() == self.large.len() {
                    self.permits_since = Some((Instant::now(), self.line.len()));
                }
                continue;
            }
            match timeout_at(self.read_deadline(due), self.read_available()).await {
                Ok(Ok(true)) => {
                    self.due = None;
                    self.permits.clear();
                    self.permits_since = None;
                    return Ok(std::mem::take(&mut self.line));
                }
                Ok(Ok(false)) => {}
                Ok(Err(over)) => return Err(over),
                Err(_) => return Err(LineEnd::TooSlow),
            }
        }
    }

    /// Returns the time by which more has to arrive: a line that holds permits keeps other connections
    /// waiting.
    fn read_deadline(&self, due: Instant) -> Instant {
        let (Some((since, before)), LineRate::Bounded) = (self.permits_since, self.rate) else {
            return due;
        };
        let come = self.line.len().saturating_sub(before);
        let earned = Duration::from_secs(1) * u32::try_from(come / LARGE_MESSAGE_RATE).unwrap_or(0);
        due.min(since + LARGE_MESSAGE_GRACE + earned)
    }

    /// Reads the available bytes. Returns true if they complete a line.
    async fn read_available(&mut self) -> Result<bool, LineEnd> {
        let come = self.reader.fill_buf().await.map_err(LineEnd::Failed)?;
        if come.is_empty() {
            return Err(LineEnd::Closed);
        }
        let end = memchr::memchr(b'\n', come);
        let part = come.get(..end.unwrap_or(come.len())).unwrap_or_default();
        if self.line.len() + part.len() > MAX_MESSAGE_BYTES {
            return Err(LineEnd::TooLong);
        }
        self.line.extend_from_slice(part);
        let taken = part.len() + usize::from(end.is_some());
        self.reader.consume(taken);
        Ok(end.is_some())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, duplex};
    use tokio::time::sleep;

    use super::*;

    const SIZE: usize = LARGE_MESSAGE * 2;

    fn connection(large: &Arc<Semaphore>) -> (DuplexStream, LineReader<BufReader<DuplexStream>>) {
        let (agent, console) = duplex(MAX_MESSAGE_BYTES);
        let lines = LineReader::new(BufReader::new(console), vec![Arc::clone(large)]);
        (agent, lines.with_bounded_rate())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_large_message_is_cut_off_and_another_gets_its_permit() {
        let room = Arc::new(Semaphore::new(1));
        let (mut stalled, mut stalled_lines) = connection(&room);
        let (mut whole, mut whole_lines) = connection(&room);
        stalled.write_all(&vec![b'x'; SIZE]).await.unwrap();
        let begun = Instant::now();
        let cut = tokio::spawn(async move { stalled_lines.next().await.map(|line| line.len()) });
        tokio::task::yield_now().await;
        whole.write_all(&vec![b'y'; SIZE]).await.unwrap();
        whole.write_all(b"\n").await.unwrap();
        let line = whole_lines.next().await.unwrap();
        assert_eq!(line.len(), SIZE);
        assert_eq!(begun.elapsed().as_secs(), LARGE_MESSAGE_GRACE.as_secs());
        assert!(matches!(cut.await.unwrap(), Err(LineEnd::TooSlow)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_waits_for_one_that_keeps_arriving() {
        let room = Arc::new(Semaphore::new(1));
        let (mut steady, mut steady_lines) = connection(&room);
        let (mut whole, mut whole_lines) = connection(&room);
        steady.write_all(&vec![b'x'; SIZE]).await.unwrap();
        let steady_line = tokio::spawn(async move { steady_lines.next().await });
        tokio::task::yield_now().await;
        whole.write_all(&vec![b'y'; SIZE]).await.unwrap();
        whole.write_all(b"\n").await.unwrap();
        let whole_line = tokio::spawn(async move { whole_lines.next().await });
        for _ in 0..5 {
            sleep(LARGE_MESSAGE_GRACE / 2).await;
            steady
                .write_all(&vec![b'x'; LARGE_MESSAGE_RATE])
                .await
                .unwrap();
            assert!(!whole_line.is_finished());
        }
        steady.write_all(b"\n").await.unwrap();
        let steady_line = steady_line.await.unwrap().unwrap();
        assert_eq!(steady_line.len(), SIZE + 5 * LARGE_MESSAGE_RATE);
        assert_eq!(whole_line.await.unwrap().unwrap().len(), SIZE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_message_has_the_whole_message_time() {
        let room = Arc::new(Semaphore::new(1));
        let (mut agent, mut lines) = connection(&room);
        agent.write_all(b"{").await.unwrap();
        let begun = Instant::now();
        assert!(matches!(lines.next().await, Err(LineEnd::TooSlow)));
        assert_eq!(begun.elapsed().as_secs(), MESSAGE_TIMEOUT.as_secs());
    }
}
