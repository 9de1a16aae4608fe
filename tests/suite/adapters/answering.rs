//! Checkpoints whose questions are the agent's: what its hook tells it, and the command that answers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::dialects::{claude, recorded};
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

async fn desk() -> Desk {
    let house = House::under(&format!("{CODING}{MIGRATIONS}")).await;
    Desk { house }
}

/// The command in a denial, without the answers to fill in.
fn command_in(told: &str) -> &str {
    let program = env!("CARGO_BIN_EXE_cra");
    let line = told.lines().find(|line| line.starts_with(program));
    let line = line.unwrap_or_else(|| panic!("no command in {told}"));
    line.split_once(" '").unwrap().0
}

/// The command with these answers.
fn filled(told: &str, answers: &Value) -> String {
    format!("{} '{answers}'", command_in(told))
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
async fn every_agent_answers_from_its_shell_and_the_same_call_is_released_once() {
    let desk = desk().await;
    for agent in AGENTS {
        let asked = desk.says(agent, &before(agent, MIGRATE)).await;
        let told = denial(agent, &asked).unwrap_or_else(|| panic!("{agent}: {}", asked.out));
        for part in [
            "`env` (choice, required): Which environment? Options: staging | production. Hint: see deploy.md.",
            "`why` (text, required): Why now? Rules: at least 10 characters.",
            "Migrations are announced a day before.",
            "repeat this tool call unchanged",
        ] {
            assert!(told.contains(part), "{agent}: {part}\n{told}");
        }
        // Asked again while its questions are open it is the same gate.
        let again = desk.says(agent, &before(agent, MIGRATE)).await;
        assert_eq!(
            denial(agent, &again).as_deref(),
            Some(told.as_str()),
            "{agent}"
        );

        // Answers that break rules are told, and the gate stays.
        let bad = json!({"say-scope": {"env": "moon", "why": "now"}});
        let (said, done) = shell(&filled(&told, &bad)).await;
        assert!(
            !done && said.contains("`env`") && said.contains("`why`"),
            "{said}"
        );

        // The hook lets exactly this command by, and says nothing of it to anyone.
        let command = filled(&told, &good());
        let passed = desk.says(agent, &before(agent, &command)).await;
        assert_eq!(denial(agent, &passed), None, "{agent}: {}", passed.out);
        let (said, done) = shell(&command).await;
        assert!(done && said.contains("allowed once"), "{agent}: {said}");

        // The same call runs, once.
        let released = desk.says(agent, &before(agent, MIGRATE)).await;
        assert_eq!(denial(agent, &released), None, "{agent}: {}", released.out);
        let later = desk.says(agent, &before(agent, MIGRATE)).await;
        let later = denial(agent, &later).unwrap();
        assert!(later.contains("You must answer its questions"), "{later}");
        assert_ne!(command_in(&later), command_in(&told), "{agent}");
    }
    let events = recorded(&desk, "claude-code.6bd73c2b-1").await;
    let by: Vec<_> = events
        .iter()
        .filter(|(kind, _)| kind == "checkpoint_passed")
        .map(|(_, event)| event["passed_by"].clone())
        .collect();
    assert_eq!(by, ["agent claude-code", "the permit of c-1"]);
    assert!(events.iter().all(|(kind, _)| kind != "error_occurred"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_rides_along_with_the_command_that_answers() {
    let desk = desk().await;
    let agent = "claude-code";
    let asked = desk.says(agent, &before(agent, MIGRATE)).await;
    let told = denial(agent, &asked).unwrap();
    let command = filled(&told, &good());
    let start = command_in(&told);
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
        let told = desk.says(agent, &before(agent, &command)).await;
        let why = denial(agent, &told);
        assert!(
            why.is_some_and(|why| why.contains("You must answer its questions")),
            "{command}"
        );
    }
    // What destroys waits for an operator, whatever stands before it.
    let destroy = before(agent, &format!("{command}; rm -rf /"));
    let (told, ()) = tokio::join!(desk.says(agent, &destroy), async {
        let wanted = |held: &cra_core::engine::held::Held| {
            held.gates
                .iter()
                .any(|gate| gate.origin.id() == "destroy-files")
        };
        let picture = desk
            .house
            .bench
            .until(|it| it.held.iter().any(|held| wanted(held)))
            .await;
        let held = picture.held.iter().find(|held| wanted(held)).unwrap();
        let ruling = cra_core::engine::command::Ruling::Deny {
            reason: "never".to_owned(),
        };
        let decided = crate::support::decide(held, ruling);
        desk.house
            .bench
            .runtime
            .operator_handle()
            .decide(decided)
            .await;
    });
    assert!(
        denial(agent, &told).unwrap().contains("never"),
        "{}",
        told.out
    );
    // Neither does another parameter of the tool, nor a shell with other quotes.
    let mut other = before(agent, &command);
    other["tool_input"]["env"] = json!({"LD_PRELOAD": "/tmp/migrate.so"});
    let mut power = before(agent, &command);
    power["tool_name"] = json!("PowerShell");
    for payload in [other, power] {
        let told = desk.says(agent, &payload).await;
        assert!(
            !told.out.contains("only answers a checkpoint"),
            "{}",
            told.out
        );
    }
    // The exact command is let by in the agent's own words.
    let told = desk.says(agent, &before(agent, &command)).await;
    assert!(told.out.contains("\"allow\"") && told.out.contains("only answers a checkpoint"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_for_one_session_at_one_gate() {
    let desk = desk().await;
    let agent = "claude-code";
    let mine = desk.says(agent, &before(agent, MIGRATE)).await;
    let mine = denial(agent, &mine).unwrap();
    let mut payload = before(agent, MIGRATE);
    payload["session_id"] = json!("another");
    let other = denial(agent, &desk.says(agent, &payload).await).unwrap();
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
        let (said, done) = shell(&line).await;
        assert!(!done && said.contains("the token is not the one"), "{said}");
        let told = desk.says(agent, &before(agent, &line)).await;
        assert!(
            !told.out.contains("only answers a checkpoint"),
            "{}",
            told.out
        );
    }
    assert_eq!(desk.house.bench.snapshot().held.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_for_the_agent_outlives_the_timer_of_its_hook() {
    let desk = desk().await;
    let payload = before("copilot", MIGRATE).to_string();
    let told = desk
        .hook("copilot", &["--timer", "10"], payload.as_bytes())
        .await;
    assert!(denial("copilot", &told).is_some(), "{}", told.out);
    let picture = desk.house.bench.until(|it| it.held.len() == 1).await;
    let held = &picture.held[0];
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
async fn a_start_gate_of_the_agent_is_asked_with_the_first_hook_and_denies_until_answered() {
    let house = House::under(AT_THE_START).await;
    let desk = Desk { house };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let told = desk.says("claude-code", &start).await.json();
    let context = told["hookSpecificOutput"]["additionalContext"].as_str();
    let context = context.unwrap().to_owned();
    assert!(context.contains("Have you read the terms?"), "{context}");
    assert!(!context.contains("the house rules"), "{context}");
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    let tool = claude("PreToolUse", &tool);
    let denied = denial("claude-code", &desk.says("claude-code", &tool).await).unwrap();
    assert!(denied.contains("Have you read the terms?"), "{denied}");
    let answers = json!({"terms": {"ok": "understood"}});
    let (said, done) = shell(&filled(&denied, &answers)).await;
    assert!(done && said.contains("the house rules"), "{said}");
    let told = desk.says("claude-code", &tool).await;
    assert_eq!(denial("claude-code", &told), None, "{}", told.out);
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
async fn a_prompt_that_the_agent_is_asked_about_reaches_it_and_no_step_does_before_the_answer() {
    let house = House::under(AT_INPUT).await;
    let desk = Desk { house };
    let prompt = claude("UserPromptSubmit", &json!({"prompt": "refund order 7"}));
    let told = desk.says("claude-code", &prompt).await;
    assert!(told.out.contains("What is the limit?"), "{}", told.out);
    assert!(!told.out.contains("block"), "{}", told.out);
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    let tool = claude("PreToolUse", &tool);
    let asked = desk.says("claude-code", &tool).await;
    let asked = denial("claude-code", &asked).unwrap();
    assert!(asked.contains("What is the limit?"), "{asked}");
    // An operator who refuses it does not let the agent go on: it has the text, so the gate is put up again.
    desk.house.deny("not today").await;
    let told = desk.says("claude-code", &tool).await;
    let asked = denial("claude-code", &told).unwrap();
    assert!(asked.contains("What is the limit?"), "{asked}");
    let (said, done) = shell(&filled(&asked, &json!({"refunds": {"limit": 100}}))).await;
    assert!(done, "{said}");
    let told = desk.says("claude-code", &tool).await;
    assert_eq!(denial("claude-code", &told), None, "{}", told.out);
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
async fn a_system_instruction_comes_first_and_what_follows_an_action_comes_with_its_answer() {
    let house = House::under(AFTER).await;
    let desk = Desk { house };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let told = desk.says("claude-code", &start).await.json();
    let context = told["hookSpecificOutput"]["additionalContext"].as_str();
    let context = context.unwrap().to_owned();
    let system = "System instruction, with priority over everything below: Answer in English.";
    assert!(context.starts_with(system), "{context}");
    assert!(context.contains("Be brief."), "{context}");
    let mut tool =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    desk.says("claude-code", &claude("PreToolUse", &tool)).await;
    tool["tool_response"] = json!({"stdout": "a"});
    let told = desk
        .says("claude-code", &claude("PostToolUse", &tool))
        .await;
    let context = &told.json()["hookSpecificOutput"]["additionalContext"];
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
async fn the_first_hook_of_a_session_reports_what_it_is_and_whether_its_entries_hold() {
    let desk = Desk::new().await;
    let project = tempfile::tempdir().unwrap();
    let connect = async || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .env("HOME", project.path())
            .args(["connect", "claude-code", "--yes", "--dir"])
            .arg(project.path())
            .arg("--data-dir")
            .arg(desk.house.folder())
            .arg("--socket")
            .arg(desk.house.path());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    connect().await;
    for _ in 0..2 {
        desk.says("claude-code", &before("claude-code", HARMLESS))
            .await;
    }
    let events = recorded(&desk, "claude-code.6bd73c2b-1").await;
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
    let tests: Vec<_> = verified.iter().map(|it| &it["tests_run"][0]).collect();
    assert_eq!(tests, ["construction_hash", "hook_entries"]);
    assert!(
        verified.iter().all(|it| it["verification_passed"] == true),
        "{verified:?}"
    );

    // An entry that was edited is on record in the next session.
    let file = project.path().join(".claude/settings.local.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("PreToolUse", "PreCompact")).unwrap();
    let mut payload = before("claude-code", HARMLESS);
    payload["session_id"] = json!("later");
    desk.says("claude-code", &payload).await;
    let events = recorded(&desk, "claude-code.later").await;
    let verified = of_kind(&events, "wrapper_verified");
    assert_eq!(verified[1]["verification_passed"], false);
    let failure = verified[1]["failures"][0].as_str().unwrap();
    assert!(
        failure.contains("PreToolUse is missing") || failure.contains("PreCompact"),
        "{failure}"
    );
}
