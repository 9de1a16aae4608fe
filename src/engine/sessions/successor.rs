//! Conversations that go on after their session has ended.
//!
//! Contract: a session called `NAME.N` goes on with the conversation of `NAME`. It takes over from the newest session of
//! that conversation every gate that was not passed, every lock and denial, the use of limits that count for one
//! session, and the time and runs that intervals and conditions count. It takes over no grant: capabilities, allowed
//! actions and contexts have to be earned again. The end of a session is on record with all of this, so a restart
//! changes nothing. Where the record does not say what a session owed, its conversation cannot go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::MAX_RESUMPTIONS;
use crate::trace::event::{
    FinalStatus, Owed, OwedDenial, OwedGate, OwedInterval, OwedStart, SessionEnded,
};

use super::lifecycle::millis;
use super::session::{IntervalMark, Session, StartState, UnpassedGates};
use crate::engine::command::{DenialReply, DenyCode};
use crate::engine::gates::agent_answers::is_for_agent;
use crate::engine::gates::held::{HeldSubject, SessionEvent};
use crate::engine::records::redaction::{redact_optional_text, redact_reason};
use crate::engine::transaction::Transaction;
use crate::engine::{Engine, State};

/// Facts about a moment that its gate keeps in another session. Others may hold texts of the agent.
const KEPT_DATA: [&str; 3] = ["action_id", "input_hash", "success"];

/// Time and runs of a conversation before a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// Time that its sessions lasted.
    pub lasted_ms: u64,
    /// Runs that they were allowed.
    pub actions: u64,
}

impl Earlier {
    /// Tells whether there was nothing before.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Names of the sessions whose conversation a session goes on with, the newest first.
fn earlier_sessions(session: &SessionId) -> Vec<SessionId> {
    let Some((first, number)) = session.as_str().rsplit_once('.') else {
        return Vec::new();
    };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    // A number too large to read is larger than every one that is looked at.
    let number = number.parse().unwrap_or(u32::MAX);
    let newest = number.saturating_sub(1).min(MAX_RESUMPTIONS);
    let resumed = (1..=newest)
        .rev()
        .map(|earlier| format!("{first}.{earlier}"));
    let names = resumed.chain([first.to_owned()]);
    names.filter_map(|name| name.parse().ok()).collect()
}

impl Engine {
    /// Returns the first predecessor of a new session that the engine knows too little
    /// about: the record has to be asked. `asked` are those that the record was asked about.
    #[must_use]
    pub fn unknown_predecessor(
        &self,
        session: &SessionId,
        asked: &[SessionId],
    ) -> Option<SessionId> {
        if self.knows_session(session) {
            return None;
        }
        let earlier = earlier_sessions(session).into_iter();
        let mut earlier = earlier.filter(|name| !asked.contains(name));
        let next = earlier.next()?;
        let known = self.state.sessions.contains_key(&next) || self.state.ended.knows_end(&next);
        (!known).then_some(next)
    }

    /// Takes in how a session ended that the record has.
    pub fn note_end(&mut self, session: SessionId, ended: SessionEnded) {
        if !self.state.sessions.contains_key(&session) {
            self.state.ended.insert_end(session, Arc::new(ended));
        }
    }
}

impl Session {
    /// Runs that its conversation was allowed.
    #[must_use]
    pub fn conversation_actions(&self) -> u64 {
        self.actions.saturating_add(self.earlier.actions)
    }

    /// Start of its conversation, without the time between its sessions.
    #[must_use]
    pub fn conversation_started_at(&self) -> Timestamp {
        before(
            self.started_at,
            Duration::from_millis(self.earlier.lasted_ms),
        )
    }

    /// Takes over what a session left behind. Limits are kept elsewhere.
    pub(crate) fn take_over(
        &mut self,
        predecessor: SessionId,
        ended: &SessionEnded,
        now: Timestamp,
    ) {
        self.continues = Some(predecessor);
        let owed = ended.owed.clone().unwrap_or_default();
        self.earlier = Earlier {
            lasted_ms: owed.earlier_ms.saturating_add(ended.duration_ms),
            actions: owed.earlier_actions.saturating_add(ended.actions_taken),
        };
        self.entry = match owed.start {
            None => StartState::Open,
            Some(OwedStart::Refused { reason }) => StartState::Refused { reason },
            Some(OwedStart::Unanswered { checkpoints }) => StartState::Lapsed { owed: checkpoints },
        };
        self.unpassed = owed.gates.into_iter().map(UnpassedGates::from).collect();
        for (capability, atlases) in owed.locked {
            if !atlases.is_empty() {
                self.locked_by.insert(capability.clone(), atlases);
            }
            self.locked.insert(capability);
        }
        let denied = owed.denied.into_iter();
        self.denied = denied
            .map(|denial| (denial.checkpoint_id, denial.actions.into_iter().collect()))
            .collect();
        let intervals = owed.intervals.into_iter();
        self.interval_marks = intervals
            .map(|interval| IntervalMark {
                key: (interval.atlas_id, interval.checkpoint_id),
                at: before(now, Duration::from_millis(interval.elapsed_ms)),
                actions: interval.actions,
            })
            .collect();
    }
}

impl From<OwedGate> for UnpassedGates {
    fn from(gate: OwedGate) -> Self {
        Self {
            moment: SessionEvent {
                // Input that did not reach the agent is not owed.
                reached_agent: gate.kind == "keyword_match",
                kind: gate.kind,
                label: gate.label,
                data: gate.data,
                event: None,
                text: None,
            },
            checkpoints: gate.checkpoints,
        }
    }
}

impl From<&UnpassedGates> for OwedGate {
    fn from(unpassed: &UnpassedGates) -> Self {
        let UnpassedGates {
            moment,
            checkpoints,
        } = unpassed;
        let mut data = moment.data.clone();
        if let Value::Object(fields) = &mut data {
            fields.retain(|name, _| KEPT_DATA.contains(&name.as_str()));
        }
        Self {
            kind: moment.kind.clone(),
            label: moment.label.clone(),
            data,
            checkpoints: checkpoints.clone(),
        }
    }
}

impl State {
    /// Gates that a session owes: those that were put up and not passed, and those that are held.
    fn owed_gates(&self, session: &Session) -> Vec<OwedGate> {
        let pending = session.pending.iter().filter_map(|gate| {
            let held = &self.held.get(gate)?.held;
            let HeldSubject::Moment(moment) = &held.subject else {
                return None;
            };
            let reached = moment.reached_agent && is_for_agent(held);
            (moment.kind != "keyword_match" || reached).then(|| UnpassedGates {
                moment: moment.clone().without_text(),
                checkpoints: held.checkpoint_ids(),
            })
        });
        let unpassed = session.unpassed.iter().map(OwedGate::from);
        unpassed
            .chain(pending.map(|pending| OwedGate::from(&pending)))
            .collect()
    }

    fn owed_start(&self, session: &Session) -> Option<OwedStart> {
        match &session.entry {
            StartState::Open => None,
            StartState::Held(gate) => {
                let held = self.held.get(gate);
                let checkpoints = held.map(|waiting| waiting.held.checkpoint_ids());
                let checkpoints = checkpoints.unwrap_or_default();
                Some(OwedStart::Unanswered { checkpoints })
            }
            StartState::Lapsed { owed } => Some(OwedStart::Unanswered {
                checkpoints: owed.clone(),
            }),
            StartState::Refused { reason } => Some(OwedStart::Refused {
                reason: reason.clone(),
            }),
        }
    }

    /// Everything that a session leaves to the one that goes on with its conversation.
    fn owed(&self, session: &Session, now: Timestamp) -> Owed {
        let locked = session.locked.iter().map(|capability| {
            let by = session
                .locked_by
                .get(capability)
                .cloned()
                .unwrap_or_default();
            (capability.clone(), by)
        });
        let denied = session.denied.iter().map(|(gate, patterns)| OwedDenial {
            checkpoint_id: gate.clone(),
            actions: patterns.iter().map(ToString::to_string).collect(),
        });
        let intervals = session.interval_marks.iter().map(|mark| OwedInterval {
            atlas_id: mark.key.0.clone(),
            checkpoint_id: mark.key.1.clone(),
            elapsed_ms: millis(now, mark.at),
            actions: mark.actions,
        });
        Owed {
            start: self.owed_start(session),
            gates: self.owed_gates(session),
            locked: locked.collect::<BTreeMap<_, _>>(),
            denied: denied.collect(),
            limits: self.usage.left_by(&session.id),
            intervals: intervals.collect(),
            earlier_ms: session.earlier.lasted_ms,
            earlier_actions: session.earlier.actions,
        }
    }
}

/// The record of a session's end, with everything that its conversation still owes.
pub(crate) fn ended_record(
    tx: &Transaction<'_>,
    session: &Session,
    status: FinalStatus,
    summary: Option<&str>,
) -> SessionEnded {
    let (summary, mut redacted) = redact_optional_text(tx, "summary", summary);
    let mut owed = tx.engine.state.owed(session, tx.now);
    if let Some(OwedStart::Refused { reason }) = &mut owed.start {
        let recorded = redact_reason(tx, None, "owed.start.refused.reason", reason);
        *reason = recorded.text;
        redacted.extend(recorded.redacted);
    }
    SessionEnded {
        duration_ms: millis(tx.now, session.started_at),
        event_count: session.events.saturating_add(1),
        actions_taken: session.actions,
        contexts_injected: session.injected,
        final_status: status,
        summary,
        owed: owed.unless_empty(),
        redacted,
    }
}

/// The session that a new one goes on from, with its end. A live one counts as it is now.
pub(crate) fn predecessor(
    tx: &Transaction<'_>,
    session: &SessionId,
) -> Result<Option<(SessionId, Arc<SessionEnded>)>, DenialReply> {
    let state = &tx.engine.state;
    for earlier in earlier_sessions(session) {
        if let Some(live) = state.sessions.get(&earlier) {
            let ended = ended_record(tx, live, FinalStatus::Completed, None);
            return Ok(Some((earlier, Arc::new(ended))));
        }
        if let Some(ended) = state.ended.end_of(&earlier) {
            return Ok(Some((earlier, Arc::clone(ended))));
        }
        if state.ended.contains(&earlier) {
            return Err(unknown_end(&earlier));
        }
    }
    Ok(None)
}

/// Has a new session take over what its predecessor owes.
pub(crate) fn take_over_predecessor(
    tx: &mut Transaction<'_>,
    session: &mut Session,
    (predecessor, ended): (SessionId, Arc<SessionEnded>),
) {
    session.take_over(predecessor, &ended, tx.now);
    let limits = ended.owed.iter().flat_map(|owed| &owed.limits);
    let now = tx.now;
    for (key, spent) in tx.engine.state.usage.take_over(&session.id, limits, now) {
        tx.persist(crate::engine::command::StateKind::Usage, &key, Some(&spent));
    }
}

/// The denial of a session whose predecessor may owe something that is not known.
fn unknown_end(earlier: &SessionId) -> DenialReply {
    DenialReply {
        code: DenyCode::Session,
        reason: format!(
            "the record does not show which gates session `{earlier}` must still pass, so its \
             conversation cannot continue"
        ),
        help: Some("start a new conversation in the agent".to_owned()),
        gate: None,
    }
}

/// A moment and `span` before it.
fn before(moment: Timestamp, span: Duration) -> Timestamp {
    let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(moment.micros().saturating_sub(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_sessions_of_a_conversation_are_named_newest_first() {
        let names = |name: &str| -> Vec<String> {
            let session: SessionId = name.parse().unwrap();
            let earlier = earlier_sessions(&session).into_iter();
            earlier.map(|name| name.to_string()).collect()
        };
        assert_eq!(names("s.3"), ["s.2", "s.1", "s"]);
        assert_eq!(names("s.1"), ["s"]);
        assert_eq!(names("s.0"), ["s"]);
        assert_eq!(names("s.01"), ["s"]);
        assert_eq!(names("claude-code.s.1"), ["claude-code.s"]);
        let none: [&str; 0] = [];
        for other in ["s", "s.x", "s.1x", "s-1", "claude-code.6bd73c2b-1"] {
            assert_eq!(names(other), none, "{other}");
        }
        let most = usize::try_from(MAX_RESUMPTIONS).unwrap();
        for large in ["s.101", "s.20261118", "s.99999999999999999999"] {
            assert_eq!(names(large).len(), most + 1, "{large}");
        }
    }
}
