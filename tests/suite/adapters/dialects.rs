//! Each agent's own events and answers, and what one of them tells in another's place.

use serde_json::{Value, json};

use super::{Desk, HARMFUL, HARMLESS, before, denial};

/// What is on record of a session, event by event.
pub(super) async fn recorded(desk: &Desk, session: &str) -> Vec<(String, Value)> {
    let session = session.parse().unwrap();
    let events = desk
        .house
        .bench
        .runtime
        .operator_handle()
        .events(session, 0, 1000)
        .await
        .unwrap();
    let told = events
        .iter()
        .map(|it| (it.event_type.clone(), it.payload.clone().into()));
    told.collect()
}

pub(super) fn claude(event: &str, more: &Value) -> Value {
    let mut payload = json!({"session_id": "s", "transcript_path": "/t", "cwd": "/src",
        "hook_event_name": event});
    let fields = payload.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    payload
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_session_of_claude_code_is_on_record() {
    let desk = Desk::new().await;
    let says = async |event: &str, more: Value| {
        let payload = claude(event, &more).to_string();
        let told = desk
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{event}");
        told.json()
    };
    let nothing = json!({});
    assert_eq!(
        says("SessionStart", json!({"source": "startup", "model": "m"})).await,
        nothing
    );
    assert_eq!(
        says("UserPromptSubmit", json!({"prompt": "fix the build"})).await,
        nothing
    );
    let tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    assert_eq!(says("PreToolUse", tool.clone()).await, nothing);
    let mut after = tool.clone();
    after["tool_response"] = json!({"stdout": "ok", "stderr": "", "interrupted": false});
    assert_eq!(says("PostToolUse", after).await, nothing);
    let mut second = tool.clone();
    second["tool_use_id"] = json!("t2");
    says("PreToolUse", second.clone()).await;
    second["error"] = json!("exit code 1");
    assert_eq!(says("PostToolUseFailure", second).await, nothing);
    let stop = json!({"stop_hook_active": false, "last_assistant_message": "done"});
    assert_eq!(says("Stop", stop).await, nothing);
    assert_eq!(
        says("StopFailure", json!({"error": "overloaded"})).await,
        nothing
    );
    assert_eq!(
        says("SessionEnd", json!({"reason": "other"})).await,
        nothing
    );

    let events = recorded(&desk, "claude-code.s").await;
    let types: Vec<_> = events.iter().map(|(it, _)| it.as_str()).collect();
    for wanted in [
        "session_started",
        "input_received",
        "breakpoint_decided",
        "action_completed",
        "output_produced",
        "error_occurred",
        "session_ended",
    ] {
        assert!(types.contains(&wanted), "{wanted}: {types:?}");
    }
    let failed = events
        .iter()
        .filter(|(_, it)| it.to_string().contains("exit code 1"));
    assert_eq!(failed.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_goes_on_after_its_end_is_another_session_on_record() {
    let desk = Desk::new().await;
    let tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    for (event, more) in [
        ("SessionStart", json!({"source": "startup"})),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
        ("PreToolUse", tool),
    ] {
        let payload = claude(event, &more).to_string();
        // However busy the machine is: what an agent waits for by itself when it ends is short.
        let told = desk
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!(told.json(), json!({}), "{event}");
    }
    let picture = desk.house.bench.until(|it| it.sessions.len() == 1).await;
    assert_eq!(
        picture.sessions.first().unwrap().id.as_str(),
        "claude-code.s.1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_resumes_an_ended_session_goes_on_in_the_same_thread() {
    let desk = Desk::new().await;
    let prompt = |text: &str| json!({"prompt": text});
    for (event, more) in [
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", prompt("clean up the tickets")),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
        ("UserPromptSubmit", prompt("and now the rest")),
    ] {
        let payload = claude(event, &more).to_string();
        let told = desk
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!(told.code, 0, "{event}: {}", told.err);
    }
    let turns = |threads: &[std::sync::Arc<cra_core::memento::Thread>]| {
        threads.first().map_or(0, |thread| thread.turns.len())
    };
    let picture = desk.house.bench.until(|it| turns(&it.threads) == 2).await;
    assert_eq!(picture.threads.len(), 1);
    let thread = &picture.threads[0];
    assert_eq!(thread.id.as_str(), "claude-code.s");
    let sessions: Vec<_> = thread.turns.iter().map(|it| it.session.as_str()).collect();
    assert_eq!(sessions, ["claude-code.s.1", "claude-code.s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_another_agent_runs_answers_that_agent() {
    let desk = Desk::new().await;
    let mut by_cursor = before("claude-code", HARMFUL);
    by_cursor["cursor_version"] = json!("3.9.16");
    let (told, ()) = tokio::join!(desk.says("claude-code", &by_cursor), desk.house.deny("no"));
    assert!(denial("cursor", &told).is_some(), "{}", told.out);
    // Copilot reads what is written down for Claude Code, and its payloads tell the time.
    let mut by_copilot = before("claude-code", HARMFUL);
    by_copilot["timestamp"] = json!("2026-08-20T10:00:00Z");
    let (told, ()) = tokio::join!(desk.says("claude-code", &by_copilot), desk.house.deny("no"));
    assert!(denial("copilot", &told).is_some(), "{}", told.out);
    assert!(denial("claude-code", &told).is_some(), "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_a_no_and_what_is_not_known_is_harmless() {
    let desk = Desk::new().await;
    for agent in super::AGENTS {
        for payload in [
            &b""[..],
            b"{",
            b"[]",
            b"null",
            b"{}",
            b"\xff\xfe",
            b"{\"hook_event_name\": 4}",
        ] {
            let told = desk.hook(agent, &[], payload).await;
            let shown = String::from_utf8_lossy(payload);
            assert_eq!((told.code, told.out.as_str()), (2, ""), "{agent} {shown}");
            assert!(
                told.err.contains("so it is denied"),
                "{agent} {shown}: {}",
                told.err
            );
        }
    }
    let unknown = claude("TeammateIdle", &json!({"whatever": [1, 2]}));
    let told = desk.says("claude-code", &unknown).await;
    assert_eq!((told.code, told.out.as_str()), (0, "{}\n"));
    let mut more = before("claude-code", HARMLESS);
    more["from_the_future"] = json!({"deep": [null]});
    assert_eq!(desk.says("claude-code", &more).await.json(), json!({}));

    let told = desk
        .hook(
            "cursor",
            &[],
            &[
                b"\xef\xbb\xbf",
                before("cursor", HARMLESS).to_string().as_bytes(),
            ]
            .concat(),
        )
        .await;
    assert_eq!(told.json(), json!({"permission": "allow"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_say_what_it_does_is_denied() {
    let desk = Desk::new().await;
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!({"command": 4})),
        ("Write", json!({"content": "x"})),
        ("apply_patch", json!({"command": "no file at all"})),
        ("WebFetch", json!({})),
    ] {
        let tool = json!({"tool_name": tool, "tool_input": input, "tool_use_id": "t1"});
        let told = desk.says("claude-code", &claude("PreToolUse", &tool)).await;
        let reason = denial("claude-code", &told).unwrap_or_else(|| panic!("{tool}: {}", told.out));
        assert!(reason.contains("this call cannot be evaluated"), "{reason}");
    }
    let mut nameless = before("claude-code", HARMLESS);
    nameless.as_object_mut().unwrap().remove("session_id");
    let told = desk.says("claude-code", &nameless).await;
    assert!(
        denial("claude-code", &told)
            .unwrap()
            .contains("names no session")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_a_patch_has_to_pass() {
    let desk = Desk::new().await;
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** Add File: .claude/settings.json\n+{}\n*** End Patch";
    let mut payload = before("codex", HARMLESS);
    payload["tool_name"] = json!("apply_patch");
    payload["tool_input"] = json!({"command": patch});
    let (told, ()) = tokio::join!(desk.says("codex", &payload), async {
        let picture = desk.house.bench.until(|it| it.held.len() == 1).await;
        let held = serde_json::to_value(&*picture.held[0]).unwrap().to_string();
        assert!(
            held.contains("\"path\":\"/src/.claude/settings.json\""),
            "{held}"
        );
        desk.house.deny("not the settings").await;
    });
    assert!(denial("codex", &told).unwrap().contains("not the settings"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_mcp_servers_are_named_by_their_server() {
    let desk = Desk::new().await;
    let asked = [
        (
            "claude-code",
            claude(
                "PreToolUse",
                &json!({"tool_name": "mcp__github__create_issue",
            "tool_input": {"title": "x"}, "tool_use_id": "t"}),
            ),
            "mcp.github.create_issue",
        ),
        (
            "gemini",
            json!({"session_id": "g", "cwd": "/", "timestamp": "2026-01-01T00:00:00Z",
            "hook_event_name": "BeforeTool", "tool_name": "mcp_github_create_issue", "tool_input": {"title": "x"},
            "mcp_context": {"server_name": "github", "tool_name": "create_issue"}}),
            "mcp.github.create_issue",
        ),
        (
            "cursor",
            json!({"conversation_id": "c", "cursor_version": "3", "hook_event_name": "beforeMCPExecution",
            "tool_name": "create_issue", "tool_input": "{\"title\":\"x\"}", "command": "srv"}),
            "mcp.unknown.create_issue",
        ),
    ];
    for (agent, payload, action) in asked {
        let (told, ()) = tokio::join!(desk.says(agent, &payload), async {
            let picture = desk.house.bench.until(|it| it.held.len() == 1).await;
            let held = serde_json::to_value(&*picture.held[0]).unwrap().to_string();
            assert!(held.contains(&format!("\"action\":\"{action}\"")), "{held}");
            assert!(held.contains("\"title\":\"x\""), "{held}");
            desk.house.deny("no").await;
        });
        assert!(denial(agent, &told).is_some(), "{agent}: {}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_speaks_for_the_session_of_a_hook() {
    let desk = Desk::new().await;
    desk.says("claude-code", &before("claude-code", HARMLESS))
        .await;
    let mut stranger = desk.house.agent().await;
    let session = "claude-code.6bd73c2b-1";
    let start = json!({"session": session, "agent": "claude-code"});
    let told = stranger.refused("session.start", start).await;
    assert!(told.contains("belongs to another agent"), "{told}");
}

/// An Atlas whose checkpoint helps after failures.
const FAILURES: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.failures
version: "1"
name: Failures
default_decision: allow
unknown_actions: allow
context_blocks: [{context_id: help, content: Read the log first., inject_mode: on_demand}]
checkpoints:
- {checkpoint_id: failed, trigger: {type: error_occurred}, inject_contexts: [help]}
"#;

// covers A1, B7
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_tool_of_claude_code_fires_the_checkpoints_of_errors() {
    let house = crate::socket::House::under(FAILURES).await;
    let desk = Desk { house };
    let says = async |event: &str, more: Value| {
        let payload = claude(event, &more).to_string();
        let told = desk
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{event}");
        told.out
    };
    says("SessionStart", json!({"source": "startup", "model": "m"})).await;
    let mut tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    says("PreToolUse", tool.clone()).await;
    tool["error"] = json!("exit code 1");
    let after = says("PostToolUseFailure", tool.clone()).await;
    assert!(after.contains("Read the log first."), "{after}");
    let events = recorded(&desk, "claude-code.s").await;
    let fired: Vec<_> = events
        .iter()
        .filter(|(kind, _)| kind == "checkpoint_triggered")
        .map(|(_, payload)| payload["checkpoint_id"].clone())
        .collect();
    assert_eq!(fired, ["failed"]);
}
