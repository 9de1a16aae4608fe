//! Scenarios with extensions, agents that answer, and what they ask about.

use super::*;

/// Runs these steps against one of the Atlases of the shipped scenarios.
fn play_with(atlas: &str, extensions: &str, steps: &str) -> RunOutput {
    let atlas = root().join("assets/scenarios/atlas").join(atlas);
    let text = format!(
        "atlas: {}\n{extensions}steps:\n  - start: {{ session: s-1 }}\n{steps}",
        atlas.display()
    );
    play_text(&text, &[])
}

#[test]
fn invalid_scripted_extension_is_refused() {
    let extensions = "\
extensions:
  - { name: a, answers: trigger }
  - { name: a, answers: handler, with: true, fails: gone }
  - { name: a, answers: oracle, with: true }
  - { name: 'a b', answers: handler, with: true }
  - { answers: validator, with: true }
  - { name: b, with: true }
  - { name: c, answers: trigger, with: true, timeout_ms: 1 }
  - { name: d, answers: trigger, with: true }
  - { name: d, answers: trigger, fails: gone }
  - { name: e, answers: trigger, fails: 1 }
";
    is_unreadable(
        &play_with("extended.yaml", extensions, ""),
        &[
            "scenario.yaml:3:7",
            "an extension must have exactly one of `with` and `fails`",
            "scenario.yaml:4:7",
            "unknown extension role `oracle`",
            "in `extensions[3].name`",
            "a name may contain only letters",
            "missing key `name`",
            "missing key `answers`",
            "unknown key `timeout_ms`",
            "a trigger named `d` already exists",
            "in `extensions[9].fails`",
        ],
    );
}

#[test]
fn scripted_extension_answers_only_its_scripted_calls() {
    let request = "  - request: { session: s-1, action: deploy }\n    expect: ";
    for (extension, expect) in [
        (
            "{ name: board, answers: handler, with: { continue: true } }",
            "{ allowed: true }",
        ),
        (
            "{ name: board, answers: validator, with: true }",
            "{ denied: extension, reason_contains: no extension has that name }",
        ),
        (
            "{ name: board, answers: handler, fails: on holiday }",
            "{ denied: extension, reason_contains: on holiday }",
        ),
        (
            "{ name: board, answers: handler, with: { contniue: true } }",
            "{ denied: extension, reason_contains: cannot be read }",
        ),
    ] {
        let extensions = format!("extensions:\n  - {extension}\n");
        let ran = play_with(
            "extended.yaml",
            &extensions,
            &format!("{request}{expect}\n"),
        );
        assert_eq!(ran.code, 0, "{extension}\n{}{}", ran.out, ran.err);
    }
}

#[test]
fn expectations_of_agent_answers_and_queries_can_fail() {
    let answer =
        "answer: { session: s-1, gate: purpose, answers: { purpose: { why: minutes of it } } }";
    let cases = [
        (
            "request: { session: s-1, action: note.write }",
            "{ asked: [] }",
            "expected asked [], got asked [purpose]",
        ),
        (
            "resolve: { session: s-1 }",
            "{ resolved: { allowed: [], denied: [note.read] } }",
            "expected allowed [], got allowed [note.read]",
        ),
        (
            "resolve: { session: s-1 }",
            "{ resolved: { denied: [note.read] } }",
            "expected denied [note.read], got denied [note.erase]",
        ),
        (
            "resolve: { session: s-9 }",
            "{ resolved: {} }",
            "expected resolved, got denied (session)",
        ),
        (
            "input: { session: s-1, text: hello }",
            "{ modified_input: bye }",
            "expected input `bye`, got the unchanged input",
        ),
        (
            "request: { session: s-1, action: note.read }",
            "{ withdrawn: [drafting] }",
            "expected withdrawn [drafting], got withdrawn []",
        ),
        (
            "request: { session: s-1, action: note.read, resolution: last }",
            "{}",
            "expected a resolution of s-1, got the session has no resolution",
        ),
        (answer, "{}", "expected gate purpose, got held at []"),
    ];
    for (step, expect, reply) in cases {
        let steps = format!("  - {step}\n    expect: {expect}\n");
        let ran = play_with("agents.yaml", "", &steps);
        assert_eq!(ran.code, 4, "{step}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains(reply), "`{reply}` is not in:\n{}", ran.out);
    }
}

#[test]
fn invalid_agent_answers_are_refused() {
    let steps = "
  - answer: { session: s-1, gate: purpose, answers: { why: because } }
  - answer: { session: s-1, gate: purpose, answers: {}, reason: none }
    expect: { asked: [] }
  - resolve: { session: s-1, actions: [a] }
    expect: { resolved: { held: [] }, allowed: true }
";
    is_unreadable(
        &play_with("agents.yaml", "", steps),
        &[
            "expected a map of answers by checkpoint, then by question",
            "unknown key `reason`",
            "in `steps[2].expect.asked`",
            "unknown key `actions`",
            "in `steps[3].expect.resolved.held`",
            "in `steps[3].expect.allowed`",
        ],
    );
}

#[test]
fn run_command_prints_agent_permissions_as_json() {
    let file = root().join("assets/scenarios/resolution.yaml");
    let ran = run(&file, &["--json"]);
    let steps: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    let resolved = &steps[1]["resolved"];
    assert_eq!(resolved["allowed"], json!(["note.read"]));
    assert_eq!(resolved["denied"][0]["override_available"], json!(true));
    assert_eq!(resolved["ttl_seconds"], json!(300));
    assert_eq!(steps[3]["resolved"], json!(null));
}
