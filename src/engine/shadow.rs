//! Shadow evaluation of Atlases that are not loaded. They are evaluated and decide nothing.
//!
//! A shadow is a separate engine that never handles a command. It gets a copy of the session that makes a
//! request, and its result is only shown to people. So it cannot influence a decision.

use std::sync::Arc;

use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{CountedIds, SessionId};

use super::Engine;
use super::command::EngineCommand;
use super::explanation::FullExplanation;

/// Atlases that are evaluated and decide nothing.
pub struct ShadowEngine(Engine);

impl std::fmt::Debug for ShadowEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShadowEngine({})", self.hash())
    }
}

impl Engine {
    /// Creates a shadow evaluation of these Atlases.
    #[must_use]
    pub fn shadow(&self, atlases: Arc<[Atlas]>) -> ShadowEngine {
        let mut engine = Self::new(Vec::new(), Box::new(CountedIds::default()));
        engine.reload(atlases);
        engine.set_extensions(self.extensions.clone());
        ShadowEngine(engine)
    }
}

impl ShadowEngine {
    /// Returns one digest for all of its Atlases.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.0.atlas_hash
    }

    /// Evaluates a command under these Atlases, as [`Engine::preview`] does under the loaded ones.
    #[must_use]
    pub fn preview(
        &mut self,
        live: &Engine,
        command: &EngineCommand,
        now: Timestamp,
    ) -> Option<(SessionId, String, FullExplanation)> {
        let hash = self.0.atlas_hash;
        let state = &mut self.0.state;
        state.sessions.clear();
        if let Some(session) = command.session().and_then(|id| live.state.sessions.get(id)) {
            let mut session = session.clone();
            // The question is the verdict of these Atlases, not that they differ.
            session.atlas_hash = hash;
            state.sessions.insert(session.id.clone(), session);
        }
        state.usage.clone_from(&live.state.usage);
        self.0.preview(command, now)
    }
}
