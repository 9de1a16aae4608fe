//! Replacement of Atlases while agents work.

use std::sync::Arc;

use super::duplicate_atlas_id;
use crate::atlas::Atlas;
use crate::base::digest::Digest;
use crate::engine::Engine;
use crate::engine::reload::hash_of_atlases;

/// A request to replace the loaded Atlases.
#[derive(Clone, Debug)]
pub struct AtlasLoad {
    /// All Atlases to load. An `Atlas` is always validated.
    pub atlases: Arc<[Atlas]>,
    /// Digest of the Atlases that the operator saw loaded. Other Atlases are not replaced unseen.
    pub expected_hash: Digest,
    /// Operator who loads them.
    pub operator: String,
}

impl PartialEq for AtlasLoad {
    fn eq(&self, other: &Self) -> bool {
        let of = |load: &Self| (hash_of_atlases(&load.atlases), load.expected_hash);
        of(self) == of(other) && self.operator == other.operator
    }
}

/// Reason why Atlases are refused. The loaded ones stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadRefusal {
    /// This console is read-only.
    #[error("this console is read-only")]
    ReadOnly,
    /// The console is stopping.
    #[error("the console is stopping")]
    Stopping,
    /// Other Atlases were loaded meanwhile.
    #[error("other Atlases were loaded meanwhile: review them first")]
    Changed,
    /// These Atlases are already loaded.
    #[error("these Atlases are already loaded")]
    AlreadyLoaded,
    /// Two of them have one identifier, so the record could not tell which of them decided.
    #[error("two Atlases have the identifier `{0}`")]
    DuplicateId(String),
    /// No Atlas would be left, so no agent would be asked anything.
    #[error("at least one Atlas must stay loaded")]
    NoAtlas,
    /// The change cannot be recorded, so it does not happen.
    #[error("nothing can be recorded: {0}")]
    Unavailable(String),
}

impl AtlasLoad {
    /// Returns the reason why it cannot replace the loaded Atlases, if there is one.
    pub(super) fn refusal(&self, engine: &Engine) -> Option<LoadRefusal> {
        let in_force = engine.atlas_hash();
        if self.expected_hash != in_force {
            return Some(LoadRefusal::Changed);
        }
        if hash_of_atlases(&self.atlases) == in_force {
            return Some(LoadRefusal::AlreadyLoaded);
        }
        if self.atlases.is_empty() {
            return Some(LoadRefusal::NoAtlas);
        }
        duplicate_atlas_id(&self.atlases).map(|id| LoadRefusal::DuplicateId(id.to_owned()))
    }
}
