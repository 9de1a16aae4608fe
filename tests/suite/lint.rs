//! `cra atlas lint` on rules that can never apply, and on rules that are not where they belong.

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

mod dead_rules;

const HEAD: &str = "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\n\
                    default_decision: allow\n";

/// Actions that the Atlases of these tests declare.
const ACTIONS: &str = "\
actions:
  - action_id: ticket.delete
    risk_tier: critical
    parameters_schema:
      type: object
      properties: { amount: { type: number }, customer: { type: object, properties: { name: { type: string } } } }
  - { action_id: ticket.get, risk_tier: low, parameters_schema: { type: object, properties: { id: { type: string } } } }
";

/// A policy that keeps the linter from asking for one.
const POLICY: &str =
    "  - { policy_id: careful, type: requires_approval, actions: ['ticket.delete'] }\n";

/// Result of lint: the exit code, and each problem with its code, path, message and help.
struct LintReport {
    code: i32,
    problems: Vec<Value>,
}

impl LintReport {
    /// Codes and paths of the problems.
    fn places(&self) -> Vec<(&str, &str)> {
        let mut places = Vec::new();
        for problem in &self.problems {
            places.push((
                problem["code"].as_str().unwrap(),
                problem["path"].as_str().unwrap(),
            ));
        }
        places
    }
}

#[track_caller]
fn lint(body: &str) -> LintReport {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("atlas.yaml");
    std::fs::write(&file, format!("{HEAD}{body}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .args(["atlas", "lint", "--json", file.to_str().unwrap()])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    LintReport {
        code: output.status.code().unwrap(),
        problems: report[0]["diagnostics"].as_array().unwrap().clone(),
    }
}

/// Lints and holds that there is exactly this one problem, with these words in its message and its help.
#[track_caller]
fn one_problem(body: &str, code: &str, path: &str, words: &[&str]) {
    let reply = lint(body);
    assert_eq!(reply.places(), [(code, path)], "{:#?}", reply.problems);
    let problem = &reply.problems[0];
    let output = format!("{} {}", problem["message"], problem["help"]);
    for word in words {
        assert!(output.contains(word), "`{word}` is not in: {output}");
    }
    assert_eq!(reply.code, if code.starts_with('E') { 3 } else { 0 });
}

fn policies(rest: &str) -> String {
    format!("{ACTIONS}policies:\n{POLICY}{rest}")
}

fn gate(rest: &str) -> String {
    let head = "checkpoints:\n  - checkpoint_id: g\n    force_sync_trace: true\n";
    format!("{}{head}{rest}", policies(""))
}

// covers B27
#[test]
fn lint_reports_patterns_that_match_no_declared_action() {
    let deny = |pattern: &str| {
        policies(&format!(
            "  - {{ policy_id: p, type: deny, actions: ['{pattern}'], when: {{ path: session.agent, eq: x }} }}\n"
        ))
    };
    for (pattern, meant) in [
        ("tickets.delete", "did you mean `ticket.delete`?"),
        ("tickets.*", "did you mean `ticket.*`?"),
        ("*.delte", "did you mean `*.delete`?"),
        ("completely.else", "declare the action"),
    ] {
        let words = ["never applies", meant];
        one_problem(&deny(pattern), "W015", "policies[1].actions[0]", &words);
    }
    for pattern in ["ticket.delete", "ticket.*", "*", "*.get"] {
        assert_eq!(lint(&deny(pattern)).places(), [], "{pattern}");
    }
    let place = "checkpoints[0].trigger.patterns[1]";
    let trigger = "    trigger: { type: action_post, patterns: ['ticket.get', 'tickte.get'] }\n";
    one_problem(&gate(trigger), "W015", place, &["`ticket.get`"]);
    let denies = "    trigger: { type: session_start }\n    deny_actions: ['ticket.gt']\n";
    one_problem(
        &gate(denies),
        "W015",
        "checkpoints[0].deny_actions[0]",
        &["`ticket.get`"],
    );
    let config = "checkpoint_config: { action_pre: { mappings: { 'tickets.*': {} } } }\n";
    let place = "checkpoint_config.action_pre.mappings[0]";
    one_problem(
        &format!("{}{config}", policies("")),
        "W015",
        place,
        &["`ticket.*`"],
    );
    let context = "context_blocks: [{ context_id: c, content: x, actions: ['ticket.set'] }]\n";
    one_problem(
        &format!("{}{context}", policies("")),
        "W015",
        "context_blocks[0].actions[0]",
        &[],
    );
}

// covers B27
#[test]
fn lint_is_silent_about_patterns_where_actions_come_from_elsewhere() {
    let rule = "policies: [{ policy_id: p, type: deny, actions: ['tickets.delete'] }]\n";
    assert_eq!(
        lint(rule).places(),
        [],
        "an Atlas without actions declares none"
    );
    for word in ["allow", "approve"] {
        let open = format!(
            "unknown_actions: {word}\n{}",
            policies("  - { policy_id: p, type: deny, actions: ['rm'] }\n")
        );
        assert_eq!(lint(&open).places(), [], "{word}");
    }
    // What a capability lists is known as well, though it is not declared.
    let listed = policies("  - { policy_id: p, type: deny, actions: ['admin.reset'] }\n");
    let listed = format!("{listed}capabilities: [{{ capability_id: c, actions: ['admin.*'] }}]\n");
    assert_eq!(
        lint(&listed).places(),
        [("W003", "capabilities[0].actions[0]")]
    );
}

// covers B27
#[test]
fn lint_reports_questions_that_are_never_asked() {
    for (mode, word) in [
        ("", "advisory"),
        ("    mode: observational\n", "observational"),
    ] {
        let asks = format!(
            "    trigger: {{ type: session_start }}\n{mode}    questions: [{{ question_id: q, question: Why? }}]\n"
        );
        let words = ["never asked", word, "mode: blocking"];
        one_problem(&gate(&asks), "W004", "checkpoints[0].questions", &words);
        let blocking = asks.replace(mode, "") + "    mode: blocking\n";
        assert_eq!(lint(&gate(&blocking)).places(), []);
    }
}

// covers B27
#[test]
fn lint_reports_effects_of_an_observational_checkpoint() {
    let body = "    trigger: { type: session_start }\n    mode: observational\n    unlock_capabilities: [c]\n";
    let body = format!(
        "{}capabilities: [{{ capability_id: c, actions: ['ticket.*'] }}]\n",
        gate(body)
    );
    let words = ["only records", "stay locked", "mode: advisory"];
    one_problem(&body, "W004", "checkpoints[0].unlock_capabilities", &words);
}

// covers B10, B27
#[test]
fn lint_reports_text_rules_on_answers_of_other_types() {
    for (kind, help) in [
        ("number", "`min` and `max`"),
        ("json", "`schema`"),
        ("boolean", "`expect`"),
        ("acknowledgment", "response_type: text"),
        ("choice, options: [a]", "`options`"),
    ] {
        for rule in [
            "must_not_contain: [x]",
            "must_contain: [x]",
            "pattern: x",
            "min_length: 3",
            "max_length: 3",
        ] {
            let key = rule.split(':').next().unwrap();
            let body = format!(
                "    trigger: {{ type: session_start }}\n    mode: blocking\n    questions:\n      \
                 - {{ question_id: q, question: Why?, hint: h, response_type: {kind}, validation: {{ {rule} }} }}\n"
            );
            let path = format!("checkpoints[0].questions[0].validation.{key}");
            one_problem(&gate(&body), "W004", &path, &["applies only to text", help]);
        }
    }
}

// covers B10, B27
#[test]
fn lint_refuses_misplaced_keys_and_names_the_right_location() {
    let question = |rest: &str| {
        gate(&format!(
            "    trigger: {{ type: session_start }}\n    mode: blocking\n    questions:\n      \
             - {{ question_id: q, question: Why?, {rest} }}\n"
        ))
    };
    let inside = "checkpoints[0].questions[0].validation";
    for (key, rest) in [
        (
            "schema",
            "response_type: json, validation: { schema: { type: object } }",
        ),
        ("min", "response_type: number, validation: { min: 3 }"),
        ("max", "response_type: number, validation: { max: 3 }"),
        (
            "options",
            "response_type: text, validation: { options: [a] }",
        ),
        ("on_invalid", "validation: { on_invalid: block }"),
    ] {
        let path = format!("{inside}.{key}");
        one_problem(
            &question(rest),
            "E012",
            &path,
            &["in the question itself, next to `validation`"],
        );
    }
    one_problem(
        &question("validation: { anything: 1 }"),
        "E012",
        &format!("{inside}.anything"),
        &[],
    );
    let path = "checkpoints[0].questions[0].must_contain";
    one_problem(
        &question("must_contain: [x]"),
        "E012",
        path,
        &["in the question's `validation`"],
    );
    let misplaced = gate("    trigger: { type: session_start }\n    min_tier: high\n");
    one_problem(
        &misplaced,
        "E012",
        "checkpoints[0].min_tier",
        &["in the `trigger`"],
    );
}

// covers B27
#[test]
fn lint_points_at_the_key_that_causes_an_error() {
    let choice = "    trigger: { type: session_start }\n    mode: blocking\n    questions:\n      \
                  - { question_id: q, question: Which?, response_type: choice }\n";
    let path = "checkpoints[0].questions[0].response_type";
    one_problem(&gate(choice), "E036", path, &["a choice needs `options`"]);
    let end = "    trigger: { type: session_end }\n    mode: blocking\n";
    let words = ["an ended session cannot wait", "mode: advisory"];
    one_problem(&gate(end), "E036", "checkpoints[0].mode", &words);
    let limit = policies(
        "  - { policy_id: p, type: rate_limit, scope: all, actions: ['*'], max_calls: 0, window_seconds: 1 }\n",
    );
    one_problem(&limit, "E014", "policies[1].max_calls", &[]);
}

// covers B27
#[test]
fn lint_refuses_guidance_of_format_json_that_is_not_json() {
    let json = |content: &str| {
        gate(&format!(
            "    trigger: {{ type: session_start }}\n    guidance: {{ format: json, content: '{content}' }}\n"
        ))
    };
    let path = "checkpoints[0].guidance.content";
    one_problem(&json("{bad"), "E042", path, &["not JSON", "format: text"]);
    assert_eq!(lint(&json("{\"a\": [1]}")).places(), []);
}

// covers B27
#[test]
fn lint_reports_a_gate_before_a_critical_action_that_passes_without_a_valid_answer() {
    let body = |trigger: &str, question: &str| {
        gate(&format!(
            "    trigger: {trigger}\n    mode: blocking\n    questions:\n      - {{ question_id: q, question: Why?, {question} }}\n"
        ))
    };
    let capability = "capabilities: [{ capability_id: c, actions: ['ticket.*'] }]\n";
    for (trigger, more) in [
        ("{ type: action_pre, patterns: ['*.delete'] }", ""),
        ("{ type: risk_threshold, min_tier: high }", ""),
        (
            "{ type: capability_access, capability_ids: [c] }",
            capability,
        ),
    ] {
        for word in ["warn_and_continue", "log_and_continue"] {
            let body = body(trigger, &format!("on_invalid: {word}")) + more;
            one_problem(
                &body,
                "W016",
                "checkpoints[0].questions[0].on_invalid",
                &[word],
            );
        }
        let optional = body(trigger, "required: false") + more;
        one_problem(&optional, "W016", "checkpoints[0].questions", &["optional"]);
        assert_eq!(
            lint(&(body(trigger, "on_invalid: block") + more)).places(),
            []
        );
    }
    let harmless = body(
        "{ type: action_pre, patterns: ['*.get'] }",
        "on_invalid: warn_and_continue",
    );
    assert_eq!(lint(&harmless).places(), []);
}

// covers B27
#[test]
fn lint_reports_conditions_and_costs_on_parameters_of_no_action() {
    let when = |actions: &str, path: &str| {
        policies(&format!(
            "  - {{ policy_id: p, type: deny, actions: ['{actions}'], when: {{ all: [{{ path: {path}, exists: true }}] }} }}\n"
        ))
    };
    let place = "policies[1].when.all[0].path";
    one_problem(
        &when("ticket.delete", "params.amuont"),
        "W017",
        place,
        &["`amount`"],
    );
    one_problem(
        &when("ticket.delete", "params.customer.nmae"),
        "W017",
        place,
        &["`name`"],
    );
    one_problem(
        &when("*", "params.nothing"),
        "W017",
        place,
        &["parameters_schema"],
    );
    for path in [
        "params.amount",
        "params.customer.name",
        "params.customer",
        "action",
        "params.amount.x",
    ] {
        assert_eq!(lint(&when("ticket.delete", path)).places(), [], "{path}");
    }
    // One of the actions has it.
    assert_eq!(lint(&when("ticket.*", "params.id")).places(), []);
    let budget = policies(
        "  - { policy_id: p, type: budget, scope: all, actions: ['ticket.delete'], limit: 5, cost: amuont }\n",
    );
    one_problem(&budget, "W017", "policies[1].cost", &["`amount`"]);
    let checkpoint = gate(
        "    trigger: { type: action_pre, patterns: ['*.delete'] }\n    when: { path: params.amuont, gt: 3 }\n",
    );
    one_problem(
        &checkpoint,
        "W017",
        "checkpoints[0].when.path",
        &["`amount`"],
    );
    // An action without a schema, or with an open one, may have any parameter.
    let open = when("ticket.*", "params.amuont").replace(
        "type: object\n",
        "type: object\n      additionalProperties: true\n",
    );
    assert_eq!(lint(&open).places(), []);
    let bare = when("*", "params.amuont") + "";
    let bare = bare.replace(
        "policies:",
        "  - { action_id: other, risk_tier: low }\npolicies:",
    );
    assert_eq!(lint(&bare).places(), []);
}

// covers B27
#[test]
fn lint_advises_to_set_the_scope_of_a_limit() {
    let limit = |more: &str| {
        policies(&format!(
            "  - {{ policy_id: p, type: rate_limit, actions: ['*'], max_calls: 3, window_seconds: 60{more} }}\n"
        ))
    };
    one_problem(
        &limit(""),
        "W018",
        "policies[1].type",
        &["each session separately", "scope: agent"],
    );
    for scope in ["session", "agent", "all"] {
        assert_eq!(lint(&limit(&format!(", scope: {scope}"))).places(), []);
    }
}

// covers B6, B20, B21, B22, B23, B24
#[test]
fn manifest_built_in_code_is_linted_like_a_file() {
    use cra_core::atlas::Atlas;
    use cra_core::{
        AtlasManifest, CheckpointAction, CheckpointAnswers, CheckpointConfig, CheckpointEvaluator,
        CheckpointQuestion, CheckpointTrigger, CheckpointValidator, GuidanceBlock,
        StewardCheckpointDef,
    };
    let mut manifest = AtlasManifest::from_yaml(&format!(
        "{HEAD}{}capabilities: [{{ capability_id: c, actions: ['ticket.*'] }}]\n",
        policies("")
    ))
    .unwrap();
    let trigger = CheckpointTrigger::ActionPre {
        patterns: vec!["*.delete".to_owned()],
    };
    let mut gate = StewardCheckpointDef::new("gate", "Gate", trigger)
        .blocking()
        .with_question(CheckpointQuestion::acknowledgment("ack", "I understand."))
        .with_guidance(GuidanceBlock::text("slowly"))
        .unlock_capabilities(vec!["c".to_owned()])
        .with_priority(900);
    gate.force_sync_trace = true;
    manifest.checkpoints.push(gate.clone());
    assert_eq!(manifest.get_action_checkpoints("ticket.delete"), [&gate]);
    assert_eq!(manifest.get_checkpoint("gate"), Some(&gate));

    let loaded = Atlas::from_manifest(&manifest).unwrap();
    assert_eq!(loaded.warnings, []);
    let text = &loaded.source;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("built.json");
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", folder.path())
        .args(["atlas", "explain", file.to_str().unwrap()])
        .args(["--action", "ticket.delete", "--unlocked", "c", "--json"])
        .output()
        .unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["checkpoints"][0]["priority"], 900, "{reply}");
    assert_eq!(reply["checkpoints"][0]["checkpoint_id"], "gate");

    let evaluator = CheckpointEvaluator::new(CheckpointConfig::default());
    let data = serde_json::json!({"action_id": "ticket.delete"});
    let triggered = evaluator.evaluate_steward_checkpoint(&gate, data);
    let answers = CheckpointAnswers::new("gate").with_answer("ack", "understood");
    let passed = CheckpointValidator::validate(&triggered, &answers);
    assert!(passed.is_valid);
    let unlocked = CheckpointAction::UnlockCapability {
        capability_id: "c".to_owned(),
    };
    assert!(passed.actions.contains(&unlocked));

    manifest.checkpoints[0].unlock_capabilities = vec!["unknown".to_owned()];
    let error = Atlas::from_manifest(&manifest).unwrap_err();
    assert!(
        error.to_string().contains("unknown capability `unknown`"),
        "{error}"
    );
}
