//! Numbers and keys in the payloads of hooks.

use super::super::socket::numbers::INEXACT;
use super::*;

/// A harmless tool use, with `"value": VALUE` in its arguments.
fn with_value(agent: &str, value: &str) -> Vec<u8> {
    const MARK: &str = "@value@";
    let mut payload = before(agent, HARMLESS);
    let text = if agent == "copilot" {
        payload["toolArgs"] = json!({"command": HARMLESS, "value": MARK})
            .to_string()
            .into();
        let value = value.replace('"', "\\\"");
        payload
            .to_string()
            .replace(&format!("\\\"{MARK}\\\""), &value)
    } else {
        let input = match agent {
            "opencode" => &mut payload["output"]["args"],
            _ => &mut payload["tool_input"],
        };
        input["value"] = MARK.into();
        payload.to_string().replace(&format!("\"{MARK}\""), value)
    };
    text.into_bytes()
}

#[tokio::test]
async fn tool_use_with_an_inexact_number_or_duplicate_key_is_denied_with_the_path() {
    let fixture = HookFixture::new().await;
    for agent in AGENTS {
        let exact = fixture.hook(agent, &[], &with_value(agent, "1.0")).await;
        assert_eq!(denial(agent, &exact), None, "{agent}: {}", exact.out);
        let harmful = format!(r#"1,"value":"{HARMFUL}""#);
        for value in ["1e400", INEXACT[0], INEXACT[3], &harmful] {
            let reply = fixture.hook(agent, &[], &with_value(agent, value)).await;
            let why = denial(agent, &reply);
            let why = why.unwrap_or_else(|| panic!("{agent} {value}: {}", reply.out));
            assert!(why.contains("value"), "{agent} {value}: {why}");
        }
    }
}

#[tokio::test]
async fn a_result_with_an_inexact_number_is_recorded_as_it_was_written() {
    let fixture = HookFixture::new().await;
    let before = fixture
        .run_hook("claude-code", &before("claude-code", HARMLESS))
        .await;
    assert_eq!(denial("claude-code", &before), None);
    let after = br#"{"session_id":"6bd73c2b-1","cwd":"/src","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test"},"tool_response":{"id":123456789012345678901234567890},"tool_use_id":"toolu_1"}"#;
    let reply = fixture.hook("claude-code", &[], after).await;
    assert_eq!(reply.code, 0, "{}", reply.err);
    let found = completed(&fixture).await;
    assert!(found.contains("123456789012345678901234567890"), "{found}");
}

/// Waits for the recorded result of the first completed run: the hook is answered before it is recorded.
async fn completed(fixture: &HookFixture) -> String {
    let records = fixture.console.bench.runtime.operator_handle();
    let mut pictures = records.snapshots();
    loop {
        for session in records.sessions().await.unwrap() {
            let events = records.events(session.session, 0, 100).await.unwrap();
            let mut events = events.iter();
            if let Some(event) = events.find(|event| event.event_type == "action_completed") {
                return event.payload["result_summary"].to_string();
            }
        }
        let changed = tokio::time::timeout(Duration::from_secs(20), pictures.changed());
        changed.await.expect("it was never recorded").unwrap();
    }
}
