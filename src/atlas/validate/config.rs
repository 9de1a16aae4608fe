//! Expansion of `checkpoint_config` into ordinary checkpoints.

use std::time::Duration;

use super::ManifestValidator;
use super::checkpoint::regex_error_text;
use super::ids::KnownIds;
use super::trigger::case_sensitivity;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    ActionPreConfig, Approvers, AtlasManifest, CheckpointConfig, CheckpointMode, CheckpointTrigger,
    CountIntervalConfig, KeywordMatchConfig, MatchMode, Respondent, RiskThresholdConfig,
    SessionStartConfig, TimeIntervalConfig,
};
use crate::atlas::keyword::Keywords;
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::limits::{DEFAULT_GATE_TIMEOUT, MAX_CONFIG_ACTIONS};
use crate::base::pattern::{Pattern, Patterns};

/// Path of the configuration.
const ROOT: &str = "checkpoint_config";

impl ManifestValidator<'_, '_> {
    /// Returns the checkpoints that the configuration stands for, in the order of its parts.
    pub(super) fn configured_checkpoints(
        &mut self,
        config: &CheckpointConfig,
        contexts: &KnownIds<'_>,
    ) -> Vec<Checkpoint> {
        let start = config.session_start.as_ref();
        let words = config.keyword_match.as_ref();
        let actions = config.action_pre.as_ref();
        let risk = config.risk_threshold.as_ref();
        let time = config.time_interval.as_ref();
        let count = config.count_interval.as_ref();
        let mut found = Vec::new();
        found.extend(start.and_then(|start| self.at_start(start, contexts)));
        found.extend(
            words
                .into_iter()
                .flat_map(|part| self.on_words(part, contexts)),
        );
        found.extend(
            actions
                .into_iter()
                .flat_map(|part| self.action_checkpoints(part, contexts)),
        );
        found.extend(risk.and_then(|risk| self.on_risk(risk, contexts)));
        found.extend(time.and_then(|time| self.on_time(time, contexts)));
        found.extend(count.and_then(|count| self.on_count(count, contexts)));
        found
    }

    /// Checks that the ids of configured checkpoints differ from the steward's own.
    pub(super) fn check_config_ids(&mut self, manifest: &AtlasManifest, configured: &[Checkpoint]) {
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let id = &checkpoint.checkpoint_id;
            if configured.iter().any(|taken| taken.id == *id) {
                let message = format!("checkpoint id {} is already used by `{ROOT}`", quoted(id));
                let problem = ManifestProblem::new(Code::DuplicateId, message)
                    .help("choose another id for this checkpoint".to_owned());
                self.report(&format!("checkpoints[{index}].checkpoint_id"), problem);
            }
        }
    }

    fn at_start(
        &mut self,
        part: &SessionStartConfig,
        contexts: &KnownIds<'_>,
    ) -> Option<Checkpoint> {
        let path = format!("{ROOT}.session_start.inject_contexts");
        self.check_references(&path, &part.inject_contexts, contexts);
        part.enabled.then(|| Checkpoint {
            inject_contexts: part.inject_contexts.clone(),
            ..advisory_checkpoint(
                "config.session_start".to_owned(),
                "Session start".to_owned(),
                &CheckpointTrigger::SessionStart,
                Trigger::SessionStart,
            )
        })
    }

    fn on_words(&mut self, part: &KeywordMatchConfig, contexts: &KnownIds<'_>) -> Vec<Checkpoint> {
        let root = format!("{ROOT}.keyword_match");
        let root = self.first_existing_path(&root, &["mappings", "keywords"]);
        let mut found = Vec::new();
        for (index, (key, named)) in part.mappings.iter().enumerate() {
            let path = format!("{root}[{index}]");
            self.check_references(&path, named, contexts);
            let texts: Vec<String> = match part.match_mode {
                MatchMode::Regex => vec![key.clone()],
                MatchMode::Any | MatchMode::All | MatchMode::Phrase | MatchMode::Fuzzy => {
                    key.split('|').map(|text| text.trim().to_owned()).collect()
                }
            };
            if texts.iter().any(String::is_empty) {
                let message = "an empty keyword matches every text";
                self.report_code(Code::EmptyPattern, &path, message);
            }
            // The alternatives of one key stay alternatives in every match mode.
            let match_mode = match part.match_mode {
                MatchMode::All => MatchMode::Any,
                mode => mode,
            };
            let case = case_sensitivity(part.case_sensitive);
            let keywords = match Keywords::compile(&texts, match_mode, case, None) {
                Ok(keywords) => keywords,
                Err(error) => {
                    self.report_code(Code::BadRegex, &path, regex_error_text(&error.source));
                    continue;
                }
            };
            let trigger = CheckpointTrigger::Keyword {
                patterns: texts,
                case_sensitive: part.case_sensitive,
                match_mode,
                threshold: None,
            };
            found.push(Checkpoint {
                inject_contexts: named.clone(),
                ..advisory_checkpoint(
                    format!("config.keyword_match.{}", index + 1),
                    format!("Keyword {key}"),
                    &trigger,
                    Trigger::Keyword(keywords),
                )
            });
        }
        if part.enabled { found } else { Vec::new() }
    }

    fn action_checkpoints(
        &mut self,
        part: &ActionPreConfig,
        contexts: &KnownIds<'_>,
    ) -> Vec<Checkpoint> {
        let root = format!("{ROOT}.action_pre");
        let root = self.first_existing_path(&root, &["mappings", "actions"]);
        if part.mappings.len() > MAX_CONFIG_ACTIONS {
            let count = part.mappings.len();
            let message = format!("{count} patterns exceed the limit of {MAX_CONFIG_ACTIONS}");
            self.report_code(Code::OutOfRange, &root, message);
            return Vec::new();
        }
        let keys: Vec<&str> = part.mappings.iter().map(|(key, _)| key.as_str()).collect();
        let mut found = Vec::new();
        for (index, (key, rule)) in part.mappings.iter().enumerate() {
            let path = format!("{root}[{index}]");
            self.check_pattern(&path, key);
            let named = format!("{path}.inject_contexts");
            self.check_references(&named, &rule.inject_contexts, contexts);
            let trigger = CheckpointTrigger::ActionPre {
                patterns: vec![key.clone()],
            };
            let mode = if rule.require_confirmation {
                CheckpointMode::Blocking
            } else {
                CheckpointMode::Advisory
            };
            found.push(Checkpoint {
                inject_contexts: rule.inject_contexts.clone(),
                mode,
                unless: stronger_patterns(&keys, index),
                ..advisory_checkpoint(
                    format!("config.action_pre.{}", index + 1),
                    format!("Action {key}"),
                    &trigger,
                    Trigger::ActionPre(std::iter::once(key.as_str()).collect()),
                )
            });
        }
        if part.enabled { found } else { Vec::new() }
    }

    fn on_risk(
        &mut self,
        part: &RiskThresholdConfig,
        contexts: &KnownIds<'_>,
    ) -> Option<Checkpoint> {
        let path = format!("{ROOT}.risk_threshold.inject_contexts");
        self.check_references(&path, &part.inject_contexts, contexts);
        let min_tier = part.min_tier;
        part.enabled.then(|| Checkpoint {
            inject_contexts: part.inject_contexts.clone(),
            force_sync_trace: part.require_sync_trace,
            ..advisory_checkpoint(
                "config.risk_threshold".to_owned(),
                "Risk threshold".to_owned(),
                &CheckpointTrigger::RiskThreshold { min_tier },
                Trigger::RiskThreshold(min_tier),
            )
        })
    }

    fn on_time(
        &mut self,
        part: &TimeIntervalConfig,
        contexts: &KnownIds<'_>,
    ) -> Option<Checkpoint> {
        let path = format!("{ROOT}.time_interval");
        self.check_references(
            &format!("{path}.inject_contexts"),
            &part.inject_contexts,
            contexts,
        );
        let seconds = part.seconds;
        self.check_interval(&path, "seconds", seconds);
        part.enabled.then(|| Checkpoint {
            inject_contexts: part.inject_contexts.clone(),
            ..advisory_checkpoint(
                "config.time_interval".to_owned(),
                "Time interval".to_owned(),
                &CheckpointTrigger::TimeInterval { seconds },
                Trigger::TimeInterval(Duration::from_secs(seconds)),
            )
        })
    }

    fn on_count(
        &mut self,
        part: &CountIntervalConfig,
        contexts: &KnownIds<'_>,
    ) -> Option<Checkpoint> {
        let path = format!("{ROOT}.count_interval");
        self.check_references(
            &format!("{path}.inject_contexts"),
            &part.inject_contexts,
            contexts,
        );
        let actions = part.actions;
        self.check_interval(&path, "actions", actions);
        part.enabled.then(|| Checkpoint {
            inject_contexts: part.inject_contexts.clone(),
            ..advisory_checkpoint(
                "config.count_interval".to_owned(),
                "Count interval".to_owned(),
                &CheckpointTrigger::CountInterval { actions },
                Trigger::CountInterval(actions),
            )
        })
    }

    /// Advises about `require_policy_check: false`, which must not look like a way around policies.
    pub(super) fn advise_policy_checks(&mut self, manifest: &AtlasManifest) {
        let config = manifest.checkpoint_config.as_ref();
        let Some(part) = config.and_then(|config| config.action_pre.as_ref()) else {
            return;
        };
        let root = format!("{ROOT}.action_pre");
        let root = self.first_existing_path(&root, &["mappings", "actions"]);
        for (index, (key, rule)) in part.mappings.iter().enumerate() {
            if rule.require_policy_check || !part.enabled {
                continue;
            }
            let mut policies = manifest.policies.iter();
            let policy =
                policies.find(|policy| policy.actions.iter().any(|pattern| overlap(pattern, key)));
            if let Some(policy) = policy {
                let id = quoted(&policy.policy_id);
                let message = format!("policy {id} is still checked");
                let help = "policies always apply: change the policy, or remove this line";
                let path = format!("{root}[{index}].require_policy_check");
                let problem = ManifestProblem::new(Code::NoEffect, message).help(help.to_owned());
                self.report(&path, problem);
            }
        }
    }
}

/// Creates an advisory checkpoint with only a trigger.
fn advisory_checkpoint(
    id: String,
    name: String,
    written: &CheckpointTrigger,
    trigger: Trigger,
) -> Checkpoint {
    Checkpoint {
        id,
        name,
        kind: written.checkpoint_type(),
        trigger,
        mode: CheckpointMode::Advisory,
        questions: Vec::new(),
        guidance: None,
        inject_contexts: Vec::new(),
        unlock_capabilities: std::collections::BTreeSet::new(),
        lock_capabilities: std::collections::BTreeSet::new(),
        allow_actions: Patterns::default(),
        deny_actions: Patterns::default(),
        force_sync_trace: false,
        priority: written.default_priority(),
        timeout_seconds: DEFAULT_GATE_TIMEOUT.as_secs(),
        respondent: Respondent::Operator,
        approvers: Approvers::One,
        when: None,
        unless: Patterns::default(),
        handler: None,
    }
}

/// Returns the keys that take precedence over the `index`-th where both match.
///
/// A longer literal part takes precedence; with equal length, the earlier key. The strongest key comes first. Keys
/// that cannot match the same action are left out.
fn stronger_patterns(keys: &[&str], index: usize) -> Patterns {
    let weight = |(index, key): &(usize, &str)| {
        let length = Pattern::new(*key).literal_len();
        (std::cmp::Reverse(length), *index)
    };
    let mut ranked: Vec<_> = keys.iter().copied().enumerate().collect();
    ranked.sort_by_key(weight);
    let own = keys.get(index).copied().unwrap_or_default();
    let winners = ranked.iter().take_while(|(at, _)| *at != index);
    let winners = winners.map(|(_, key)| *key);
    winners.filter(|key| overlap(key, own)).collect()
}

/// Returns true if some action matches both patterns.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (first, second) = (Pattern::new(one), Pattern::new(other));
    if first.is_literal() {
        return second.matches(one);
    }
    if second.is_literal() {
        return first.matches(other);
    }
    // With a star in both patterns, only the ends matter: the middle can always match both.
    let head = |text: &str| text.split('*').next().unwrap_or_default().to_owned();
    let tail = |text: &str| text.rsplit('*').next().unwrap_or_default().to_owned();
    let (heads, tails) = ((head(one), head(other)), (tail(one), tail(other)));
    (heads.0.starts_with(&heads.1) || heads.1.starts_with(&heads.0))
        && (tails.0.ends_with(&tails.1) || tails.1.ends_with(&tails.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_literal_part_takes_precedence_then_the_order() {
        let keys = ["*", "delete_*", "*_user", "delete_user", "create_*"];
        let winners = |index| -> Vec<String> {
            let closer = stronger_patterns(&keys, index);
            closer.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            winners(0),
            ["delete_user", "delete_*", "create_*", "*_user"]
        );
        assert_eq!(winners(1), ["delete_user"]);
        assert_eq!(winners(2), ["delete_user", "delete_*", "create_*"]);
        assert!(winners(3).is_empty() && winners(4).is_empty());
    }

    #[test]
    fn patterns_overlap_where_an_action_matches_both() {
        let cases = [
            ("delete_*", "delete_user", true),
            ("delete_user", "delete_*", true),
            ("a", "a", true),
            ("a", "b", false),
            ("delete_*", "*_user", true),
            ("delete_*", "create_*", false),
            ("*.get", "*.set", false),
            ("*", "x*y*z", true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }
}
