//! Governance of sessions according to the log: imports and legal holds.
//!
//! The log is the only source: its entries are signed, so a hold cannot be removed without a trace.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::event::{Event, Payload};
use super::verification::ImportEntry;
use crate::base::id::SessionId;

/// Types of the log entries that this module reads.
pub const ABOUT_SESSIONS: &[&str] = &["trace_imported", "hold_placed", "hold_released"];

/// A legal hold that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LegalHold {
    /// The session.
    pub session: SessionId,
    /// Reason that was given.
    pub reason: String,
    /// The operator. A name is claimed, not proven.
    pub by: String,
    /// Time of the entry.
    pub since: String,
}

/// Imports and legal holds of all sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionGovernance {
    imports: BTreeMap<SessionId, Vec<ImportEntry>>,
    holds: BTreeMap<SessionId, LegalHold>,
}

impl SessionGovernance {
    /// Reads entries of the log, in its order.
    #[must_use]
    pub fn read<'e>(entries: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut notes = Self::default();
        for entry in entries {
            let payload = Payload::read(&entry.event_type, entry.payload.clone());
            notes.note(payload.ok(), &entry.timestamp.to_string());
        }
        notes
    }

    fn note(&mut self, payload: Option<Payload>, at: &str) {
        match payload {
            Some(Payload::TraceImported(imported)) => {
                if let Ok(session) = imported.imported_session.parse() {
                    let imports = self.imports.entry(session).or_default();
                    imports.push(ImportEntry::of(&imported, at));
                }
            }
            Some(Payload::HoldPlaced(placed)) => {
                if let Ok(session) = placed.held_session.parse::<SessionId>() {
                    let hold = LegalHold {
                        session: session.clone(),
                        reason: placed.reason,
                        by: placed.by,
                        since: at.to_owned(),
                    };
                    self.holds.insert(session, hold);
                }
            }
            Some(Payload::HoldReleased(released)) => {
                if let Ok(session) = released.held_session.parse::<SessionId>() {
                    self.holds.remove(&session);
                }
            }
            _ => {}
        }
    }

    /// Imports that brought a session, or parts of it.
    #[must_use]
    pub fn imports(&self, session: &SessionId) -> Vec<ImportEntry> {
        self.imports.get(session).cloned().unwrap_or_default()
    }

    /// The legal hold of a session, if there is one.
    #[must_use]
    pub fn hold(&self, session: &SessionId) -> Option<&LegalHold> {
        self.holds.get(session)
    }

    /// Every legal hold, by session.
    pub fn holds(&self) -> impl Iterator<Item = &LegalHold> {
        self.holds.values()
    }
}

/// Session that a log entry is about, if any.
#[must_use]
pub fn session_of(payload: &Map<String, Value>) -> Option<&str> {
    let names = [
        "imported_session",
        "pruned_session",
        "held_session",
        "session",
        "asking_session",
    ];
    names
        .into_iter()
        .find_map(|name| payload.get(name)?.as_str())
}
