//! Misuse of sessions: attempts to use a session or a run without the right to do so.
//!
//! Other modules refuse these attempts. This module records them, in the session concerned. Repeated attempts
//! cannot fill the disk: the first one is recorded, then one per minute, with the number of attempts in
//! between.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::event::{Durability, ErrorOccurred};

use crate::engine::command::{Caller, EngineCommand};
use crate::engine::sessions::lifecycle::session_position;
use crate::engine::transaction::Transaction;

/// Minimum time between two records of one kind in a session.
const RECORD_INTERVAL: Duration = Duration::from_mins(1);

/// Kinds of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Misuse {
    /// Use of a session without its secret.
    Takeover,
    /// Report of a run that was not allowed, or a second report.
    Execution,
    /// Writing to a thread of another session.
    Thread,
    /// More threads than a session may have.
    ThreadLimit,
    /// An answer at a gate of another session.
    Gate,
}

impl Misuse {
    const ALL: [Self; 5] = [
        Self::Takeover,
        Self::Execution,
        Self::Thread,
        Self::ThreadLimit,
        Self::Gate,
    ];

    /// Returns the error type in the record.
    fn error_type(self) -> &'static str {
        match self {
            Self::Takeover => "session_takeover",
            Self::Execution => "unknown_execution",
            Self::Thread => "foreign_thread",
            Self::ThreadLimit => "thread_limit",
            Self::Gate => "foreign_gate",
        }
    }
}

/// Secret that a caller showed for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownSecret {
    /// No secret.
    Nothing,
    /// A wrong secret, or another agent's name with it.
    Wrong,
}

/// Recent misuse, by session and kind. It is not persisted.
#[derive(Debug, Default)]
pub(crate) struct MisuseTallies(BTreeMap<(SessionId, Misuse), MisuseTally>);

/// Misuse since the last record.
#[derive(Debug)]
struct MisuseTally {
    recorded_at: Timestamp,
    attempts: u64,
    /// Description of the last attempt.
    last: String,
}

impl MisuseTallies {
    /// Applies `adjust` to the time of every record.
    pub(crate) fn adjust_timestamps(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        for tally in self.0.values_mut() {
            tally.recorded_at = adjust(tally.recorded_at);
        }
    }
}

impl MisuseTally {
    fn is_due(&self, now: Timestamp) -> bool {
        now.since(self.recorded_at) >= RECORD_INTERVAL
    }
}

/// Records that a caller used a session without its secret.
pub(crate) fn record_takeover_attempt(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    from: Option<&Caller>,
    shown: ShownSecret,
) {
    let who = from.map_or_else(|| "in this process".to_owned(), ToString::to_string);
    let shown = match shown {
        ShownSecret::Nothing => "without its key",
        ShownSecret::Wrong => "with a wrong key",
    };
    let what = format!("a caller {who} named this session {shown}, and was refused");
    record_misuse(tx, session, Misuse::Takeover, what);
}

/// Records an attempt, or counts it if a similar one was recorded within the last minute.
pub(crate) fn record_misuse(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    trick: Misuse,
    what: String,
) {
    if tx.live_session(session).is_none() {
        return;
    }
    let now = tx.now;
    let key = (session.clone(), trick);
    if let Some(tally) = tx.state().misuse.0.get_mut(&key)
        && !tally.is_due(now)
    {
        tally.attempts = tally.attempts.saturating_add(1);
        tally.last = what;
        return;
    }
    let before = tx.state().misuse.0.remove(&key);
    write_misuse_record(
        tx,
        session,
        trick,
        what,
        before.map_or(0, |tally| tally.attempts),
    );
}

/// Records the counted attempts of a session when a minute has passed, or when the session ends.
pub(crate) fn record_due_misuse(tx: &mut Transaction<'_>, command: &EngineCommand) {
    if tx.engine.state.misuse.0.is_empty() {
        return;
    }
    let Some(session) = command.session() else {
        return;
    };
    let ends = matches!(command, EngineCommand::EndSession(..));
    for trick in Misuse::ALL {
        let key = (session.clone(), trick);
        let now = tx.now;
        let tallies = &mut tx.state().misuse.0;
        let due = tallies
            .get(&key)
            .is_some_and(|tally| ends || tally.is_due(now));
        let written = due.then(|| tallies.remove(&key)).flatten();
        if let Some(tally) = written.filter(|tally| tally.attempts > 0) {
            write_misuse_record(tx, session, trick, tally.last, tally.attempts - 1);
        }
    }
}

fn write_misuse_record(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    trick: Misuse,
    what: String,
    others: u64,
) {
    let Some(root) = tx.live_session(session).map(session_position) else {
        return;
    };
    let message = match others {
        0 => what,
        others => format!("{what} ({others} more since the last record)"),
    };
    let record = ErrorOccurred {
        error_type: trick.error_type().to_owned(),
        error_code: None,
        message,
        recoverable: true,
        context_provided: None,
        stack_trace: None,
        redacted: Vec::new(),
    };
    let position = root.child(tx.new_span());
    // Stored at every level of detail, and on disk before the caller gets the refusal.
    tx.record_as(&position, record, Durability::Sync);
    let tally = MisuseTally {
        recorded_at: tx.now,
        attempts: 0,
        last: String::new(),
    };
    let key = (session.clone(), trick);
    tx.state().misuse.0.insert(key, tally);
}

/// Forgets the attempts on an ended session.
pub(crate) fn forget_misuse(tx: &mut Transaction<'_>, session: &SessionId) {
    tx.state().misuse.0.retain(|(of, _), _| of != session);
}
