//! The owner of a thread: the session that started it, or a later session with the same secret.
//!
//! A session authenticates with a secret before any of its calls is accepted. Session names are never reused, so
//! the name alone identifies a session, even after it has ended. A session without a secret (an agent in the
//! console's own process) has only its name.

use serde::{Deserialize, Serialize};

use super::text::ExternalName;
use super::thread::Thread;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

/// The owner of a thread, or a session that wants to write to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadOwner {
    /// Session; of several with the same secret, the one with the newest turn.
    pub session: SessionId,
    /// Digest of the session's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Digest>,
    /// Process that started the session: the threads of all its sessions count together. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
}

impl ThreadOwner {
    /// Returns true for the same session, and for another session with the same secret.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same_secret = self.secret.is_some() && self.secret == other.secret;
        self.session == other.session || same_secret
    }
}

/// Rejected writes of other sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedWrites {
    /// Number of rejected writes.
    pub count: u64,
    /// Session of the last rejected write.
    pub session: SessionId,
    /// Time of the last rejected write.
    pub at: Timestamp,
}

impl Thread {
    /// Returns true if the session may read and write this thread, as owner or through an offer.
    #[must_use]
    pub fn admits(&self, session: &ThreadOwner) -> bool {
        let offered = self.offered_to.as_ref() == Some(&session.session);
        offered || self.is_owned_by(session)
    }

    /// Returns true if the session owns this thread. The owner of an unverified thread does not count.
    #[must_use]
    pub fn is_owned_by(&self, session: &ThreadOwner) -> bool {
        let owner = self.owner.as_ref().filter(|_| !self.unverified);
        owner.is_some_and(|owner| owner.is_same(session))
    }

    /// Returns true if a session of this process owns this thread.
    #[must_use]
    pub fn is_of_process(&self, process: &str) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| owner.process.as_deref() == Some(process))
    }

    /// Offers this thread to another session, which becomes the owner with its first turn.
    #[must_use]
    pub fn offer(&self, to: SessionId) -> Self {
        let mut offered = self.clone();
        offered.offered_to = Some(to);
        offered
    }

    /// Marks this thread as possibly changed by another process. Its owner and any offer no longer count: an
    /// operator must hand it over.
    #[must_use]
    pub fn as_unverified(&self) -> Self {
        let mut unverified = self.clone();
        unverified.unverified = true;
        unverified.offered_to = None;
        unverified
    }

    /// Counts a rejected write of another session.
    #[must_use]
    pub fn with_refused_write(&self, session: SessionId, at: Timestamp) -> Self {
        let before = self.refused.as_ref().map_or(0, |refused| refused.count);
        let count = before.saturating_add(1);
        let mut counted = self.clone();
        counted.refused = Some(RefusedWrites { count, session, at });
        counted
    }

    /// Returns true while this thread needs attention from an operator or a model.
    ///
    /// That is: the summary is frozen, a proposal is held back, an edit or a drift flag has not reached the agent,
    /// or a hand-over was not accepted.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.is_frozen()
            || !self.held_back.is_empty()
            || self.edited
            || self.drift_flagged.is_some()
            || self.offered_to.is_some()
    }

    /// Returns the time of the newest turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<Timestamp> {
        self.turns.first().map(|turned| turned.at)
    }

    /// Infers the owner of a thread that was stored before threads had owners.
    ///
    /// The owner is the session that took every stored turn. If several sessions did, it is the session with the
    /// same name as the thread. Otherwise the thread has no owner, and only an operator can hand it over.
    #[must_use]
    pub(crate) fn with_inferred_owner(mut self) -> Self {
        if self.owner.is_none() {
            let session = self.inferred_owner();
            self.owner = session.map(|session| ThreadOwner {
                session,
                secret: None,
                process: None,
            });
        }
        self
    }

    fn inferred_owner(&self) -> Option<SessionId> {
        let writers = || {
            let turns = self.turns.iter().map(|turned| &turned.session);
            turns.chain([&self.session])
        };
        let only_one = writers().all(|writer| *writer == self.session);
        if only_one {
            return Some(self.session.clone());
        }
        let has_its_name = |writer: &&SessionId| is_named_after(&self.id, writer);
        writers().find(has_its_name).cloned()
    }
}

fn is_named_after(thread: &ExternalName, session: &SessionId) -> bool {
    thread.as_str() == session.as_str()
}
