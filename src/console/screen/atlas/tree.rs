//! The tree: Atlases, their kinds of parts, the parts. Rows are places, so that a large Atlas costs
//! nothing but its visible rows.

use super::Atlases;
use crate::atlas::Atlas;
use crate::atlas::origin::Part;
use crate::runtime::snapshot::Snapshot;

/// A row: an Atlas, a kind of part in it, or a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) atlas: usize,
    pub(super) part: Option<Part>,
    pub(super) item: Option<usize>,
}

/// The kinds, in the order shown.
pub(super) const PARTS: [Part; 5] = [
    Part::Checkpoint,
    Part::Policy,
    Part::Capability,
    Part::Context,
    Part::Action,
];

/// What a kind is called.
pub(super) fn plural(part: Part) -> &'static str {
    match part {
        Part::Checkpoint => "checkpoints",
        Part::Policy => "policies",
        Part::Capability => "capabilities",
        Part::Context => "contexts",
        Part::Action => "actions",
    }
}

/// How many of a kind there are.
pub(super) fn count(atlas: &Atlas, part: Part) -> usize {
    match part {
        Part::Checkpoint => atlas.checkpoints.len(),
        Part::Policy => atlas.policies.len(),
        Part::Capability => atlas.capabilities.len(),
        Part::Context => atlas.contexts.len(),
        Part::Action => atlas.actions.len(),
    }
}

/// The identifier of a part.
pub(super) fn id(atlas: &Atlas, part: Part, at: usize) -> Option<&str> {
    match part {
        Part::Checkpoint => atlas.checkpoints.get(at).map(|it| it.id.as_str()),
        Part::Policy => atlas.policies.get(at).map(|it| it.id.as_str()),
        Part::Capability => atlas.capabilities.get(at).map(|it| it.id.as_str()),
        Part::Context => atlas.contexts.keys().nth(at).map(String::as_str),
        Part::Action => atlas.actions.keys().nth(at).map(String::as_str),
    }
}

impl Atlases {
    /// The rows that are not folded away.
    pub(super) fn rows(&self, snapshot: &Snapshot) -> Vec<Row> {
        let mut rows = Vec::new();
        for (atlas, it) in snapshot.loaded.iter().enumerate() {
            let row = Row {
                atlas,
                ..Row::default()
            };
            rows.push(row);
            if self.is_folded(row) {
                continue;
            }
            for part in PARTS {
                let count = count(it, part);
                let row = Row {
                    part: Some(part),
                    ..row
                };
                if count == 0 {
                    continue;
                }
                rows.push(row);
                if !self.is_folded(row) {
                    rows.extend((0..count).map(|item| Row {
                        item: Some(item),
                        ..row
                    }));
                }
            }
        }
        rows
    }

    /// Whether what hangs under a row is folded away. A part has nothing under it.
    pub(super) fn is_folded(&self, row: Row) -> bool {
        row.item.is_none() && self.folded.contains(&(row.atlas, row.part))
    }

    /// Folds what hangs under the row, or goes up to what it hangs under.
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

    /// Unfolds it.
    pub(super) fn unfold(&mut self) {
        self.folded.remove(&(self.row.atlas, self.row.part));
    }

    /// Folds every kind, or unfolds everything when that was done.
    pub(super) fn fold_level(&mut self, snapshot: &Snapshot) {
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
