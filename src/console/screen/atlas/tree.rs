//! Tree of the Atlases, the kinds of their parts, and the parts. Rows are indices, so a large Atlas costs
//! only its visible rows.

use super::AtlasScreen;
use crate::atlas::Atlas;
use crate::atlas::origin::PartKind;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Row of the tree: an Atlas, a kind of part in it, or a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) atlas: usize,
    pub(super) part: Option<PartKind>,
    pub(super) item: Option<usize>,
}

/// Kinds of parts, in display order.
pub(super) const PARTS: [PartKind; 5] = [
    PartKind::Checkpoint,
    PartKind::Policy,
    PartKind::Capability,
    PartKind::Context,
    PartKind::Action,
];

/// Returns the plural name of a kind.
pub(super) fn plural_name(part: PartKind) -> &'static str {
    match part {
        PartKind::Checkpoint => "checkpoints",
        PartKind::Policy => "policies",
        PartKind::Capability => "capabilities",
        PartKind::Context => "contexts",
        PartKind::Action => "actions",
    }
}

/// Returns the number of parts of a kind.
pub(super) fn part_count(atlas: &Atlas, part: PartKind) -> usize {
    match part {
        PartKind::Checkpoint => atlas.checkpoints.len(),
        PartKind::Policy => atlas.policies.len(),
        PartKind::Capability => atlas.capabilities.len(),
        PartKind::Context => atlas.contexts.len(),
        PartKind::Action => atlas.actions.len(),
    }
}

/// Returns the id of a part.
pub(super) fn part_id(atlas: &Atlas, part: PartKind, at: usize) -> Option<&str> {
    match part {
        PartKind::Checkpoint => atlas
            .checkpoints
            .get(at)
            .map(|checkpoint| checkpoint.id.as_str()),
        PartKind::Policy => atlas.policies.get(at).map(|policy| policy.id.as_str()),
        PartKind::Capability => atlas
            .capabilities
            .get(at)
            .map(|capability| capability.id.as_str()),
        PartKind::Context => atlas.contexts.keys().nth(at).map(String::as_str),
        PartKind::Action => atlas.actions.keys().nth(at).map(String::as_str),
    }
}

impl AtlasScreen {
    /// Returns the rows that are not folded away.
    pub(super) fn rows(&self, snapshot: &RuntimeSnapshot) -> Vec<TreeRow> {
        let mut rows = Vec::new();
        for (atlas, loaded) in snapshot.loaded.iter().enumerate() {
            let row = TreeRow {
                atlas,
                ..TreeRow::default()
            };
            rows.push(row);
            if self.is_folded(row) {
                continue;
            }
            for part in PARTS {
                let count = part_count(loaded, part);
                let row = TreeRow {
                    part: Some(part),
                    ..row
                };
                if count == 0 {
                    continue;
                }
                rows.push(row);
                if !self.is_folded(row) {
                    rows.extend((0..count).map(|item| TreeRow {
                        item: Some(item),
                        ..row
                    }));
                }
            }
        }
        rows
    }

    /// Returns true if the children of a row are folded away. A part has no children.
    pub(super) fn is_folded(&self, row: TreeRow) -> bool {
        row.item.is_none() && self.folded.contains(&(row.atlas, row.part))
    }

    /// Folds the selected row, or selects its parent if it is folded already.
    pub(super) fn fold(&mut self) {
        if self.row.item.take().is_some() {
            return;
        }
        if self.is_folded(self.row) {
            self.row.part = None;
            return;
        }
        self.folded.insert((self.row.atlas, self.row.part));
    }

    /// Unfolds the selected row.
    pub(super) fn unfold(&mut self) {
        self.folded.remove(&(self.row.atlas, self.row.part));
    }

    /// Folds every kind, or unfolds all rows if every kind is folded.
    pub(super) fn fold_level(&mut self, snapshot: &RuntimeSnapshot) {
        if self.folded.is_empty() {
            let atlases = 0..snapshot.loaded.len();
            let kinds = atlases.flat_map(|at| PARTS.map(|part| (at, Some(part))));
            self.folded.extend(kinds);
            self.row.item = None;
        } else {
            self.folded.clear();
        }
    }
}
