//! Legal holds: no event of a held session is pruned until the hold is released.

use super::{Maintenance, MaintenanceError};
use crate::base::id::SessionId;
use crate::store::Batch;
use crate::trace::event::{HoldPlaced, HoldReleased, Payload};
use crate::trace::governance::{ABOUT_SESSIONS, SessionGovernance};

impl Maintenance {
    /// Places a legal hold on a session.
    ///
    /// # Errors
    /// Fails when the session is unknown, or the store fails.
    pub async fn place_hold(
        &mut self,
        session: &SessionId,
        reason: &str,
        by: &str,
    ) -> Result<(), MaintenanceError> {
        let is_log = session == self.ledger.log();
        if is_log || self.store.head(session.clone()).await?.is_none() {
            return Err(MaintenanceError::NoSession(session.clone()));
        }
        let placed = HoldPlaced {
            held_session: session.to_string(),
            reason: reason.to_owned(),
            by: by.to_owned(),
        };
        self.write_entry(placed.into()).await
    }

    /// Releases the legal hold of a session.
    ///
    /// # Errors
    /// Fails when the session has no hold, or the store fails.
    pub async fn release_hold(
        &mut self,
        session: &SessionId,
        reason: Option<&str>,
        by: &str,
    ) -> Result<(), MaintenanceError> {
        if self.session_notes().await?.hold(session).is_none() {
            return Err(MaintenanceError::NotHeld(session.clone()));
        }
        let released = HoldReleased {
            held_session: session.to_string(),
            reason: reason.map(str::to_owned),
            by: by.to_owned(),
        };
        self.write_entry(released.into()).await
    }

    /// Returns imports and legal holds, as the log has them.
    pub(super) async fn session_notes(&self) -> Result<SessionGovernance, MaintenanceError> {
        let entries = self.store.log_entries(ABOUT_SESSIONS).await?;
        Ok(SessionGovernance::read(&entries))
    }

    /// Writes an entry to the log.
    async fn write_entry(&mut self, payload: Payload) -> Result<(), MaintenanceError> {
        let entry = self.ledger.entry(payload, self.clock.now());
        self.write(Batch::of(vec![entry])).await
    }
}
