//! Other Atlases while agents are at work.
//!
//! Nothing is opened by it. What is held stays held under the Atlases it was judged under: it can be
//! refused, and not passed unless those come back. Permits and resolutions given under others do not
//! count. A session starts anew under the new ones with the next thing it does.

use std::sync::Arc;

use crate::atlas::{Atlas, recording};
use crate::base::digest::Digest;

use super::{Engine, combined_hash};

impl Engine {
    /// Decides by these Atlases from now on.
    pub fn reload(&mut self, atlases: Arc<[Atlas]>) {
        self.atlas_hash = combined_hash(&atlases);
        self.level = recording::level(&atlases);
        self.atlases = atlases;
        self.accept_budgets();
        // What was worked out under the others says nothing about these.
        self.state.caches.clear();
        self.state.suspension.ask_again();
    }

    /// One digest for all Atlases in force.
    #[must_use]
    pub fn atlas_hash(&self) -> Digest {
        self.atlas_hash
    }
}

/// One digest for a set of Atlases: what a decision under them is bound to.
#[must_use]
pub fn hash_of(atlases: &[Atlas]) -> Digest {
    combined_hash(atlases)
}
