//! Comparison of all loaded Atlases with their replacements: an Atlas can change, be added or be removed.

use super::{ChangeKind, Comparison, PartChange, compare};
use crate::atlas::Atlas;
use crate::atlas::origin::PartKind;

/// The change of one Atlas.
#[derive(Debug)]
pub enum AtlasChange<'a> {
    /// The content of the Atlas changed.
    Changed(&'a Atlas, &'a Atlas),
    /// The Atlas is added.
    Added(&'a Atlas),
    /// The Atlas is removed.
    Removed(&'a Atlas),
}

impl AtlasChange<'_> {
    /// Compares the parts, and lists where agents may be stopped less often.
    #[must_use]
    pub fn comparison(&self) -> Comparison {
        match self {
            Self::Changed(before, after) => compare(before, after),
            // An action that one Atlas allows may run even if another Atlas denies by default and does not know the
            // action.
            Self::Added(atlas) => {
                let words = format!(
                    "`{}` is added: actions it allows may run if no other Atlas knows them",
                    atlas.id
                );
                compare_all_parts(atlas, ChangeKind::Added, words)
            }
            Self::Removed(atlas) => {
                let words = format!(
                    "`{}` is removed: its checkpoints and policies no longer apply",
                    atlas.id
                );
                compare_all_parts(atlas, ChangeKind::Removed, words)
            }
        }
    }
}

/// Returns the change of each Atlas that differs, matched by id.
///
/// Removed and changed Atlases come first, in their old order; then the added Atlases.
#[must_use]
pub fn atlas_changes<'a>(before: &'a [Atlas], after: &'a [Atlas]) -> Vec<AtlasChange<'a>> {
    let same_id = |all: &'a [Atlas], id: &str| all.iter().find(|atlas| atlas.id == id);
    let mut changes = Vec::new();
    for old in before {
        match same_id(after, &old.id) {
            Some(new) if new.hash == old.hash => {}
            Some(new) => changes.push(AtlasChange::Changed(old, new)),
            None => changes.push(AtlasChange::Removed(old)),
        }
    }
    let added = after
        .iter()
        .filter(|atlas| same_id(before, &atlas.id).is_none());
    changes.extend(added.map(AtlasChange::Added));
    changes
}

/// Returns a comparison that lists every part of an Atlas with the same kind of change.
fn compare_all_parts(atlas: &Atlas, how: ChangeKind, words: String) -> Comparison {
    let checkpoints = atlas
        .checkpoints
        .iter()
        .map(|checkpoint| (PartKind::Checkpoint, &checkpoint.id));
    let policies = atlas
        .policies
        .iter()
        .map(|policy| (PartKind::Policy, &policy.id));
    let capabilities = atlas
        .capabilities
        .iter()
        .map(|capability| (PartKind::Capability, &capability.id));
    let contexts = atlas.contexts.keys().map(|id| (PartKind::Context, id));
    let actions = atlas.actions.keys().map(|id| (PartKind::Action, id));
    let parts = checkpoints.chain(policies).chain(capabilities);
    let parts = parts.chain(contexts).chain(actions);
    let parts = parts.map(|(part, id)| PartChange {
        part,
        id: id.clone(),
        kind: how,
    });
    Comparison {
        parts: parts.collect(),
        weaker: vec![words],
    }
}
