//! Validation: turns the decoded manifest into an Atlas and checks identifiers, references, patterns and limits.
//!
//! The manifest is plain data without positions. The source tree is kept next to it, and a path into the manifest
//! finds the position in the tree. Problems that follow from an error of the decoder are not reported again.

mod advice;
mod checkpoint;
mod config;
mod dead_conditions;
mod dead_rules;
mod extension;
mod ids;
mod notifications;
mod parameters;
mod shadowed;
mod trace;
mod trigger;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::condition::{Condition, ConditionDef};
use super::decoder::join;
use super::diagnostic::{Code, ManifestProblem, Problems, quoted};
use super::document::{
    ActionDef, AtlasManifest, CapabilityDef, CheckpointTrigger, ContextBlockDef, InjectMode,
    MatchMode, PolicyDef, PolicyKind, Steward, StewardCheckpointDef,
};
use super::index::AtlasIndex;
use super::keyword::{CaseSensitivity, Keywords};
use super::model::{Atlas, Capability, DeclaredAction, InjectionRule, Limit, Policy, Schema};
use super::yaml::YamlNode;
use crate::base::digest::Digest;
use crate::base::limits::{MAX_ACTION_LEN, MAX_ID_LEN};
use crate::base::pattern::{Pattern, Patterns};
use crate::base::text::is_deceptive;

pub use extension::KnownExtensions;
use ids::IdKind;

/// The version of the format that this program reads.
const FORMAT_VERSION: &str = "1.0";

/// Validates a manifest that was decoded from `root`. Returns `None` if there is any error, old or new.
///
/// With `known` extensions, the advice includes the extensions of the manifest that are not among them.
pub(super) fn validate_manifest(
    manifest: AtlasManifest,
    root: &YamlNode,
    hash: Digest,
    known: Option<&KnownExtensions>,
    problems: &mut Problems<'_>,
) -> Option<Atlas> {
    let mut validator = ManifestValidator { root, problems };
    validator.check_header(&manifest);
    let capability_ids = validator.ids(
        &IdKind::CAPABILITY,
        manifest
            .capabilities
            .iter()
            .map(|c| c.capability_id.as_str()),
    );
    let context_ids = validator.ids(
        &IdKind::CONTEXT,
        manifest
            .context_blocks
            .iter()
            .map(|c| c.context_id.as_str()),
    );
    validator.check_ids(&manifest);
    let action_ids = validator.ids(
        &IdKind::ACTION,
        manifest.actions.iter().map(|a| a.action_id.as_str()),
    );

    let capabilities = validator.capabilities(&manifest, &action_ids.all);
    let checkpoints = validator.checkpoints(&manifest, &capability_ids, &context_ids);
    let policies = validator.policies(&manifest.policies);
    let injections = validator.injections(&manifest.context_blocks);
    let actions = validator.actions(&manifest.actions);
    let recording = validator.recording(&manifest);
    if !validator.problems.has_errors() {
        validator.advise(&manifest);
        if let Some(known) = known {
            validator.advise_extensions(&manifest, known);
        }
    }
    if problems.has_errors() {
        return None;
    }
    let atlas = Atlas {
        id: manifest.atlas_id,
        version: manifest.version,
        name: manifest.name,
        description: manifest.description,
        hash,
        text: std::sync::Arc::default(),
        origin: std::sync::Arc::default(),
        steward: manifest.steward,
        capabilities,
        checkpoints,
        contexts: by_id(manifest.context_blocks),
        injections,
        policies,
        actions,
        default_decision: manifest.default_decision,
        unknown_actions: manifest.unknown_actions,
        risk_mode: manifest.risk_config.mode,
        budget: manifest.checkpoint_config.and_then(|config| config.budget),
        cache: manifest.cache_config,
        recording,
        index: AtlasIndex::default(),
    };
    Some(atlas.indexed())
}

fn by_id(contexts: Vec<ContextBlockDef>) -> BTreeMap<String, ContextBlockDef> {
    let contexts = contexts.into_iter();
    contexts
        .map(|context| (context.context_id.clone(), context))
        .collect()
}

/// Returns the capabilities that a session must earn, because a checkpoint unlocks or gates them.
fn gated_capabilities(checkpoints: &[StewardCheckpointDef]) -> BTreeSet<&str> {
    let gates = checkpoints
        .iter()
        .filter_map(|checkpoint| match &checkpoint.trigger {
            CheckpointTrigger::CapabilityAccess { capability_ids } => Some(capability_ids),
            CheckpointTrigger::SessionStart
            | CheckpointTrigger::SessionEnd
            | CheckpointTrigger::ActionPre { .. }
            | CheckpointTrigger::ActionPost { .. }
            | CheckpointTrigger::Keyword { .. }
            | CheckpointTrigger::RiskThreshold { .. }
            | CheckpointTrigger::TimeInterval { .. }
            | CheckpointTrigger::CountInterval { .. }
            | CheckpointTrigger::ExplicitRequest
            | CheckpointTrigger::ErrorOccurred
            | CheckpointTrigger::Interactive
            | CheckpointTrigger::Custom { .. } => None,
        });
    checkpoints
        .iter()
        .map(|checkpoint| &checkpoint.unlock_capabilities)
        .chain(gates)
        .flatten()
        .map(String::as_str)
        .collect()
}

struct ManifestValidator<'a, 's> {
    root: &'a YamlNode,
    problems: &'a mut Problems<'s>,
}

impl ManifestValidator<'_, '_> {
    /// Reports a problem at `path`, unless it only follows from another one.
    fn report(&mut self, path: &str, problem: ManifestProblem) {
        if !self.problems.is_faulty(path) {
            let span = self.root.span_of(path);
            self.problems.add(problem.path(path).at(span));
        }
    }

    /// Returns the path of the first of `keys` that exists under `path`, or of the first key if none exists.
    fn first_existing_path(&self, path: &str, keys: &[&str]) -> String {
        let mut paths = keys.iter().map(|key| format!("{path}.{key}"));
        let first = paths.next().unwrap_or_default();
        if self.root.has(&first) {
            return first;
        }
        paths.find(|path| self.root.has(path)).unwrap_or(first)
    }

    fn report_code(&mut self, code: Code, path: &str, message: impl Into<String>) {
        self.report(path, ManifestProblem::new(code, message));
    }

    fn check_header(&mut self, manifest: &AtlasManifest) {
        if manifest.atlas_version != FORMAT_VERSION {
            let message = format!(
                "unsupported format version {}",
                quoted(&manifest.atlas_version)
            );
            let help = format!("this version of cra reads `{FORMAT_VERSION}`");
            self.report(
                "atlas_version",
                ManifestProblem::new(Code::FormatVersion, message).help(help),
            );
        }
        self.check_id("atlas_id", "atlas id", &manifest.atlas_id, MAX_ID_LEN);
        self.check_id("version", "version", &manifest.version, MAX_ID_LEN);
        if let Some(steward) = &manifest.steward {
            self.check_steward(steward);
        }
    }

    /// Checks that identifiers without references are unique, too.
    fn check_ids(&mut self, manifest: &AtlasManifest) {
        let checkpoints = manifest.checkpoints.iter();
        self.ids(
            &IdKind::CHECKPOINT,
            checkpoints.map(|c| c.checkpoint_id.as_str()),
        );
        let policies = manifest.policies.iter();
        self.ids(&IdKind::POLICY, policies.map(|p| p.policy_id.as_str()));
    }

    fn check_steward(&mut self, steward: &Steward) {
        self.check_id("steward.id", "steward id", &steward.id, MAX_ID_LEN);
        if let Some(access) = &steward.access {
            self.patterns("steward.access.api_keys", &access.api_keys);
        }
        if let Some(notifications) = &steward.notifications {
            self.check_notifications(notifications);
        }
    }

    fn capabilities(
        &mut self,
        manifest: &AtlasManifest,
        declared: &BTreeSet<&str>,
    ) -> Vec<Capability> {
        let gated = gated_capabilities(&manifest.checkpoints);
        let definitions = manifest.capabilities.iter().enumerate();
        definitions
            .map(|(index, capability)| self.capability(index, capability, &gated, declared))
            .collect()
    }

    fn capability(
        &mut self,
        index: usize,
        definition: &CapabilityDef,
        gated: &BTreeSet<&str>,
        declared: &BTreeSet<&str>,
    ) -> Capability {
        let path = format!("capabilities[{index}].actions");
        for (index, text) in definition.actions.iter().enumerate() {
            let pattern = Pattern::new(text.as_str());
            let is_declared = if pattern.is_literal() {
                declared.contains(text.as_str())
            } else {
                declared.iter().any(|action| pattern.matches(action))
            };
            if !is_declared && !text.is_empty() {
                let message = format!("{} is not declared under `actions`", quoted(text));
                let help = "declare it with a risk tier and a schema of its parameters";
                self.report(
                    &format!("{path}[{index}]"),
                    ManifestProblem::new(Code::UndeclaredAction, message).help(help.to_owned()),
                );
            }
        }
        Capability {
            id: definition.capability_id.clone(),
            name: definition.name.clone(),
            actions: self.required_patterns(&path, &definition.actions),
            starts_locked: gated.contains(definition.capability_id.as_str()),
        }
    }

    fn injections(&mut self, definitions: &[ContextBlockDef]) -> Vec<InjectionRule> {
        let mut injections = Vec::new();
        for (index, context) in definitions.iter().enumerate() {
            let path = format!("context_blocks[{index}]");
            let written = !context.keywords.is_empty() || !context.actions.is_empty();
            if written && context.inject_mode != InjectMode::OnMatch {
                let message = "`keywords` and `actions` only work with `inject_mode: on_match`";
                self.report_code(Code::Contradiction, &format!("{path}.inject_mode"), message);
            }
            let keywords = (!context.keywords.is_empty())
                .then(|| self.compile_keywords(&format!("{path}.keywords"), &context.keywords))
                .flatten();
            injections.push(InjectionRule {
                context_id: context.context_id.clone(),
                mode: context.inject_mode,
                keywords,
                actions: self.patterns(&format!("{path}.actions"), &context.actions),
                priority: context.priority,
            });
        }
        injections
    }

    /// Compiles the keywords that inject a context: any of them, ignoring case.
    fn compile_keywords(&mut self, path: &str, texts: &[String]) -> Option<Keywords> {
        for (index, text) in texts.iter().enumerate() {
            if text.trim().is_empty() {
                let message = "an empty keyword matches every text";
                self.report_code(Code::EmptyPattern, &format!("{path}[{index}]"), message);
            }
        }
        Keywords::compile(texts, MatchMode::Any, CaseSensitivity::Insensitive, None).ok()
    }

    fn policies(&mut self, definitions: &[PolicyDef]) -> Vec<Policy> {
        let definitions = definitions.iter().enumerate();
        definitions
            .map(|(index, policy)| self.policy(index, policy))
            .collect()
    }

    fn policy(&mut self, index: usize, definition: &PolicyDef) -> Policy {
        let path = format!("policies[{index}]");
        Policy {
            id: definition.policy_id.clone(),
            kind: definition.kind,
            actions: self.required_patterns(&format!("{path}.actions"), &definition.actions),
            reason: definition.reason.clone(),
            limit: self.limit(&path, definition),
            when: self.condition(&format!("{path}.when"), definition.when.as_ref()),
            overridable: self.overridable(&path, definition),
        }
    }

    /// Checks that only `deny` policies are overridable.
    fn overridable(&mut self, path: &str, definition: &PolicyDef) -> bool {
        let path = format!("{path}.override");
        if definition.kind != PolicyKind::Deny && self.root.has(&path) {
            let message = "only a `deny` policy can have `override`";
            self.report_code(Code::Contradiction, &path, message);
        }
        definition.overridable
    }

    /// Checks the fields that a limit needs, and rejects them on other policies.
    fn limit(&mut self, path: &str, definition: &PolicyDef) -> Option<Limit> {
        let kind = definition.kind;
        let foreign = [
            (
                "max_calls",
                PolicyKind::RateLimit,
                definition.max_calls.is_some(),
            ),
            (
                "window_seconds",
                PolicyKind::RateLimit,
                definition.window_seconds.is_some(),
            ),
            ("limit", PolicyKind::Budget, definition.limit.is_some()),
            ("cost", PolicyKind::Budget, definition.cost.is_some()),
        ];
        for (key, belongs_to, present) in foreign {
            if present && kind != belongs_to {
                let owner = if belongs_to == PolicyKind::RateLimit {
                    "rate_limit"
                } else {
                    "budget"
                };
                let message = format!("only a `{owner}` policy can have `{key}`");
                self.report_code(Code::Contradiction, &format!("{path}.{key}"), message);
            }
        }
        match kind {
            PolicyKind::Allow | PolicyKind::Deny | PolicyKind::RequiresApproval => None,
            PolicyKind::RateLimit => {
                let calls = self.positive(path, "max_calls", definition.max_calls)?;
                let seconds = self.positive(path, "window_seconds", definition.window_seconds)?;
                Some(Limit::Rate {
                    max_calls: calls,
                    window: Duration::from_secs(seconds),
                    scope: definition.scope,
                })
            }
            PolicyKind::Budget => {
                let Some(limit) = definition.limit.filter(|limit| *limit > 0.0) else {
                    let message = "a `budget` needs a `limit` greater than 0";
                    let place = self.first_existing_path(path, &["limit", "type"]);
                    self.report_code(Code::OutOfRange, &place, message);
                    return None;
                };
                Some(Limit::Budget {
                    limit,
                    cost: definition.cost.clone(),
                    scope: definition.scope,
                })
            }
        }
    }

    fn positive(&mut self, path: &str, key: &str, number: Option<u64>) -> Option<u64> {
        let found = number.filter(|number| *number > 0);
        if found.is_none() {
            let message = format!("a `rate_limit` needs `{key}` of at least 1");
            let place = self.first_existing_path(path, &[key, "type"]);
            self.report_code(Code::OutOfRange, &place, message);
        }
        found
    }

    /// Compiles a `when:` condition.
    fn condition(&mut self, path: &str, definition: Option<&ConditionDef>) -> Option<Condition> {
        match Condition::compile(definition?) {
            Ok(condition) => Some(condition),
            Err(errors) => {
                for error in errors {
                    let place = join(path, &error.path);
                    self.report_code(Code::BadCondition, place.trim_end_matches('.'), error.what);
                }
                None
            }
        }
    }

    fn actions(&mut self, definitions: &[ActionDef]) -> BTreeMap<String, DeclaredAction> {
        let mut actions = BTreeMap::new();
        for (index, definition) in definitions.iter().enumerate() {
            let schema = definition.parameters_schema.as_ref();
            let parameters = match schema.map(Schema::compile).transpose() {
                Ok(parameters) => parameters,
                Err(fault) => {
                    let path = format!("actions[{index}].parameters_schema");
                    self.report_code(
                        Code::BadSchema,
                        &path,
                        format!("not a JSON Schema: {fault}"),
                    );
                    None
                }
            };
            let action = DeclaredAction {
                name: definition.name.clone(),
                risk_tier: definition.risk_tier,
                parameters,
            };
            actions.insert(definition.action_id.clone(), action);
        }
        actions
    }

    /// Compiles patterns; at least one is required.
    fn required_patterns(&mut self, path: &str, texts: &[String]) -> Patterns {
        if texts.is_empty() {
            let message = "an empty list never matches";
            self.report_code(Code::EmptyPattern, path, message);
        }
        self.patterns(path, texts)
    }

    /// Compiles patterns; each must be able to match.
    fn patterns(&mut self, path: &str, texts: &[String]) -> Patterns {
        for (index, text) in texts.iter().enumerate() {
            self.check_pattern(&format!("{path}[{index}]"), text);
        }
        texts.iter().map(String::as_str).collect()
    }

    fn check_pattern(&mut self, path: &str, text: &str) {
        if let Some(fault) = text_problem(text, MAX_ACTION_LEN) {
            self.report_code(Code::EmptyPattern, path, format!("pattern {fault}"));
        }
    }
}

/// Returns a description of the problem if a text is unsuitable as an identifier or pattern.
fn text_problem(text: &str, most_chars: usize) -> Option<String> {
    if text.is_empty() {
        return Some("is empty".to_owned());
    }
    if text.chars().any(is_deceptive) {
        return Some(format!("{} contains a hidden character", quoted(text)));
    }
    if text.trim() != text {
        return Some(format!("{} begins or ends with white space", quoted(text)));
    }
    let length = text.chars().count();
    (length > most_chars)
        .then(|| format!("has {length} characters, and at most {most_chars} are allowed"))
}
