//! Exact answers to every agent: an agent ignores an answer that is not in its format, and continues.

use serde_json::{Value, json};

use super::{HookOutput, encode};
use crate::gateway::agents::hook_event::HookEvent;
use crate::gateway::hook::Host;
use crate::gateway::hook::verdict::HookVerdict;

/// Events of an agent that get an answer: before a tool, a prompt, a start, after a tool.
fn events(host: Host) -> [&'static str; 4] {
    match host {
        Host::ClaudeCode | Host::Codex => [
            "PreToolUse",
            "UserPromptSubmit",
            "SessionStart",
            "PostToolUse",
        ],
        Host::Gemini => ["BeforeTool", "BeforeAgent", "SessionStart", "AfterTool"],
        Host::Cursor => [
            "preToolUse",
            "beforeSubmitPrompt",
            "sessionStart",
            "postToolUse",
        ],
        Host::Copilot => [
            "preToolUse",
            "userPromptSubmitted",
            "sessionStart",
            "postToolUse",
        ],
    }
}

fn told(host: Host, event: &str) -> HookEvent {
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
fn said(host: Host, event: &str, verdict: &HookVerdict) -> Value {
    let HookOutput { out, err, code } = encode(&told(host, event), verdict);
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
    fn check(&mut self, host: Host, event: &str, verdict: &HookVerdict, wanted: &Value) {
        let said = said(host, event, verdict);
        if said != *wanted {
            let line = format!("{host:?} {event} {verdict:?}: {said}, not {wanted}");
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
    for host in Host::ALL {
        let event = events(host)[0];
        let nested = |word: &str, why: &str| json!({"permissionDecision": word, "permissionDecisionReason": why});
        let denied = match host {
            Host::ClaudeCode | Host::Codex => specific(event, &nested("deny", "no")),
            Host::Gemini => json!({"decision": "deny", "reason": "no"}),
            Host::Cursor => {
                json!({"permission": "deny", "user_message": "no", "agent_message": "no"})
            }
            Host::Copilot => nested("deny", "no"),
        };
        wrong.check(host, event, &deny(), &denied);
        let asked = match host {
            Host::ClaudeCode => specific(event, &nested("ask", "who?")),
            // These agents cannot ask, so a question is a denial.
            Host::Codex => specific(event, &nested("deny", "who?")),
            Host::Cursor => {
                json!({"permission": "deny", "user_message": "who?", "agent_message": "who?"})
            }
            Host::Gemini => json!({"decision": "ask", "reason": "who?"}),
            Host::Copilot => nested("ask", "who?"),
        };
        wrong.check(host, event, &ask(), &asked);
    }
    wrong.none();
}

#[test]
fn an_approval_before_a_tool_is_in_each_agents_own_format() {
    let mut wrong = Mismatches::default();
    for host in Host::ALL {
        let event = events(host)[0];
        let plain = match host {
            Host::ClaudeCode | Host::Copilot => json!({}),
            Host::Codex => Value::Null,
            Host::Gemini => json!({"decision": "allow"}),
            Host::Cursor => json!({"permission": "allow"}),
        };
        wrong.check(host, event, &pass(None, None), &plain);
        let why = "cra: op-1 let it pass";
        let allowed = json!({"permissionDecision": "allow", "permissionDecisionReason": why});
        let approved = match host {
            Host::ClaudeCode => specific(event, &allowed),
            Host::Copilot => allowed,
            Host::Codex | Host::Gemini | Host::Cursor => plain,
        };
        wrong.check(
            host,
            event,
            &pass(None, Some("cra: op-1 let it pass")),
            &approved,
        );
    }
    let both = pass(Some("be kind"), Some("cra: op-1 let it pass"));
    let wanted = json!({"permissionDecision": "allow",
        "permissionDecisionReason": "cra: op-1 let it pass", "additionalContext": "be kind"});
    let wanted = specific("PreToolUse", &wanted);
    wrong.check(Host::ClaudeCode, "PreToolUse", &both, &wanted);
    // Codex treats a bare `allow` as an error: it gets only the context.
    let wanted = specific("PreToolUse", &json!({"additionalContext": "be kind"}));
    wrong.check(Host::Codex, "PreToolUse", &both, &wanted);
    wrong.none();
}

#[test]
fn a_prompt_is_blocked_if_the_agent_supports_it() {
    let mut wrong = Mismatches::default();
    for host in Host::ALL {
        let event = events(host)[1];
        for verdict in [deny(), ask()] {
            let why = verdict.context().unwrap();
            let wanted = match host {
                Host::ClaudeCode | Host::Codex => json!({"decision": "block", "reason": why}),
                Host::Gemini => json!({"decision": "deny", "reason": why}),
                Host::Cursor => json!({"continue": false, "user_message": why}),
                Host::Copilot => json!({}),
            };
            wrong.check(host, event, &verdict, &wanted);
        }
        let wanted = match host {
            Host::Codex => Value::Null,
            Host::Cursor => json!({"continue": true}),
            Host::ClaudeCode | Host::Gemini | Host::Copilot => json!({}),
        };
        wrong.check(host, event, &pass(None, None), &wanted);
    }
    wrong.none();
}

#[test]
fn context_is_sent_under_the_name_of_the_event() {
    let mut wrong = Mismatches::default();
    for host in Host::ALL {
        for event in [events(host)[2], events(host)[3]] {
            let context = json!({"additionalContext": "be kind"});
            let wanted = match host {
                Host::ClaudeCode | Host::Codex | Host::Gemini => specific(event, &context),
                Host::Cursor => json!({"additional_context": "be kind"}),
                Host::Copilot => {
                    let mut both = specific(event, &context);
                    both["additionalContext"] = json!("be kind");
                    both
                }
            };
            let given = pass(Some("be kind"), None);
            wrong.check(host, event, &given, &wanted);
        }
    }
    wrong.none();
}

/// Checks that Codex accepts an answer. One unknown field makes the whole answer an error, and the tool
/// runs.
fn codex_takes(event: &str, said: &Value) -> Result<(), String> {
    let Some(fields) = said.as_object() else {
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
    let word = said.pointer("/hookSpecificOutput/permissionDecision");
    let why = said.pointer("/hookSpecificOutput/permissionDecisionReason");
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
        pass(None, Some("cra: op-1 let it pass")),
        pass(Some("be kind"), Some("cra: op-1 let it pass")),
    ];
    for event in events(Host::Codex)
        .into_iter()
        .chain(["Stop", "SessionEnd"])
    {
        for verdict in &verdicts {
            let said = said(Host::Codex, event, verdict);
            assert_eq!(codex_takes(event, &said), Ok(()), "{event} {verdict:?}");
        }
    }
    let wrong = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    assert!(codex_takes("PreToolUse", &wrong).is_err());
}
