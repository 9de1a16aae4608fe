//! One connection: several requests at a time, and the answers as they come.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::time::{Instant, sleep_until, timeout};

use super::lines::{LineEnd, LineReader};
use super::{CountedConnection, SocketState};
use crate::base::limits::{
    CALLS_PER_SECOND, FIRST_CALLS, MAX_MESSAGE_BYTES, MAX_PENDING_CALLS, MESSAGE_TIMEOUT,
};
use crate::engine::command::Caller;
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::proof::AnswerSigner;
use crate::gateway::protocol::rpc::{self, RpcRequest};
use crate::gateway::transport::admission::OpenConnection;
use crate::gateway::transport::agent_connection::AgentConnection;

/// Time for outstanding answers after the last request.
const ANSWER_GRACE: Duration = Duration::from_millis(100);

/// Serves a connection until it is closed. Requests that still wait then are withdrawn.
pub(super) async fn serve(
    stream: UnixStream,
    from: Caller,
    shared: SocketState,
    entered: OpenConnection,
) {
    // Declared first, so that it is dropped last: a connection that is no longer counted has no waiting
    // request.
    let _present = CountedConnection::among(&shared.connections);
    // Declared second, so that a connection is free by the time this one is no longer counted.
    let entered = entered;
    let (reader, mut writer) = stream.into_split();
    let signer = shared.gateway.signer.clone();
    let connection = AgentConnection::new(shared.gateway, from);
    let large = vec![connection.large_messages(), shared.large];
    let mut lines = LineReader::new(BufReader::new(reader), large).with_bounded_rate();
    let mut asked = FuturesUnordered::new();
    let mut pace = CallRate::new();
    let over = loop {
        let room = asked.len() < MAX_PENDING_CALLS;
        tokio::select! {
            Some((_waiting, answer)) = asked.next() => {
                if write(&mut writer, answer).await.is_err() {
                    return;
                }
            }
            () = entered.wait_for_close() => break None,
            line = async { pace.wait().await; lines.next().await }, if room => match line {
                Ok(line) if line.trim_ascii().is_empty() => {}
                Ok(line) => {
                    pace.count();
                    let Some(waiting) = entered.begin_call() else {
                        break None;
                    };
                    let reply = answer_request(&connection, &signer, RpcRequest::read(&line));
                    asked.push(async { (waiting, reply.await) });
                }
                Err(over) => break Some(over),
            },
        }
    };
    // A client that has closed its side may still read. The server cannot know, so slow answers are
    // dropped.
    let ready = async {
        while let Some((_waiting, answer)) = asked.next().await {
            if write(&mut writer, answer).await.is_err() {
                break;
            }
        }
    };
    let _ = timeout(ANSWER_GRACE, ready).await;
    if let Some(fault) = closing_fault(over.as_ref()) {
        // A client that does not read it sees that the connection is closed.
        let _ = write(&mut writer, Some(rpc::answer(None, Err(fault)))).await;
    }
}

/// Answers a request; `None` if the caller wants no answer.
async fn answer_request(
    connection: &AgentConnection,
    signer: &AnswerSigner,
    asked: RpcRequest,
) -> Option<String> {
    let wants = asked.id.is_some() || asked.call.is_err();
    let result = match asked.call {
        Ok(call) => connection.execute_call(call).await,
        Err(fault) => Err(fault),
    };
    wants.then(|| match asked.challenged {
        Some(challenged) => rpc::proven_answer(asked.id.as_ref(), result, &challenged, signer),
        None => rpc::answer(asked.id.as_ref(), result),
    })
}

/// Returns the last message on a connection. If `over` is `None`, the connection made room for another.
fn closing_fault(over: Option<&LineEnd>) -> Option<CallFault> {
    let Some(over) = over else {
        let why = "too many connections: this one was idle longest and is closed; connect again";
        return Some(CallFault::new(CallFault::BUSY, why));
    };
    match over {
        LineEnd::Closed => None,
        LineEnd::TooLong => Some(format!("a message must have at most {MAX_MESSAGE_BYTES} bytes")),
        LineEnd::TooSlow => Some(format!(
            "a message must be complete within {} seconds, and a large one must arrive without pauses",
            MESSAGE_TIMEOUT.as_secs()
        )),
        LineEnd::Failed(error) => {
            tracing::debug!(%error, "a connection failed");
            None
        }
    }
    .map(|why| CallFault::new(CallFault::REQUEST, why))
}

/// Writes an answer. A client that does not read in time is not waited for.
async fn write(writer: &mut OwnedWriteHalf, line: Option<String>) -> io::Result<()> {
    let Some(line) = line else { return Ok(()) };
    timeout(MESSAGE_TIMEOUT, writer.write_all(line.as_bytes())).await?
}

/// Rate limit of one connection: faster requests stay unread and wait.
struct CallRate {
    /// Time at which all requests so far are due at the allowed rate.
    due: Instant,
}

impl CallRate {
    /// Interval between calls at the highest rate.
    const STEP: Duration = Duration::from_nanos(1_000_000_000 / CALLS_PER_SECOND);

    /// Starts a rate. The first [`FIRST_CALLS`] of a connection may come at once.
    fn new() -> Self {
        let now = Instant::now();
        Self {
            due: now.checked_sub(Self::STEP * FIRST_CALLS).unwrap_or(now),
        }
    }

    /// Counts a call. Calls of one second may come at once.
    fn count(&mut self) {
        let earliest = Instant::now().checked_sub(Duration::from_secs(1));
        self.due = earliest.map_or(self.due, |earliest| self.due.max(earliest)) + Self::STEP;
    }

    async fn wait(&self) {
        if self.due > Instant::now() {
            sleep_until(self.due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_calls_of_one_hook_do_not_wait_on_a_new_connection() {
        let begun = Instant::now();
        let mut pace = CallRate::new();
        for _ in 0..=FIRST_CALLS {
            pace.wait().await;
            pace.count();
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pace.wait().await;
        assert!(begun.elapsed() >= CallRate::STEP);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_above_the_rate_wait() {
        let second = Duration::from_secs(1);
        let mut pace = CallRate::new();
        advance(second).await;
        // Calls of one second may come at once.
        let begun = Instant::now();
        for _ in 0..CALLS_PER_SECOND {
            pace.wait().await;
            pace.count();
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..CALLS_PER_SECOND {
            pace.wait().await;
            pace.count();
        }
        let took = begun.elapsed().as_millis();
        assert!((990..=1010).contains(&took), "{took} ms");
    }
}
