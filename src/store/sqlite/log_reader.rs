//! Reading of the log as a session, and of single entries.

use std::collections::BTreeMap;

use super::super::{LOG_AGENT, RecordedSession, StoreError};
use super::reader::{StoreReader, count, parsed, unpacked};
use crate::trace::event::Event;
use crate::trace::governance::{ABOUT_SESSIONS, SessionGovernance};
use crate::trace::record::Record;

impl StoreReader {
    /// The log as a session, if it has an entry.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log_session(&self) -> Result<Option<RecordedSession>, StoreError> {
        let query = "SELECT session_id, started_at, last_at, count FROM sessions
                     WHERE session_id = (SELECT log_id FROM log)";
        self.query_one(query, [], |row| {
            Ok(RecordedSession {
                session: parsed(row, 0)?,
                agent: LOG_AGENT.to_owned(),
                started_at: parsed(row, 1)?,
                last_at: parsed(row, 2)?,
                events: count(row, 3)?,
                ended: false,
                imports: Vec::new(),
            })
        })
    }

    /// Entries of the log with one of these types, in the order of the log. Rows without such an entry are
    /// not unpacked.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn log_entries(&self, types: &[&str]) -> Result<Vec<Event>, StoreError> {
        let query = "SELECT records, hashes FROM events WHERE session =
                     (SELECT number FROM sessions WHERE session_id = (SELECT log_id FROM log))
                     AND instr(records, ?1) > 0 ORDER BY sequence";
        let mut found = BTreeMap::new();
        for event_type in types {
            let rows = self.query_rows(query, [format!(":{event_type}:")], |row| {
                let records = unpacked(row, 0)?.map(|(text, hash)| (text.to_vec(), hash));
                Ok(records.collect::<Vec<_>>())
            })?;
            for (text, hash) in rows.into_iter().flatten() {
                let damaged = |what| StoreError::Damaged { what };
                let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
                let record = Record::read(text, hash).map_err(damaged)?;
                if record.envelope().map_err(damaged)?.event_type == *event_type {
                    found.insert(record.sequence, record.event_of().map_err(damaged)?);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Imports and legal holds of all sessions.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn session_notes(&self) -> Result<SessionGovernance, StoreError> {
        Ok(SessionGovernance::read(&self.log_entries(ABOUT_SESSIONS)?))
    }
}
