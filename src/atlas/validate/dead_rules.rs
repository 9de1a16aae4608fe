//! Advice about rules that can never apply, although their steward relies on them.
//!
//! These are warnings only: a pattern may be meant for an action that another Atlas declares.

use super::ManifestValidator;
use super::config::overlap;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    AtlasManifest, CheckpointMode, CheckpointQuestion, CheckpointTrigger, ExpectedAnswer,
    InvalidAnswerAction, PolicyKind, ResponseType, StewardCheckpointDef, UnknownActions,
};
use crate::atlas::suggest::closest_match;
use crate::base::pattern::Pattern;

/// Maximum number of names compared with a dead pattern; a suggestion is not worth more time.
const MAX_SUGGESTIONS: usize = 1000;

/// The actions that agents can ask for under an Atlas.
pub(super) struct DeclaredActions<'m> {
    ids: Vec<&'m str>,
    /// Patterns of capabilities; the actions that they list are known, too.
    listed: Vec<&'m str>,
}

impl<'m> DeclaredActions<'m> {
    /// Nothing where the Atlas declares no actions, or lets others run: then every name may come.
    pub(super) fn of(manifest: &'m AtlasManifest) -> Option<Self> {
        if manifest.actions.is_empty() || manifest.unknown_actions != UnknownActions::Deny {
            return None;
        }
        let ids = manifest.actions.iter();
        let listed = manifest
            .capabilities
            .iter()
            .flat_map(|capability| &capability.actions);
        Some(Self {
            ids: ids.map(|action| action.action_id.as_str()).collect(),
            listed: listed.map(String::as_str).collect(),
        })
    }

    /// Tells whether capabilities list actions that are not declared.
    pub(super) fn lists_others(&self) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|listed| {
            let pattern = Pattern::new(*listed);
            !pattern.is_literal() || !self.ids.contains(listed)
        })
    }

    fn has(&self, text: &str) -> bool {
        let pattern = Pattern::new(text);
        if self.ids.iter().any(|id| pattern.matches(id)) {
            return true;
        }
        let mut listed = self.listed.iter();
        listed.any(|listed| overlap(listed, text)) && !self.shares_typo(text)
    }

    /// Tells whether a pattern is known only because a capability has the same name, and that name is nearly the one
    /// of a declared action.
    fn shares_typo(&self, text: &str) -> bool {
        let own = |listed: &&&str| overlap(listed, text);
        let mut listed = self.listed.iter().filter(own);
        listed.all(|listed| Pattern::new(*listed).is_literal())
            && self.near_declared(text).is_some()
    }

    fn near_declared(&self, text: &str) -> Option<String> {
        let names = self.ids.iter().take(MAX_SUGGESTIONS);
        near(text, names.map(|name| (*name).to_owned()).collect())
    }

    /// Returns the name, or the pattern of names, that the steward probably meant.
    fn suggestion(&self, text: &str) -> Option<String> {
        let listed = self.listed.iter().filter(|listed| **listed != text);
        let names = self.ids.iter().chain(listed).take(MAX_SUGGESTIONS);
        near(text, names.map(|name| (*name).to_owned()).collect())
    }
}

/// The name, or the pattern of names, that is nearest to a text.
fn near(text: &str, mut candidates: Vec<String>) -> Option<String> {
    if text.contains('*') {
        let families: Vec<_> = candidates
            .iter()
            .flat_map(|name| name_patterns(name))
            .collect();
        candidates.extend(families);
    }
    let found = closest_match(text, candidates.iter().map(String::as_str));
    found.map(str::to_owned)
}

/// Patterns that a name belongs to: `ticket.*` and `*.delete` for `ticket.delete`.
fn name_patterns(name: &str) -> Vec<String> {
    let beginning = name.rsplit_once('.').map(|(first, _)| format!("{first}.*"));
    let end = name.split_once('.').map(|(_, last)| format!("*.{last}"));
    beginning.into_iter().chain(end).collect()
}

impl ManifestValidator<'_, '_> {
    /// Advises about action patterns that match no action an agent can request.
    pub(super) fn advise_patterns(&mut self, manifest: &AtlasManifest) {
        let Some(declared) = DeclaredActions::of(manifest) else {
            return;
        };
        for (index, policy) in manifest.policies.iter().enumerate() {
            let path = format!("policies[{index}].actions");
            self.advise_matches(&path, &policy.actions, &declared);
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let path = format!("checkpoints[{index}]");
            if let CheckpointTrigger::ActionPre { patterns }
            | CheckpointTrigger::ActionPost { patterns } = &checkpoint.trigger
            {
                let keys = ["patterns", "actions"];
                let path = self.detail_path(&format!("{path}.trigger"), &keys);
                self.advise_matches(&path, patterns, &declared);
            }
            for (key, patterns) in [
                ("allow_actions", &checkpoint.allow_actions),
                ("deny_actions", &checkpoint.deny_actions),
            ] {
                self.advise_matches(&format!("{path}.{key}"), patterns, &declared);
            }
        }
        for (index, context) in manifest.context_blocks.iter().enumerate() {
            let path = format!("context_blocks[{index}]");
            let nested = format!("{path}.checkpoint_config.actions");
            let flat = format!("{path}.actions");
            let path = if self.root.has(&nested) { nested } else { flat };
            self.advise_matches(&path, &context.actions, &declared);
        }
        let config = manifest.checkpoint_config.as_ref();
        let part = config.and_then(|config| config.action_pre.as_ref());
        if let Some(part) = part.filter(|part| part.enabled) {
            let path =
                self.first_existing_path("checkpoint_config.action_pre", &["mappings", "actions"]);
            let keys: Vec<_> = part.mappings.iter().map(|(key, _)| key.clone()).collect();
            self.advise_matches(&path, &keys, &declared);
        }
    }

    fn advise_matches(&mut self, path: &str, patterns: &[String], declared: &DeclaredActions<'_>) {
        for (index, text) in patterns.iter().enumerate() {
            if declared.has(text) {
                continue;
            }
            let message = format!(
                "{} matches no declared action, so it never applies",
                quoted(text)
            );
            let help = declared.suggestion(text).map_or_else(
                || "declare the action under `actions`, or remove the pattern".to_owned(),
                |near| format!("did you mean {}?", quoted(&near)),
            );
            let problem = ManifestProblem::new(Code::DeadPattern, message).help(help);
            self.report(&format!("{path}[{index}]"), problem);
        }
    }

    /// Advises about parts of a checkpoint that have no effect in its mode.
    pub(super) fn advise_mode(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        let path = format!("checkpoints[{index}]");
        let mode = checkpoint.mode;
        if mode != CheckpointMode::Blocking && !checkpoint.questions.is_empty() {
            let message = format!(
                "the questions of this checkpoint are never asked: its mode is `{}`",
                mode.as_str()
            );
            let help = "write `mode: blocking`, or remove the questions";
            let problem = ManifestProblem::new(Code::NoEffect, message).help(help.to_owned());
            self.report(&format!("{path}.questions"), problem);
        }
        if mode != CheckpointMode::Observational {
            return;
        }
        for (key, is_there) in [
            ("inject_contexts", !checkpoint.inject_contexts.is_empty()),
            (
                "unlock_capabilities",
                !checkpoint.unlock_capabilities.is_empty(),
            ),
            (
                "lock_capabilities",
                !checkpoint.lock_capabilities.is_empty(),
            ),
            ("allow_actions", !checkpoint.allow_actions.is_empty()),
            ("deny_actions", !checkpoint.deny_actions.is_empty()),
            ("guidance", checkpoint.guidance.is_some()),
        ] {
            if !is_there {
                continue;
            }
            let stays = if key == "unlock_capabilities" {
                ", and the capabilities stay locked"
            } else {
                ""
            };
            let message =
                format!("an observational checkpoint only records: `{key}` has no effect{stays}");
            let help = format!("write `mode: advisory` or `mode: blocking`, or remove `{key}`");
            self.report(
                &format!("{path}.{key}"),
                ManifestProblem::new(Code::NoEffect, message).help(help),
            );
        }
    }

    /// Advises about text rules on questions with another answer type.
    pub(super) fn advise_text_rules(&mut self, path: &str, question: &CheckpointQuestion) {
        let kind = question.response_type;
        if kind == ResponseType::Text {
            return;
        }
        let rules = &question.validation;
        let help = match kind {
            ResponseType::Number => "for a number, use `min` and `max`, next to `validation`",
            ResponseType::Json => "for a JSON answer, use `schema`, next to `validation`",
            ResponseType::Choice => "for a choice, use `options`, next to `validation`",
            ResponseType::Boolean => "for a yes/no question, use `expect`, next to `validation`",
            ResponseType::Text | ResponseType::Acknowledgment => {
                "write `response_type: text`, or remove the rule"
            }
        };
        for (key, is_there) in [
            ("pattern", rules.pattern.is_some()),
            ("min_length", rules.min_length.is_some()),
            ("max_length", rules.max_length.is_some()),
            ("must_contain", !rules.must_contain.is_empty()),
            ("must_not_contain", !rules.must_not_contain.is_empty()),
        ] {
            if is_there {
                let kind = kind.as_str();
                let message =
                    format!("`{key}` applies only to text, not to an answer of type `{kind}`");
                let problem = ManifestProblem::new(Code::NoEffect, message).help(help.to_owned());
                self.report(&format!("{path}.validation.{key}"), problem);
            }
        }
    }

    /// Advises about keys of a question that its other keys make meaningless.
    pub(super) fn advise_unused_keys(&mut self, path: &str, question: &CheckpointQuestion) {
        let word = question.on_invalid.as_str();
        if question.max_retries.is_some() && question.on_invalid != InvalidAnswerAction::Retry {
            let message =
                format!("`on_invalid: {word}` never asks again: `max_retries` has no effect");
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `on_invalid: retry`, or remove `max_retries`".to_owned());
            self.report(&format!("{path}.max_retries"), problem);
        }
        let expects = format!("{path}.expect");
        // Code that builds manifests writes the default out.
        if question.response_type != ResponseType::Boolean
            && question.expect != ExpectedAnswer::True
        {
            let kind = question.response_type.as_str();
            let message =
                format!("`expect` applies only to yes or no, not to an answer of type `{kind}`");
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `response_type: boolean`, or remove `expect`".to_owned());
            self.report(&expects, problem);
        }
    }

    /// Advises about limits that do not say whose runs they count.
    pub(super) fn advise_scopes(&mut self, manifest: &AtlasManifest) {
        for (index, policy) in manifest.policies.iter().enumerate() {
            let path = format!("policies[{index}]");
            let is_limit = matches!(policy.kind, PolicyKind::RateLimit | PolicyKind::Budget);
            if is_limit && !self.root.has(&format!("{path}.scope")) {
                let message =
                    "this limit counts each session separately: a new session starts at zero";
                let help = "write `scope: agent` or `scope: all`, or confirm with `scope: session`";
                let problem =
                    ManifestProblem::new(Code::ImplicitScope, message).help(help.to_owned());
                self.report(&format!("{path}.type"), problem);
            }
        }
    }
}
