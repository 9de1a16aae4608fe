//! `checkpoint_config`: a short form for the checkpoints that most Atlases need.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MatchMode, RiskTier, schema};

/// `checkpoint_config`: each part that is present and enabled stands for ordinary checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// At session start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_start: Option<SessionStartConfig>,
    /// On input that contains keywords.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword_match: Option<KeywordMatchConfig>,
    /// Before actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_pre: Option<ActionPreConfig>,
    /// On risky actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_threshold: Option<RiskThresholdConfig>,
    /// After a time interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_interval: Option<TimeIntervalConfig>,
    /// After a number of actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_interval: Option<CountIntervalConfig>,
    /// Limits on the effects of one input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Settings for the start of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionStartConfig {
    /// Enables this part.
    pub enabled: bool,
    /// Contexts to inject.
    pub inject_contexts: Vec<String>,
}

impl Default for SessionStartConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            inject_contexts: Vec::new(),
        }
    }
}

/// Settings for keywords in the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::keyword_config)]
pub struct KeywordMatchConfig {
    /// Enables this part.
    pub enabled: bool,
    /// Keywords (`a|b` means either) and the contexts that they inject, in the order written.
    #[serde(alias = "keywords", with = "ordered")]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub mappings: Vec<(String, Vec<String>)>,
    /// Search mode.
    pub match_mode: MatchMode,
    /// Makes the search case-sensitive.
    pub case_sensitive: bool,
}

impl Default for KeywordMatchConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mappings: Vec::new(),
            match_mode: MatchMode::default(),
            case_sensitive: false,
        }
    }
}

/// Settings for the checks before actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::action_config)]
pub struct ActionPreConfig {
    /// Enables this part.
    pub enabled: bool,
    /// Patterns of actions with their rules, in the order written. If several match, the pattern with the longest
    /// literal part wins.
    #[serde(alias = "actions", with = "ordered")]
    #[schemars(with = "BTreeMap<String, ActionPreRule>")]
    pub mappings: Vec<(String, ActionPreRule)>,
}

impl Default for ActionPreConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mappings: Vec::new(),
        }
    }
}

/// The requirements of an action before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActionPreRule {
    /// Contexts to inject.
    pub inject_contexts: Vec<String>,
    /// Documents the policy check. Policies are always checked; `false` only says that no policy is expected.
    pub require_policy_check: bool,
    /// Requires a confirmation.
    pub require_confirmation: bool,
}

impl Default for ActionPreRule {
    fn default() -> Self {
        Self {
            inject_contexts: Vec::new(),
            require_policy_check: true,
            require_confirmation: false,
        }
    }
}

/// Settings for risky actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::risk_config)]
pub struct RiskThresholdConfig {
    /// Enables this part.
    pub enabled: bool,
    /// Lowest tier that counts as risky.
    pub min_tier: RiskTier,
    /// Contexts to inject.
    pub inject_contexts: Vec<String>,
    /// Requires durable records before anything continues.
    #[serde(alias = "require_sync")]
    pub require_sync_trace: bool,
}

impl Default for RiskThresholdConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            min_tier: RiskTier::High,
            inject_contexts: Vec::new(),
            require_sync_trace: false,
        }
    }
}

/// Settings for time intervals: fires with the first action or input at or after each multiple of `seconds` from
/// the start of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeIntervalConfig {
    /// Enables this part; disabled by default.
    pub enabled: bool,
    /// Seconds between two firings.
    pub seconds: u64,
    /// Contexts to inject.
    pub inject_contexts: Vec<String>,
}

impl Default for TimeIntervalConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            seconds: 300,
            inject_contexts: Vec::new(),
        }
    }
}

/// Settings for action counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CountIntervalConfig {
    /// Enables this part; disabled by default.
    pub enabled: bool,
    /// Actions between two firings.
    pub actions: u64,
    /// Contexts to inject.
    pub inject_contexts: Vec<String>,
}

impl Default for CountIntervalConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            actions: 50,
            inject_contexts: Vec::new(),
        }
    }
}

/// Limits on what checkpoints inject and unlock. A checkpoint that can deny, lock, hold or ask is never skipped:
/// gates, `deny_actions`, `lock_capabilities`, handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of injecting or unlocking checkpoints per input; those with the lowest priority are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checkpoints_per_input: Option<u64>,
    /// Maximum total size of injected contexts in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context_injection_size: Option<u64>,
    /// Time in milliseconds spent in extensions after which checkpoints that only inject or unlock are skipped.
    /// Every handler is still called; each has its own timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checkpoint_time_ms: Option<u64>,
}

/// `cache_config`: the cache lifetimes of results. 0 disables a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Contexts, by identifier.
    pub context_ttl_seconds: u64,
    /// Policy decisions, by action and parameters.
    pub policy_ttl_seconds: u64,
    /// Keyword matches, by input.
    pub keyword_ttl_seconds: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            context_ttl_seconds: 300,
            policy_ttl_seconds: 60,
            keyword_ttl_seconds: 10,
        }
    }
}

/// Serialization of maps with a significant order, as pairs.
pub(super) mod ordered {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{MapAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::atlas::document) fn serialize<T: Serialize, S: Serializer>(
        pairs: &[(String, T)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
    }

    pub(in crate::atlas::document) fn deserialize<
        'de,
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    >(
        deserializer: D,
    ) -> Result<Vec<(String, T)>, D::Error> {
        deserializer.deserialize_map(OrderedMapVisitor(PhantomData))
    }

    struct OrderedMapVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedMapVisitor<T> {
        type Value = Vec<(String, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_keep_their_order() {
        let text = r#"{"keyword_match":{"enabled":true,"mappings":{"z|y":["c"],"a":[]},"match_mode":"any","case_sensitive":false}}"#;
        let read: CheckpointConfig = serde_json::from_str(text).unwrap();
        let words = &read.keyword_match.as_ref().unwrap().mappings;
        assert_eq!(words[0], ("z|y".to_owned(), vec!["c".to_owned()]));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
