//! Reloading of Atlases while agents are at work.
//!
//! A reload opens nothing. Held requests stay held under the Atlases they were judged under: they can be
//! refused, and passed only if those Atlases come back. Permits and resolutions from other Atlases do not
//! count. A session starts anew under the new Atlases with its next command.

use std::sync::Arc;

use crate::atlas::{Atlas, recording};
use crate::base::digest::Digest;

use crate::engine::{Engine, combined_hash};

impl Engine {
    /// Replaces the loaded Atlases.
    pub fn reload(&mut self, atlases: Arc<[Atlas]>) {
        self.atlas_hash = combined_hash(&atlases);
        self.level = recording::trace_level(&atlases);
        self.atlases = atlases;
        self.accept_budgets();
        // Cached results of the old Atlases are not valid for the new ones.
        self.state.caches.clear();
        self.state.suspension.mark_calls_outdated();
    }

    /// Returns one digest for all loaded Atlases.
    #[must_use]
    pub fn atlas_hash(&self) -> Digest {
        self.atlas_hash
    }
}

/// Returns one digest for a set of Atlases. Decisions under them are bound to it.
#[must_use]
pub fn hash_of_atlases(atlases: &[Atlas]) -> Digest {
    combined_hash(atlases)
}
