//! Steps of the wall clock, and timestamps that lie in the future after a restart.
//!
//! Contract: after a step, every deadline, lifetime and window has as much time left as before. After a
//! restart, only the wall clock tells the time between the two processes: the remaining time is then at most
//! the full time.

use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::id::SessionId;
use crate::base::limits::PERMIT_LIFETIME;
use crate::trace::event::ClockMoved;

use super::session::Session;
use crate::engine::Engine;
use crate::engine::command::{Effect, EngineCommand, StateKind};
use crate::engine::evaluation::usage::UNKNOWN_KEY;
use crate::engine::gates::dual_approval::store_held;
use crate::engine::gates::held::Held;
use crate::engine::gates::permits::Permit;
use crate::engine::transaction::{Transaction, state_change};

impl Session {
    /// Applies `adjust` to every timestamp that a duration is measured from.
    fn adjust_timestamps(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        self.started_at = adjust(self.started_at);
        let contexts = self.contexts.values_mut();
        let interval_marks = self.interval_marks.iter_mut().map(|mark| &mut mark.at);
        let running = self.running.values_mut().map(|running| &mut running.since);
        for moment in contexts.chain(interval_marks).chain(running) {
            *moment = adjust(*moment);
        }
    }
}

/// Moves the time at which a caller stops waiting.
fn adjust_deadline(deadline: &mut Option<Timestamp>, step: ClockStep) {
    *deadline = deadline.map(|deadline| step.apply(deadline));
}

/// Records a step of the wall clock, and keeps the remaining time of everything unchanged.
pub(crate) fn move_clock(tx: &mut Transaction<'_>, step: ClockStep) {
    tx.push(Effect::AppendToLog(
        ClockMoved {
            moved_ms: step.millis(),
            what: format!("the system clock was set {step}"),
            by: None,
        }
        .into(),
    ));
    let adjust = |moment| step.apply(moment);
    let state = tx.state();
    state.request_rates.adjust_timestamps(adjust);
    state.misuse.adjust_timestamps(adjust);
    state.caches.adjust_timestamps(adjust);
    for issued in &mut state.resolutions {
        issued.adjust_timestamps(adjust);
    }
    for call in state.parked.calls_mut() {
        adjust_deadline(call.deadline_mut(), step);
    }
    for command in state.suspension.commands_mut() {
        match command {
            EngineCommand::RequestAction(_, request) => {
                adjust_deadline(&mut request.deadline, step);
            }
            EngineCommand::Input(_, input) => adjust_deadline(&mut input.deadline, step),
            _ => {}
        }
    }
    let sessions: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for session in sessions {
        if let Some(session) = tx.state().sessions.get_mut(&session) {
            session.adjust_timestamps(adjust);
        }
        tx.mark_changed(&session);
    }
    for (key, spent) in tx.state().usage.adjust_timestamps(adjust) {
        tx.persist(StateKind::Usage, &key, Some(&spent));
    }
    if let Some(unknown) = tx.state().usage.adjust_unknown(adjust) {
        tx.persist(StateKind::Usage, UNKNOWN_KEY, Some(&unknown));
    }
    let mut permits: Vec<Permit> = tx.state().permits.values().cloned().collect();
    for permit in &mut permits {
        permit.expires_at = step.apply(permit.expires_at);
        tx.persist(StateKind::Permit, permit.gate.as_str(), Some(permit));
        tx.state().permits.insert(permit.clone());
    }
    let held: Vec<Arc<Held>> = tx.engine.held();
    for held in held {
        let deadline = step.apply(held.deadline);
        let gate = held.id.clone();
        store_held(
            tx,
            Held {
                opened_at: step.apply(held.opened_at),
                deadline,
                ..(*held).clone()
            },
        );
        tx.push(Effect::SetDeadline(gate, deadline));
    }
}

impl Engine {
    /// Limits the remaining time of every deadline, lifetime and window to its full length, if the clock was
    /// set back between two processes.
    ///
    /// Returns the state that has to be written. Otherwise the next start would find the old timestamps in
    /// the future, and grant the full time again.
    #[must_use]
    pub(crate) fn limit_remaining_times(&mut self, now: Timestamp) -> Vec<Effect> {
        let past = |moment: Timestamp| moment.min(now);
        let mut changed = Vec::new();
        let state = &mut self.state;
        for session in state.sessions.values_mut() {
            let before = session.clone();
            session.adjust_timestamps(past);
            if *session != before {
                let key = session.id.as_str();
                changed.push(state_change(StateKind::Session, key, Some(&*session)));
            }
        }
        for (key, spent) in state.usage.adjust_timestamps(past) {
            changed.push(state_change(StateKind::Usage, &key, Some(&spent)));
        }
        if let Some(unknown) = state.usage.adjust_unknown(past) {
            changed.push(state_change(StateKind::Usage, UNKNOWN_KEY, Some(&unknown)));
        }
        let latest = now.plus(PERMIT_LIFETIME);
        for permit in state.permits.values_mut() {
            if permit.expires_at > latest {
                permit.expires_at = latest;
                let key = permit.gate.as_str();
                changed.push(state_change(StateKind::Permit, key, Some(&*permit)));
            }
        }
        let late: Vec<Arc<Held>> = state
            .held
            .values()
            .filter(|waiting| waiting.held.opened_at > now)
            .map(|waiting| Arc::clone(&waiting.held))
            .collect();
        for held in late {
            let whole = held.deadline.since(held.opened_at);
            let bounded = state.held.replace(Arc::new(Held {
                opened_at: now,
                deadline: now.plus(whole),
                ..(*held).clone()
            }));
            let key = held.id.as_str();
            changed.push(state_change(StateKind::Held, key, bounded));
        }
        changed
    }
}
