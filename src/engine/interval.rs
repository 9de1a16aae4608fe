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

use super::command::ActionRequest;
use super::evaluation::TriggerEvent;
use super::fired_checkpoint::OwnedFiredCheckpoint;
use super::handler_outcomes::{can_restrict, handlers_of};
use super::held::{ActionCall, GateOrigin, Held, HeldSubject, SessionEvent};
use super::lifecycle::session_position;
use super::session::{IntervalMark, Session};
use super::transaction::Transaction;

/// The event that found an interval due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueCause {
    /// A request of the session. Changes of the session's rights take effect before the request is judged.
    OnRequest,
    /// Input. No right of the session decides about input.
    OnInput,
}

/// Kind of the event at which interval gates are held.
const INTERVAL: &str = "interval";

impl Transaction<'_> {
    /// Raises gates that are still required, then due intervals that have to come before the request.
    pub(super) fn raise_required_gates(&mut self, request: &ActionRequest) {
        let session = &request.session;
        let Some(known) = self.state().sessions.get_mut(session) else {
            return;
        };
        let place = session_position(known);
        for unpassed in std::mem::take(&mut known.unpassed) {
            let fired = self.fired_by_name(&unpassed.checkpoints);
            self.happen(None, &place, unpassed.moment, &fired, None);
        }
        self.raise_due_intervals(session, Some(request));
    }

    /// Fires the due intervals that must come before the request or input.
    ///
    /// These are gates, checkpoints with a handler and, before a request, checkpoints that change the
    /// session's rights.
    pub(super) fn raise_due_intervals(
        &mut self,
        session: &SessionId,
        request: Option<&ActionRequest>,
    ) {
        if self.is_blocked(session) {
            return;
        }
        let due = request.map_or(DueCause::OnInput, |_| DueCause::OnRequest);
        let fired = self.due_intervals(session);
        let first: Vec<_> = fired
            .into_iter()
            .filter(|fired| !self.fires_with_event(&fired.checkpoint, due))
            .collect();
        let Some(known) = self.live_session(session) else {
            return;
        };
        if first.is_empty() {
            return;
        }
        let place = session_position(known);
        self.store_interval_firings(session, &first);
        let moment = SessionEvent {
            kind: INTERVAL.to_owned(),
            label: INTERVAL.to_owned(),
            data: json!({}),
            event: None,
            text: None,
            reached_agent: false,
        };
        let call = request
            .map(|request| ActionCall::of(&self.engine.atlases, &request.action, &request.params));
        self.run_event_handlers(None, &place, moment, call.as_ref(), first);
    }

    /// Returns whether an interval is due that has to come before the next request of a session.
    pub(super) fn has_due_gate(&self, session: &SessionId) -> bool {
        let due = self.due_intervals(session);
        let mut due = due.iter();
        due.any(|fired| !self.fires_with_event(&fired.checkpoint, DueCause::OnRequest))
    }

    /// Returns the due intervals that fire together with the request or input.
    pub(super) fn due_with_event(
        &self,
        session: &SessionId,
        due: DueCause,
    ) -> Vec<OwnedFiredCheckpoint> {
        if self.is_blocked(session) {
            return Vec::new();
        }
        let mut fired = self.due_intervals(session);
        fired.retain(|fired| self.fires_with_event(&fired.checkpoint, due));
        fired
    }

    /// Adds the due intervals to the checkpoints that fire on a request.
    pub(super) fn with_due(
        &self,
        session: &SessionId,
        mut fired: Vec<OwnedFiredCheckpoint>,
    ) -> Vec<OwnedFiredCheckpoint> {
        fired.extend(self.due_with_event(session, DueCause::OnRequest));
        sort_by_priority(&mut fired);
        fired
    }

    /// Returns the due intervals, highest priority first.
    fn due_intervals(&self, session: &SessionId) -> Vec<OwnedFiredCheckpoint> {
        self.fired_on(session, TriggerEvent::IntervalCheck)
    }

    /// Returns whether an interval can fire together with the request or input that found it due.
    fn fires_with_event(&self, checkpoint: &Checkpoint, due: DueCause) -> bool {
        let extensions = &self.engine.extensions;
        if checkpoint.mode == CheckpointMode::Blocking
            || !handlers_of(extensions, checkpoint).is_empty()
        {
            return false;
        }
        let grants =
            !checkpoint.unlock_capabilities.is_empty() || !checkpoint.allow_actions.is_empty();
        due == DueCause::OnInput || !(grants || can_restrict(extensions, checkpoint))
    }

    /// Stores that intervals fired, so that each is due again at its next multiple.
    pub(super) fn store_interval_firings(
        &mut self,
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
        let now = self.now;
        if let Some(known) = self.state().sessions.get_mut(session) {
            for fired in fired {
                let key = (fired.atlas_id.clone(), fired.checkpoint.id.clone());
                known.store_interval_firing(key, &fired.checkpoint.trigger, now);
            }
        }
        self.mark_changed(session);
    }

    /// Restarts the intervals whose gates were passed: the time that an operator took does not count.
    pub(super) fn restart_intervals(&mut self, held: &Held) {
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
        for atlas in self.engine.atlases.iter() {
            for checkpoint in &atlas.checkpoints {
                if passed.contains(&(atlas.id.as_str(), checkpoint.id.as_str())) {
                    let key = (atlas.id.clone(), checkpoint.id.clone());
                    intervals.push((key, checkpoint.trigger.clone()));
                }
            }
        }
        let now = self.now;
        if let Some(known) = self.state().sessions.get_mut(&held.session) {
            for (key, trigger) in intervals {
                known.store_interval_firing(key, &trigger, now);
            }
        }
        self.mark_changed(&held.session);
    }

    fn fired_by_name(&self, checkpoints: &BTreeSet<String>) -> Vec<OwnedFiredCheckpoint> {
        let mut found = Vec::new();
        for atlas in self.engine.atlases.iter() {
            for checkpoint in &atlas.checkpoints {
                if checkpoints.contains(&checkpoint.id) {
                    let mut checkpoint = checkpoint.clone();
                    self.restore_gate(&mut checkpoint);
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
}

impl Session {
    /// Stores that an interval fired. It counts from its last multiple, not from now.
    fn store_interval_firing(&mut self, key: (String, String), trigger: &Trigger, now: Timestamp) {
        let last = self.beats.iter().find(|beat| beat.key == key);
        let (mut at, mut actions) = (now, self.conversation_actions());
        match trigger {
            Trigger::TimeInterval(interval) => {
                let last = last.map_or(self.conversation_started_at(), |beat| beat.at);
                let passed = now.since(last);
                at = last.plus(passed.saturating_sub(past_multiple(passed, *interval)));
            }
            Trigger::CountInterval(interval) => {
                let last = last.map_or(0, |beat| beat.actions);
                let run = actions.saturating_sub(last);
                actions = actions.saturating_sub(run.checked_rem(*interval).unwrap_or_default());
            }
            _ => {}
        }
        self.beats.retain(|beat| beat.key != key);
        self.beats.push(IntervalMark { key, at, actions });
    }
}

/// Returns the time since the last multiple of `interval`.
fn past_multiple(passed: Duration, interval: Duration) -> Duration {
    let rest = passed.as_micros().checked_rem(interval.as_micros());
    let rest = rest.and_then(|rest| u64::try_from(rest).ok());
    Duration::from_micros(rest.unwrap_or_default())
}

/// Sorts fired checkpoints, highest priority first. Ties keep their order.
pub(super) fn sort_by_priority(fired: &mut [OwnedFiredCheckpoint]) {
    fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
}
