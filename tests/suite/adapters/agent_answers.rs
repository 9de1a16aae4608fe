//! Checkpoints whose questions are the agent's: what its hook tells it, and the command that answers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::agent_formats::{claude, recorded};
use super::*;

/// One more checkpoint for coding agents, whose questions the agent answers.
const MIGRATIONS: &str = r#"
  - checkpoint_id: "say-scope"
    name: "Scope of a migration"
    trigger: { type: action_pre, patterns: ["shell.run"] }
    when: { path: params.command, contains: "migrate" }
    mode: blocking
    respondent: agent
    guidance: { content: "Migrations are announced a day before." }
    questions:
      - { question_id: "env", question: "Which environment?", response_type: choice, options: ["staging", "production"], hint: "see deploy.md" }
      - { question_id: "why", question: "Why now?", response_type: text, validation: { min_length: 10 } }
"#;

const MIGRATE: &str = "make migrate";

async fn start_fixture() -> HookFixture {
    let console = TestConsole::with_atlas(&format!("{CODING}{MIGRATIONS}")).await;
    HookFixture { console }
}

/// The command in a denial, without the answers to fill in.
fn command_in(reply: &str) -> &str {
    let program = env!("CARGO_BIN_EXE_cra");
    let line = reply.lines().find(|line| line.starts_with(program));
    let line = line.unwrap_or_else(|| panic!("no command in {reply}"));
    line.split_once(" '").unwrap().0
}

/// The command with these answers.
fn filled(reply: &str, answers: &Value) -> String {
    format!("{} '{answers}'", command_in(reply))
}

fn good() -> Value {
    json!({"say-scope": {"env": "staging", "why": "the window is open until noon"}})
}

/// Runs a command as an agent's shell does.
async fn shell(command: &str) -> (String, bool) {
    let mut shell = Command::new("/bin/sh");
    let output = shell.env_clear().arg("-c").arg(command).output().await;
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.success())
}

// covers B15
#[tokio::test(flavor = "multi_thread")]
async fn every_agent_answers_from_its_shell_and_the_repeated_call_is_released_once() {
    let fixture = start_fixture().await;
    for agent in AGENTS {
        let response = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
        let reply = denial(agent, &response).unwrap_or_else(|| panic!("{agent}: {}", response.out));
        for part in [
            "`env` (choice, required): Which environment? Options: staging | production. Hint: see deploy.md.",
            "`why` (text, required): Why now? Rules: at least 10 characters.",
            "Migrations are announced a day before.",
            "repeat this tool call unchanged",
        ] {
            assert!(reply.contains(part), "{agent}: {part}\n{reply}");
        }
        // Asked again while its questions are open it is the same gate.
        let again = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
        assert_eq!(
            denial(agent, &again).as_deref(),
            Some(reply.as_str()),
            "{agent}"
        );

        // Answers that break rules are reported, and the gate stays.
        let bad = json!({"say-scope": {"env": "moon", "why": "now"}});
        let (output, done) = shell(&filled(&reply, &bad)).await;
        assert!(
            !done && output.contains("`env`") && output.contains("`why`"),
            "{output}"
        );

        // The hook lets exactly this command by, and says nothing of it to anyone.
        let command = filled(&reply, &good());
        let passed = fixture.run_hook(agent, &before(agent, &command)).await;
        assert_eq!(denial(agent, &passed), None, "{agent}: {}", passed.out);
        let (output, done) = shell(&command).await;
        assert!(done && output.contains("allowed once"), "{agent}: {output}");

        // The same call runs, once.
        let released = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
        assert_eq!(denial(agent, &released), None, "{agent}: {}", released.out);
        let later = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
        let later = denial(agent, &later).unwrap();
        assert!(later.contains("You must answer its questions"), "{later}");
        assert_ne!(command_in(&later), command_in(&reply), "{agent}");
    }
    let events = recorded(&fixture, "claude-code.6bd73c2b-1").await;
    let by: Vec<_> = events
        .iter()
        .filter(|(kind, _)| kind == "checkpoint_passed")
        .map(|(_, event)| event["passed_by"].clone())
        .collect();
    assert_eq!(by, ["agent claude-code", "the permit of c-1"]);
    assert!(events.iter().all(|(kind, _)| kind != "error_occurred"));
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_command_with_appended_commands_is_not_accepted() {
    let fixture = start_fixture().await;
    let agent = "claude-code";
    let response = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
    let reply = denial(agent, &response).unwrap();
    let command = filled(&reply, &good());
    let start = command_in(&reply);
    // Each of these would migrate, so each is asked about like any other command.
    for command in [
        format!("{command}; {MIGRATE}"),
        format!("{command} && {MIGRATE}"),
        format!("{command}\n{MIGRATE}"),
        format!("{command} | {MIGRATE}"),
        format!("X=`{MIGRATE}` {command}"),
        format!("{start} \"$({MIGRATE})\""),
        format!("{start} '{{}}' > \"$({MIGRATE})\" '{{}}'"),
        format!("{start} '{{\"a\": \"'$({MIGRATE})'\"}}'"),
        format!("cd /tmp {command} # {MIGRATE}"),
        format!("/tmp{command} {MIGRATE}"),
    ] {
        let reply = fixture.run_hook(agent, &before(agent, &command)).await;
        let why = denial(agent, &reply);
        assert!(
            why.is_some_and(|why| why.contains("You must answer its questions")),
            "{command}"
        );
    }
    // A destructive command waits for an operator, also with a prefix.
    let destroy = before(agent, &format!("{command}; rm -rf /"));
    let (reply, ()) = tokio::join!(fixture.run_hook(agent, &destroy), async {
        let wanted = |held: &cra_core::engine::held::Held| {
            held.gates
                .iter()
                .any(|gate| gate.origin.id() == "destroy-files")
        };
        let snapshot = fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.iter().any(|held| wanted(held)))
            .await;
        let held = snapshot.held.iter().find(|held| wanted(held)).unwrap();
        let ruling = cra_core::engine::command::Ruling::Deny {
            reason: "never".to_owned(),
        };
        let decided = crate::support::decide(held, ruling);
        fixture
            .console
            .bench
            .runtime
            .operator_handle()
            .decide(decided)
            .await;
    });
    assert!(
        denial(agent, &reply).unwrap().contains("never"),
        "{}",
        reply.out
    );
    // Neither does another parameter of the tool, nor a shell with other quotes.
    let mut other = before(agent, &command);
    other["tool_input"]["env"] = json!({"LD_PRELOAD": "/tmp/migrate.so"});
    let mut power = before(agent, &command);
    power["tool_name"] = json!("PowerShell");
    for payload in [other, power] {
        let reply = fixture.run_hook(agent, &payload).await;
        assert!(
            !reply.out.contains("only answers a checkpoint"),
            "{}",
            reply.out
        );
    }
    // The exact command is let by in the agent's own words.
    let reply = fixture.run_hook(agent, &before(agent, &command)).await;
    assert!(reply.out.contains("\"allow\"") && reply.out.contains("only answers a checkpoint"));
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_token_is_valid_for_one_session_at_one_gate() {
    let fixture = start_fixture().await;
    let agent = "claude-code";
    let mine = fixture.run_hook(agent, &before(agent, MIGRATE)).await;
    let mine = denial(agent, &mine).unwrap();
    let mut payload = before(agent, MIGRATE);
    payload["session_id"] = json!("another");
    let other = denial(agent, &fixture.run_hook(agent, &payload).await).unwrap();
    let words: Vec<_> = command_in(&mine).split(' ').collect();
    let others: Vec<_> = command_in(&other).split(' ').collect();
    let (session, gate, token) = (words.len() - 3, words.len() - 2, words.len() - 1);
    assert_ne!(words[token], others[token]);
    for swapped in [vec![session, gate], vec![session], vec![gate]] {
        let mut line = words.clone();
        for index in swapped {
            line[index] = others[index];
        }
        let line = format!("{} '{}'", line.join(" "), good());
        let (output, done) = shell(&line).await;
        assert!(
            !done && output.contains("the token is not valid for session"),
            "{output}"
        );
        let reply = fixture.run_hook(agent, &before(agent, &line)).await;
        assert!(
            !reply.out.contains("only answers a checkpoint"),
            "{}",
            reply.out
        );
    }
    assert_eq!(fixture.console.bench.snapshot().held.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_gate_survives_the_timeout_of_its_hook() {
    let fixture = start_fixture().await;
    let payload = before("copilot", MIGRATE).to_string();
    let reply = fixture
        .hook("copilot", &["--timer", "10"], payload.as_bytes())
        .await;
    assert!(denial("copilot", &reply).is_some(), "{}", reply.out);
    let snapshot = fixture
        .console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    let held = &snapshot.held[0];
    assert_eq!(held.deadline.since(held.opened_at), Duration::from_mins(5));
}

const AT_THE_START: &str = "atlas_version: '1.0'
atlas_id: start
version: '1'
name: Start
unknown_actions: allow
context_blocks:
  - {context_id: house, content: the house rules, inject_mode: always}
checkpoints:
  - checkpoint_id: terms
    trigger: {type: session_start}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: ok, question: 'Have you read the terms?', response_type: acknowledgment}
";

#[tokio::test(flavor = "multi_thread")]
async fn agent_start_gate_asks_at_the_first_hook_and_denies_until_answered() {
    let console = TestConsole::with_atlas(AT_THE_START).await;
    let fixture = HookFixture { console };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let reply = fixture.run_hook("claude-code", &start).await.json();
    let context = reply["hookSpecificOutput"]["additionalContext"].as_str();
    let context = context.unwrap().to_owned();
    assert!(context.contains("Have you read the terms?"), "{context}");
    assert!(!context.contains("the house rules"), "{context}");
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    let tool = claude("PreToolUse", &tool);
    let denied = denial("claude-code", &fixture.run_hook("claude-code", &tool).await).unwrap();
    assert!(denied.contains("Have you read the terms?"), "{denied}");
    let answers = json!({"terms": {"ok": "understood"}});
    let (output, done) = shell(&filled(&denied, &answers)).await;
    assert!(done && output.contains("the house rules"), "{output}");
    let reply = fixture.run_hook("claude-code", &tool).await;
    assert_eq!(denial("claude-code", &reply), None, "{}", reply.out);
}

const AT_INPUT: &str = "atlas_version: '1.0'
atlas_id: input
version: '1'
name: Input
unknown_actions: allow
checkpoints:
  - checkpoint_id: refunds
    trigger: {type: keyword, keywords: [refund]}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: limit, question: 'What is the limit?', response_type: number}
";

#[tokio::test(flavor = "multi_thread")]
async fn prompt_with_a_question_reaches_the_agent_and_tools_are_denied_until_the_answer() {
    let console = TestConsole::with_atlas(AT_INPUT).await;
    let fixture = HookFixture { console };
    let prompt = claude("UserPromptSubmit", &json!({"prompt": "refund order 7"}));
    let reply = fixture.run_hook("claude-code", &prompt).await;
    assert!(reply.out.contains("What is the limit?"), "{}", reply.out);
    assert!(!reply.out.contains("block"), "{}", reply.out);
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    let tool = claude("PreToolUse", &tool);
    let pending = fixture.run_hook("claude-code", &tool).await;
    let pending = denial("claude-code", &pending).unwrap();
    assert!(pending.contains("What is the limit?"), "{pending}");
    // An operator who refuses it does not let the agent go on: it has the text, so the gate is put up again.
    fixture.console.deny("not today").await;
    let reply = fixture.run_hook("claude-code", &tool).await;
    let pending = denial("claude-code", &reply).unwrap();
    assert!(pending.contains("What is the limit?"), "{pending}");
    let (output, done) = shell(&filled(&pending, &json!({"refunds": {"limit": 100}}))).await;
    assert!(done, "{output}");
    let reply = fixture.run_hook("claude-code", &tool).await;
    assert_eq!(denial("claude-code", &reply), None, "{}", reply.out);
}

const AFTER: &str = "atlas_version: '1.0'
atlas_id: after
version: '1'
name: After
unknown_actions: allow
context_blocks:
  - {context_id: cleanup, content: how to clean up}
checkpoints:
  - checkpoint_id: tidy
    trigger: {type: action_post, patterns: ['shell.run']}
    inject_contexts: [cleanup]
    guidance: {content: 'Remove what you made.'}
  - checkpoint_id: house
    trigger: {type: session_start}
    guidance: {content: 'Answer in English.', format: system_instruction}
  - checkpoint_id: aside
    trigger: {type: session_start}
    priority: 2000
    guidance: {content: 'Be brief.', priority: 900}
";

// covers B12, B13
#[tokio::test(flavor = "multi_thread")]
async fn system_instruction_comes_first_and_guidance_after_an_action_comes_with_its_answer() {
    let console = TestConsole::with_atlas(AFTER).await;
    let fixture = HookFixture { console };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let reply = fixture.run_hook("claude-code", &start).await.json();
    let context = reply["hookSpecificOutput"]["additionalContext"].as_str();
    let context = context.unwrap().to_owned();
    let system = "System instruction, with priority over everything below: Answer in English.";
    assert!(context.starts_with(system), "{context}");
    assert!(context.contains("Be brief."), "{context}");
    let mut tool =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    fixture
        .run_hook("claude-code", &claude("PreToolUse", &tool))
        .await;
    tool["tool_response"] = json!({"stdout": "a"});
    let reply = fixture
        .run_hook("claude-code", &claude("PostToolUse", &tool))
        .await;
    let context = &reply.json()["hookSpecificOutput"]["additionalContext"];
    let context = context.as_str().unwrap();
    assert!(context.contains("Remove what you made."), "{context}");
    assert!(context.contains("how to clean up"), "{context}");
}

/// Events of a kind, as they are recorded.
fn of_kind(events: &[(String, Value)], kind: &str) -> Vec<Value> {
    let own = events.iter().filter(|(of, _)| of == kind);
    own.map(|(_, event)| event.clone()).collect()
}

// covers T5, T6
#[tokio::test(flavor = "multi_thread")]
async fn first_hook_of_a_session_reports_its_version_and_the_state_of_its_entries() {
    let fixture = HookFixture::new().await;
    let project = tempfile::tempdir().unwrap();
    let connect = async || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .env("HOME", project.path())
            .args(["connect", "claude-code", "--yes", "--dir"])
            .arg(project.path())
            .arg("--data-dir")
            .arg(fixture.console.folder())
            .arg("--socket")
            .arg(fixture.console.path());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    connect().await;
    for _ in 0..2 {
        fixture
            .run_hook("claude-code", &before("claude-code", HARMLESS))
            .await;
    }
    let events = recorded(&fixture, "claude-code.6bd73c2b-1").await;
    let constructed = of_kind(&events, "wrapper_constructed");
    let [constructed] = constructed.as_slice() else {
        panic!("{constructed:?}");
    };
    assert_eq!(constructed["wrapper_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(constructed["transport"], "direct");
    let components = constructed["components"].as_array().unwrap();
    assert!(components.contains(&json!("cra hook claude-code")));
    assert!(components.contains(&json!("event PreToolUse")));
    let capabilities =
        json!({"intercept_input": true, "intercept_output": true, "intercept_actions": true});
    assert_eq!(constructed["capabilities"], capabilities);
    let verified = of_kind(&events, "wrapper_verified");
    let tests: Vec<_> = verified
        .iter()
        .map(|value| &value["tests_run"][0])
        .collect();
    assert_eq!(tests, ["construction_hash", "hook_entries"]);
    assert!(
        verified
            .iter()
            .all(|item| item["verification_passed"] == true),
        "{verified:?}"
    );

    // An entry that was edited is on record in the next session.
    let file = project.path().join(".claude/settings.local.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("PreToolUse", "PreCompact")).unwrap();
    let mut payload = before("claude-code", HARMLESS);
    payload["session_id"] = json!("later");
    fixture.run_hook("claude-code", &payload).await;
    let events = recorded(&fixture, "claude-code.later").await;
    let verified = of_kind(&events, "wrapper_verified");
    assert_eq!(verified[1]["verification_passed"], false);
    let failure = verified[1]["failures"][0].as_str().unwrap();
    assert!(
        failure.contains("PreToolUse is missing") || failure.contains("PreCompact"),
        "{failure}"
    );
}
