//! Validation of identifiers: unique within their kind, and present when referenced.

use std::collections::{BTreeMap, BTreeSet};

use super::{ManifestValidator, text_problem};
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{AtlasManifest, CheckpointTrigger};
use crate::atlas::model::Checkpoint;
use crate::atlas::suggest::closest_match;
use crate::base::id::is_restricted;
use crate::base::limits::{MAX_ACTION_LEN, MAX_ID_LEN};

/// Maximum number of identifiers compared with a misspelt one; a suggestion is not worth more time.
const MAX_SUGGESTIONS: usize = 1000;

/// A kind of part that has identifiers.
pub(super) struct IdKind {
    list: &'static str,
    key: &'static str,
    noun: &'static str,
    most_chars: usize,
}

impl IdKind {
    pub(super) const CAPABILITY: Self =
        Self::new("capabilities", "capability_id", "capability", MAX_ID_LEN);
    pub(super) const CHECKPOINT: Self =
        Self::new("checkpoints", "checkpoint_id", "checkpoint", MAX_ID_LEN);
    pub(super) const CONTEXT: Self =
        Self::new("context_blocks", "context_id", "context", MAX_ID_LEN);
    pub(super) const POLICY: Self = Self::new("policies", "policy_id", "policy", MAX_ID_LEN);
    pub(super) const ACTION: Self = Self::new("actions", "action_id", "action", MAX_ACTION_LEN);

    const fn new(
        list: &'static str,
        key: &'static str,
        noun: &'static str,
        most_chars: usize,
    ) -> Self {
        Self {
            list,
            key,
            noun,
            most_chars,
        }
    }
}

/// The identifiers of one kind.
pub(super) struct KnownIds<'m> {
    /// All identifiers.
    pub(super) all: BTreeSet<&'m str>,
    noun: &'static str,
    /// False if some identifiers could not be read; a missing one may be among them.
    complete: bool,
}

impl ManifestValidator<'_, '_> {
    /// Checks and collects the identifiers of one kind.
    pub(super) fn ids<'m>(
        &mut self,
        kind: &IdKind,
        ids: impl Iterator<Item = &'m str>,
    ) -> KnownIds<'m> {
        let mut first_paths: BTreeMap<&str, String> = BTreeMap::new();
        let mut whole = !self.problems.is_faulty(kind.list);
        for (index, id) in ids.enumerate() {
            let path = format!("{}[{index}].{}", kind.list, kind.key);
            if self.problems.is_faulty(&path) {
                whole = false;
                continue;
            }
            self.check_id(&path, &format!("{} id", kind.noun), id, kind.most_chars);
            if kind.list == IdKind::ACTION.list && id.contains('*') {
                let message = format!("action id {} contains a `*`", quoted(id));
                let help = "declare an action by its exact name; only rules use patterns";
                self.report(
                    &path,
                    ManifestProblem::new(Code::BadId, message).help(help.to_owned()),
                );
            }
            if let Some(first) = first_paths.get(id) {
                self.report_duplicate(&path, first, kind, id);
            } else {
                first_paths.insert(id, path);
            }
        }
        KnownIds {
            all: first_paths.into_keys().collect(),
            noun: kind.noun,
            complete: whole,
        }
    }

    fn report_duplicate(&mut self, path: &str, first: &str, kind: &IdKind, id: &str) {
        // Finding the first line takes time, and reports beyond the limit are not shown.
        let first = if self.problems.is_full() {
            String::new()
        } else {
            let place = self.root.span_of(first);
            format!(", first at {}", self.problems.describe(place))
        };
        let noun = kind.noun;
        let message = format!("{noun} id {} is used twice{first}", quoted(id));
        self.report_code(Code::DuplicateId, path, message);
    }

    /// Checks one identifier.
    pub(super) fn check_id(&mut self, path: &str, noun: &str, id: &str, most_chars: usize) {
        if let Some(fault) = text_problem(id, most_chars) {
            self.report_code(Code::BadId, path, format!("{noun} {fault}"));
        }
    }

    /// Checks the name of an extension. Names appear in records, so the allowed characters are few.
    pub(super) fn check_name(&mut self, path: &str, noun: &str, name: &str) {
        if !is_restricted(name) {
            let message = format!("{noun} {} is not a valid name", quoted(name));
            let help = format!("use 1 to {MAX_ID_LEN} characters of A-Z a-z 0-9 . _ -");
            self.report(path, ManifestProblem::new(Code::BadId, message).help(help));
        }
    }

    /// Checks that the `expires_after` of guidance names an existing checkpoint or checkpoint type.
    pub(super) fn check_expiry(&mut self, manifest: &AtlasManifest, checkpoints: &[Checkpoint]) {
        let plain = |name: &str| name.replace('-', "_");
        let types = CheckpointTrigger::NAMES.into_iter();
        let types = types.chain(CheckpointTrigger::OTHER_TYPES);
        let written = manifest
            .checkpoints
            .iter()
            .map(|c| c.checkpoint_id.as_str());
        let configured = checkpoints.iter().map(|c| c.id.as_str());
        let known: BTreeSet<&str> = types.chain(written).chain(configured).collect();
        let plain_names: BTreeSet<String> = known.iter().map(|name| plain(name)).collect();
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let guidance = checkpoint.guidance.as_ref();
            let Some(name) = guidance.and_then(|block| block.expires_after.as_deref()) else {
                continue;
            };
            if plain_names.contains(&plain(name)) {
                continue;
            }
            let message = format!("unknown checkpoint or checkpoint type {}", quoted(name));
            let near = closest_match(name, known.iter().copied().take(MAX_SUGGESTIONS));
            let help = near.map_or_else(
                || "name a checkpoint, or a type such as `session_end`".to_owned(),
                |near| format!("did you mean {}?", quoted(near)),
            );
            let path = format!("checkpoints[{index}].guidance.expires_after");
            self.report(
                &path,
                ManifestProblem::new(Code::UnknownReference, message).help(help),
            );
        }
    }

    /// Checks that every identifier in `references` exists.
    pub(super) fn check_references(
        &mut self,
        path: &str,
        references: &[String],
        ids: &KnownIds<'_>,
    ) {
        for (index, reference) in references.iter().enumerate() {
            if !ids.complete || ids.all.contains(reference.as_str()) {
                continue;
            }
            let message = format!("unknown {} {}", ids.noun, quoted(reference));
            // Finding a suggestion takes time, and reports beyond the limit are not shown.
            let compared = if self.problems.is_full() {
                0
            } else {
                MAX_SUGGESTIONS
            };
            let near = closest_match(reference, ids.all.iter().copied().take(compared));
            let help = near.map(|near| format!("did you mean {}?", quoted(near)));
            self.report(
                &format!("{path}[{index}]"),
                ManifestProblem::new(Code::UnknownReference, message).help(help),
            );
        }
    }
}
