//! Tests of the meaning of a manifest that loads.

use super::*;
use crate::atlas::document::{
    Approvers, CheckpointTrigger, DefaultDecision, ExpectedAnswer, InvalidAnswerAction,
    StewardCheckpointDef, UnknownActions,
};
use crate::base::limits::MAX_ID_LEN;

fn first_question(rest: &str) -> crate::atlas::model::CompiledQuestion {
    let loaded = load(&format!(
        "checkpoints:\n  - checkpoint_id: gate\n    trigger: {{ type: session_start }}\n    \
         questions:\n      - question_id: q\n        question: Why?\n{rest}"
    ));
    loaded.atlas.checkpoints[0].questions[0].clone()
}

// covers B4
#[test]
fn checkpoint_without_a_priority_has_the_default_of_its_type() {
    let loaded = load(
        "default_decision: allow\n\
         capabilities:\n  - { capability_id: c, actions: [a] }\n\
         actions:\n  - action_id: a\n\
         checkpoints:\n  \
         - { checkpoint_id: action, trigger: { type: action_pre, patterns: [a] } }\n  \
         - { checkpoint_id: risk, trigger: { type: risk_threshold } }\n  \
         - { checkpoint_id: late, trigger: { type: session_start }, priority: -5 }\n  \
         - { checkpoint_id: capability, trigger: { type: capability_access, capability_ids: [c] } }\n  \
         - { checkpoint_id: start, trigger: { type: session_start } }\n  \
         - { checkpoint_id: second, trigger: { type: session_start } }\n",
    );
    assert_eq!(loaded.warnings, []);
    let order: Vec<_> = loaded
        .atlas
        .checkpoints
        .iter()
        .map(|checkpoint| (checkpoint.id.as_str(), checkpoint.priority))
        .collect();
    assert_eq!(
        order,
        [
            ("start", 1000),
            ("second", 1000),
            ("capability", 920),
            ("risk", 900),
            ("action", 800),
            ("late", -5),
        ]
    );
}

// covers B6
#[test]
fn every_field_of_a_checkpoint_is_read() {
    let loaded = load(
        "default_decision: allow\n\
         capabilities:\n  - { capability_id: one, actions: [a] }\n  - { capability_id: two, actions: [a] }\n\
         context_blocks:\n  - { context_id: intro, content: Hello, inject_mode: on_demand }\n\
         actions:\n  - action_id: a\n  - action_id: admin.x\n  - action_id: public.x\n  - action_id: x\n\
         checkpoints:\n  - checkpoint_id: gate\n    name: Gate\n    description: Why it is there\n    \
         trigger: { type: risk_threshold, min_tier: medium }\n    mode: advisory\n    \
         guidance: { content: Careful, priority: 7, append: true, labels: [x] }\n    \
         inject_contexts: [intro]\n    unlock_capabilities: [one]\n    lock_capabilities: [two]\n    \
         allow_actions: ['admin.*']\n    deny_actions: ['public.*', x]\n    force_sync_trace: true\n    \
         priority: 12\n    timeout_seconds: 604800\n    respondent: operator\n",
    );
    // Nothing waits at an advisory checkpoint.
    assert_eq!(codes(&loaded.warnings), [Code::NoEffect]);
    let gate = &loaded.atlas.checkpoints[0];
    assert_eq!((gate.id.as_str(), gate.name.as_str()), ("gate", "Gate"));
    assert_eq!(gate.trigger, Trigger::RiskThreshold(RiskTier::Medium));
    assert_eq!(gate.mode, CheckpointMode::Advisory);
    assert!(gate.questions.is_empty());
    let guidance = gate.guidance.as_ref().unwrap();
    assert_eq!(
        (guidance.priority, guidance.append, guidance.labels.len()),
        (7, Some(true), 1)
    );
    assert_eq!(gate.inject_contexts, ["intro"]);
    assert!(gate.unlock_capabilities.contains("one"));
    assert!(gate.lock_capabilities.contains("two"));
    assert!(gate.allow_actions.matches("admin.x"));
    assert!(gate.deny_actions.matches("public.x") && gate.deny_actions.matches("x"));
    assert!(gate.force_sync_trace);
    assert_eq!((gate.priority, gate.timeout_seconds), (12, 604_800));
    // The gate unlocks one capability, so a session must earn it. The gate only locks the other, so a session
    // starts with it.
    let locked: Vec<_> = loaded
        .atlas
        .capabilities
        .iter()
        .map(|c| (c.id.as_str(), c.starts_locked))
        .collect();
    assert_eq!(locked, [("one", true), ("two", false)]);
}

// covers B9
#[test]
fn every_field_of_a_question_is_read() {
    let question = first_question(
        "        response_type: boolean\n        required: false\n        hint: Think\n        \
         on_invalid: warn_and_continue\n        max_retries: 3\n        expect: false\n        \
         sensitive: false\n        validation:\n          pattern: \"^[A-Za-z].*\\\\.$\"\n          \
         min_length: 20\n          max_length: 20\n          must_contain: [reason]\n          \
         must_not_contain: [hack, bypass]\n",
    );
    assert_eq!(question.response_type(), ResponseType::Boolean);
    assert!(!question.required());
    assert_eq!(question.hint(), Some("Think"));
    assert_eq!(question.on_invalid(), InvalidAnswerAction::WarnAndContinue);
    assert_eq!(question.max_retries(), Some(3));
    assert_eq!(question.expect(), ExpectedAnswer::False);
    let rules = question.validation();
    assert_eq!((rules.min_length, rules.max_length), (Some(20), Some(20)));
    assert_eq!(rules.must_contain, ["reason"]);
    assert_eq!(rules.must_not_contain, ["hack", "bypass"]);
    let pattern = question.pattern().unwrap();
    assert!(pattern.is_match("Because.") && !pattern.is_match("1."));
}

// covers B9
#[test]
fn question_has_defaults() {
    let question = first_question("");
    assert_eq!(question.response_type(), ResponseType::Text);
    assert!(question.required());
    assert_eq!(question.on_invalid(), InvalidAnswerAction::Retry);
    assert_eq!(question.expect(), ExpectedAnswer::True);
    assert_eq!(question.max_retries(), None);
}

#[test]
fn manifest_defaults_allow_known_actions_and_deny_unknown_ones() {
    let atlas = load("").atlas;
    assert_eq!(atlas.description, "");
    assert_eq!(atlas.default_decision, DefaultDecision::Allow);
    assert_eq!(atlas.unknown_actions, UnknownActions::Deny);
    let atlas = load("default_decision: deny\nunknown_actions: approve\n").atlas;
    assert_eq!(atlas.default_decision, DefaultDecision::Deny);
    assert_eq!(atlas.unknown_actions, UnknownActions::Approve);
}

#[test]
fn trigger_alias_is_accepted_and_reported_with_its_canonical_name() {
    let loaded = load(
        "default_decision: allow\n\
         actions:\n  - action_id: a\ncapabilities:\n  - { capability_id: c, actions: ['*'] }\n\
         checkpoints:\n  - checkpoint_id: gate\n    \
         trigger: { type: capability_gate, capability_ids: [c] }\n",
    );
    assert_eq!(codes(&loaded.warnings), [Code::Alias]);
    let warning = &loaded.warnings[0];
    assert_eq!(
        warning.help.as_deref(),
        Some("write `capability_access`, the canonical name")
    );
    assert!(matches!(
        loaded.atlas.checkpoints[0].trigger,
        Trigger::CapabilityAccess(_)
    ));
    // No checkpoint unlocks the capability, but the gate still protects it.
    assert!(loaded.atlas.capabilities[0].starts_locked);
}

#[test]
fn schema_may_be_a_boolean() {
    let atlas = load("actions:\n  - { action_id: a, parameters_schema: false }\n").atlas;
    assert!(
        atlas.actions["a"]
            .parameter_error(&serde_json::json!({}))
            .is_some()
    );
}

#[test]
fn longest_allowed_identifier_is_accepted() {
    // The limit counts characters, not bytes.
    let id = "é".repeat(MAX_ID_LEN);
    let loaded = load(&format!(
        "context_blocks:\n  - {{ context_id: {id}, content: x }}\n"
    ));
    assert!(loaded.atlas.contexts.contains_key(&id));
}

/// Both decoders, the hand-written and the derived one, read the same definition.
#[test]
fn hand_written_and_derived_decoders_agree() {
    let text = "checkpoint_id: gate\ntrigger: { type: action_pre, patterns: [a, 'b.*'] }\n\
                mode: blocking\nquestions:\n  - { question_id: q, question: Why?, expect: any }\n";
    let json = {
        let mut problems = Problems::new("", text);
        yaml::parse(text, &mut problems).unwrap().to_json()
    };
    // The derived decoder accepts `expect` only as a word, which `any` is.
    let derived: StewardCheckpointDef = serde_json::from_value(json.clone()).unwrap();
    let whole = manifest(&format!("checkpoints: [{json}]\n"));
    let mut problems = Problems::new("", &whole);
    let root = yaml::parse(&whole, &mut problems).unwrap();
    let decoded = decode(&root, &mut problems);
    assert_eq!(problems.into_diagnostics(), []);
    assert_eq!(decoded.checkpoints, [derived]);
    assert!(matches!(
        decoded.checkpoints[0].trigger,
        CheckpointTrigger::ActionPre { .. }
    ));
}

// covers B27
#[test]
fn advice_warns_about_gates_keywords_and_defaults() {
    let mut gates = String::new();
    for n in 0..26 {
        gates.extend([
            "  - checkpoint_id: g",
            &n.to_string(),
            "\n    mode: blocking\n",
        ]);
        gates.push_str("    trigger: { type: action_pre, patterns: [a] }\n");
    }
    let words =
        "  - checkpoint_id: words\n    trigger: { type: keyword, patterns: [tax, refund] }\n";
    let asks = "    questions: [{ question_id: q, question: 'What is the API key?' }]\n";
    let loaded = load(&format!(
        "actions:\n  - action_id: a\ncheckpoints:\n{gates}{asks}{words}"
    ));
    let mut codes: Vec<_> = loaded.warnings.iter().map(|w| w.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["W005", "W006", "W007", "W008"]);
    let quiet = load("default_decision: deny\nactions:\n  - action_id: a\n");
    assert!(quiet.warnings.is_empty(), "{:?}", quiet.warnings);
}

// covers B27
#[test]
fn advice_warns_about_questions_rules_policies_and_records() {
    let body = "default_decision: allow
actions: [{ action_id: db.drop, risk_tier: critical }]
checkpoint_config: { keyword_match: { mappings: { 'refund|tax': [] } } }
checkpoints:
  - checkpoint_id: drop
    mode: blocking
    trigger: { type: action_pre, patterns: ['db.*'] }
    questions:
      - { question_id: q, question: Why?, validation: { pattern: '^x', min_length: 201 } }
";
    let found = load(body).warnings;
    let mut found: Vec<_> = found
        .iter()
        .map(|w| (w.code.as_str(), w.path.as_str()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("W008", "checkpoint_config.keyword_match.mappings[0]"),
            ("W009", "checkpoints[0].questions[0].validation"),
            ("W010", "checkpoints[0].questions[0].validation.min_length"),
            ("W011", "actions[0].action_id"),
            ("W012", "checkpoints[0].checkpoint_id"),
        ]
    );
    let followed = body
        .replace("'refund|tax': []", "'refund|taxes': []")
        .replace("question: Why?", "question: Why?, hint: begin with an x")
        .replace("min_length: 201", "min_length: 200")
        .replace(
            "mode: blocking",
            "mode: blocking\n    force_sync_trace: true",
        );
    let policy = "policies: [{ policy_id: p, type: requires_approval, actions: ['*.drop'] }]\n";
    assert_eq!(load(&format!("{followed}{policy}")).warnings, []);
}

#[test]
fn all_guidance_and_answer_fields_are_kept() {
    let loaded = load(
        "policies:\n  - { policy_id: p, type: deny, actions: [a], override: true }\n\
         checkpoints:\n  - checkpoint_id: gate\n    mode: blocking\n    respondent: either\n    \
         handler: ask-legal\n    trigger: { type: session_start }\n    \
         questions:\n      - { question_id: q, question: Why?, hint: as agreed, validation: { custom_validator: legal } }\n    \
         guidance: { content: Careful, append: false, expires_after: session-end }\n",
    );
    assert_eq!(loaded.warnings, []);
    let gate = &loaded.atlas.checkpoints[0];
    assert_eq!(gate.respondent, Respondent::Either);
    assert_eq!(gate.handler.as_deref(), Some("ask-legal"));
    let guidance = gate.guidance.as_ref().unwrap();
    assert_eq!(guidance.append, Some(false));
    assert_eq!(guidance.expires_after.as_deref(), Some("session-end"));
    let rules = gate.questions[0].validation();
    assert_eq!(rules.custom_validator.as_deref(), Some("legal"));
    assert!(loaded.atlas.policies[0].overridable);
}

#[test]
fn agent_respondent_without_blocking_mode_has_no_effect() {
    let loaded = load(
        "checkpoints:\n  - { checkpoint_id: a, respondent: agent, trigger: { type: session_start } }\n",
    );
    assert_eq!(codes(&loaded.warnings), [Code::NoEffect]);
    assert_eq!(loaded.warnings[0].path, "checkpoints[0].respondent");
}

#[test]
fn require_policy_check_false_on_a_covered_action_gets_a_warning() {
    let config = "checkpoint_config:\n  action_pre:\n    mappings:\n      \
                  \"delete_*\": { require_policy_check: false }\n";
    let loaded = load(config);
    assert_eq!(loaded.warnings, []);
    let other = "policies:\n  - { policy_id: p, type: deny, actions: ['create_*'] }\n";
    assert_eq!(load(&format!("{other}{config}")).warnings, []);
    let policy = "policies:\n  - { policy_id: p, type: deny, actions: ['*_user'] }\n";
    let loaded = load(&format!("{policy}{config}"));
    assert_eq!(codes(&loaded.warnings), [Code::NoEffect]);
    assert_eq!(loaded.warnings[0].message, "policy `p` is still checked");
}

#[test]
fn only_one_or_two_approvers_are_accepted() {
    let gate = |more: &str| {
        format!(
            "checkpoints:\n  - {{ checkpoint_id: a, mode: blocking, trigger: {{ type: session_start }}, {more} }}\n"
        )
    };
    let errors = |text: &str| {
        load_str("test.yaml", &manifest(text))
            .unwrap_err()
            .diagnostics()
            .to_vec()
    };
    let approvers = |more: &str| load(&gate(more)).atlas.checkpoints[0].approvers;
    assert_eq!(approvers("approvers: 2"), Approvers::Two);
    assert_eq!(approvers("approvers: 1"), Approvers::One);
    assert_eq!(approvers("priority: 1"), Approvers::One);
    for wrong in ["0", "3", "12"] {
        let errors = errors(&gate(&format!("approvers: {wrong}")));
        assert_eq!(codes(&errors), [Code::OutOfRange], "{wrong}");
        assert_eq!(errors[0].path, "checkpoints[0].approvers");
        assert_eq!(errors[0].help.as_deref(), Some(Approvers::HELP));
    }
    for wrong in ["two", "1.5", "[2]", "true"] {
        let errors = errors(&gate(&format!("approvers: {wrong}")));
        assert_eq!(codes(&errors), [Code::WrongType], "{wrong}");
    }
    // An agent that may answer would be one of the two approvers.
    for respondent in ["agent", "either"] {
        let errors = errors(&gate(&format!("approvers: 2, respondent: {respondent}")));
        assert_eq!(codes(&errors), [Code::Contradiction], "{respondent}");
    }
    let loaded = load(
        "checkpoints:\n  - { checkpoint_id: a, approvers: 2, trigger: { type: session_start } }\n",
    );
    assert_eq!(codes(&loaded.warnings), [Code::NoEffect]);
    assert_eq!(loaded.warnings[0].path, "checkpoints[0].approvers");
}
