//! The exact form of the command, at its edges.

use serde_json::json;

use super::*;
use crate::gateway::hook::actions;

const SECRET: Digest = Digest::ZERO;

fn command() -> AnswerCommand {
    AnswerCommand {
        program: "/opt/my tools/cra".into(),
        location_args: vec!["--socket".to_owned(), "/run/s".to_owned()],
    }
}

fn uses(input: &Value, tool: &str) -> Vec<ToolAction> {
    actions(tool, input.as_object().unwrap(), Some("/src"), None).unwrap()
}

/// Returns true if a command passes in a conversation.
fn is_use(conversation: &str, line: &str) -> bool {
    let conversation = conversation.parse().unwrap();
    let identity = ConversationIdentity {
        secret: SECRET,
        conversation: &conversation,
    };
    command().is_answer_call(&uses(&json!({"command": line}), "Bash"), identity)
}

fn line(conversation: &str, session: &str, answers: &str) -> String {
    let (conversation, session) = (conversation.parse().unwrap(), session.parse().unwrap());
    let identity = ConversationIdentity {
        secret: SECRET,
        conversation: &conversation,
    };
    let token = identity.token(&session, "c-1");
    format!("'/opt/my tools/cra' answer --socket /run/s {session} c-1 {token} '{answers}'")
}

#[test]
fn only_the_exact_command_of_the_conversation_passes() {
    let good = line(
        "a.s",
        "a.s",
        r#"{"g": {"q": "it\u0027s \"so\" & | ; $(x)"}}"#,
    );
    assert!(is_use("a.s", &good), "{good}");
    assert!(is_use("a.s", &format!("  {good} ")));
    assert!(!is_use("a.t", &good), "another conversation");
    for bad in [
        format!("{good};"),
        format!("{good} x"),
        format!("\n{good}"),
        format!("A=1 {good}"),
        good.replace("answer", "hook"),
        good.replace(" c-1", " c-2"),
        good.replace("'/opt/my tools/cra'", "cra"),
        good.replace("--socket /run/s ", ""),
        good.replace("  ", " ").replace(" c-1", "  c-1"),
        line("a.s", "a.s", "{} '; ls; echo '"),
        line("a.s", "a.s", "[]"),
        line("a.s", "a.s", "{\"a\": 1, \"a\": 2}"),
        line("a.s", "a.s", ""),
    ] {
        assert!(!is_use("a.s", &bad), "{bad}");
    }
}

#[test]
fn a_resumed_session_answers_with_the_key_of_the_first_session() {
    let good = line("a.s", "a.s.2", "{}");
    assert!(is_use("a.s", &good));
    assert!(!is_use("a.s.2", &good));
    let read = command().read(&good).unwrap();
    assert!(read.key(SECRET).is_some());
    assert_eq!(read.key(Digest::of("other")), None);
}

#[test]
fn a_command_with_another_tool_parameter_is_judged() {
    let conversation = "a.s".parse().unwrap();
    let identity = ConversationIdentity {
        secret: SECRET,
        conversation: &conversation,
    };
    let good = line("a.s", "a.s", "{}");
    let let_by = |input: Value, tool| command().is_answer_call(&uses(&input, tool), identity);
    assert!(let_by(
        json!({"command": good, "timeout": 5, "description": "d"}),
        "Bash"
    ));
    assert!(!let_by(json!({"command": good, "env": {"A": "b"}}), "Bash"));
    assert!(!let_by(json!({"command": good, "stdin": "x"}), "Bash"));
    assert!(!let_by(json!({"command": [good]}), "Bash"));
    assert!(!let_by(json!({"command": good}), "PowerShell"));
    assert!(!let_by(json!({"file_path": good}), "Read"));
}
