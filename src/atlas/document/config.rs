//! Checkpoints in short: what most Atlases want, without writing each checkpoint out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MatchMode, RiskTier, schema};

/// `checkpoint_config`: each part that is written and enabled stands for ordinary checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// When a session begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_start: Option<SessionStartConfig>,
    /// When input contains keywords.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword_match: Option<KeywordMatchConfig>,
    /// Before actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_pre: Option<ActionPreConfig>,
    /// When an action is risky.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_threshold: Option<RiskThresholdConfig>,
    /// When time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_interval: Option<TimeIntervalConfig>,
    /// When actions have run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_interval: Option<CountIntervalConfig>,
    /// How much of it one input may cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// What happens when a session begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionStartConfig {
    /// Whether it does.
    pub enabled: bool,
    /// Contexts handed over.
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

/// What happens when input contains keywords.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::keyword_config)]
pub struct KeywordMatchConfig {
    /// Whether it does.
    pub enabled: bool,
    /// Keywords (`a|b` is either) and the contexts they call for, in the order written.
    #[serde(alias = "keywords", with = "ordered")]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub mappings: Vec<(String, Vec<String>)>,
    /// How they are looked for.
    pub match_mode: MatchMode,
    /// Whether case counts.
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

/// What happens before actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::action_config)]
pub struct ActionPreConfig {
    /// Whether it does.
    pub enabled: bool,
    /// Patterns of actions and what each calls for, in the order written. Of several that match, the
    /// one with the longest literal part counts.
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

/// What an action calls for before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActionPreRule {
    /// Contexts handed over.
    pub inject_contexts: Vec<String>,
    /// Whether policies are checked. They always are: `false` only says that none is expected.
    pub require_policy_check: bool,
    /// Whether somebody has to confirm it.
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

/// What happens when an action is risky.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = schema::risk_config)]
pub struct RiskThresholdConfig {
    /// Whether it does.
    pub enabled: bool,
    /// The lowest tier that counts as risky.
    pub min_tier: RiskTier,
    /// Contexts handed over.
    pub inject_contexts: Vec<String>,
    /// Whether its records must be durable before anything goes on.
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

/// What happens when time has passed: at each multiple of `seconds` from the start of the session, with the first
/// action or input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeIntervalConfig {
    /// Whether it does; not unless it is said.
    pub enabled: bool,
    /// Seconds between two.
    pub seconds: u64,
    /// Contexts handed over.
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

/// What happens when actions have run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CountIntervalConfig {
    /// Whether it does; not unless it is said.
    pub enabled: bool,
    /// Actions between two.
    pub actions: u64,
    /// Contexts handed over.
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

/// Bounds for what checkpoints give. A checkpoint that can deny, lock, hold or ask is never left out: gates,
/// `deny_actions`, `lock_capabilities`, handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Most checkpoints of one input that only give something; those of lowest priority are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checkpoints_per_input: Option<u64>,
    /// Most bytes of contexts that are handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context_injection_size: Option<u64>,
    /// Milliseconds of extensions after which checkpoints that only give something are left out. Every handler
    /// is asked all the same; each has its own timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checkpoint_time_ms: Option<u64>,
}

/// `cache_config`: how long results are kept. 0 keeps none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Contexts, by identifier.
    pub context_ttl_seconds: u64,
    /// Decisions of policies, by action and parameters.
    pub policy_ttl_seconds: u64,
    /// Keywords found, by input.
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

/// Maps whose order counts, as pairs.
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
        deserializer.deserialize_map(Pairs(PhantomData))
    }

    struct Pairs<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
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
    fn mappings_keep_the_order_written() {
        let text = r#"{"keyword_match":{"enabled":true,"mappings":{"z|y":["c"],"a":[]},"match_mode":"any","case_sensitive":false}}"#;
        let read: CheckpointConfig = serde_json::from_str(text).unwrap();
        let words = &read.keyword_match.as_ref().unwrap().mappings;
        assert_eq!(words[0], ("z|y".to_owned(), vec!["c".to_owned()]));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
