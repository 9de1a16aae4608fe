//! Decoders for `checkpoint_config` and `cache_config`.

use super::super::diagnostic::Problems;
use super::super::document::{
    ActionPreConfig, ActionPreRule, Budget, CacheConfig, CheckpointConfig, CountIntervalConfig,
    KeywordMatchConfig, RiskThresholdConfig, SessionStartConfig, TimeIntervalConfig,
};
use super::fields::{FieldKey, PathNode, Section, decode_map};
use super::names::{MATCH_MODES, RISK_TIERS};
use super::readers::{boolean, count, infallible, one_of, ordered_map, texts};

const SECTION: Section = Section::CheckpointConfig;

/// Decodes `checkpoint_config`.
pub(super) fn checkpoints(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CheckpointConfig {
    decode_map(value, SECTION, problems, |fields| CheckpointConfig {
        session_start: fields.optional("session_start", infallible(session_start)),
        keyword_match: fields.optional("keyword_match", infallible(keyword_match)),
        action_pre: fields.optional("action_pre", infallible(action_pre)),
        risk_threshold: fields.optional("risk_threshold", infallible(risk_threshold)),
        time_interval: fields.optional("time_interval", infallible(time_interval)),
        count_interval: fields.optional("count_interval", infallible(count_interval)),
        budget: fields.optional("budget", infallible(budget)),
    })
}

fn session_start(value: &PathNode<'_>, problems: &mut Problems<'_>) -> SessionStartConfig {
    decode_map(value, SECTION, problems, |fields| SessionStartConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or(true),
        inject_contexts: fields
            .optional("inject_contexts", texts)
            .unwrap_or_default(),
    })
}

fn keyword_match(value: &PathNode<'_>, problems: &mut Problems<'_>) -> KeywordMatchConfig {
    decode_map(value, SECTION, problems, |fields| KeywordMatchConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or(true),
        mappings: fields
            .optional(
                FieldKey::with_aliases("mappings", &["keywords"]),
                ordered_map(contexts),
            )
            .unwrap_or_default(),
        match_mode: fields
            .optional("match_mode", one_of("match mode", MATCH_MODES))
            .unwrap_or_default(),
        case_sensitive: fields
            .optional("case_sensitive", boolean)
            .unwrap_or_default(),
    })
}

fn contexts(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Vec<String> {
    texts(value, problems).unwrap_or_default()
}

fn action_pre(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ActionPreConfig {
    decode_map(value, SECTION, problems, |fields| ActionPreConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or(true),
        mappings: fields
            .optional(
                FieldKey::with_aliases("mappings", &["actions"]),
                ordered_map(rule),
            )
            .unwrap_or_default(),
    })
}

fn rule(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ActionPreRule {
    decode_map(value, SECTION, problems, |fields| ActionPreRule {
        inject_contexts: fields
            .optional("inject_contexts", texts)
            .unwrap_or_default(),
        require_policy_check: fields
            .optional("require_policy_check", boolean)
            .unwrap_or(true),
        require_confirmation: fields
            .optional("require_confirmation", boolean)
            .unwrap_or_default(),
    })
}

fn risk_threshold(value: &PathNode<'_>, problems: &mut Problems<'_>) -> RiskThresholdConfig {
    let default = RiskThresholdConfig::default();
    decode_map(value, SECTION, problems, |fields| RiskThresholdConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or(true),
        min_tier: fields
            .optional("min_tier", one_of("risk tier", RISK_TIERS))
            .unwrap_or(default.min_tier),
        inject_contexts: fields
            .optional("inject_contexts", texts)
            .unwrap_or_default(),
        require_sync_trace: fields
            .optional(
                FieldKey::with_aliases("require_sync_trace", &["require_sync"]),
                boolean,
            )
            .unwrap_or_default(),
    })
}

fn time_interval(value: &PathNode<'_>, problems: &mut Problems<'_>) -> TimeIntervalConfig {
    let default = TimeIntervalConfig::default();
    decode_map(value, SECTION, problems, |fields| TimeIntervalConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or_default(),
        seconds: fields.optional("seconds", count).unwrap_or(default.seconds),
        inject_contexts: fields
            .optional("inject_contexts", texts)
            .unwrap_or_default(),
    })
}

fn count_interval(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CountIntervalConfig {
    let default = CountIntervalConfig::default();
    decode_map(value, SECTION, problems, |fields| CountIntervalConfig {
        enabled: fields.optional("enabled", boolean).unwrap_or_default(),
        actions: fields.optional("actions", count).unwrap_or(default.actions),
        inject_contexts: fields
            .optional("inject_contexts", texts)
            .unwrap_or_default(),
    })
}

fn budget(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Budget {
    decode_map(value, SECTION, problems, |fields| Budget {
        max_checkpoints_per_input: fields.optional("max_checkpoints_per_input", count),
        max_context_injection_size: fields.optional("max_context_injection_size", count),
        max_checkpoint_time_ms: fields.optional("max_checkpoint_time_ms", count),
    })
}

/// Decodes `cache_config`.
pub(super) fn cache(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CacheConfig {
    let default = CacheConfig::default();
    decode_map(value, Section::CacheConfig, problems, |fields| {
        CacheConfig {
            context_ttl_seconds: fields
                .optional("context_ttl_seconds", count)
                .unwrap_or(default.context_ttl_seconds),
            policy_ttl_seconds: fields
                .optional("policy_ttl_seconds", count)
                .unwrap_or(default.policy_ttl_seconds),
            keyword_ttl_seconds: fields
                .optional("keyword_ttl_seconds", count)
                .unwrap_or(default.keyword_ttl_seconds),
        }
    })
}
