//! How all Atlases in force differ from all that would take their place: one may change, come or go.

use super::{Comparison, How, PartChange, compare};
use crate::atlas::Atlas;
use crate::atlas::origin::Part;

/// What becomes of one Atlas.
#[derive(Debug)]
pub enum Fate<'a> {
    /// It says something else.
    Changed(&'a Atlas, &'a Atlas),
    /// It comes into force.
    Comes(&'a Atlas),
    /// It is no longer in force.
    Goes(&'a Atlas),
}

impl Fate<'_> {
    /// What that changes, and where it may open a door.
    #[must_use]
    pub fn comparison(&self) -> Comparison {
        match self {
            Self::Changed(before, after) => compare(before, after),
            // What one Atlas allows holds where another denies by default and does not know the action.
            Self::Comes(atlas) => {
                let words = format!(
                    "`{}` comes in: what it allows may run where no other Atlas knows the action",
                    atlas.id
                );
                all(atlas, How::Added, words)
            }
            Self::Goes(atlas) => {
                let words = format!(
                    "`{}` goes away: none of its checkpoints and policies stops anybody any more",
                    atlas.id
                );
                all(atlas, How::Removed, words)
            }
        }
    }
}

/// What becomes of each Atlas of which something becomes: those that go or change in their order, then
/// those that come. They are told apart by their identifiers.
#[must_use]
pub fn fates<'a>(before: &'a [Atlas], after: &'a [Atlas]) -> Vec<Fate<'a>> {
    let same_id = |all: &'a [Atlas], id: &str| all.iter().find(|it| it.id == id);
    let mut fates = Vec::new();
    for old in before {
        match same_id(after, &old.id) {
            Some(new) if new.hash == old.hash => {}
            Some(new) => fates.push(Fate::Changed(old, new)),
            None => fates.push(Fate::Goes(old)),
        }
    }
    let come = after.iter().filter(|it| same_id(before, &it.id).is_none());
    fates.extend(come.map(Fate::Comes));
    fates
}

/// Every part of an Atlas.
fn all(atlas: &Atlas, how: How, words: String) -> Comparison {
    let checkpoints = atlas
        .checkpoints
        .iter()
        .map(|it| (Part::Checkpoint, &it.id));
    let policies = atlas.policies.iter().map(|it| (Part::Policy, &it.id));
    let capabilities = atlas
        .capabilities
        .iter()
        .map(|it| (Part::Capability, &it.id));
    let contexts = atlas.contexts.keys().map(|id| (Part::Context, id));
    let actions = atlas.actions.keys().map(|id| (Part::Action, id));
    let parts = checkpoints.chain(policies).chain(capabilities);
    let parts = parts.chain(contexts).chain(actions);
    let parts = parts.map(|(part, id)| PartChange {
        part,
        id: id.clone(),
        how,
    });
    Comparison {
        parts: parts.collect(),
        weaker: vec![words],
    }
}
