//! Tests of `trace_config`.

use super::*;
use crate::atlas::document::{RetentionConfig, TraceConfig, TraceLevel};
use crate::atlas::recording::{self, SyncRule};

/// The example in the specification.
const SPECIFIED: &str = r#"{
  "trace_config": {
    "sync_required_for": [
      "action_attempted:high", "action_attempted:critical", "policy_checked", "risk_detected",
      "session_ended"
    ],
    "retention": {
      "default_days": 90,
      "by_event_type": { "session_*": 365, "action_blocked": 365, "policy_override": 730 }
    }
  }
}"#;

// covers T27, T31
#[test]
fn trace_config_examples_of_the_specification_load_unchanged() {
    let rest = SPECIFIED
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}');
    let text = format!(
        "{{\"atlas_version\": \"1.0\", \"atlas_id\": \"a\", \"version\": \"1\", \"name\": \"A\", {rest}}}"
    );
    let loaded = load_str("a.json", &text).unwrap();
    assert_eq!(codes(&loaded.warnings), []);
    let recording = &loaded.atlas.recording;
    let rule = |event_type: &str, tier| SyncRule {
        event_type: event_type.to_owned(),
        tier,
    };
    assert_eq!(
        recording.sync,
        [
            rule("action_attempted", Some(RiskTier::High)),
            rule("action_attempted", Some(RiskTier::Critical)),
            rule("policy_checked", None),
            rule("risk_detected", None),
            rule("session_ended", None),
        ]
    );
    assert_eq!(recording.level, TraceLevel::Complete);
    let retention = recording::combined_retention(std::slice::from_ref(&loaded.atlas));
    let days = |event_type| retention.days_for(event_type);
    assert_eq!(days("session_started"), Some(365));
    assert_eq!(days("action_blocked"), Some(365));
    assert_eq!(days("policy_override"), Some(730));
    assert_eq!(days("action_attempted"), Some(90));
}

#[test]
fn without_trace_config_nothing_is_redacted_or_pruned() {
    let loaded = load("trace_config: {}\n");
    let silent = load("");
    for atlas in [loaded.atlas, silent.atlas] {
        assert_eq!(atlas.recording.level, TraceLevel::Complete);
        assert!(atlas.recording.redact.is_empty() && atlas.recording.sync.is_empty());
        assert!(recording::combined_retention(&[atlas]).keeps_all());
    }
    // An empty key prunes nothing either; only the listed events are pruned.
    let named = load("trace_config: {retention: {by_event_type: {input_received: 1}}}\n").atlas;
    let retention = recording::combined_retention(&[named]);
    assert_eq!(retention.days_for("input_received"), Some(1));
    assert_eq!(retention.days_for("session_ended"), None);
}

#[test]
fn several_atlases_use_the_most_complete_level_and_the_longest_retention() {
    let of = |rest: &str| load(&format!("trace_config: {rest}\n")).atlas;
    let minimal = || of("{level: minimal, retention: {default_days: 10}}");
    let standard = || of("{level: standard, retention: {default_days: 20}}");
    assert_eq!(
        recording::trace_level(&[minimal(), standard()]),
        TraceLevel::Standard
    );
    assert_eq!(
        recording::trace_level(&[minimal(), load("").atlas]),
        TraceLevel::Complete
    );
    assert_eq!(recording::trace_level(&[]), TraceLevel::Complete);
    let both = recording::combined_retention(&[minimal(), standard()]);
    assert_eq!(both.days_for("input_received"), Some(20));
    let with_silent = recording::combined_retention(&[minimal(), load("").atlas]);
    assert_eq!(with_silent.days_for("input_received"), None);
}

#[test]
fn unredacted_secret_parameters_get_a_warning() {
    let schema = "parameters_schema: {properties: {user: {}, api_key: {}, \
                  auth: {properties: {Access-Token: {}}}}}";
    let warned = |trace: &str| {
        let rest = format!(
            "default_decision: allow\nactions: [{{action_id: db.login, {schema}}}]\n{trace}"
        );
        let warnings = load(&rest).warnings.into_iter();
        let own = warnings.filter(|warning| warning.code == Code::UnredactedSecret);
        own.map(|warning| warning.message).collect::<Vec<_>>()
    };
    assert_eq!(
        warned(""),
        [
            "parameter `api_key` is recorded without redaction",
            "parameter `auth.Access-Token` is recorded without redaction"
        ]
    );
    let half = "trace_config: {redact: [{actions: ['db.*'], params: [api_key]}]}\n";
    assert_eq!(
        warned(half),
        ["parameter `auth.Access-Token` is recorded without redaction"]
    );
    assert_eq!(
        warned("trace_config: {redact: [{params: [API_KEY, '*.access-token']}]}\n"),
        [""; 0]
    );
    let other = "trace_config: {redact: [{actions: [web], params: ['*']}]}\n";
    assert_eq!(warned(other).len(), 2);
}

#[test]
fn trace_config_round_trips_through_serde() {
    let config = TraceConfig {
        level: TraceLevel::Verbose,
        retention: Some(RetentionConfig {
            default_days: None,
            by_event_type: vec![("z_*".to_owned(), 1), ("a_*".to_owned(), 2)],
        }),
        ..TraceConfig::default()
    };
    let text = serde_json::to_string(&config).unwrap();
    assert!(
        text.contains(r#""by_event_type":{"z_*":1,"a_*":2}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<TraceConfig>(&text).unwrap(), config);
}

#[test]
fn unregistered_event_types_get_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    std::fs::write(
        &path,
        manifest("trace_config: {custom_events: [one, two]}\n"),
    )
    .unwrap();
    let known = KnownExtensions {
        events: ["one".to_owned()].into(),
        ..KnownExtensions::default()
    };
    let warnings = lint_file(&path, &known).unwrap().warnings;
    let messages: Vec<_> = warnings
        .iter()
        .map(|warning| (warning.code, warning.path.as_str()))
        .collect();
    assert_eq!(
        messages,
        [(Code::UnlistedExtension, "trace_config.custom_events[1]")]
    );
}
