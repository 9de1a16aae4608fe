//! Somebody at a door, and the sessions that they may speak for.
//!
//! A session is theirs who began it, or who show its secret. The engine knows whose it is, also after a
//! restart; a door only remembers whom it has asked for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::call::{Call, Fault, Key, Spoken};
use super::hall::Hall;
use super::peer::Peer;
use crate::base::id::SessionId;
use crate::engine::command::{Caller, Denied, DenyCode};

/// Somebody at a door.
#[derive(Debug)]
pub struct Visitor {
    hall: Hall,
    /// Who they are, as far as their door knows.
    from: Caller,
    /// Their shares of what all callers use.
    peer: Arc<Peer>,
    /// Sessions that are known to be theirs.
    theirs: Mutex<BTreeSet<SessionId>>,
}

impl Visitor {
    /// Somebody who has not said anything yet.
    #[must_use]
    pub fn new(hall: Hall, from: Caller) -> Self {
        Self {
            peer: hall.peers.of(&from),
            hall,
            from,
            theirs: Mutex::new(BTreeSet::new()),
        }
    }

    /// The caller's room for large messages.
    pub(super) fn large_messages(&self) -> Arc<Semaphore> {
        Arc::clone(&self.peer.large)
    }

    /// Does what they say, where it is theirs to say. Dropping this is their leaving.
    ///
    /// # Errors
    /// Whatever else comes of it, as they are to be told.
    pub async fn say(&self, spoken: Spoken) -> Result<Value, Fault> {
        let Spoken { call, key } = spoken;
        if call.is_report() {
            self.peer.pace_report().await;
        }
        if let Call::Start(start) = call {
            let begun = start
                .begin(key, Some(self.from.clone()), &self.hall.agents)
                .await?;
            self.remember(begun.session.clone());
            return begun.result();
        }
        if let Some(session) = call.session() {
            self.prove(session, key).await?;
        }
        call.carry_out(&self.hall).await
    }

    async fn prove(&self, session: &SessionId, key: Option<Key>) -> Result<(), Fault> {
        if self.knows(session) {
            return Ok(());
        }
        let shown = key.map(|it| it.digest());
        let from = Some(self.from.clone());
        let owns = self.hall.agents.owns(session.clone(), shown, from);
        match (owns.await, shown) {
            (Ok(()), _) => {}
            (Err(denied), Some(_)) => return Err(denied.into()),
            // Asked all the same: the session's record has it then.
            (Err(_), None) => return Err(no_key(session)),
        }
        self.remember(session.clone());
        Ok(())
    }

    fn knows(&self, session: &SessionId) -> bool {
        let theirs = self.theirs.lock();
        let theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.contains(session)
    }

    fn remember(&self, session: SessionId) {
        let theirs = self.theirs.lock();
        let mut theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.insert(session);
    }
}

fn no_key(session: &SessionId) -> Fault {
    Fault::from(Denied {
        code: DenyCode::Session,
        reason: format!("session `{session}` was not begun here"),
        help: Some("show its `key`, which session.start answers with".to_owned()),
        gate: None,
    })
}
