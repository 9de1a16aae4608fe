//! Advice about extensions that an Atlas names but the operator has not allowed: the effect and the fix.

use std::collections::BTreeSet;

use super::ManifestValidator;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{AtlasManifest, CheckpointTrigger, StewardCheckpointDef};

/// The allowed extensions, by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownExtensions {
    /// Extensions that decide custom triggers.
    pub triggers: BTreeSet<String>,
    /// Extensions that handle checkpoints.
    pub handlers: BTreeSet<String>,
    /// Extensions that validate answers.
    pub validators: BTreeSet<String>,
    /// Registered event types.
    pub events: BTreeSet<String>,
}

impl ManifestValidator<'_, '_> {
    /// Advises about names that are not known.
    pub(super) fn advise_extensions(&mut self, manifest: &AtlasManifest, known: &KnownExtensions) {
        self.advise_events(manifest, known);
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let path = format!("checkpoints[{index}]");
            self.advise_trigger(&path, checkpoint, known);
            if let Some(name) = &checkpoint.handler
                && !known.handlers.contains(name)
            {
                let then = "every request that fires this checkpoint is denied";
                self.report_unlisted(&format!("{path}.handler"), "handler", name, then);
            }
            for (number, question) in checkpoint.questions.iter().enumerate() {
                if let Some(name) = &question.validation.custom_validator
                    && !known.validators.contains(name)
                {
                    let path = format!("{path}.questions[{number}].validation.custom_validator");
                    let then = "no answer to this question is accepted";
                    self.report_unlisted(&path, "validator", name, then);
                }
            }
        }
    }

    /// Advises about a custom trigger without a condition and without an extension: it always fires.
    fn advise_trigger(
        &mut self,
        path: &str,
        checkpoint: &StewardCheckpointDef,
        known: &KnownExtensions,
    ) {
        if let CheckpointTrigger::Custom {
            trigger_id,
            when: None,
            ..
        } = &checkpoint.trigger
            && !known.triggers.contains(trigger_id)
        {
            let path = self.detail_path(&format!("{path}.trigger"), &["trigger_id"]);
            let then = "the checkpoint fires at every evaluation";
            self.report_unlisted(&path, "trigger", trigger_id, then);
        }
    }

    fn report_unlisted(&mut self, path: &str, role: &str, name: &str, then: &str) {
        let message = format!(
            "{role} {} is not in the operator's list: {then}",
            quoted(name)
        );
        let help = format!(
            "add it to the operator's list (`--extensions FILE`), with `answers: [{role}]`"
        );
        self.report(
            path,
            ManifestProblem::new(Code::UnlistedExtension, message).help(help),
        );
    }
}
