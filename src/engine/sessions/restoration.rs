//! Restoring the engine's state after a restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, IdSource, SessionId};
use crate::base::json::{self, StrictJsonError};

use super::session::Session;
use crate::engine::Engine;
use crate::engine::command::{
    Effect, EngineCommand, HeldOutcome, OverruledDenial, StateChange, StateKind,
};
use crate::engine::evaluation::usage::{UNKNOWN_KEY, UnknownUsage};
use crate::engine::gates::held::Held;
use crate::engine::gates::permits::Permit;
use crate::engine::gates::queue::HeldEntry;
use crate::engine::gates::settlement::withdraw_held;
use crate::engine::transaction::{Transaction, state_change};

/// Error for persisted state that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the stored `{kind}` entry `{key}` cannot be read: {source}")]
pub struct RestoreError {
    kind: &'static str,
    key: String,
    source: StrictJsonError,
}

impl Engine {
    /// Restores an engine from persisted state. Held requests keep their identifiers.
    ///
    /// The effects set the deadlines again, and expire overdue requests.
    ///
    /// # Errors
    /// If a piece of state cannot be read. Nothing is guessed: an unreadable gate must not be skipped.
    pub fn restore(
        atlases: Vec<Atlas>,
        ids: Box<dyn IdSource>,
        kept: impl IntoIterator<Item = StateChange>,
        ended: BTreeSet<SessionId>,
        now: Timestamp,
    ) -> Result<(Self, Vec<Effect>), RestoreError> {
        let mut engine = Self::new(atlases, ids);
        let mut effects = Vec::new();
        engine.state.ended = ended.into_iter().collect();
        for StateChange { kind, key, body } in kept {
            let Some(body) = body else { continue };
            effects.extend(engine.restore_piece(kind, &key, &body)?);
        }
        effects.extend(engine.limit_remaining_times(now));
        let held: Vec<(HeldRequestId, Timestamp)> = engine
            .state
            .held
            .values()
            .map(|waiting| (waiting.held.id.clone(), waiting.held.deadline))
            .collect();
        effects.extend(engine.withdraw_denied(now));
        for (gate, deadline) in held {
            if !engine.state.held.contains(&gate) {
                continue;
            }
            if deadline <= now {
                effects.extend(engine.handle(EngineCommand::DeadlineReached(gate), now));
            } else {
                effects.push(Effect::SetDeadline(gate, deadline));
            }
        }
        Ok((engine, effects))
    }

    /// Withdraws the requests whose agents were denied when the connection to the earlier process broke.
    fn withdraw_denied(&mut self, now: Timestamp) -> Vec<Effect> {
        let entries = self.state.held.values();
        let denied = entries.filter(|entry| !entry.on_disconnect.is_kept());
        let denied: Vec<_> = denied.map(|entry| entry.held.id.clone()).collect();
        let mut tx = Transaction::new(self, now);
        for gate in denied {
            let reason = "the console stopped while the agent waited, so the agent was denied";
            withdraw_held(&mut tx, &gate, HeldOutcome::Withdrawn, reason);
        }
        tx.finish()
    }

    /// Restores one piece of state. Returns the writes that are needed because an earlier version stored it
    /// elsewhere.
    fn restore_piece(
        &mut self,
        kind: StateKind,
        key: &str,
        body: &str,
    ) -> Result<Vec<Effect>, RestoreError> {
        let mut moved = Vec::new();
        let state = &mut self.state;
        match kind {
            StateKind::Session => {
                let mut session: Session = read(kind, key, body)?;
                // Earlier versions counted the selected contexts by name.
                let owed = session.pending_injections.contexts.len();
                let named = session.contexts.len().saturating_sub(owed) as u64;
                session.injected = session.injected.max(named);
                state.sessions.insert(session.id.clone(), session);
            }
            StateKind::Held => {
                let waiting: HeldEntry = read(kind, key, body)?;
                state.held.insert(waiting);
            }
            StateKind::Permit => {
                let permit: Permit = read(kind, key, body)?;
                if permit.gate.as_str() != key {
                    // Earlier versions kept one permit for each request hash.
                    moved.push(state_change::<Permit>(kind, key, None));
                    moved.push(state_change(kind, permit.gate.as_str(), Some(&permit)));
                }
                state.permits.insert(permit);
            }
            StateKind::Counter => state.gates_opened = read::<GatesOpened>(kind, key, body)?.0,
            StateKind::Usage if key == UNKNOWN_KEY => {
                let unknown: UnknownUsage = read(kind, key, body)?;
                state.usage.restore_unknown(unknown);
            }
            StateKind::Usage => {
                let spent = read(kind, key, body)?;
                state.usage.restore(key.to_owned(), spent);
            }
            StateKind::Overruled => {
                let overruled: OverruledDenial = read(kind, key, body)?;
                state.overruled.insert(overruled.gate.clone(), overruled);
            }
            StateKind::Fault => state.acknowledged_fault = Some(read(kind, key, body)?),
        }
        Ok(moved)
    }
}

/// Reads the held requests from persisted state, for callers without an engine.
///
/// # Errors
/// If one cannot be read.
pub fn held_in(
    kept: impl IntoIterator<Item = StateChange>,
) -> Result<Vec<Arc<Held>>, RestoreError> {
    let mut held = Vec::new();
    for StateChange { kind, key, body } in kept {
        match (kind, body) {
            (StateKind::Held, Some(body)) => {
                let waiting: HeldEntry = read(kind, &key, &body)?;
                held.push(waiting.held);
            }
            (StateKind::Held, None)
            | (
                StateKind::Session
                | StateKind::Permit
                | StateKind::Counter
                | StateKind::Usage
                | StateKind::Overruled
                | StateKind::Fault,
                _,
            ) => {}
        }
    }
    Ok(held)
}

/// Number of opened gates, limited so that the next number cannot overflow into one in use.
#[derive(Deserialize)]
#[serde(try_from = "u64")]
struct GatesOpened(u64);

impl TryFrom<u64> for GatesOpened {
    type Error = &'static str;

    fn try_from(opened: u64) -> Result<Self, Self::Error> {
        if opened > u64::MAX / 2 {
            return Err("the number of gates is out of range");
        }
        Ok(Self(opened))
    }
}

fn read<T: DeserializeOwned>(kind: StateKind, key: &str, body: &str) -> Result<T, RestoreError> {
    json::read(body.as_bytes()).map_err(|source| RestoreError {
        kind: kind.as_str(),
        key: key.to_owned(),
        source,
    })
}
