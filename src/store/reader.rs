//! Blocking reader of a store, for commands that read the record once.

use super::{AtlasText, LogState, RecordedSession, Seal, StateRow, StoreError};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::governance::{ABOUT_SESSIONS, SessionGovernance};
use crate::trace::record::Record;
use crate::trace::verification::{
    ChainHead, TrustAnchors, VerificationProgress, VerificationReport,
};

/// Read access to a store. A console may write to the store at the same time.
pub trait StoreReader: std::fmt::Debug + Send {
    /// All rows of state.
    ///
    /// # Errors
    /// When it cannot be read.
    fn state(&self) -> Result<Vec<StateRow>, StoreError>;

    /// Acknowledged ends of all chains.
    ///
    /// # Errors
    /// When it cannot be read.
    fn heads(&self) -> Result<Vec<ChainHead>, StoreError>;

    /// End of one chain, if it exists.
    ///
    /// # Errors
    /// When it cannot be read.
    fn head(&self, session: &SessionId) -> Result<Option<ChainHead>, StoreError>;

    /// State of the log.
    ///
    /// # Errors
    /// When it cannot be read.
    fn log(&self) -> Result<LogState, StoreError>;

    /// All signed heads of the log, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn seals(&self) -> Result<Vec<Seal>, StoreError>;

    /// Recorded sessions, newest first, without the log.
    ///
    /// # Errors
    /// When they cannot be read.
    fn sessions(&self) -> Result<Vec<RecordedSession>, StoreError>;

    /// Records of all sessions in the order they were written, without the first `from`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn records(&self, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Records of a session, starting at a sequence number.
    ///
    /// # Errors
    /// When they cannot be read.
    fn session_records(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;

    /// Hashes of a session's records, in order.
    ///
    /// # Errors
    /// When they cannot be read.
    fn hashes(&self, session: &SessionId) -> Result<Vec<Digest>, StoreError>;

    /// Events of a session, starting at a sequence number.
    ///
    /// # Errors
    /// When they cannot be read.
    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let records = self.session_records(session, from, limit)?;
        let events = records.iter().map(Record::event_of);
        events
            .collect::<Result<_, _>>()
            .map_err(|what| StoreError::Damaged { what })
    }

    /// Text of an Atlas that was in force once, by its digest.
    ///
    /// # Errors
    /// When it cannot be read.
    fn atlas(&self, hash: &str) -> Result<Option<AtlasText>, StoreError>;

    /// Verifies the whole record: every chain that has events or was ever acknowledged, and the log.
    ///
    /// # Errors
    /// When the store cannot be read; faults of the record are verdicts, not errors.
    fn verify(&self, trust: TrustAnchors) -> Result<VerificationReport, StoreError> {
        self.verify_with_progress(trust, &VerificationProgress::default())
    }

    /// Verifies the whole record with progress and cancellation.
    ///
    /// # Errors
    /// When the store cannot be read, and when the verification was cancelled.
    fn verify_with_progress(
        &self,
        trust: TrustAnchors,
        progress: &VerificationProgress,
    ) -> Result<VerificationReport, StoreError>;

    /// The log as a session, if it has an entry.
    ///
    /// # Errors
    /// When it cannot be read.
    fn log_session(&self) -> Result<Option<RecordedSession>, StoreError>;

    /// Entries of the log with one of these types, in the order of the log.
    ///
    /// # Errors
    /// When they cannot be read.
    fn log_entries(&self, types: &[&str]) -> Result<Vec<Event>, StoreError>;

    /// Imports and legal holds of all sessions.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn session_notes(&self) -> Result<SessionGovernance, StoreError> {
        Ok(SessionGovernance::read(&self.log_entries(ABOUT_SESSIONS)?))
    }
}
