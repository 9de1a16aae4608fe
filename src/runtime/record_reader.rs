//! Blocking reader of the record.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::base::id::SessionId;
use crate::store::Store;
use crate::trace::event::Event;
use crate::trace::note::Verifier;
use crate::trace::record::Record;
use crate::trace::source::EventSource;
use crate::trace::verification::{ChainVerification, ImportEntry, TrustAnchors};

/// The record as a [`EventSource`]. It blocks on the disk, so it is only for threads that may block.
#[derive(Clone)]
pub struct RecordReader {
    store: Arc<dyn Store>,
    key: Verifier,
    runtime: Handle,
}

impl RecordReader {
    /// Creates a reader of this store. The key verifies its heads; `runtime` runs the reads.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, key: Verifier, runtime: Handle) -> Self {
        Self {
            store,
            key,
            runtime,
        }
    }

    /// Returns records of a session, from a sequence number on.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub fn records(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Record>, String> {
        let records = self.store.session_records(session.clone(), from, limit);
        let records = self.runtime.block_on(records);
        records.map_err(|error| error.to_string())
    }
}

impl EventSource for RecordReader {
    type Error = String;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, String> {
        let records = self.records(session, from, limit)?;
        records.iter().map(Record::event_of).collect()
    }

    fn end(&self, session: &SessionId) -> Result<u64, String> {
        let head = self.runtime.block_on(self.store.head(session.clone()));
        let head = head.map_err(|error| error.to_string())?;
        Ok(head.map_or(0, |head| head.count))
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, String> {
        let trust = TrustAnchors::nothing().with_key(self.key.clone());
        let report = self.runtime.block_on(self.store.verify(trust));
        let report = report.map_err(|error| error.to_string())?;
        Ok(report.of_session(session))
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, String> {
        let sessions = self.runtime.block_on(self.store.sessions());
        let sessions = sessions.map_err(|error| error.to_string())?;
        let mut sessions = sessions.into_iter();
        let known = sessions.find(|known| known.session == *session);
        Ok(known.map(|known| known.imports).unwrap_or_default())
    }
}

impl fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}
