//! Rules that can never apply, or that do nothing: each is reported with its location and a remedy.

use super::*;

fn question(rest: &str) -> String {
    format!("    questions:\n      - {{ question_id: q, question: Sure?, hint: h, {rest} }}\n")
}

const DELETE: &str =
    "    trigger: { type: action_pre, patterns: ['ticket.delete'] }\n    mode: blocking\n";

// covers B27
#[test]
fn lint_reports_a_typo_that_a_rule_shares_with_a_capability() {
    let capability = "capabilities: [{ capability_id: c, actions: ['tickets.delete'] }]\n";
    let rule = policies("  - { policy_id: p, type: deny, actions: ['tickets.delete'] }\n");
    let reply = lint(&format!("{rule}{capability}"));
    let both = [
        ("W015", "policies[1].actions[0]"),
        ("W003", "capabilities[0].actions[0]"),
    ];
    assert_eq!(reply.places(), both, "{:#?}", reply.problems);
    assert_eq!(reply.problems[0]["help"], "did you mean `ticket.delete`?");
    let gated = gate("    trigger: { type: action_pre, patterns: ['tickets.delete'] }\n");
    let reply = lint(&format!("{gated}{capability}"));
    let both = [
        ("W015", "checkpoints[0].trigger.patterns[0]"),
        ("W003", "capabilities[0].actions[0]"),
    ];
    assert_eq!(reply.places(), both, "{:#?}", reply.problems);
    // A name that is near no declared one is an action of its own.
    let other = capability.replace("tickets.delete", "admin.reset");
    let rule = rule.replace("tickets.delete", "admin.reset");
    let reply = lint(&format!("{rule}{other}"));
    assert_eq!(reply.places(), [("W003", "capabilities[0].actions[0]")]);
}

// covers B27
#[test]
fn lint_reports_a_gate_that_the_answer_no_passes() {
    let any = question("response_type: boolean, expect: any");
    let high = format!("{DELETE}{any}");
    let place = "checkpoints[0].questions[0].expect";
    let words = ["passes with either answer", "expect: true"];
    one_problem(&gate(&high), "W016", place, &words);
    one_problem(
        &gate(&high).replace("critical", "high"),
        "W016",
        place,
        &words,
    );
    for harmless in [
        gate(&high).replace("critical", "medium"),
        gate(&high.replace("ticket.delete", "ticket.get")),
        gate(&(high.clone() + "      - { question_id: r, question: Why? }\n")),
        gate(&high.replace("expect: any", "expect: true")),
    ] {
        assert_eq!(lint(&harmless).places(), [], "{harmless}");
    }
}

// covers B27
#[test]
fn lint_reports_retries_that_never_happen() {
    for word in ["block", "warn_and_continue", "log_and_continue"] {
        let body = format!(
            "    trigger: {{ type: session_start }}\n    mode: blocking\n{}",
            question(&format!("on_invalid: {word}, max_retries: 2"))
        );
        let place = "checkpoints[0].questions[0].max_retries";
        one_problem(&gate(&body), "W004", place, &[word, "on_invalid: retry"]);
        let retry = body.replace(&format!("on_invalid: {word}"), "on_invalid: retry");
        assert_eq!(lint(&gate(&retry)).places(), []);
    }
}

// covers B27
#[test]
fn lint_reports_an_expected_answer_on_a_question_that_is_not_boolean() {
    for kind in ["text", "number", "acknowledgment"] {
        let body = format!(
            "    trigger: {{ type: session_start }}\n    mode: blocking\n{}",
            question(&format!("response_type: {kind}, expect: false"))
        );
        let place = "checkpoints[0].questions[0].expect";
        one_problem(&gate(&body), "W004", place, &["boolean"]);
    }
}

// covers B27
#[test]
fn lint_reports_facts_that_are_unknown_where_a_condition_is_evaluated() {
    let when = |trigger: &str, fact: &str| {
        gate(&format!(
            "    trigger: {{ {trigger} }}\n    when: {{ all: [{{ path: {fact}, exists: true }}] }}\n"
        ))
    };
    let place = "checkpoints[0].when.all[0].path";
    for (trigger, fact) in [
        ("type: action_pre, patterns: ['ticket.get']", "input"),
        ("type: risk_threshold", "input"),
        ("type: action_post, patterns: ['ticket.get']", "params.id"),
        ("type: keyword, patterns: [refund]", "params.id"),
        ("type: keyword, patterns: [refund]", "action"),
        ("type: session_start", "action"),
        ("type: time_interval", "params.id"),
        (
            "type: custom, trigger_id: t, on: [input], when: { path: session.agent, exists: true }",
            "params.id",
        ),
    ] {
        one_problem(
            &when(trigger, fact),
            "W019",
            place,
            &[fact, "not available"],
        );
    }
    for (trigger, fact) in [
        ("type: action_pre, patterns: ['ticket.get']", "params.id"),
        ("type: action_post, patterns: ['ticket.get']", "action"),
        ("type: keyword, patterns: [refund]", "input"),
        ("type: session_start", "session.agent"),
        ("type: error_occurred", "action"),
        (
            "type: custom, trigger_id: t, when: { path: session.agent, exists: true }",
            "input",
        ),
    ] {
        assert_eq!(lint(&when(trigger, fact)).places(), [], "{trigger} {fact}");
    }
    let rule = "  - { policy_id: p, type: deny, actions: ['ticket.get'], when: { path: input, contains: x } }\n";
    one_problem(
        &policies(rule),
        "W019",
        "policies[1].when.path",
        &["`input`"],
    );
    let custom = gate(
        "    trigger: { type: custom, trigger_id: t, on: [action], when: { path: input, contains: x } }\n",
    );
    let place = "checkpoints[0].trigger.when.path";
    one_problem(&custom, "W019", place, &["`input`"]);
}

// covers B27
#[test]
fn lint_reports_conditions_that_are_never_true() {
    let rule = |test: &str| {
        policies(&format!(
            "  - {{ policy_id: p, type: deny, actions: ['ticket.get'], when: {{ {test} }} }}\n"
        ))
    };
    for (test, key, word) in [
        ("path: time.weekday, in: [saturday]", "in", "`sun`"),
        ("path: time.weekday, eq: Sat", "eq", "`sun`"),
        ("path: time.hour, gte: 24", "path", "0 to 23"),
        ("path: time.minute, gt: 30, lt: 31", "path", "0 to 59"),
        ("path: session.actions, gt: 10, lt: 5", "lt", "no value"),
        ("path: session.actions, gte: 10, lt: 10", "lt", "no value"),
        ("path: session.actions, eq: 3, gt: 3", "eq", "no value"),
        (
            "path: session.intent, exists: false, eq: x",
            "exists",
            "does not exist",
        ),
        (
            "path: action, eq: ticket.delete",
            "eq",
            "does not cover action",
        ),
        (
            "path: action, in: [ticket.delete, tickets.get]",
            "in",
            "does not cover action",
        ),
        (
            "path: action, glob: 'tickets.*'",
            "glob",
            "does not cover action",
        ),
    ] {
        let place = format!("policies[1].when.{key}");
        one_problem(&rule(test), "W019", &place, &[word]);
    }
    for test in [
        "path: time.weekday, in: [sat, sun]",
        "path: time.hour, gte: 23",
        "path: session.actions, gte: 10, lte: 10",
        "path: session.actions, gt: 3",
        "path: session.intent, exists: true, eq: x",
        "path: action, glob: '*.get'",
    ] {
        assert_eq!(lint(&rule(test)).places(), [], "{test}");
    }
}

// covers B27
#[test]
fn lint_reports_rules_that_are_unreachable_after_a_denial() {
    let deny = |more: &str| {
        policies(&format!(
            "  - {{ policy_id: never, type: deny, actions: ['ticket.d*']{more} }}\n"
        ))
    };
    let words = ["never applies", "`never` denies", "override: true"];
    one_problem(&deny(""), "W020", "policies[0].actions", &words);
    for open in [", override: true", ", when: { path: session.agent, eq: x }"] {
        assert_eq!(lint(&deny(open)).places(), [], "{open}");
    }
    let body =
        format!("{ACTIONS}policies:\n  - {{ policy_id: never, type: deny, actions: ['*'] }}\n");
    let gated =
        format!("{body}checkpoints:\n  - checkpoint_id: g\n    force_sync_trace: true\n{DELETE}");
    let place = "checkpoints[0].trigger.patterns";
    one_problem(&gated, "W020", place, &words);
}

// covers B27
#[test]
fn lint_reports_a_tier_that_no_declared_action_reaches() {
    let low = ACTIONS.replace("critical", "medium");
    let risk = |tier: &str| {
        format!(
            "{low}checkpoints:\n  - checkpoint_id: g\n    force_sync_trace: true\n    mode: blocking\n    \
             trigger: {{ type: risk_threshold, min_tier: {tier} }}\n"
        )
    };
    let place = "checkpoints[0].trigger.min_tier";
    one_problem(&risk("high"), "W020", place, &["`high`", "`medium`"]);
    assert_eq!(lint(&risk("medium")).places(), []);
    let open = format!("unknown_actions: approve\n{}", risk("high"));
    assert_eq!(lint(&open).places(), []);
}

// covers B27
#[test]
fn lint_reports_keys_that_another_key_makes_ineffective() {
    let timed = gate("    trigger: { type: session_start }\n    timeout_seconds: 60\n");
    let place = "checkpoints[0].timeout_seconds";
    one_problem(&timed, "W004", place, &["mode: blocking"]);
    let public = "steward: { id: s, access: { type: public, api_keys: ['k*'] } }\n";
    let words = ["`public`", "type: authenticated"];
    one_problem(public, "W004", "steward.access.api_keys", &words);
}
