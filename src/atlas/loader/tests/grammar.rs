//! Tests that the loader, serde and the JSON Schema accept the same documents.
//!
//! The boundary: the grammar is keys, kinds of values, words, ranges of numbers, and keys that exclude each other. Text
//! that is not YAML comes before it. What a document means (identifiers, references, patterns, rules that contradict
//! each other) comes after it and is the linter's alone. A key of the steward's own (`x-...`) belongs to the grammar where
//! it can do no harm: the loader warns of it (W001), serde and the schema accept it. Every other key that the format does
//! not have is refused by all three.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;
use crate::atlas::document::AtlasManifest;

static SCHEMA: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(&AtlasManifest::json_schema()).unwrap());

/// Checkpoints with these triggers and with everything that a checkpoint can have.
fn checkpoints() -> Vec<Value> {
    let triggers = [
        json!({"type": "session_start"}),
        json!({"type": "session_end"}),
        json!({"type": "action_pre", "patterns": ["a"]}),
        json!({"type": "action_post", "patterns": ["a"]}),
        json!({"type": "keyword", "patterns": ["refund"], "case_sensitive": true,
            "match_mode": "fuzzy", "threshold": 2}),
        json!({"type": "keyword_match", "keywords": ["refund"], "matchMode": "all", "caseSensitive": false}),
        json!({"type": "risk_threshold", "min_tier": "high"}),
        json!({"type": "risk", "minTier": "low"}),
        json!({"type": "capability_access", "capability_ids": ["c"]}),
        json!({"type": "capability_gate", "capability_ids": ["c"]}),
        json!({"type": "time_interval", "seconds": 60}),
        json!({"type": "interval"}),
        json!({"type": "count_interval", "actions": 5}),
        json!({"type": "count", "actions": 5, "priority": 3}),
        json!({"type": "explicit_request"}),
        json!({"type": "error_occurred"}),
        json!({"type": "interactive"}),
        json!({"type": "always"}),
        json!({"type": "action", "actions": ["a"]}),
        json!({"type": "regex", "pattern": "^x", "caseSensitive": true}),
        json!({"type": "custom", "trigger_id": "t", "params": {"x": [1, null]}, "on": ["input"],
            "when": {"path": "input", "contains": "x"}}),
        json!({"type": "keyword_match", "condition": {"type": "keyword", "keywords": ["refund"]}, "priority": 7}),
        json!({"type": "keyword_match", "condition": {"type": "regex", "pattern": "^x"}}),
        json!({"type": "action_pre", "condition": {"type": "always"}}),
        json!({"type": "action_pre", "condition": {"type": "action", "actions": ["a"]}}),
        json!({"type": "action_post", "condition": {"type": "action", "actions": ["a"]}}),
        json!({"type": "action_post", "condition": {"type": "always"}}),
        json!({"type": "risk_threshold", "condition": {"type": "risk", "minTier": "high"}}),
        json!({"type": "time_interval", "condition": {"type": "interval", "seconds": 5}}),
        json!({"type": "custom", "condition": {"type": "custom", "trigger_id": "t"}}),
    ];
    let mut all: Vec<Value> = triggers
        .iter()
        .enumerate()
        .map(|(index, trigger)| json!({"checkpoint_id": format!("t{index}"), "trigger": trigger}))
        .collect();
    all.push(json!({
        "checkpoint_id": "whole", "name": "Whole", "description": "d", "mode": "blocking",
        "trigger": {"type": "action_pre", "patterns": ["a"]}, "priority": -4, "timeout_seconds": 60,
        "guidance": {"format": "json", "content": "{}", "priority": 1, "append": false,
            "expires_after": "whole", "labels": ["l"]},
        "inject_contexts": ["k1"], "unlock_capabilities": ["c"], "lock_capabilities": ["c"],
        "allow_actions": ["a"], "deny_actions": ["a"], "force_sync_trace": true,
        "respondent": "operator", "approvers": 2, "handler": "h",
        "when": {"all": [{"any": [{"path": "params.x", "gt": 3, "exists": true}]},
            {"not": {"path": "action", "in": ["a", null]}}]},
        "questions": [
            {"question_id": "q1", "question": "Why?", "required": false, "hint": "h",
                "on_invalid": "warn_and_continue", "max_retries": 2, "sensitive": true,
                "validation": {"pattern": "x", "min_length": 1, "max_length": 9,
                    "must_contain": ["x"], "must_not_contain": ["y"], "custom_validator": "v"}},
            {"question_id": "q2", "question": "Ok?", "response_type": "boolean", "expect": true},
            {"question_id": "q3", "question": "Ok?", "response_type": "boolean", "expect": "any"},
            {"question_id": "q4", "question": "Which?", "response_type": "choice", "options": ["a"]},
            {"question_id": "q5", "question": "How many?", "response_type": "number", "min": -1.5, "max": 4},
            {"question_id": "q6", "question": "What?", "response_type": "json", "schema": {"type": "object"}},
            {"question_id": "q7", "question": "Seen?", "response_type": "acknowledgment"},
        ],
    }));
    all
}

/// The other parts of a manifest, each with its key.
fn parts() -> Vec<(&'static str, Value)> {
    vec![
        ("description", json!("d")),
        ("default_decision", json!("deny")),
        ("unknown_actions", json!("approve")),
        ("risk_config", json!({"mode": "first_match"})),
        (
            "cache_config",
            json!({"context_ttl_seconds": 1, "policy_ttl_seconds": 0, "keyword_ttl_seconds": 3}),
        ),
        (
            "steward",
            json!({"id": "s", "name": "n", "contact": "c",
            "access": {"type": "authenticated", "api_keys": ["k*"], "rate_limit": {"requests_per_minute": 9}},
            "delivery": {"mode": "embedded"},
            "notifications": {"channels": {"webhook": "https://example.com/x"}, "triggers": ["policy_override"]}}),
        ),
        (
            "checkpoint_config",
            json!({
            "session_start": {"enabled": true, "inject_contexts": ["k1"]},
            "keyword_match": {"enabled": true, "keywords": {"a|b": ["k1"]}, "match_mode": "phrase", "case_sensitive": false},
            "action_pre": {"mappings": {"a": {"inject_contexts": ["k1"], "require_policy_check": true, "require_confirmation": true}}},
            "risk_threshold": {"min_tier": "low", "require_sync": true},
            "time_interval": {"enabled": true, "seconds": 9, "inject_contexts": ["k1"]},
            "count_interval": {"actions": 4},
            "budget": {"max_checkpoints_per_input": 5, "max_context_injection_size": 10, "max_checkpoint_time_ms": 5}}),
        ),
        (
            "trace_config",
            json!({"level": "verbose", "acknowledge": "early", "sync_required_for": ["action_blocked"],
            "custom_events": ["own"], "retention": {"default_days": 3, "by_event_type": {"action_*": 4}},
            "redact": [{"actions": ["a"], "params": ["pin"], "values": ["x+"]}]}),
        ),
        (
            "policies",
            json!([
                {"policy_id": "p1", "type": "deny", "actions": ["a"], "reason": "r", "override": true,
                    "when": {"path": "params.x", "eq": null}},
                {"policy_id": "p2", "type": "rate_limit", "actions": ["a"], "max_calls": 1, "window_seconds": 2, "scope": "all"},
                {"policy_id": "p3", "type": "budget", "actions": ["a"], "limit": 2.5, "cost": "x"},
            ]),
        ),
    ]
}

/// Builds a manifest without errors from these checkpoints and parts.
fn document(checkpoints: &[Value], parts: &[(&'static str, Value)]) -> Value {
    let mut document = json!({
        "atlas_version": "1.0", "atlas_id": "com.example", "version": "1", "name": "Example",
        "actions": [{"action_id": "a", "name": "A", "description": "d", "risk_tier": "low",
            "parameters_schema": {"type": "object"}}, {"action_id": "b", "parameters_schema": true}],
        "capabilities": [{"capability_id": "c", "name": "C", "description": "d", "actions": ["a"]}],
        "context_blocks": [
            {"context_id": "k1", "name": "K", "content": "x", "inject_mode": "on_match",
                "keywords": ["refund"], "actions": ["a"], "priority": 2},
            {"context_id": "k2", "content": "x", "checkpoint_config": {"keywords": ["refund"], "priority": 1}},
        ],
        "checkpoints": checkpoints,
    });
    for (key, part) in parts {
        document[*key] = part.clone();
    }
    document
}

fn documents() -> impl Strategy<Value = Value> {
    let (checkpoints, parts) = (checkpoints(), parts());
    let some = prop::sample::subsequence(checkpoints, 0..=6);
    (some, prop::sample::subsequence(parts, 0..=9))
        .prop_map(|(checkpoints, parts)| document(&checkpoints, &parts))
}

/// Returns the JSON pointers of all values in a document.
fn places(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, item)| (n.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let key = key.replace('~', "~0").replace('/', "~1");
        all.extend(places(value).iter().map(|rest| format!("/{key}{rest}")));
    }
    all
}

/// One change to a document.
#[derive(Clone, Debug)]
enum DocumentChange {
    Replace(Value),
    Remove,
    AddKey(&'static str, Value),
    Rename(&'static str),
}

fn values() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!("true"),
        json!("x"),
        json!(""),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(60.0),
        json!(4_294_967_296_u64),
        json!(u64::MAX),
        json!(1e30),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!([]),
        json!([1]),
        json!(["x"]),
        json!([null]),
        json!({}),
        json!({"x": 1}),
        json!({"type": "always"}),
        json!("regex"),
        json!("custom"),
        json!({"path": "action"}),
    ])
}

fn changes() -> impl Strategy<Value = DocumentChange> {
    let keys = vec![
        "x-team",
        "x-mode",
        "x_team",
        "X-team",
        "x-",
        "owner",
        "schema",
        "min",
        "pattern",
        "patterns",
        "keywords",
        "actions",
        "matchMode",
        "minTier",
        "priority",
        "condition",
        "when",
        "mappings",
        "require_sync",
        "require_sync_trace",
        "checkpoint_config",
        "type",
        "all",
        "path",
        "not",
        "caseSensitive",
        "threshold",
        "content",
        "nmae",
        "scope",
        "expect",
    ];
    prop_oneof![
        values().prop_map(DocumentChange::Replace),
        Just(DocumentChange::Remove),
        (prop::sample::select(keys.clone()), values())
            .prop_map(|(key, value)| DocumentChange::AddKey(key, value)),
        prop::sample::select(keys).prop_map(DocumentChange::Rename),
    ]
}

fn change(document: &mut Value, place: &str, change: &DocumentChange) {
    let (parent, key) = place.rsplit_once('/').unwrap_or(("", ""));
    let key = key.replace("~1", "/").replace("~0", "~");
    match change {
        DocumentChange::Replace(value) => *document.pointer_mut(place).unwrap() = value.clone(),
        DocumentChange::AddKey(key, value) => {
            if let Some(Value::Object(fields)) = document.pointer_mut(place) {
                fields.insert((*key).to_owned(), value.clone());
            }
        }
        DocumentChange::Remove | DocumentChange::Rename(_) => match document.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                let removed = fields.remove(&key);
                if let (DocumentChange::Rename(name), Some(removed)) = (change, removed) {
                    fields.insert((*name).to_owned(), removed);
                }
            }
            Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
            _ => {}
        },
    }
}

/// Returns the grammar problems that the loader reports for a document, or nothing if the text is not YAML.
fn decoded(text: &str) -> Option<Vec<Diagnostic>> {
    let mut problems = Problems::new("test.yaml", text);
    let root = yaml::parse(text, &mut problems).filter(|_| !problems.has_errors())?;
    decode(&root, &mut problems);
    let mut found = problems.into_diagnostics();
    found.retain(|found| found.severity == Severity::Error);
    Some(found)
}

fn agree(document: &Value) -> Result<bool, TestCaseError> {
    let text = document.to_string();
    let Some(problems) = decoded(&text) else {
        return Err(TestCaseError::reject("not a text that is read"));
    };
    let read = serde_json::from_value::<AtlasManifest>(document.clone());
    let faults: Vec<_> = SCHEMA
        .iter_errors(document)
        .map(|error| error.to_string())
        .collect();
    let output = format!(
        "loader {problems:#?}\nserde {:?}\nschema {faults:#?}\n{document:#}",
        read.as_ref().err()
    );
    prop_assert_eq!(
        problems.is_empty(),
        read.is_ok(),
        "loader and serde differ: {}",
        output
    );
    prop_assert_eq!(
        problems.is_empty(),
        faults.is_empty(),
        "loader and schema differ: {}",
        output
    );
    if let Ok(manifest) = read {
        // A decoded document is serialized in the same grammar, with the same meaning.
        let written = serde_json::to_string(&manifest).unwrap();
        let again = AtlasManifest::from_yaml(&written);
        prop_assert_eq!(again.ok(), Some(manifest), "{}", written);
    }
    Ok(problems.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // covers B6
    #[test]
    fn loader_serde_and_schema_accept_the_same_manifests(document in documents()) {
        prop_assert!(agree(&document)?, "{document:#}");
        let loaded = load_str("test.yaml", &document.to_string());
        let errors = loaded.err().map(|error| error.to_string());
        prop_assert_eq!(errors.filter(|text| !text.contains("E036")), None);
    }

    // covers B6
    #[test]
    fn loader_serde_and_schema_reject_the_same_changes_to_a_manifest(
        document in documents(),
        place in any::<Index>(),
        made in changes(),
    ) {
        let mut document = document;
        let all = places(&document);
        let place = place.get(&all).clone();
        change(&mut document, &place, &made);
        agree(&document)?;
    }
}

/// A whole manifest with a key added to the map at one place, for every place.
fn with_key_everywhere(key: &str) -> Vec<(String, Value)> {
    let whole = document(&checkpoints(), &parts());
    let maps = places(&whole).into_iter();
    let maps = maps.filter(|place| whole.pointer(place).is_some_and(Value::is_object));
    maps.map(|place| {
        let mut changed = whole.clone();
        let added = changed.pointer_mut(&place).and_then(Value::as_object_mut);
        added.unwrap().insert(key.to_owned(), json!("x"));
        (place, changed)
    })
    .collect()
}

// covers B6
#[test]
fn loader_serde_and_schema_agree_on_an_unknown_key_at_every_place() {
    for key in ["x-team", "x-mode", "owner", "mdoe", "checkpionts", "x_team"] {
        for (place, changed) in with_key_everywhere(key) {
            let accepted = agree(&changed).unwrap_or_else(|error| panic!("{place}: {error}"));
            // Values that are a JSON Schema or a map of names take every key.
            let own = [
                "parameters_schema",
                "/schema",
                "/params",
                "/keywords",
                "/mappings",
            ];
            let free = own.iter().any(|map| place.contains(map)) || place.contains("by_event_type");
            let door = ["/access", "/policies", "/trigger", "/validation", "/when"];
            if door.iter().any(|door| place.contains(door)) && !free {
                assert!(!accepted, "{key} at {place}");
            }
            if !key.starts_with("x-") && !free {
                assert!(!accepted, "{key} at {place}");
            }
        }
    }
    let root = document(&[], &[]);
    let mut own = root.clone();
    own["x-team"] = json!({"any": ["thing"]});
    own["actions"][0]["x-owner"] = json!(null);
    assert!(agree(&own).unwrap());
}

#[test]
fn every_generated_trigger_is_accepted_by_loader_serde_and_schema() {
    for checkpoint in checkpoints() {
        let document = document(std::slice::from_ref(&checkpoint), &[]);
        assert!(agree(&document).unwrap(), "{checkpoint}");
    }
    for part in parts() {
        let whole = document(&[], std::slice::from_ref(&part));
        assert!(agree(&whole).unwrap(), "{part:?}");
    }
}
