//! Retries: a message that was already processed gets its original response and does not count as a second turn.

use serde::{Deserialize, Serialize};

use super::text::ExternalName;
use super::thread::Thread;
use super::turn::{Turn, TurnOutcome, TurnRefusal};
use crate::base::digest::Digest;

/// The parts of the response to a turn that are kept for a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnResponse {
    /// Digest of the message and its author.
    pub message_hash: Digest,
    /// Id of the resulting memento.
    pub memento: ExternalName,
    /// Closed topics reported to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
    /// Notes sent to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Thread {
    /// Keeps the response to the last turn for a retry.
    pub(super) fn store_response(&mut self, turn: &Turn, outcome: &TurnOutcome) {
        if let Some(taken) = self.turns.first_mut() {
            taken.answer = Some(TurnResponse {
                message_hash: turn.message_hash(),
                memento: outcome.memento.memento_id.clone(),
                closed: outcome.closed.clone(),
                notes: outcome.notes.clone(),
            });
        }
    }

    /// Returns the original response if the turn's message was already processed, or `None` for a new message.
    ///
    /// # Errors
    /// Fails when the message with that id was different, or its response is no longer stored.
    pub fn repeated_outcome(&self, turn: &Turn) -> Result<Option<TurnOutcome>, TurnRefusal> {
        let mut turns = self.turns.iter();
        let Some(taken) = turns.find(|taken| taken.message_id == turn.message_id) else {
            return Ok(None);
        };
        let id = &turn.message_id;
        let answer = taken.answer.as_ref();
        let answer = answer.ok_or_else(|| TurnRefusal::ResponseExpired(id.clone()))?;
        if answer.message_hash != turn.message_hash() {
            return Err(TurnRefusal::MessageIdReused(id.clone()));
        }
        let memento = self.memento(&answer.memento);
        let memento = memento.ok_or_else(|| TurnRefusal::ResponseExpired(id.clone()))?;
        Ok(Some(TurnOutcome {
            decided: taken.decided,
            freeze: taken.freeze,
            source: taken.source,
            summary: taken.summary.clone(),
            memento: memento.clone(),
            etag: memento.etag(),
            version: taken.version,
            closed: answer.closed.clone(),
            notes: answer.notes.clone(),
        }))
    }
}
