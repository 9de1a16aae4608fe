use super::*;
use crate::atlas::load_str;

const BASE: &str = r#"atlas_version: "1.0"
atlas_id: a
version: "1"
name: A
steward:
  id: s
  name: S
  access: { type: authenticated, api_keys: ["k-*"], rate_limit: { requests_per_minute: 10 } }
  notifications: { channels: { webhook: "https://a.example/x" }, triggers: [policy_override] }
default_decision: deny
trace_config:
  level: verbose
  retention: { default_days: 90 }
  redact: [{ params: [pin] }]
checkpoints:
  - checkpoint_id: gate
    trigger: { type: action_pre, patterns: ["x.*"] }
    mode: blocking
    approvers: 2
    questions:
      - { question_id: q, question: Sure?, response_type: boolean }
  - checkpoint_id: tip
    trigger: { type: session_start }
capabilities:
  - { capability_id: c, name: C, actions: ["x.*"] }
policies:
  - { policy_id: p, type: deny, actions: ["x.drop"], reason: no }
actions:
  - { action_id: x.get, name: Get, risk_tier: high }
  - { action_id: x.put, name: Put, parameters_schema: { type: object, required: [id] } }
"#;

fn changed(from: &str, to: &str) -> Comparison {
    assert!(BASE.contains(from), "{from}");
    let after = BASE.replace(from, to);
    let load = |text: &str| load_str("a.yaml", text).unwrap().atlas;
    compare(&load(BASE), &load(&after))
}

#[test]
fn comparing_an_atlas_with_itself_reports_nothing() {
    assert_eq!(
        changed("name: A", "name: A # a comment"),
        Comparison::default()
    );
}

/// Cases: the text that is replaced, its replacement, and the expected warning.
const WEAKENING_CASES: &[(&str, &str, &str)] = &[
    (
        "mode: blocking",
        "mode: advisory",
        "checkpoint `gate` no longer blocks",
    ),
    (
        "patterns: [\"x.*\"]",
        "patterns: [\"x.a\"]",
        "checkpoint `gate` has another trigger",
    ),
    (
        "question: Sure?",
        "question: Really?",
        "checkpoint `gate` asks other questions",
    ),
    (
        "    approvers: 2\n",
        "    respondent: either\n",
        "checkpoint `gate` lets the agent answer",
    ),
    (
        "mode: blocking",
        "mode: blocking\n    allow_actions: [\"y\"]",
        "passing `gate` grants or removes other rights",
    ),
    (
        "checkpoint_id: gate",
        "checkpoint_id: other",
        "checkpoint `gate` is removed",
    ),
    (
        "type: deny, actions: [\"x.drop\"]",
        "type: deny, actions: [\"x.rm\"]",
        "policy `p` has different rules",
    ),
    ("policy_id: p,", "policy_id: q,", "policy `p` is removed"),
    (
        "reason: no }",
        "reason: no, override: true }",
        "policy `p` allows an override",
    ),
    (
        "default_decision: deny",
        "default_decision: allow",
        "known actions without a policy are now allowed",
    ),
    (
        "default_decision: deny",
        "default_decision: deny\nunknown_actions: allow",
        "unknown actions are now allowed",
    ),
    (
        "risk_tier: high",
        "risk_tier: low",
        "action `x.get` is low risk, not high",
    ),
    (
        ", risk_tier: high",
        "",
        "action `x.get` no longer declares high risk",
    ),
    (
        "actions:\n  - {",
        "actions:\n  - { action_id: y, name: Y }\n  - {",
        "action `y` is now known",
    ),
    (
        "name: C, actions: [\"x.*\"]",
        "name: C, actions: [\"*\"]",
        "capability `c` has different actions",
    ),
    (
        "    approvers: 2\n",
        "",
        "checkpoint `gate` needs one operator, not two",
    ),
    (
        "type: authenticated, api_keys: [\"k-*\"],",
        "type: public,",
        "agents no longer need a key",
    ),
    (
        "api_keys: [\"k-*\"]",
        "api_keys: [\"*\"]",
        "accepted API keys changed",
    ),
    (
        "requests_per_minute: 10",
        "requests_per_minute: 11",
        "agents have a higher rate limit",
    ),
    (
        ", rate_limit: { requests_per_minute: 10 }",
        "",
        "agents have a higher rate limit",
    ),
    (
        "required: [id]",
        "required: []",
        "`x.put` changed: compare its parameter schema",
    ),
    (
        ", parameters_schema: { type: object, required: [id] }",
        "",
        "parameters of `x.put` are no longer checked",
    ),
    (
        "level: verbose",
        "level: minimal",
        "fewer events are recorded",
    ),
    (
        "default_days: 90",
        "default_days: 9",
        "the retention of records changed",
    ),
    (
        "params: [pin]",
        "params: [pin, name]",
        "the redaction of records changed",
    ),
    (
        "name: C, actions: [\"x.*\"] }",
        "name: C, actions: [\"x.*\"] }\n  - { capability_id: d, name: D, actions: [\"z\"] }",
        "new capability `d` adds actions [z]",
    ),
    (
        "policies:\n",
        "policies:\n  - { policy_id: a, type: allow, actions: [\"x.y\"] }\n",
        "new policy `a` allows [x.y]",
    ),
    (
        "trigger: { type: session_start }",
        "trigger: { type: session_start }\n  - checkpoint_id: gift\n    trigger: { type: session_start }\n    allow_actions: [\"y\"]",
        "`gift` is new and grants rights without a gate",
    ),
    (
        "https://a.example/x",
        "https://b.example/x",
        "notices to the steward changed (events or address)",
    ),
    (
        "triggers: [policy_override]",
        "triggers: [high_risk_action]",
        "notices to the steward changed (events or address)",
    ),
    (
        "atlas_id: a",
        "atlas_id: b",
        "different Atlas: `b` instead of `a`",
    ),
];

#[test]
fn every_possible_weakening_is_reported() {
    for (from, to, words) in WEAKENING_CASES {
        let found = changed(from, to);
        assert!(
            found.weaker.iter().any(|warning| warning == words),
            "{to}: {found:?}"
        );
    }
}

#[test]
fn stricter_changes_are_listed_without_warnings() {
    let found = changed(
        "  - checkpoint_id: tip",
        "  - checkpoint_id: more\n    trigger: { type: action_pre, patterns: [\"z\"] }\n    mode: blocking\n  - checkpoint_id: tip",
    );
    assert_eq!(found.weaker, Vec::<String>::new());
    assert_eq!(found.count(PartKind::Checkpoint, ChangeKind::Added), 1);
    let found = changed(
        "trigger: { type: session_start }",
        "trigger: { type: session_start }\n    guidance: { content: hello }",
    );
    assert_eq!(
        (
            found.weaker.len(),
            found.count(PartKind::Checkpoint, ChangeKind::Changed)
        ),
        (0, 1)
    );
}

#[test]
fn changed_parts_are_counted_by_kind_of_change() {
    let found = changed("checkpoint_id: gate", "checkpoint_id: other");
    let counts = [ChangeKind::Added, ChangeKind::Removed, ChangeKind::Changed]
        .map(|how| found.count(PartKind::Checkpoint, how));
    assert_eq!(counts, [1, 1, 0]);
}
