//! What somebody tried with a session that is not theirs to speak for, or with a run that was never theirs: it is
//! refused elsewhere, and on record here, in the session that it was tried on.
//!
//! Whoever tries again and again cannot fill the disk with it: the first time is recorded, and then one time a
//! minute with the number of those between.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::event::{Durability, ErrorOccurred};

use super::command::{Caller, Command};
use super::lifecycle::session_place;
use super::turn::Turn;

/// The time in which no more than one of a kind is recorded of a session.
const MINUTE: Duration = Duration::from_mins(1);

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trick {
    /// To speak for a session without its secret.
    Takeover,
    /// To tell of a run that was not allowed, or to tell of it twice.
    Execution,
    /// To write into a thread of another session.
    Thread,
    /// To begin more threads than a session may have.
    ThreadLimit,
    /// To answer at a gate of another session.
    Gate,
}

impl Trick {
    const ALL: [Self; 5] = [
        Self::Takeover,
        Self::Execution,
        Self::Thread,
        Self::ThreadLimit,
        Self::Gate,
    ];

    /// What the record calls it.
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

/// What was shown of a session's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing.
    Nothing,
    /// Another secret, or another agent's name beside it.
    Wrong,
}

/// What was tried of late. It goes with the process.
#[derive(Debug, Default)]
pub(super) struct Tries(BTreeMap<(SessionId, Trick), Tally>);

/// What was tried since something was recorded.
#[derive(Debug)]
struct Tally {
    recorded_at: Timestamp,
    since: u64,
    /// The last of them, in words.
    last: String,
}

impl Tries {
    /// Changes every moment at which something was recorded.
    pub(super) fn adjust_moments(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        for tally in self.0.values_mut() {
            tally.recorded_at = adjust(tally.recorded_at);
        }
    }
}

impl Tally {
    fn is_due(&self, now: Timestamp) -> bool {
        now.since(self.recorded_at) >= MINUTE
    }
}

impl Turn<'_> {
    /// Somebody speaks for a session without its secret.
    pub(super) fn refuse_stranger(
        &mut self,
        session: &SessionId,
        from: Option<&Caller>,
        shown: Shown,
    ) {
        let who = from.map_or_else(|| "in this process".to_owned(), ToString::to_string);
        let shown = match shown {
            Shown::Nothing => "showed no key",
            Shown::Wrong => "showed a wrong key",
        };
        let what = format!("somebody {who} named this session and {shown}, and was refused");
        self.tried(session, Trick::Takeover, what);
    }

    /// Records what was tried, or counts it, where something like it was recorded a moment ago.
    pub(super) fn tried(&mut self, session: &SessionId, trick: Trick, what: String) {
        if self.live(session).is_none() {
            return;
        }
        let now = self.now;
        let key = (session.clone(), trick);
        if let Some(tally) = self.state().tries.0.get_mut(&key)
            && !tally.is_due(now)
        {
            tally.since = tally.since.saturating_add(1);
            tally.last = what;
            return;
        }
        let before = self.state().tries.0.remove(&key);
        self.record_tried(session, trick, what, before.map_or(0, |it| it.since));
    }

    /// Records what was counted, when its time has come.
    pub(super) fn tell_tries(&mut self, command: &Command) {
        if self.engine.state.tries.0.is_empty() {
            return;
        }
        let Some(session) = command.session() else {
            return;
        };
        let ends = matches!(command, Command::EndSession(..));
        for trick in Trick::ALL {
            let key = (session.clone(), trick);
            let now = self.now;
            let tallies = &mut self.state().tries.0;
            let due = tallies.get(&key).is_some_and(|it| ends || it.is_due(now));
            let told = due.then(|| tallies.remove(&key)).flatten();
            if let Some(tally) = told.filter(|it| it.since > 0) {
                self.record_tried(session, trick, tally.last, tally.since - 1);
            }
        }
    }

    fn record_tried(&mut self, session: &SessionId, trick: Trick, what: String, others: u64) {
        let Some(root) = self.live(session).map(session_place) else {
            return;
        };
        let message = match others {
            0 => what,
            others => format!("{what}; {others} more like it since the last that is recorded"),
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
        let place = root.below(self.new_span());
        // At every level of detail, and on disk before whoever tried hears the refusal.
        self.record_as(&place, record, Durability::Sync);
        let tally = Tally {
            recorded_at: self.now,
            since: 0,
            last: String::new(),
        };
        let key = (session.clone(), trick);
        self.state().tries.0.insert(key, tally);
    }

    /// Forgets what was tried with a session that is over.
    pub(super) fn forget_tries(&mut self, session: &SessionId) {
        self.state().tries.0.retain(|(of, _), _| of != session);
    }
}
