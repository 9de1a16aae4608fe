//! Folders of Atlases, several at once, the same Atlas as JSON, and what Atlases say they would do.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::support::root;

mod explanations;

/// Result of a command.
struct CommandOutput {
    code: i32,
    out: String,
    err: String,
}

fn cra(args: &[&str]) -> CommandOutput {
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", "/nowhere")
        .stdin(Stdio::null())
        .args(args)
        .output()
        .unwrap();
    CommandOutput {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn yaml(id: &str, action: &str) -> String {
    format!(
        "atlas_version: '1.0'\natlas_id: {id}\nversion: '1'\nname: {id}\n\
         default_decision: allow\nactions: [{{ action_id: {action} }}]\n"
    )
}

fn json(id: &str, action: &str) -> String {
    format!(
        r#"{{"atlas_version": "1.0", "atlas_id": "{id}", "version": "1", "name": "{id}",
            "default_decision": "allow", "actions": [{{"action_id": "{action}"}}]}}"#
    )
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn folder_argument_means_every_atlas_in_it() {
    let folder = folder(&[
        ("b.yml", &yaml("two", "b.run")),
        ("a.yaml", &yaml("one", "a.run")),
        ("c.json", &json("three", "c.run")),
        (".hidden.yaml", "not an Atlas"),
        ("notes.txt", "not an Atlas"),
    ]);
    fs::create_dir(folder.path().join("deeper.yaml")).unwrap();
    fs::write(folder.path().join("deeper.yaml/d.yaml"), "not an Atlas").unwrap();
    let path = text(folder.path());
    let output = cra(&["atlas", "lint", path]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    let reply: Vec<_> = output
        .out
        .lines()
        .map(|line| line.rsplit_once('/').unwrap().1)
        .collect();
    let wanted = [
        "a.yaml: no problems",
        "b.yml: no problems",
        "c.json: no problems",
    ];
    assert_eq!(reply, wanted);
    // All of them are in force: each knows an action of its own.
    for action in ["a.run", "b.run", "c.run"] {
        let output = cra(&["atlas", "explain", path, "--action", action]);
        assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    }
    assert_eq!(
        cra(&["atlas", "explain", path, "--action", "d.run"]).code,
        5
    );
    // The console gets as far as looking for a terminal.
    let output = cra(&[
        "--atlas",
        path,
        "--atlas",
        text(&root().join("assets/atlas")),
    ]);
    assert_eq!(output.code, 2, "{}", output.err);
    assert!(output.err.contains("no terminal"), "{}", output.err);
}

/// An Atlas that names an extension of every kind.
const EXTENDED: &str = "\
atlas_version: '1.0'
atlas_id: com.example
version: '1'
name: Example
default_decision: allow
checkpoints:
  - checkpoint_id: told
    trigger: { type: custom, trigger_id: mood, on: [input] }
  - checkpoint_id: decided
    trigger: { type: custom, trigger_id: weather, when: { path: input, contains: rain } }
  - checkpoint_id: gate
    trigger: { type: session_start }
    mode: blocking
    handler: board
    questions:
      - { question_id: q, question: Why?, hint: a ticket, validation: { custom_validator: desk } }
";

const LISTED: &str = "\
extensions:
  - { name: mood, answers: [trigger], command: [/bin/true] }
  - { name: board, answers: [handler], command: [/bin/true] }
  - { name: desk, answers: [validator], command: [/bin/true] }
";

#[test]
fn lint_reports_the_effect_of_a_missing_extension_and_where_to_allow_it() {
    let folder = folder(&[("atlas.yaml", EXTENDED), ("none.yaml", "extensions: []\n")]);
    let atlas = folder.path().join("atlas.yaml");
    let none = folder.path().join("none.yaml");
    for args in [
        vec!["atlas", "lint", text(&atlas)],
        vec!["--extensions", text(&none), "atlas", "lint", text(&atlas)],
    ] {
        let output = cra(&args);
        assert_eq!(
            (output.code, output.err.as_str()),
            (0, ""),
            "{}",
            output.out
        );
        for reply in [
            "atlas.yaml:8:42",
            "trigger `mood` is not in the operator's list: the checkpoint fires at every evaluation",
            "in `checkpoints[0].trigger.trigger_id`",
            "with `answers: [trigger]`",
            "atlas.yaml:14:14",
            "handler `board` is not in the operator's list: every request that fires this checkpoint is denied",
            "validator `desk` is not in the operator's list: no answer to this question is accepted",
            "in `checkpoints[2].questions[0].validation.custom_validator`",
            "(`--extensions FILE`), with `answers: [validator]`",
        ] {
            assert!(
                output.out.contains(reply),
                "`{reply}` is not in:\n{}",
                output.out
            );
        }
        assert!(!output.out.contains("weather"), "{}", output.out);
        assert_eq!(output.out.matches("W013").count(), 3, "{}", output.out);
    }
}

#[test]
fn lint_is_silent_about_extensions_that_are_listed() {
    let folder = folder(&[("atlas.yaml", EXTENDED), ("list.yaml", LISTED)]);
    let atlas = folder.path().join("atlas.yaml");
    let list = folder.path().join("list.yaml");
    let named = cra(&["atlas", "lint", text(&atlas), "--extensions", text(&list)]);
    assert_eq!(named.code, 0, "{}", named.err);
    assert!(named.out.ends_with("no problems\n"), "{}", named.out);
    // The usual place, and a role that is not the one that is wanted.
    let usual = folder.path().join(".config/cra/extensions.yaml");
    fs::create_dir_all(usual.parent().unwrap()).unwrap();
    fs::write(&usual, LISTED.replace("[validator]", "[handler]")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", folder.path())
        .args(["atlas", "lint", text(&atlas)])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(
        out.contains("validator `desk` is not in the operator's list"),
        "{out}"
    );
    assert_eq!(out.matches("W013").count(), 1, "{out}");
}

#[test]
fn explain_names_the_handlers_and_an_unlisted_handler_denies() {
    let atlas = yaml("one", "a.run")
        + "checkpoints:\n  - checkpoint_id: c\n    handler: board\n    \
           trigger: { type: action_pre, patterns: ['a.*'] }\n  \
           - checkpoint_id: d\n    trigger: { type: custom, trigger_id: mood, on: [input] }\n";
    let folder = folder(&[("atlas.yaml", &atlas), ("list.yaml", LISTED)]);
    let atlas = folder.path().join("atlas.yaml");
    let list = folder.path().join("list.yaml");
    let ask = |more: &[&str]| {
        let args = [
            "atlas",
            "explain",
            text(&atlas),
            "--action",
            "a.run",
            "--input",
            "x",
        ];
        cra(&[&args, more].concat())
    };
    let output = ask(&[]);
    assert_eq!(output.code, 5, "{}", output.out);
    let denied = "DENIED  handler `board` is not in the operator's list\n  help: add it to";
    assert!(output.out.contains(denied), "{}", output.out);
    assert!(
        output
            .out
            .contains("not in the operator's list, so the request is denied (at c)")
    );
    let reply = "trigger `mood` is not in the operator's list, so it counts as fired";
    assert!(output.out.contains(reply), "{}", output.out);

    let output = ask(&["--extensions", text(&list)]);
    assert_eq!(output.code, 0, "{}", output.out);
    assert!(
        output.out.contains("ALLOWED\nextension   board"),
        "{}",
        output.out
    );
    assert!(
        output
            .out
            .contains("is not called here and may deny the request (at c)")
    );
    let reply = "trigger `mood` is not called here, so it counts as fired";
    assert!(output.out.contains(reply), "{}", output.out);

    let output = ask(&["--extensions", text(&list), "--json"]);
    let reply: Value = serde_json::from_str(&output.out).unwrap();
    let board = serde_json::json!([{"checkpoint_id": "c", "handler": "board", "listed": true}]);
    assert_eq!(reply["handlers"], board);
    assert_eq!(reply["input"]["handlers"], serde_json::json!([]));
}

#[test]
fn explain_is_silent_about_conditions_that_were_not_evaluated() {
    let atlas = root().join("assets/atlas/coding-agents.yaml");
    let explain = |command: &str| {
        let params = serde_json::json!({ "command": command }).to_string();
        let path = text(&atlas);
        cra(&[
            "atlas",
            "explain",
            path,
            "--action",
            "shell.run",
            "--params",
            &params,
        ])
        .out
    };
    let reply = explain("rm -rf /");
    assert!(reply.contains("when params.command"), "{reply}");
    assert!(!reply.contains("when params.path"), "{reply}");
}

#[test]
fn invalid_extension_list_is_reported_before_linting() {
    let folder = folder(&[
        ("atlas.yaml", EXTENDED),
        ("list.yaml", "extensions: [{}]\n"),
    ]);
    let atlas = folder.path().join("atlas.yaml");
    let list = folder.path().join("list.yaml");
    let output = cra(&["atlas", "lint", text(&atlas), "--extensions", text(&list)]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (1, ""),
        "{}",
        output.err
    );
    assert!(output.err.contains("missing key `name`"), "{}", output.err);
    assert!(output.err.contains("list.yaml:1:14"), "{}", output.err);
}

#[test]
fn a_folder_without_an_atlas_is_an_error() {
    let folder = folder(&[(".hidden.yaml", ""), ("notes.txt", "")]);
    let path = text(folder.path());
    for args in [vec!["atlas", "lint", path], vec!["--atlas", path]] {
        let output = cra(&args);
        assert_eq!(
            (output.code, output.out.as_str()),
            (1, ""),
            "{}",
            output.err
        );
        let reply = format!("`{path}` contains no Atlas");
        assert!(output.err.contains(&reply), "{}", output.err);
        assert!(output.err.contains("help: "), "{}", output.err);
    }
}

#[test]
fn two_atlases_with_the_same_id_are_refused_and_both_files_are_named() {
    let folder = folder(&[
        ("a.yaml", &yaml("same", "a.run")),
        ("b.yaml", &yaml("other", "b.run")),
        ("c.json", &json("same", "c.run")),
    ]);
    let path = text(folder.path());
    let both = [format!("{path}/a.yaml"), format!("{path}/c.json")];
    let files = [both[0].as_str(), both[1].as_str()];
    for args in [
        vec!["--atlas", path],
        vec!["--atlas", files[0], "--atlas", files[1]],
        vec!["atlas", "explain", path, "--action", "a.run"],
    ] {
        let output = cra(&args);
        assert_eq!(
            (output.code, output.out.as_str()),
            (3, ""),
            "{}",
            output.err
        );
        let reply = format!("the identifier `same`: `{}` and `{}`", files[0], files[1]);
        assert!(output.err.contains(&reply), "{}", output.err);
    }
    let output = cra(&["atlas", "lint", path, "--json"]);
    assert_eq!(output.code, 3);
    let reports: Value = serde_json::from_str(&output.out).unwrap();
    let ok: Vec<_> = (0..3)
        .map(|at| reports[at]["ok"].as_bool().unwrap())
        .collect();
    assert_eq!(ok, [true, true, false]);
    let reply = &reports[2]["diagnostics"][0];
    assert_eq!(reply["code"], "E032");
    let message = format!("atlas id `same` is already used by `{}`", files[0]);
    assert_eq!(reply["message"], message);
    let output = cra(&["atlas", "lint", path]);
    assert!(output.out.contains(&message), "{}", output.out);
    assert!(output.out.contains(&both[1]), "{}", output.out);
}

#[test]
fn duplicate_key_in_json_is_refused_as_in_yaml() {
    let folder = folder(&[(
        "a.json",
        r#"{"atlas_version": "1.0", "atlas_id": "a", "version": "1", "name": "a",
            "default_decision": "deny", "default_decision": "allow"}"#,
    )]);
    let output = cra(&["atlas", "lint", text(&folder.path().join("a.json"))]);
    assert_eq!(output.code, 3, "{}", output.err);
    assert!(output.out.contains("error[E002]"), "{}", output.out);
    assert!(output.out.contains("a.json:2:41"), "{}", output.out);
}

/// An Atlas with something at every moment.
fn moments() -> TempDir {
    let text = yaml("moments", "ticket.delete");
    let rest = "
capabilities: [{ capability_id: admin, actions: [user.ban] }]
checkpoints:
  - { checkpoint_id: refunds, mode: blocking, trigger: { type: keyword, patterns: [refund, cancel] } }
  - checkpoint_id: night
    trigger: { type: keyword, patterns: [deploy] }
    when: { path: session.intent, contains: night }
  - { checkpoint_id: clock, mode: blocking, trigger: { type: time_interval, seconds: 300 } }
  - checkpoint_id: admins
    mode: blocking
    trigger: { type: capability_access, capability_ids: [admin] }
";
    folder(&[("a.yaml", &format!("{text}{rest}"))])
}

// covers B27
#[test]
fn input_and_a_request_can_be_explained_separately_and_together() {
    let folder = moments();
    let path = text(folder.path());
    let ask = |more: &[&str]| cra(&[&["atlas", "explain", path], more].concat());
    let output = ask(&["--input", "hello there"]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    let wanted = "\
input
ACCEPTED
checkpoint  admins                   skipped    fires at actions
checkpoint  refunds                  not fired  wanted one of [refund, cancel], actual none found
checkpoint  night                    not fired  wanted one of [deploy], actual none found
checkpoint  clock                    not fired  wanted 300 seconds, actual 0 seconds
";
    assert_eq!(output.out, wanted);
    let output = ask(&["--input", "a refund!", "--action", "ticket.delete"]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(
        output.out.starts_with("input\nHELD at refunds\n"),
        "{}",
        output.out
    );
    assert!(
        output
            .out
            .contains("\n\nticket.delete  tier high (detected)\nALLOWED\n"),
        "{}",
        output.out
    );

    let output = ask(&[
        "--input",
        "a refund!",
        "--action",
        "ticket.delete",
        "--json",
    ]);
    let reply: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(reply["action"], "ticket.delete");
    assert_eq!(
        reply["input"]["verdict"]["gates"],
        serde_json::json!(["refunds"])
    );
    let output = ask(&["--input", "x", "--json"]);
    let reply: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(reply.as_object().unwrap().len(), 1, "{reply}");
}

#[test]
fn explain_accepts_a_description_of_the_session() {
    let folder = moments();
    let path = text(folder.path());
    let ask = |more: &[&str]| cra(&[&["atlas", "explain", path], more].concat());
    let ban = |more: &[&str]| ask(&[&["--action", "user.ban"], more].concat());
    let verdict = |output: &CommandOutput| output.out.lines().nth(1).unwrap_or_default().to_owned();
    assert_eq!(verdict(&ban(&[])), "HELD at admins");
    let session = r#"{"unlocked": ["admin"], "agent": "bot", "actions": 3, "age_seconds": 299}"#;
    assert_eq!(verdict(&ban(&["--session", session])), "ALLOWED");
    let output = ban(&[
        "--session",
        session,
        "--agent",
        "bot",
        "--unlocked",
        "admin",
    ]);
    assert_eq!(verdict(&output), "ALLOWED");
    let older = session.replace("299", "300");
    assert_eq!(verdict(&ban(&["--session", &older])), "HELD at clock");
    let locked = r#"{"locked": ["admin"], "unlocked": ["admin"]}"#;
    assert_eq!(ban(&["--session", locked]).code, 5);
    let night = r#"{"intent": "work at night"}"#;
    let output = ask(&["--input", "deploy", "--session", night]);
    assert!(
        output.out.contains("night                    FIRED"),
        "{}",
        output.out
    );
}

#[test]
fn explain_refuses_an_invalid_session_description() {
    let folder = moments();
    let path = text(folder.path());
    for (more, reply) in [
        (vec!["--session", "{"], "invalid --session"),
        (
            vec!["--session", r#"{"agnet": "x"}"#],
            "unknown field `agnet`",
        ),
        (vec!["--session", r#"{"actions": -1}"#], "invalid value"),
        (
            vec!["--session", r#"{"agent": "x", "agent": "y"}"#],
            "at `agent`: duplicate key",
        ),
        (
            vec!["--session", r#"{"agent": "x"}"#, "--agent", "y"],
            "--agent and --session",
        ),
        (
            vec!["--session", r#"{"unlocked": ["x"]}"#, "--unlocked", "y"],
            "--unlocked and --session",
        ),
        (vec!["--params", "{"], "invalid --params: not JSON"),
    ] {
        let args = [
            &["atlas", "explain", path, "--action", "a"],
            more.as_slice(),
        ]
        .concat();
        let output = cra(&args);
        assert_eq!(
            (output.code, output.out.as_str()),
            (2, ""),
            "{more:?} {}",
            output.err
        );
        assert!(output.err.contains(reply), "{}", output.err);
    }
    let output = cra(&["atlas", "explain", path]);
    assert_eq!(output.code, 2);
    assert!(output.err.contains("--action"), "{}", output.err);
    let output = cra(&["atlas", "explain", path, "--input", "x", "--params", "{}"]);
    assert_eq!(output.code, 2, "{}", output.err);
}
