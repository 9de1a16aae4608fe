//! Numbers and keys in HTTP bodies.

use super::super::socket::numbers::INEXACT;
use super::*;

#[tokio::test]
async fn an_inexact_number_or_a_key_that_is_there_twice_is_a_bad_request() {
    let web = Web::new().await;
    let key = web.begin().await;
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let body = format!(
            r#"{{"session":"s-1","key":{key},"action":"note.read","params":{{"to":{value}}}}}"#
        );
        let request = web.written("POST", "/v1/action/request", "", &body);
        let (status, told) = web.send(&request).await;
        assert_eq!(status, 400, "{value}: {told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("`params.to`"), "{value}: {message}");
    }
}

#[tokio::test]
async fn a_hook_with_an_inexact_number_or_a_key_twice_is_denied() {
    let web = Web::new().await;
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let body = format!(
            r#"{{"session_id":"h-1","hook_event_name":"PreToolUse","cwd":"/src","tool_name":"mcp__notes__read","tool_input":{{"to":{value}}},"tool_use_id":"u-1"}}"#
        );
        let request = web.written("POST", "/v1/hook/claude-code?timer=30", "", &body);
        let (status, told) = web.send(&request).await;
        assert_eq!(status, 200, "{value}: {told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let denied =
            told["hookSpecificOutput"]["permissionDecision"] == "deny" || told["continue"] == false;
        assert!(denied, "{value}: {told}");
        assert!(
            told.to_string().contains("tool_input.to"),
            "{value}: {told}"
        );
    }
}
