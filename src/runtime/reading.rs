//! The record for those who read it from beginning to end and can wait.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::base::id::SessionId;
use crate::store::Store;
use crate::trace::event::Event;
use crate::trace::note::Verifier;
use crate::trace::record::Record;
use crate::trace::source::Source;
use crate::trace::verify::{Checked, Imported, Trust};

/// The record as a [`Source`]. It waits for the disk: only for a thread that may wait.
#[derive(Clone)]
pub struct Reading {
    store: Arc<dyn Store>,
    key: Verifier,
    runtime: Handle,
}

impl Reading {
    /// Reads this store, whose heads are signed with that key, and waits on that runtime.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, key: Verifier, runtime: Handle) -> Self {
        Self {
            store,
            key,
            runtime,
        }
    }

    /// Records of a session, from a sequence number on.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
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

impl Source for Reading {
    type Error = String;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, String> {
        let records = self.records(session, from, limit)?;
        records.iter().map(Record::event).collect()
    }

    fn end(&self, session: &SessionId) -> Result<u64, String> {
        let head = self.runtime.block_on(self.store.head(session.clone()));
        let head = head.map_err(|error| error.to_string())?;
        Ok(head.map_or(0, |head| head.count))
    }

    fn verify(&self, session: &SessionId) -> Result<Option<Checked>, String> {
        let trust = Trust::nothing().key(self.key.clone());
        let report = self.runtime.block_on(self.store.verify(trust));
        let report = report.map_err(|error| error.to_string())?;
        Ok(report.of_session(session))
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<Imported>, String> {
        let sessions = self.runtime.block_on(self.store.sessions());
        let sessions = sessions.map_err(|error| error.to_string())?;
        let mut sessions = sessions.into_iter();
        let known = sessions.find(|known| known.session == *session);
        Ok(known.map(|known| known.imports).unwrap_or_default())
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}
