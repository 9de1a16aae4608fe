//! The origin of an Atlas: its file, its warnings and the source lines of its parts.

use std::path::PathBuf;

use super::diagnostic::Diagnostic;
use super::yaml::{YamlNode, YamlValue};

/// The origin of an Atlas.
#[derive(Clone, Debug, Default)]
pub struct AtlasOrigin {
    /// Name in messages.
    pub name: String,
    /// File, if the Atlas was loaded from one.
    pub file: Option<PathBuf>,
    /// Warnings for the steward.
    pub warnings: Vec<Diagnostic>,
    /// Source lines of the parts, in the order of the text.
    pub(super) places: Vec<PartLines>,
}

/// A kind of part with source lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// A checkpoint.
    Checkpoint,
    /// A policy.
    Policy,
    /// A capability.
    Capability,
    /// A context.
    Context,
    /// An action.
    Action,
}

impl PartKind {
    /// All kinds, each with the key of its list and the key of its identifier.
    const KEYS: [(Self, &'static str, &'static str); 5] = [
        (Self::Checkpoint, "checkpoints", "checkpoint_id"),
        (Self::Policy, "policies", "policy_id"),
        (Self::Capability, "capabilities", "capability_id"),
        (Self::Context, "context_blocks", "context_id"),
        (Self::Action, "actions", "action_id"),
    ];
}

#[derive(Clone, Debug)]
pub(super) struct PartLines {
    part: PartKind,
    id: String,
    lines: (usize, usize),
}

impl AtlasOrigin {
    /// Returns the first and the last line of a part, from 1. A part created by `checkpoint_config` has no lines.
    #[must_use]
    pub fn lines_of(&self, part: PartKind, id: &str) -> Option<(usize, usize)> {
        let mut places = self.places.iter();
        let own = places.find(|place| place.part == part && place.id == id)?;
        Some(own.lines)
    }

    pub(super) fn of(root: &YamlNode, source: &str) -> Self {
        let starts: Vec<usize> = source.match_indices('\n').map(|(at, _)| at + 1).collect();
        let line = |byte: usize| starts.partition_point(|start| *start <= byte) + 1;
        let mut places = Vec::new();
        for (part, list, key) in PartKind::KEYS {
            for item in items(root, list) {
                let Some(id) = text(item, key) else {
                    continue;
                };
                let end = item.span.end.saturating_sub(1).max(item.span.start);
                places.push(PartLines {
                    part,
                    id: id.to_owned(),
                    lines: (line(item.start_span().start), line(end)),
                });
            }
        }
        Self {
            places,
            ..Self::default()
        }
    }
}

fn items<'n>(root: &'n YamlNode, list: &str) -> &'n [YamlNode] {
    match field(root, list).map(|node| &node.value) {
        Some(YamlValue::Seq(items)) => items,
        Some(
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::String(_)
            | YamlValue::Map(_),
        )
        | None => &[],
    }
}

fn text<'n>(node: &'n YamlNode, key: &str) -> Option<&'n str> {
    field(node, key)?.word()
}

fn field<'n>(node: &'n YamlNode, key: &str) -> Option<&'n YamlNode> {
    match &node.value {
        YamlValue::Map(entries) => {
            let mut entries = entries.iter();
            let own = entries.find(|entry| entry.key == key)?;
            Some(&own.node)
        }
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Number(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::load_str;

    #[test]
    fn parts_have_their_source_lines() {
        let acme = include_str!("../../assets/atlas/acme-support.yaml");
        let atlas = load_str("acme.yaml", acme).unwrap().atlas;
        let (first, last) = atlas
            .origin
            .lines_of(PartKind::Checkpoint, "delete-confirm")
            .unwrap();
        let lines: Vec<&str> = acme.lines().collect();
        assert_eq!(
            lines[first - 1].trim(),
            "- checkpoint_id: \"delete-confirm\""
        );
        assert_eq!(lines[last - 1].trim(), "priority: 900");
        assert!(
            atlas
                .origin
                .lines_of(PartKind::Policy, "delete-confirm")
                .is_none()
        );
        let (first, _) = atlas
            .origin
            .lines_of(PartKind::Action, "ticket.get")
            .unwrap();
        assert_eq!(lines[first - 1].trim(), "- action_id: \"ticket.get\"");
    }
}
