//! Numbers and keys in HTTP bodies.

use super::super::socket::numbers::INEXACT;
use super::*;

#[tokio::test]
async fn inexact_number_or_duplicate_key_is_a_bad_request() {
    let web = Web::new().await;
    let key = web.begin().await;
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let body = format!(
            r#"{{"session":"s-1","key":{key},"action":"note.read","params":{{"to":{value}}}}}"#
        );
        let request = web.written("POST", "/v1/action/request", "", &body);
        let (status, reply) = web.send(&request).await;
        assert_eq!(status, 400, "{value}: {reply}");
        let reply: Value = serde_json::from_str(&reply).unwrap();
        let message = reply["message"].as_str().unwrap();
        assert!(message.contains("`params.to`"), "{value}: {message}");
    }
}

#[tokio::test]
async fn http_hook_with_an_inexact_number_or_duplicate_key_is_denied() {
    let web = Web::new().await;
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let body = format!(
            r#"{{"session_id":"h-1","hook_event_name":"PreToolUse","cwd":"/src","tool_name":"mcp__notes__read","tool_input":{{"to":{value}}},"tool_use_id":"u-1"}}"#
        );
        let request = web.written("POST", "/v1/hook/claude-code?timer=30", "", &body);
        let (status, reply) = web.send(&request).await;
        assert_eq!(status, 200, "{value}: {reply}");
        let reply: Value = serde_json::from_str(&reply).unwrap();
        let denied = reply["hookSpecificOutput"]["permissionDecision"] == "deny"
            || reply["continue"] == false;
        assert!(denied, "{value}: {reply}");
        assert!(
            reply.to_string().contains("tool_input.to"),
            "{value}: {reply}"
        );
    }
}
