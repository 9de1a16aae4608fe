//! Agents that do not say what they do, or do not finish saying it, and consoles that do not listen.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use cra_core::runtime::snapshot::RuntimeSnapshot;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixSocket;

use super::dialects::{claude, recorded};
use super::{AGENTS, Desk, HARMFUL, HARMLESS, Told, all_hear_that_it_is_late, before, denial};

async fn ended(child: tokio::process::Child) -> Told {
    let output = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output());
    let output = output.await.expect("the hook never answered").unwrap();
    Told {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_never_finishes_its_payload_is_denied_before_its_timer() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let mut child = desk.command(agent, &["--timer", "1"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"session_id\": \"s\"").await.unwrap();
        let told = ended(child).await;
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{agent}");
        assert!(told.err.contains("in time"), "{agent}: {}", told.err);
        drop(stdin);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_whose_door_is_crowded_is_a_denial_before_the_timer() {
    let mut desk = Desk::new().await;
    let path = desk.house.path().clone();
    drop(desk.house.door.take());
    let crowded = UnixSocket::new_stream().unwrap();
    crowded.bind(&path).unwrap();
    let _crowded = crowded.listen(1).unwrap();
    let _waiting = [(); 2].map(|()| UnixStream::connect(&path).unwrap());
    all_hear_that_it_is_late(&desk, HARMLESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_nobody_knows_and_that_names_a_tool_is_denied() {
    let desk = Desk::new().await;
    for (agent, known, unknown) in [
        ("claude-code", "PreToolUse", "PreToolCall"),
        ("codex", "PreToolUse", "PreToolCall"),
        ("gemini", "BeforeTool", "BeforeToolCall"),
        ("cursor", "preToolUse", "beforeToolUse"),
    ] {
        let payload = before(agent, HARMFUL).to_string();
        let payload = payload.replace(known, unknown);
        let told = desk.hook(agent, &[], payload.as_bytes()).await;
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(
            reason.contains(&format!("the event `{unknown}` is unknown")),
            "{reason}"
        );
    }
    // What lets nothing run by itself is passed over.
    for event in ["PermissionRequest", "PostToolBatch", "Notification"] {
        let payload = before("claude-code", HARMFUL).to_string();
        let payload = payload.replace("PreToolUse", event);
        let told = desk.hook("claude-code", &[], payload.as_bytes()).await;
        let quiet = event != "Notification";
        assert_eq!(told.json() == json!({}), quiet, "{event}: {}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_in_parts_is_heard_and_one_that_cannot_be_read_is_stopped() {
    let desk = Desk::new().await;
    let parts = json!({"prompt": [{"type": "text", "text": "rotate the keys"}, "now"]});
    let told = desk
        .says("claude-code", &claude("UserPromptSubmit", &parts))
        .await;
    assert_ne!(told.json()["decision"], "block");
    let events = recorded(&desk, "claude-code.s").await;
    let heard = events.iter().find(|(kind, _)| kind == "input_received");
    assert_eq!(
        heard.unwrap().1["input_size_bytes"],
        "rotate the keys\nnow".len()
    );
    for prompt in [
        json!({}),
        json!({"prompt": null}),
        json!({"prompt": [{"type": "image"}]}),
    ] {
        let told = desk
            .says("claude-code", &claude("UserPromptSubmit", &prompt))
            .await;
        assert_eq!(told.json()["decision"], "block", "{prompt}: {}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_without_being_asked_about_is_on_record() {
    let desk = Desk::new().await;
    let used = json!({"tool_name": "Bash", "tool_input": {"command": HARMFUL},
        "tool_response": "done", "tool_use_id": "never-asked"});
    let told = desk
        .says("claude-code", &claude("PostToolUse", &used))
        .await;
    assert_eq!(told.json(), json!({}));
    let told = |it: &RuntimeSnapshot| it.sessions.iter().any(|session| session.events >= 2);
    desk.house.bench.until(told).await;
    let events = recorded(&desk, "claude-code.s").await;
    let found = events.iter().find(|(kind, _)| kind == "error_occurred");
    let (_, error) = found.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(error["error_type"], "ran_unasked");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("`Bash` ran without a request (never-asked)"),
        "{error}"
    );
    assert!(message.contains(HARMFUL), "{error}");
    // The operator is alarmed, and the log has it.
    let shown = desk.house.bench.snapshot().ran_unasked.clone().unwrap();
    assert!(shown.what.contains(HARMFUL), "{shown:?}");
    let operator = desk.house.bench.runtime.operator_handle();
    let log = operator.sessions_and_log().await.unwrap().pop().unwrap();
    let entries = operator.events(log.session, 0, 1000).await.unwrap();
    let alarm = entries
        .iter()
        .find(|entry| entry.event_type == "alarm_raised");
    let what = alarm.unwrap().payload["what"].as_str().unwrap();
    assert!(
        what.contains("claude-code.s") && what.contains(HARMFUL),
        "{what}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_are_held_whatever_way_leads_to_them() {
    let desk = Desk::new().await;
    let ways = [
        json!({"file_path": "/src/.claude/./settings.json", "content": "{}"}),
        json!({"file_path": ".claude//settings.json", "content": "{}"}),
        json!({"file_path": "/src/x/../.claude/settings.json", "content": "{}"}),
    ];
    for input in ways {
        let used = json!({"tool_name": "Write", "tool_input": input, "tool_use_id": "t"});
        let payload: Value = claude("PreToolUse", &used);
        let (told, ()) = tokio::join!(desk.says("claude-code", &payload), async {
            desk.house.bench.until(|it| it.held.len() == 1).await;
            desk.house.deny("not the settings").await;
        });
        assert!(denial("claude-code", &told).is_some(), "{}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_reported_twice_is_one_run() {
    let desk = Desk::new().await;
    let mut payload = before("claude-code", HARMLESS);
    desk.says("claude-code", &payload).await;
    payload["hook_event_name"] = json!("PostToolUse");
    payload["tool_response"] = json!("done");
    for _ in 0..2 {
        desk.says("claude-code", &payload).await;
    }
    payload["hook_event_name"] = json!("SessionEnd");
    desk.says("claude-code", &payload).await;
    let events = recorded(&desk, "claude-code.6bd73c2b-1").await;
    let count = |kind: &str| events.iter().filter(|(it, _)| it == kind).count();
    assert_eq!(
        (count("action_completed"), count("error_occurred")),
        (1, 0),
        "{events:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approved_file_of_a_patch_does_not_allow_the_others_outright() {
    let desk = Desk::new().await;
    let patch = |files: [&str; 2]| {
        let lines = files.map(|file| format!("*** Update File: {file}\n"));
        let args = json!({"input": lines.concat()}).to_string();
        json!({"sessionId": "p-1", "timestamp": 1_790_000_000_000_u64, "cwd": "/src",
            "toolName": "apply_patch", "toolArgs": args})
    };
    let payload = patch(["src/a.rs", ".claude/settings.json"]);
    let (told, ()) = tokio::join!(desk.says("copilot", &payload), desk.house.pass());
    assert_eq!(told.json(), json!({}), "its own rules stay in force");
}
