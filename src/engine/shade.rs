//! Other Atlases in the shadow of those in force: looked at, and deciding nothing.
//!
//! A shade is an engine of its own that is never told anything. It is lent a copy of the session that asks, and
//! what it finds goes to people who look. So nothing of it can reach a decision.

use std::sync::Arc;

use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{CountedIds, SessionId};

use super::Engine;
use super::command::Command;
use super::explain::Account;

/// Atlases that are looked at and decide nothing.
pub struct Shade(Engine);

impl std::fmt::Debug for Shade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shade({})", self.hash())
    }
}

impl Engine {
    /// These Atlases, in the shadow of those in force.
    #[must_use]
    pub fn shade(&self, atlases: Arc<[Atlas]>) -> Shade {
        let mut engine = Self::new(Vec::new(), Box::new(CountedIds::default()));
        engine.reload(atlases);
        engine.set_extensions(self.extensions.clone());
        Shade(engine)
    }
}

impl Shade {
    /// One digest for all of them.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.0.atlas_hash
    }

    /// What they make of a command, as [`Engine::looked`] says it of those in force.
    #[must_use]
    pub fn looked(
        &mut self,
        live: &Engine,
        command: &Command,
        now: Timestamp,
    ) -> Option<(SessionId, String, Account)> {
        let hash = self.0.atlas_hash;
        let state = &mut self.0.state;
        state.sessions.clear();
        if let Some(session) = command.session().and_then(|id| live.state.sessions.get(id)) {
            let mut session = session.clone();
            // It is asked what they say of it, and not that they are others.
            session.atlas_hash = hash;
            state.sessions.insert(session.id.clone(), session);
        }
        state.usage.clone_from(&live.state.usage);
        self.0.looked(command, now)
    }
}
