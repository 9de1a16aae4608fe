//! `cra run`: the shipped scenarios pass, and a failed one is reported with location and reason.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{files, root};

mod extensions;
mod reports;
mod turns;

/// Result of a run.
struct RunOutput {
    code: i32,
    out: String,
    err: String,
}

fn run(scenario: &Path, more: &[&str]) -> RunOutput {
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .stdin(Stdio::null())
        .arg("run")
        .arg(scenario)
        .args(more)
        .output()
        .unwrap();
    RunOutput {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs these steps against the example Atlas.
fn play(steps: &str, more: &[&str]) -> RunOutput {
    let atlas = root().join("assets/atlas/acme-support.yaml");
    play_text(
        &format!("atlas: {}\nsteps:\n{steps}", atlas.display()),
        more,
    )
}

fn play_text(text: &str, more: &[&str]) -> RunOutput {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("scenario.yaml");
    fs::write(&file, text).unwrap();
    run(&file, more)
}

/// Asserts that a scenario is not played, and that the message has all of these.
#[track_caller]
fn is_unreadable(ran: &RunOutput, words: &[&str]) {
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for word in words {
        assert!(ran.err.contains(word), "`{word}` is not in:\n{}", ran.err);
    }
}

/// Plays every scenario of a folder, twice, and gives their number.
fn play_all(folder: &str) -> usize {
    let folder = root().join(folder);
    let mut scenarios = files(&folder, "yaml");
    scenarios.retain(|path| path.parent() == Some(&folder));
    for path in &scenarios {
        let ran = run(path, &[]);
        let name = path.display();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}\n{}", ran.out);
        assert!(ran.out.ends_with("all expectations met\n"), "{}", ran.out);
        assert_eq!(
            run(path, &[]).out,
            ran.out,
            "{name} differs the second time"
        );
    }
    scenarios.len()
}

#[test]
fn every_shipped_scenario_passes() {
    assert!(play_all("assets/scenarios") >= 9);
}

#[test]
fn every_feature_scenario_passes() {
    assert!(play_all("tests/data/features") > 0);
}

#[test]
fn failed_expectation_is_reported_and_the_run_continues() {
    let steps = "
  - start: { session: s-1 }
    expect: { held: [onboarding, another-gate] }
  - pass: { gate: onboarding, answers: good }
    expect: { outcome: passed }
";
    let ran = play(steps, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (4, ""), "{}", ran.out);
    let reply = "expected held at onboarding, another-gate, got held at onboarding\n";
    assert!(ran.out.contains(reply), "{}", ran.out);
    assert!(ran.out.contains("pass onboarding"), "{}", ran.out);
    let summary = "2 steps, 1 expectation failed\n";
    assert!(ran.out.ends_with(summary), "{}", ran.out);
}

#[test]
fn each_kind_of_expectation_can_fail() {
    let cases = [
        (
            "request",
            "{ allowed: true }",
            "expected allowed, got held at onboarding",
        ),
        (
            "request",
            "{ held: [] }",
            "expected not held, got held at onboarding",
        ),
        (
            "request",
            "{ denied: policy }",
            "expected denied (policy), got held at",
        ),
        (
            "request",
            "{ reason_contains: no }",
            "expected a reason that contains `no`, got held",
        ),
        ("pass", "{ outcome: denied }", "expected denied, got passed"),
        (
            "pass",
            "{ released: [] }",
            "expected released [], got released [ticket.get]",
        ),
        (
            "pass",
            "{ records: [policy_override] }",
            "expected recorded [policy_override], got",
        ),
        (
            "pass",
            "{ settled: [] }",
            "expected no request settled, got onboarding passed",
        ),
        (
            "pass",
            "{ settled: { gate: onboarding, outcome: expired } }",
            "expected onboarding expired, got onboarding passed",
        ),
        (
            "lost",
            "{ outcome: passed }",
            "expected gate lost, got held at [onboarding]",
        ),
        (
            "stray",
            "{}",
            "expected question agree, got questions [agree-terms]",
        ),
    ];
    for (step, expect, reply) in cases {
        let (first, second) = if step == "request" {
            (expect, "{}")
        } else {
            ("{}", expect)
        };
        let last = match step {
            "lost" => "{ gate: lost, answers: good }",
            "stray" => "{ gate: onboarding, answers: { agree-terms: true, agree: true } }",
            _ => "{ gate: onboarding, answers: good }",
        };
        let steps = format!(
            "  - start: {{ session: s-1 }}\n  \
             - request: {{ session: s-1, action: ticket.get, params: {{ ticket_id: T }} }}\n    \
             expect: {first}\n  - pass: {last}\n    expect: {second}\n",
        );
        let ran = play(&steps, &[]);
        assert_eq!(ran.code, 4, "{step} {expect}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains(reply), "`{reply}` is not in:\n{}", ran.out);
    }
}

#[test]
fn missing_gate_refuses_and_the_refusal_can_be_expected() {
    let steps = "
  - start: { session: s-1 }
  - deny: { gate: c-99, reason: x }
    expect: { outcome: refused }
  - pass: { gate: onboarding, answers: good }
  - deny: { gate: onboarding, reason: x }
    expect: { outcome: refused, reason_contains: c-1 was passed }
";
    let ran = play(steps, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
}

#[test]
fn example_scenario_of_the_help_runs() {
    let help = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .args(["run", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, example) = help.split_once("atlas: acme-support.yaml\n").unwrap();
    let (example, _) = example.split_once("\n\n").unwrap();
    let (extensions, steps) = example.split_once("  steps:\n").unwrap();
    let atlas = root().join("assets/atlas/acme-support.yaml");
    let atlas = format!("atlas: {}", atlas.display());
    let extensions = extensions.replace("\n  ", "\n");
    let ran = play_text(
        &format!("{atlas}\n{}steps:\n{steps}", extensions.trim_start()),
        &[],
    );
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (0, ""),
        "{steps}\n{}",
        ran.out
    );
    assert!(
        ran.out.ends_with("6 steps, all expectations met\n"),
        "{}",
        ran.out
    );
}

#[test]
fn invalid_scenario_is_reported_with_its_location() {
    let ran = play_text("atlas: [\n  - x: ]", &[]);
    is_unreadable(&ran, &["scenario.yaml:2:"]);
    let ran = play(
        "  - wait: soon\n  - {}\n  - start: { session: 'a b' }\n",
        &[],
    );
    is_unreadable(
        &ran,
        &[
            "scenario.yaml:3:11",
            "expected a whole number, 0 or greater, found text",
            "a step must have exactly one of `start`",
            "scenario.yaml:5:23",
        ],
    );
    is_unreadable(
        &play_text("steps: []\n", &[]),
        &["missing key `atlas`", "at least one step"],
    );
    is_unreadable(
        &run(Path::new("/nowhere/s.yaml"), &[]),
        &["/nowhere/s.yaml", "help: cra run --help shows an example"],
    );
    let atlas = run(&root().join("assets/atlas/acme-support.yaml"), &[]);
    is_unreadable(&atlas, &["acme-support.yaml:1:16", "this file is an Atlas"]);
    assert_eq!(atlas.err.matches("error").count(), 1, "{}", atlas.err);
}

#[test]
fn unknown_key_or_value_is_refused_with_its_path() {
    let steps = "
  - start: { sesion: s-1 }
  - wait: 1
    expect: { outcome: passed }
  - pass: { gate: g, answers: good }
    expect: { outcome: pased, records: [policy_overide] }
";
    is_unreadable(
        &play(steps, &[]),
        &[
            "unknown key `sesion`",
            "in `steps[0].start.sesion`",
            "did you mean `session`?",
            "unknown key `outcome`",
            "in `steps[1].expect.outcome`",
            "unknown outcome `pased`",
            "did you mean `passed`?",
            "did you mean `policy_override`?",
        ],
    );
}

#[test]
fn invalid_atlas_of_a_scenario_is_reported_as_an_atlas_error() {
    let bad = root().join("tests/data/atlas/invalid/misspelt-keys.yaml");
    for (atlas, word, code) in [
        (bad.to_str().unwrap(), "unknown key", 3),
        ("gone.yaml", "gone.yaml", 1),
    ] {
        let ran = play_text(&format!("atlas: {atlas}\nsteps: [{{wait: 1}}]\n"), &[]);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{}", ran.err);
        assert!(ran.err.contains(word), "{}", ran.err);
    }
}

#[test]
fn run_command_prints_steps_as_json() {
    let steps = "
  - start: { session: s-1, agent: bot }
    expect: { held: [onboarding] }
  - wait: 300
    expect: { released: [ticket.get] }
";
    let ran = play(steps, &["--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (4, ""), "{}", ran.out);
    let steps: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(steps.len(), 2);
    let mut first = steps[0].clone();
    let events = first.as_object_mut().unwrap().remove("events").unwrap();
    let gate = &events[1]["payload"]["checkpoint_id"];
    assert_eq!(
        (&events[1]["event_type"], gate),
        (&json!("checkpoint_triggered"), &json!("onboarding"))
    );
    assert_eq!(
        first,
        json!({
            "step": 1,
            "seconds": 0,
            "kind": "start",
            "what": "start s-1 (bot)",
            "decision": "held at onboarding",
            "allowed": false,
            "outcome": null,
            "held": ["onboarding"],
            "asked": [],
            "resolved": null,
            "turn": null,
            "modified_input": null,
            "denied": [],
            "settled": [],
            "released": [],
            "records": ["session_started", "checkpoint_triggered"],
            "given": { "contexts": [], "guidance": [] },
            "ok": true,
            "failed": [],
        })
    );
    let second = &steps[1];
    assert_eq!(
        (&second["kind"], &second["ok"]),
        (&json!("wait"), &json!(false))
    );
    let settled = json!([{
        "gate": "c-1", "gates": ["onboarding"], "outcome": "expired", "action": "session_start",
    }]);
    assert_eq!(second["settled"], settled);
    let failed = json!([{"wanted": "released [ticket.get]", "actual": "released []"}]);
    assert_eq!(second["failed"], failed);
}

/// Runs these steps against the Atlas for events other than actions.
fn play_moments(steps: &str) -> RunOutput {
    let atlas = root().join("assets/scenarios/atlas/moments.yaml");
    let text = format!(
        "atlas: {}\nsteps:\n  - start: {{ session: s-1 }}\n{steps}",
        atlas.display()
    );
    play_text(&text, &[])
}

#[test]
fn expectations_of_steps_other_than_actions_can_fail() {
    let cases = [
        (
            "input: { session: s-1, text: sk-abcdef0123 }",
            "{ accepted: true }",
            "expected accepted, got held at secrets",
        ),
        (
            "input: { session: s-1, text: hello }",
            "{ accepted: false }",
            "expected not accepted, got accepted",
        ),
        (
            "input: { session: s-1, text: refund }",
            "{ contexts: [tone] }",
            "expected contexts [tone], got contexts [refund-rules]",
        ),
        (
            "error: { session: s-1, type: timeout }",
            "{ guidance_contains: thrice }",
            "expected guidance that contains `thrice`, got guidance [Try once more, then ask.]",
        ),
        (
            "context: { session: s-1, hints: [handbook] }",
            "{ held: [second-look] }",
            "expected held at second-look, got accepted",
        ),
        (
            "complete: { session: s-1, action: mail.send }",
            "{}",
            "expected a run of mail.send, got running []",
        ),
        (
            "leave: { session: s-1 }",
            "{}",
            "expected an agent that waits for anything, got waiting for []",
        ),
        (
            "leave: { session: s-2, action: mail.send }",
            "{ outcome: passed }",
            "expected an agent that waits for mail.send, got waiting for []",
        ),
    ];
    for (step, expect, reply) in cases {
        let ran = play_moments(&format!("  - {step}\n    expect: {expect}\n"));
        assert_eq!(ran.code, 4, "{step}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains(reply), "`{reply}` is not in:\n{}", ran.out);
    }
}

#[test]
fn invalid_steps_other_than_actions_are_refused() {
    let steps = "
  - complete: { session: s-1, action: a, result: x, error: { code: y } }
  - input: { session: s-1, source: nobody }
  - error: { session: s-1, type: x, recoverable: perhaps }
    expect: { allowed: true }
  - leave: { action: mail.send }
";
    is_unreadable(
        &play_moments(steps),
        &[
            "`complete` takes a `result` or an `error`, not both",
            "missing key `text`",
            "unknown source `nobody`",
            "in `steps[3].error.recoverable`",
            "unknown key `allowed`",
            "missing key `session`",
        ],
    );
}
