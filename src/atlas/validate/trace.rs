//! Validation of `trace_config`: known event types, limits and patterns.

use std::collections::BTreeSet;

use regex::{Regex, RegexSet, RegexSetBuilder};
use serde_json::Value;

use super::ManifestValidator;
use super::checkpoint::regex_error_text;
use super::extension::KnownExtensions;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    ActionDef, AtlasManifest, RedactRule, RetentionConfig, RiskTier, TraceConfig,
};
use crate::atlas::model::compile_regex;
use crate::atlas::recording::{RecordingRules, SyncRule};
use crate::atlas::redaction::RedactionRule;
use crate::atlas::suggest::closest_match;
use crate::base::event_type::{BUILT_IN_TYPES, TYPES_WITH_TIER};
use crate::base::limits::{MAX_REDACT_RULES, MAX_REGEX_SET_BYTES, MAX_RETENTION_DAYS};
use crate::base::pattern::{Pattern, Patterns};
use crate::base::retention::Schedule;

/// Path of the configuration.
const ROOT: &str = "trace_config";

const TIERS: [RiskTier; 4] = [
    RiskTier::Low,
    RiskTier::Medium,
    RiskTier::High,
    RiskTier::Critical,
];

/// Names of parameters that hold secrets, in lower case and without `_` and `-`.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "clientsecret",
    "token",
    "accesstoken",
    "apikey",
    "privatekey",
    "authorization",
];

impl ManifestValidator<'_, '_> {
    /// Compiles the rules of the manifest about the record.
    pub(super) fn recording(&mut self, manifest: &AtlasManifest) -> RecordingRules {
        let Some(config) = &manifest.trace_config else {
            return RecordingRules::default();
        };
        let known = self.event_types(config);
        RecordingRules {
            level: config.level,
            acknowledge: config.acknowledge,
            sync: self.sync_rules(&config.sync_required_for, &known),
            retention: config
                .retention
                .as_ref()
                .map(|config| self.schedule(config, &known)),
            redact: self.redact_rules(&manifest.atlas_id, &config.redact),
        }
    }

    /// Returns the event types that rules may name: the built-in and the declared ones.
    fn event_types<'c>(&mut self, config: &'c TraceConfig) -> BTreeSet<&'c str> {
        let mut known: BTreeSet<&str> = BUILT_IN_TYPES.into_iter().collect();
        for (index, name) in config.custom_events.iter().enumerate() {
            let path = format!("{ROOT}.custom_events[{index}]");
            self.check_name(&path, "event type", name);
            if BUILT_IN_TYPES.contains(&name.as_str()) {
                let message = format!("{} is a built-in event type", quoted(name));
                self.report_code(Code::DuplicateId, &path, message);
            }
            known.insert(name);
        }
        known
    }

    fn sync_rules(&mut self, written: &[String], known: &BTreeSet<&str>) -> Vec<SyncRule> {
        let mut rules = Vec::new();
        for (index, text) in written.iter().enumerate() {
            let path = format!("{ROOT}.sync_required_for[{index}]");
            let (event_type, tier) = match text.split_once(':') {
                Some((event_type, tier)) => (event_type, Some(tier)),
                None => (text.as_str(), None),
            };
            if !known.contains(event_type) {
                self.unknown_event(&path, event_type, known);
                continue;
            }
            if tier.is_some() && !TYPES_WITH_TIER.contains(&event_type) {
                let message = format!("event type {} has no risk tier", quoted(event_type));
                let help = format!(
                    "only these have a risk tier: `{}`",
                    TYPES_WITH_TIER.join("`, `")
                );
                self.report(
                    &path,
                    ManifestProblem::new(Code::Contradiction, message).help(help),
                );
                continue;
            }
            let found = TIERS
                .into_iter()
                .find(|candidate| Some(candidate.as_str()) == tier);
            if let (Some(tier), None) = (tier, found) {
                let message = format!("unknown risk tier {}", quoted(tier));
                self.unknown_word(&path, message, tier, TIERS.map(RiskTier::as_str));
                continue;
            }
            rules.push(SyncRule {
                event_type: event_type.to_owned(),
                tier: found,
            });
        }
        rules
    }

    fn schedule(&mut self, written: &RetentionConfig, known: &BTreeSet<&str>) -> Schedule {
        let root = format!("{ROOT}.retention");
        if let Some(days) = written.default_days {
            self.check_days(&format!("{root}.default_days"), days);
        }
        for (index, (text, days)) in written.by_event_type.iter().enumerate() {
            let path = format!("{root}.by_event_type[{index}]");
            self.check_days(&path, *days);
            let pattern = Pattern::new(text.as_str());
            if !known.iter().any(|event_type| pattern.matches(event_type)) {
                self.unknown_event(&path, text, known);
            }
        }
        let by_event_type = written.by_event_type.iter();
        Schedule {
            default_days: written.default_days,
            by_event_type: by_event_type
                .map(|(text, days)| (Pattern::new(text.as_str()), *days))
                .collect(),
        }
    }

    fn check_days(&mut self, path: &str, days: u32) {
        if !(1..=MAX_RETENTION_DAYS).contains(&days) {
            let message = format!("the retention must be between 1 and {MAX_RETENTION_DAYS} days");
            self.report_code(Code::OutOfRange, path, message);
        }
    }

    fn redact_rules(&mut self, atlas_id: &str, written: &[RedactRule]) -> Vec<RedactionRule> {
        let root = format!("{ROOT}.redact");
        if written.len() > MAX_REDACT_RULES {
            let count = written.len();
            let message = format!("{count} rules exceed the limit of {MAX_REDACT_RULES}");
            self.report_code(Code::OutOfRange, &root, message);
            return Vec::new();
        }
        let written = written.iter().enumerate();
        written
            .map(|(index, rule)| {
                let path = format!("{root}[{index}]");
                self.redact_rule(&path, format!("{atlas_id}/redact[{index}]"), rule)
            })
            .collect()
    }

    fn redact_rule(&mut self, path: &str, name: String, written: &RedactRule) -> RedactionRule {
        let patterns = written.params.len() + written.values.len();
        if patterns == 0 {
            let message = "a rule without `params` and `values` redacts nothing";
            self.report_code(Code::EmptyPattern, path, message);
        }
        if patterns > MAX_REDACT_RULES {
            let message = format!("{patterns} patterns exceed the limit of {MAX_REDACT_RULES}");
            self.report_code(Code::OutOfRange, path, message);
        }
        let params = self.patterns(&format!("{path}.params"), &written.params);
        let mut values = Vec::new();
        for (index, text) in written.values.iter().enumerate() {
            let path = format!("{path}.values[{index}]");
            match compile_regex(text) {
                Ok(regex) if regex.is_match("") => {
                    let message = "the pattern matches the empty text, so it matches everywhere";
                    self.report_code(Code::EmptyPattern, &path, message);
                }
                Ok(regex) => values.push(regex),
                Err(error) => self.report_code(Code::BadRegex, &path, regex_error_text(&error)),
            }
        }
        let lower = |pattern: &Pattern| Pattern::new(pattern.as_str().to_lowercase());
        RedactionRule {
            name,
            actions: self.patterns(&format!("{path}.actions"), &written.actions),
            params: params.iter().map(lower).collect(),
            any: combine_regexes(&values),
            values,
        }
    }

    fn unknown_event(&mut self, path: &str, event_type: &str, known: &BTreeSet<&str>) {
        let message = format!("unknown event type {}", quoted(event_type));
        self.unknown_word(path, message, event_type, known.iter().copied());
    }

    fn unknown_word<'w>(
        &mut self,
        path: &str,
        message: String,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) {
        let help = match closest_match(word, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "declare event types of extensions under `trace_config.custom_events`".to_owned()
            }
        };
        self.report(
            path,
            ManifestProblem::new(Code::UnknownValue, message).help(help),
        );
    }

    /// Advises about declared event types that no extension registers.
    pub(super) fn advise_events(&mut self, manifest: &AtlasManifest, known: &KnownExtensions) {
        let config = manifest.trace_config.as_ref();
        let declared = config.map(|config| config.custom_events.as_slice());
        for (index, name) in declared.unwrap_or_default().iter().enumerate() {
            if !known.events.contains(name) {
                let message = format!("no extension registers the event type {}", quoted(name));
                let help = "cra records such events as `plugin_event`; \
                            register the type under `events` in the operator's list";
                self.report(
                    &format!("{ROOT}.custom_events[{index}]"),
                    ManifestProblem::new(Code::UnlistedExtension, message).help(help.to_owned()),
                );
            }
        }
    }

    /// Advises about parameters that look like secrets and are recorded unredacted.
    pub(super) fn advise_secrets(&mut self, manifest: &AtlasManifest) {
        let config = manifest.trace_config.as_ref();
        let rules = config.map(|config| config.redact.as_slice());
        for (index, action) in manifest.actions.iter().enumerate() {
            let own = rules.unwrap_or_default().iter().filter(|rule| {
                let actions: Patterns = rule.actions.iter().map(String::as_str).collect();
                rule.actions.is_empty() || actions.matches(&action.action_id)
            });
            let hidden: Vec<Pattern> = own
                .flat_map(|rule| &rule.params)
                .map(|text| Pattern::new(text.to_lowercase()))
                .collect();
            for name in secret_names(action) {
                let path = name.to_lowercase();
                if hidden.iter().any(|pattern| pattern.matches(&path)) {
                    continue;
                }
                let message = format!("parameter {} is recorded without redaction", quoted(&name));
                let help =
                    format!("redact it with `trace_config: {{redact: [{{params: [{name}]}}]}}`");
                self.report(
                    &format!("actions[{index}].parameters_schema"),
                    ManifestProblem::new(Code::UnredactedSecret, message).help(help),
                );
            }
        }
    }
}

/// Combines regular expressions into one set, unless it would be too large.
fn combine_regexes(values: &[Regex]) -> Option<RegexSet> {
    let set = RegexSetBuilder::new(values.iter().map(Regex::as_str))
        .size_limit(MAX_REGEX_SET_BYTES)
        .build();
    set.ok()
}

/// Returns the paths of an action's parameters that look like secrets.
fn secret_names(action: &ActionDef) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(schema) = &action.parameters_schema {
        find_secrets(schema, "", &mut found);
    }
    found
}

fn find_secrets(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, schema) in properties {
        let path = super::join(path, name);
        let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
        if SECRET_NAMES.contains(&plain.to_lowercase().as_str()) {
            found.push(path.clone());
        }
        find_secrets(schema, &path, found);
    }
}
