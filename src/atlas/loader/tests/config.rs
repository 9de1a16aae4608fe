//! Tests of the checkpoints created by `checkpoint_config` and by draft triggers.

use super::*;
use crate::atlas::document::{Budget, CacheConfig};
use crate::atlas::model::{Checkpoint, CustomTrigger};

fn triggers(rest: &str) -> Vec<(Trigger, i64)> {
    let loaded = load(&format!(
        "checkpoints:\n  - checkpoint_id: c\n    trigger: {rest}\n"
    ));
    let checkpoints = loaded.atlas.checkpoints.into_iter();
    checkpoints
        .map(|checkpoint| (checkpoint.trigger, checkpoint.priority))
        .collect()
}

fn custom(rest: &str) -> CustomTrigger {
    match triggers(&format!("{{ type: custom, trigger_id: mood, {rest} }}")).remove(0) {
        (Trigger::Custom(custom), 200) => custom,
        other => panic!("{other:?}"),
    }
}

#[test]
fn condition_paths_decide_when_a_custom_trigger_is_evaluated() {
    let moments = |rest| {
        let custom = custom(rest);
        (custom.on_input, custom.on_action)
    };
    assert_eq!(moments("params: { threshold: -0.5 }"), (true, true));
    assert_eq!(moments("when: { path: input, contains: x }"), (true, false));
    assert_eq!(
        moments("when: { path: params.amount, gt: 5 }"),
        (false, true)
    );
    assert_eq!(
        moments("when: { path: session.actions, gt: 5 }"),
        (false, true)
    );
    let both = "when: { any: [{ path: input, eq: x }, { not: { path: action, eq: y } }] }";
    assert_eq!(moments(both), (true, true));
    assert_eq!(
        moments("on: [input], when: { path: action, eq: y }"),
        (true, false)
    );
    assert_eq!(moments("on: [action]"), (false, true));
    assert_eq!(
        custom("params: { threshold: -0.5 }").params["threshold"],
        -0.5
    );
    assert!(custom("when: { path: input, eq: x }").when.is_some());
}

fn ids(checkpoints: &[Checkpoint]) -> Vec<&str> {
    checkpoints
        .iter()
        .map(|checkpoint| checkpoint.id.as_str())
        .collect()
}

#[test]
fn absent_or_disabled_config_parts_create_no_checkpoint() {
    let atlas = load("checkpoint_config: {}\n").atlas;
    assert_eq!(ids(&atlas.checkpoints), [""; 0]);
    assert_eq!((atlas.budget, atlas.cache), (None, CacheConfig::default()));
    let off = "{ enabled: false }";
    let atlas = load(&format!(
        "checkpoint_config:\n  session_start: {off}\n  time_interval: {{}}\n  count_interval: {{}}\n  \
         risk_threshold: {off}\n  keyword_match: {{ enabled: false, mappings: {{ a: [] }} }}\n  \
         action_pre: {{ enabled: false, mappings: {{ a: {{}} }} }}\n  \
         budget: {{ max_context_injection_size: 10 }}\n\
         cache_config: {{ keyword_ttl_seconds: 0 }}\n"
    ))
    .atlas;
    assert_eq!(ids(&atlas.checkpoints), [""; 0]);
    let budget = Budget {
        max_context_injection_size: Some(10),
        ..Budget::default()
    };
    assert_eq!(atlas.budget, Some(budget));
    assert_eq!(atlas.cache.keyword_ttl_seconds, 0);
    assert_eq!(atlas.cache.policy_ttl_seconds, 60);
}

#[test]
fn configured_checkpoints_come_after_written_ones() {
    let loaded = load(
        "checkpoint_config:\n  session_start: {}\n\
         checkpoints:\n  - { checkpoint_id: own, trigger: { type: session_start } }\n",
    );
    assert_eq!(
        ids(&loaded.atlas.checkpoints),
        ["own", "config.session_start"]
    );
}

// covers A22
#[test]
fn threshold_of_a_fuzzy_keyword_applies() {
    let fires = |threshold: u64, text: &str| {
        let keyword = format!(
            "{{ type: keyword, patterns: [refund], match_mode: fuzzy, threshold: {threshold} }}"
        );
        match triggers(&keyword).remove(0) {
            (Trigger::Keyword(keywords), 600) => !keywords.find(text).is_empty(),
            other => panic!("{other:?}"),
        }
    };
    assert!(!fires(0, "a reufnd"));
    assert!(fires(1, "a reufnd"));
    assert!(!fires(1, "a rexxxd") && fires(3, "a rexxxd"));
}
