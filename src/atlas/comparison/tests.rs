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
        "gate `gate` no longer stops the agent",
    ),
    (
        "patterns: [\"x.*\"]",
        "patterns: [\"x.a\"]",
        "gate `gate` fires at other times",
    ),
    (
        "question: Sure?",
        "question: Really?",
        "gate `gate` asks something else",
    ),
    (
        "    approvers: 2\n",
        "    respondent: either\n",
        "gate `gate` can be answered by the agent itself",
    ),
    (
        "mode: blocking",
        "mode: blocking\n    allow_actions: [\"y\"]",
        "passing `gate` gives or takes other rights",
    ),
    (
        "checkpoint_id: gate",
        "checkpoint_id: other",
        "gate `gate` is gone",
    ),
    (
        "type: deny, actions: [\"x.drop\"]",
        "type: deny, actions: [\"x.rm\"]",
        "policy `p` rules something else",
    ),
    ("policy_id: p,", "policy_id: q,", "policy `p` is gone"),
    (
        "reason: no }",
        "reason: no, override: true }",
        "policy `p` can be overruled",
    ),
    (
        "default_decision: deny",
        "default_decision: allow",
        "a known action that no policy mentions is allowed, not denied",
    ),
    (
        "default_decision: deny",
        "default_decision: deny\nunknown_actions: allow",
        "an action that no Atlas knows is allowed",
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
        "action `y` is known now",
    ),
    (
        "name: C, actions: [\"x.*\"]",
        "name: C, actions: [\"*\"]",
        "capability `c` has other actions",
    ),
    (
        "    approvers: 2\n",
        "",
        "gate `gate` takes one operator, not two",
    ),
    (
        "type: authenticated, api_keys: [\"k-*\"],",
        "type: public,",
        "agents need no key any more",
    ),
    (
        "api_keys: [\"k-*\"]",
        "api_keys: [\"*\"]",
        "agents come in with other keys",
    ),
    (
        "requests_per_minute: 10",
        "requests_per_minute: 11",
        "agents may ask more often in a minute",
    ),
    (
        ", rate_limit: { requests_per_minute: 10 }",
        "",
        "agents may ask more often in a minute",
    ),
    (
        "required: [id]",
        "required: []",
        "`x.put` is written otherwise: see how it is checked",
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
        "records are kept for another time",
    ),
    (
        "params: [pin]",
        "params: [pin, name]",
        "other things are left out of records",
    ),
    (
        "name: C, actions: [\"x.*\"] }",
        "name: C, actions: [\"x.*\"] }\n  - { capability_id: d, name: D, actions: [\"z\"] }",
        "capability `d` makes [z] known",
    ),
    (
        "policies:\n",
        "policies:\n  - { policy_id: a, type: allow, actions: [\"x.y\"] }\n",
        "policy `a` is new and allows [x.y]",
    ),
    (
        "trigger: { type: session_start }",
        "trigger: { type: session_start }\n  - checkpoint_id: gift\n    trigger: { type: session_start }\n    allow_actions: [\"y\"]",
        "`gift` is new and gives without stopping anybody",
    ),
    (
        "https://a.example/x",
        "https://b.example/x",
        "the steward is told of other things, or at another address",
    ),
    (
        "triggers: [policy_override]",
        "triggers: [high_risk_action]",
        "the steward is told of other things, or at another address",
    ),
    (
        "atlas_id: a",
        "atlas_id: b",
        "it is another Atlas: `b` instead of `a`",
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
