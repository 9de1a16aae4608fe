//! Other Atlases while agents are at work.

use std::sync::Arc;

use super::named_twice;
use crate::atlas::Atlas;
use crate::base::digest::Digest;
use crate::engine::Engine;
use crate::engine::reload::hash_of;

/// Atlases that are to take the place of those in force.
#[derive(Clone, Debug)]
pub struct Load {
    /// All that are to be in force: only what was proven is an Atlas at all.
    pub atlases: Arc<[Atlas]>,
    /// One digest for those that the operator saw in force. Others are not replaced unseen.
    pub instead_of: Digest,
    /// Who wants it.
    pub by: String,
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        let of = |it: &Self| (hash_of(&it.atlases), it.instead_of);
        of(self) == of(other) && self.by == other.by
    }
}

/// Why Atlases are not taken. Those in force stay in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadRefused {
    /// This console only looks.
    #[error("this console is read-only")]
    ReadOnly,
    /// Nobody is there any more to take them.
    #[error("the console is stopping")]
    Stopping,
    /// Others were loaded since.
    #[error("other Atlases were loaded meanwhile: look again")]
    Changed,
    /// They are in force.
    #[error("they are in force already")]
    Same,
    /// Two of them have the same identifier: nobody could say which of them decided.
    #[error("two Atlases have the identifier `{0}`")]
    SameAtlas(String),
    /// None would be left: nothing would be asked of anybody any more.
    #[error("no Atlas would be left")]
    Nothing,
    /// It cannot be recorded, so it does not happen.
    #[error("nothing can be recorded: {0}")]
    Unavailable(String),
}

impl Load {
    /// Why it cannot take the place of what is in force, if so.
    pub(super) fn fault(&self, engine: &Engine) -> Option<LoadRefused> {
        let in_force = engine.atlas_hash();
        if self.instead_of != in_force {
            return Some(LoadRefused::Changed);
        }
        if hash_of(&self.atlases) == in_force {
            return Some(LoadRefused::Same);
        }
        if self.atlases.is_empty() {
            return Some(LoadRefused::Nothing);
        }
        named_twice(&self.atlases).map(|id| LoadRefused::SameAtlas(id.to_owned()))
    }
}
