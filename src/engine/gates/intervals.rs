//! Intervals: checkpoints that recur after a time or a number of actions, and gates that are still required.
//!
//! Intervals are checked when the session acts and when input arrives. The times of an interval are multiples
//! of its length from the start of the session: 60 s means 60, 120, 180 s. If several multiples passed
//! without an action or input, the checkpoint fires once, and again at the next multiple.
//!
//! Contract: an interval gate blocks the whole session. An interval that only injects something fires
//! together with the request or input that found it due, in the order of priorities. While a gate blocks the
//! session, no interval fires; it is due afterwards.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::atlas::document::CheckpointMode;
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;

use super::held::{ActionCall, GateOrigin, Held, HeldSubject, SessionEvent};
use crate::engine::command::ActionRequest;
use crate::engine::evaluation::TriggerEvent;
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::extensions::handler_outcomes::{can_restrict, handlers_of};
use crate::engine::extensions::required_calls::{CallSubject, require_handler_answers};
use crate::engine::injection::withholding::is_session_blocked;
use crate::engine::pipeline::StageResult;
use crate::engine::requests::events::{
    fired_on_session_event, hold_or_accept_event, run_event_handlers,
};
use crate::engine::sessions::lifecycle::{restore_gate, session_position};
use crate::engine::sessions::session::{IntervalMark, Session};
use crate::engine::transaction::Transaction;

/// The event that found an interval due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueCause {
    /// A request of the session. Changes of the session's rights take effect before the request is judged.
    OnRequest,
    /// Input. No right of the session decides about input.
    OnInput,
}

/// Kind of the event at which interval gates are held.
const INTERVAL: &str = "interval";

/// Holds the gates that are still required, then fires due intervals that have to come before the request.
pub(crate) fn hold_required_gates(
    tx: &mut Transaction<'_>,
    request: &ActionRequest,
) -> StageResult {
    let session = &request.session;
    let Some(session_state) = tx.state().sessions.get_mut(session) else {
        return Ok(());
    };
    let position = session_position(session_state);
    for unpassed in std::mem::take(&mut session_state.unpassed) {
        let fired = fired_by_name(tx, &unpassed.checkpoints);
        hold_or_accept_event(tx, (None, None), &position, unpassed.moment, &fired, None);
    }
    fire_due_intervals(tx, session, Some(request))
}

/// Fires the due intervals that must come before the request or input.
///
/// These are gates, checkpoints with a handler and, before a request, checkpoints that change the
/// session's rights.
pub(crate) fn fire_due_intervals(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    request: Option<&ActionRequest>,
) -> StageResult {
    if is_session_blocked(tx, session) {
        return Ok(());
    }
    let due = request.map_or(DueCause::OnInput, |_| DueCause::OnRequest);
    let fired = due_intervals(tx, session);
    let first: Vec<_> = fired
        .into_iter()
        .filter(|fired| !fires_with_event(tx, &fired.checkpoint, due))
        .collect();
    let Some(session_state) = tx.live_session(session) else {
        return Ok(());
    };
    if first.is_empty() {
        return Ok(());
    }
    let call =
        request.map(|request| ActionCall::of(&tx.engine.atlases, &request.action, &request.params));
    let subject = CallSubject {
        action: call.as_ref(),
        ..CallSubject::of_session(session_state)
    };
    let handled = require_handler_answers(tx, first, subject)?;
    let position = session_position(session_state);
    store_interval_firings(tx, session, &handled.fired);
    // An interval that is due again asks its handlers again.
    tx.answers.remove_handlers_of(&handled.fired);
    let moment = SessionEvent {
        kind: INTERVAL.to_owned(),
        label: INTERVAL.to_owned(),
        data: json!({}),
        event: None,
        text: None,
        reached_agent: false,
    };
    run_event_handlers(tx, None, &position, moment, call.as_ref(), handled);
    Ok(())
}

/// Returns whether an interval is due that has to come before the next request of a session.
pub(crate) fn has_due_gate(tx: &Transaction<'_>, session: &SessionId) -> bool {
    let due = due_intervals(tx, session);
    let mut due = due.iter();
    due.any(|fired| !fires_with_event(tx, &fired.checkpoint, DueCause::OnRequest))
}

/// Returns the due intervals that fire together with the request or input.
pub(crate) fn due_with_event(
    tx: &Transaction<'_>,
    session: &SessionId,
    due: DueCause,
) -> Vec<OwnedFiredCheckpoint> {
    if is_session_blocked(tx, session) {
        return Vec::new();
    }
    let mut fired = due_intervals(tx, session);
    fired.retain(|fired| fires_with_event(tx, &fired.checkpoint, due));
    fired
}

/// Adds the due intervals to the checkpoints that fire on a request.
pub(crate) fn add_due_intervals(
    tx: &Transaction<'_>,
    session: &SessionId,
    mut fired: Vec<OwnedFiredCheckpoint>,
) -> Vec<OwnedFiredCheckpoint> {
    fired.extend(due_with_event(tx, session, DueCause::OnRequest));
    sort_by_priority(&mut fired);
    fired
}

/// Returns the due intervals, highest priority first.
fn due_intervals(tx: &Transaction<'_>, session: &SessionId) -> Vec<OwnedFiredCheckpoint> {
    fired_on_session_event(tx, session, TriggerEvent::IntervalCheck)
}

/// Returns whether an interval can fire together with the request or input that found it due.
fn fires_with_event(tx: &Transaction<'_>, checkpoint: &Checkpoint, due: DueCause) -> bool {
    let extensions = &tx.engine.extensions;
    if checkpoint.mode == CheckpointMode::Blocking
        || !handlers_of(extensions, checkpoint).is_empty()
    {
        return false;
    }
    let grants = !checkpoint.unlock_capabilities.is_empty() || !checkpoint.allow_actions.is_empty();
    due == DueCause::OnInput || !(grants || can_restrict(extensions, checkpoint))
}

/// Stores that intervals fired, so that each is due again at its next multiple.
pub(crate) fn store_interval_firings(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    fired: &[OwnedFiredCheckpoint],
) {
    let is_interval = |fired: &&OwnedFiredCheckpoint| {
        matches!(
            fired.checkpoint.trigger,
            Trigger::TimeInterval(_) | Trigger::CountInterval(_)
        )
    };
    let fired: Vec<_> = fired.iter().filter(is_interval).collect();
    if fired.is_empty() {
        return;
    }
    let now = tx.now;
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        for fired in fired {
            let key = (fired.atlas_id.clone(), fired.checkpoint.id.clone());
            session_state.store_interval_firing(key, &fired.checkpoint.trigger, now);
        }
    }
    tx.mark_changed(session);
}

/// Stores that the intervals whose gates were passed have fired: multiples that went by while a gate was open do not
/// fire.
pub(crate) fn restart_intervals(tx: &mut Transaction<'_>, held: &Held) {
    let HeldSubject::Moment(SessionEvent { kind, .. }) = &held.subject else {
        return;
    };
    if kind != INTERVAL {
        return;
    }
    let passed: BTreeSet<_> = held
        .gates
        .iter()
        .filter(|gate| matches!(gate.origin, GateOrigin::Checkpoint { .. }))
        .map(|gate| (gate.origin.atlas_id(), gate.origin.id()))
        .collect();
    let mut intervals = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        for checkpoint in &atlas.checkpoints {
            if passed.contains(&(atlas.id.as_str(), checkpoint.id.as_str())) {
                let key = (atlas.id.clone(), checkpoint.id.clone());
                intervals.push((key, checkpoint.trigger.clone()));
            }
        }
    }
    let now = tx.now;
    if let Some(session_state) = tx.state().sessions.get_mut(&held.session) {
        for (key, trigger) in intervals {
            session_state.store_interval_firing(key, &trigger, now);
        }
    }
    tx.mark_changed(&held.session);
}

fn fired_by_name(
    tx: &Transaction<'_>,
    checkpoints: &BTreeSet<String>,
) -> Vec<OwnedFiredCheckpoint> {
    let mut found = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        for checkpoint in &atlas.checkpoints {
            if checkpoints.contains(&checkpoint.id) {
                let mut checkpoint = checkpoint.clone();
                restore_gate(tx, &mut checkpoint);
                found.push(OwnedFiredCheckpoint {
                    atlas_id: atlas.id.clone(),
                    // An uncertain condition is not stored, so any condition counts as uncertain.
                    certain: checkpoint.when.is_none(),
                    checkpoint,
                    why: "this checkpoint fired earlier and was not passed".to_owned(),
                    modified: false,
                    quotes_request: false,
                    matches: Vec::new(),
                    extension_time: Duration::ZERO,
                    recorded_span: None,
                });
            }
        }
    }
    sort_by_priority(&mut found);
    found
}

impl Session {
    /// Stores that an interval fired. It counts from its last multiple, not from now.
    fn store_interval_firing(&mut self, key: (String, String), trigger: &Trigger, now: Timestamp) {
        let last = self.interval_marks.iter().find(|mark| mark.key == key);
        let (mut at, mut actions) = (now, self.conversation_actions());
        match trigger {
            Trigger::TimeInterval(interval) => {
                let last = last.map_or(self.conversation_started_at(), |mark| mark.at);
                let passed = now.since(last);
                at = last.plus(passed.saturating_sub(past_multiple(passed, *interval)));
            }
            Trigger::CountInterval(interval) => {
                let last = last.map_or(0, |mark| mark.actions);
                let run = actions.saturating_sub(last);
                actions = actions.saturating_sub(run.checked_rem(*interval).unwrap_or_default());
            }
            _ => {}
        }
        self.interval_marks.retain(|mark| mark.key != key);
        self.interval_marks.push(IntervalMark { key, at, actions });
    }
}

/// Returns the time since the last multiple of `interval`.
fn past_multiple(passed: Duration, interval: Duration) -> Duration {
    let rest = passed.as_micros().checked_rem(interval.as_micros());
    let rest = rest.and_then(|rest| u64::try_from(rest).ok());
    Duration::from_micros(rest.unwrap_or_default())
}

/// Sorts fired checkpoints, highest priority first. Ties keep their order.
pub(crate) fn sort_by_priority(fired: &mut [OwnedFiredCheckpoint]) {
    fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
}
