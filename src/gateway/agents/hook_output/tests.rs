//! Exact answers to every agent: an agent ignores an answer that is not in its format, and continues.

use serde_json::{Value, json};

use super::{HookOutput, HookVerdict, encode};
use crate::gateway::agents::CodingAgent;
use crate::gateway::agents::hook_event::HookEvent;

fn agent(name: &str) -> CodingAgent {
    CodingAgent::from_name(name).unwrap()
}

/// Events of an agent that get an answer: before a tool, a prompt, a start, after a tool.
fn events(host: CodingAgent) -> [&'static str; 4] {
    match host.as_str() {
        "claude-code" | "codex" | "qwen" => [
            "PreToolUse",
            "UserPromptSubmit",
            "SessionStart",
            "PostToolUse",
        ],
        "gemini" => ["BeforeTool", "BeforeAgent", "SessionStart", "AfterTool"],
        "cursor" => [
            "preToolUse",
            "beforeSubmitPrompt",
            "sessionStart",
            "postToolUse",
        ],
        "copilot" => [
            "preToolUse",
            "userPromptSubmitted",
            "sessionStart",
            "postToolUse",
        ],
        "opencode" => [
            "tool.execute.before",
            "chat.message",
            "session.created",
            "tool.execute.after",
        ],
        other => panic!("no case for {other}"),
    }
}

fn hook_event(host: CodingAgent, event: &str) -> HookEvent {
    let payload = json!({
        "session_id": "s-1", "conversation_id": "s-1", "hook_event_name": event, "prompt": "do it",
        "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t-1", "source": "startup",
    });
    HookEvent::read(host, payload.to_string().as_bytes()).unwrap()
}

fn pass(context: Option<&str>, approved: Option<&str>) -> HookVerdict {
    HookVerdict::Pass {
        context: context.map(str::to_owned),
        approved: approved.map(str::to_owned),
    }
}

fn deny() -> HookVerdict {
    HookVerdict::Deny {
        reason: "no".to_owned(),
    }
}

fn ask() -> HookVerdict {
    HookVerdict::Ask {
        reason: "who?".to_owned(),
    }
}

/// Returns the printed object, or null.
fn encoded(host: CodingAgent, event: &str, verdict: &HookVerdict) -> Value {
    let HookOutput { out, err, code } = encode(&hook_event(host, event), verdict);
    assert_eq!((err.as_str(), code), ("", 0), "{host:?} {event}");
    if out.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(&out).unwrap()
}

/// Collects the differences of all agents, not only of the first.
#[derive(Default)]
struct Mismatches(Vec<String>);

impl Mismatches {
    fn check(&mut self, host: CodingAgent, event: &str, verdict: &HookVerdict, wanted: &Value) {
        let encoded = encoded(host, event, verdict);
        if encoded != *wanted {
            let line = format!("{host:?} {event} {verdict:?}: {encoded}, not {wanted}");
            self.0.push(line);
        }
    }

    #[track_caller]
    fn none(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

/// Nests fields as Claude Code and compatible agents expect.
fn specific(event: &str, fields: &Value) -> Value {
    let mut fields = fields.clone();
    fields["hookEventName"] = json!(event);
    json!({"hookSpecificOutput": fields})
}

#[test]
fn a_denial_before_a_tool_is_in_each_agents_own_format() {
    let mut wrong = Mismatches::default();
    for host in CodingAgent::ALL {
        let event = events(host)[0];
        let nested = |word: &str, why: &str| json!({"permissionDecision": word, "permissionDecisionReason": why});
        let denied = match host.as_str() {
            "claude-code" | "codex" | "qwen" => specific(event, &nested("deny", "no")),
            "gemini" | "opencode" => json!({"decision": "deny", "reason": "no"}),
            "cursor" => {
                json!({"permission": "deny", "user_message": "no", "agent_message": "no"})
            }
            "copilot" => nested("deny", "no"),
            other => panic!("no case for {other}"),
        };
        wrong.check(host, event, &deny(), &denied);
        let asked = match host.as_str() {
            "claude-code" | "qwen" => specific(event, &nested("ask", "who?")),
            // These agents cannot ask, so a question is a denial.
            "codex" => specific(event, &nested("deny", "who?")),
            "cursor" => {
                json!({"permission": "deny", "user_message": "who?", "agent_message": "who?"})
            }
            "gemini" => json!({"decision": "ask", "reason": "who?"}),
            "opencode" => json!({"decision": "deny", "reason": "who?"}),
            "copilot" => nested("ask", "who?"),
            other => panic!("no case for {other}"),
        };
        wrong.check(host, event, &ask(), &asked);
    }
    wrong.none();
}

#[test]
fn an_approval_before_a_tool_is_in_each_agents_own_format() {
    let mut wrong = Mismatches::default();
    for host in CodingAgent::ALL {
        let event = events(host)[0];
        let plain = match host.as_str() {
            "claude-code" | "qwen" | "copilot" => json!({}),
            "codex" => Value::Null,
            "gemini" | "opencode" => json!({"decision": "allow"}),
            "cursor" => json!({"permission": "allow"}),
            other => panic!("no case for {other}"),
        };
        wrong.check(host, event, &pass(None, None), &plain);
        let why = "cra: approved by op-1";
        let allowed = json!({"permissionDecision": "allow", "permissionDecisionReason": why});
        let approved = match host.as_str() {
            "claude-code" | "qwen" => specific(event, &allowed),
            "copilot" => allowed,
            "codex" | "gemini" | "cursor" | "opencode" => plain,
            other => panic!("no case for {other}"),
        };
        wrong.check(
            host,
            event,
            &pass(None, Some("cra: approved by op-1")),
            &approved,
        );
    }
    let both = pass(Some("be kind"), Some("cra: approved by op-1"));
    let wanted = json!({"permissionDecision": "allow",
        "permissionDecisionReason": "cra: approved by op-1", "additionalContext": "be kind"});
    let wanted = specific("PreToolUse", &wanted);
    wrong.check(agent("claude-code"), "PreToolUse", &both, &wanted);
    // Codex treats a bare `allow` as an error: it gets only the context.
    let wanted = specific("PreToolUse", &json!({"additionalContext": "be kind"}));
    wrong.check(agent("codex"), "PreToolUse", &both, &wanted);
    wrong.none();
}

#[test]
fn a_prompt_is_blocked_if_the_agent_supports_it() {
    let mut wrong = Mismatches::default();
    for host in CodingAgent::ALL {
        let event = events(host)[1];
        for verdict in [deny(), ask()] {
            let why = verdict.context().unwrap();
            let wanted = match host.as_str() {
                "claude-code" | "codex" | "qwen" | "copilot" => {
                    json!({"decision": "block", "reason": why})
                }
                "gemini" | "opencode" => json!({"decision": "deny", "reason": why}),
                "cursor" => json!({"continue": false, "user_message": why}),
                other => panic!("no case for {other}"),
            };
            wrong.check(host, event, &verdict, &wanted);
        }
        let wanted = match host.as_str() {
            "codex" => Value::Null,
            "cursor" => json!({"continue": true}),
            "opencode" => json!({"decision": "allow"}),
            "claude-code" | "gemini" | "qwen" | "copilot" => json!({}),
            other => panic!("no case for {other}"),
        };
        wrong.check(host, event, &pass(None, None), &wanted);
    }
    wrong.none();
}

#[test]
fn context_is_sent_under_the_name_of_the_event() {
    let mut wrong = Mismatches::default();
    for host in CodingAgent::ALL {
        for event in [events(host)[2], events(host)[3]] {
            let context = json!({"additionalContext": "be kind"});
            let wanted = match host.as_str() {
                "claude-code" | "codex" | "gemini" | "qwen" => specific(event, &context),
                "cursor" => json!({"additional_context": "be kind"}),
                "opencode" => context.clone(),
                "copilot" => {
                    let mut both = specific(event, &context);
                    both["additionalContext"] = json!("be kind");
                    both
                }
                other => panic!("no case for {other}"),
            };
            let given = pass(Some("be kind"), None);
            wrong.check(host, event, &given, &wanted);
        }
    }
    wrong.none();
}

/// Checks that Codex accepts an answer. One unknown field makes the whole answer an error, and the tool
/// runs.
fn codex_takes(event: &str, encoded: &Value) -> Result<(), String> {
    let Some(fields) = encoded.as_object() else {
        return Ok(());
    };
    let common = ["continue", "stopReason", "suppressOutput", "systemMessage"];
    let decides = event != "SessionStart";
    for (name, value) in fields {
        let text = value.is_string();
        let fits = match name.as_str() {
            "continue" | "suppressOutput" => value.is_boolean(),
            "reason" => decides && text,
            "decision" => decides && value == "block",
            "hookSpecificOutput" => {
                let inner = value.as_object().ok_or("it is an object")?;
                if inner.get("hookEventName") != Some(&json!(event)) {
                    return Err(format!("{value} is not of {event}"));
                }
                let before = ["permissionDecision", "permissionDecisionReason"];
                inner.iter().all(|(name, value)| match name.as_str() {
                    "hookEventName" | "additionalContext" => value.is_string(),
                    name if before.contains(&name) => event == "PreToolUse" && value.is_string(),
                    _ => false,
                })
            }
            name => common.contains(&name) && text,
        };
        if !fits {
            return Err(format!("`{name}` at {event}: {value}"));
        }
    }
    let word = encoded.pointer("/hookSpecificOutput/permissionDecision");
    let why = encoded.pointer("/hookSpecificOutput/permissionDecisionReason");
    match word.and_then(Value::as_str) {
        None => Ok(()),
        Some("deny") if why.is_some() => Ok(()),
        Some(other) => Err(format!("`{other}` is an error to it")),
    }
}

#[test]
fn codex_can_read_every_answer() {
    let verdicts = [
        deny(),
        ask(),
        pass(None, None),
        pass(Some("be kind"), None),
        pass(None, Some("cra: approved by op-1")),
        pass(Some("be kind"), Some("cra: approved by op-1")),
    ];
    for event in events(agent("codex"))
        .into_iter()
        .chain(["Stop", "SessionEnd"])
    {
        for verdict in &verdicts {
            let encoded = encoded(agent("codex"), event, verdict);
            assert_eq!(codex_takes(event, &encoded), Ok(()), "{event} {verdict:?}");
        }
    }
    let wrong = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    assert!(codex_takes("PreToolUse", &wrong).is_err());
}
