//! Rules that hold for every registered agent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::hook_event::{HookEvent, HookEventKind};
use super::hook_output::{HookOutput, HookVerdict, encode};
use super::{CodingAgent, EventMeaning, ToolKind};

/// A payload with the fields of any event, as an agent reports it.
fn hook_event(agent: CodingAgent, event: &str) -> HookEvent {
    let payload = json!({
        "session_id": "s-1", "hook_event_name": event, "prompt": "do it", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "tool_use_id": "t-1", "command": "make", "file_path": "/a",
        "task": "look", "text": "done", "error": "e",
    });
    HookEvent::read(agent, payload.to_string().as_bytes()).unwrap()
}

fn verdicts() -> [HookVerdict; 5] {
    let reason = || "because".to_owned();
    [
        HookVerdict::Deny { reason: reason() },
        HookVerdict::Ask { reason: reason() },
        HookVerdict::pass(None),
        HookVerdict::pass(Some("context".to_owned())),
        HookVerdict::Pass {
            context: None,
            approved: Some("op-1 approved".to_owned()),
        },
    ]
}

/// All events of an agent with their meaning.
fn events(agent: CodingAgent) -> impl Iterator<Item = (&'static str, EventMeaning)> {
    let adapter = agent.adapter();
    adapter
        .events()
        .iter()
        .chain(adapter.other_events())
        .copied()
}

/// Decision words at any depth of an answer. `true` and `false` stand for the field `continue`.
fn decisions(value: &Value) -> Vec<String> {
    let Value::Object(fields) = value else {
        return Vec::new();
    };
    let decides = [
        "permissionDecision",
        "permission",
        "decision",
        "behavior",
        "continue",
    ];
    let mut found = Vec::new();
    for (name, value) in fields {
        if decides.contains(&name.as_str()) {
            found.push(value.to_string().replace('"', ""));
        }
        found.extend(decisions(value));
    }
    found
}

fn answer(output: &HookOutput) -> Value {
    if output.out.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(&output.out).unwrap()
}

#[test]
fn every_event_and_verdict_of_every_agent_has_an_answer_that_is_no_false_permission() {
    for agent in CodingAgent::ALL {
        for (event, meaning) in events(agent) {
            for verdict in verdicts() {
                let output = encode(&hook_event(agent, event), &verdict);
                let printed = answer(&output);
                let decided = decisions(&printed);
                let case = format!("{agent:?} {event} {verdict:?}: {printed}");
                assert_eq!(output.code, 0, "{case}");
                assert!(printed.is_object() || printed.is_null(), "{case}");
                let permits = |word: &String| ["allow", "approve", "true"].contains(&word.as_str());
                let stops = |word: &String| ["deny", "block", "false"].contains(&word.as_str());
                match &verdict {
                    HookVerdict::Pass { .. } => assert!(!decided.iter().any(stops), "{case}"),
                    HookVerdict::Deny { .. } | HookVerdict::Ask { .. } => {
                        assert!(!decided.iter().any(permits), "{case}");
                        let asks = verdict == verdicts()[1] && decided.contains(&"ask".to_owned());
                        let stopped = decided.iter().any(stops) || asks;
                        let refuses = meaning == EventMeaning::SettingsChange;
                        assert_eq!(stopped, meaning.is_gate() || refuses, "{case}");
                        if stopped {
                            assert!(output.out.contains("because"), "{case}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn an_unknown_event_with_a_tool_is_denied_and_one_without_a_tool_is_passed_on() {
    for agent in CodingAgent::ALL {
        let event = hook_event(agent, "somethingNew");
        let HookEventKind::BeforeTool { actions, .. } = &event.kind else {
            panic!("{agent:?}: {:?}", event.kind);
        };
        assert!(actions.is_err(), "{agent:?}");
        assert!(event.is_gate());
        let payload = json!({"session_id": "s-1", "hook_event_name": "somethingNew"});
        let event = HookEvent::read(agent, payload.to_string().as_bytes()).unwrap();
        assert_eq!(event.kind, HookEventKind::Other);
        for ignored in agent.adapter().ignored_events() {
            assert_eq!(
                hook_event(agent, ignored).kind,
                HookEventKind::Other,
                "{ignored}"
            );
        }
    }
}

/// A name is looked up in the tables of all agents.
#[test]
fn no_event_and_no_tool_has_two_meanings() {
    let mut meanings: BTreeMap<&str, EventMeaning> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, ToolKind> = BTreeMap::new();
    for agent in CodingAgent::ALL {
        for (event, meaning) in events(agent) {
            let first = *meanings.entry(event).or_insert(meaning);
            assert_eq!(first, meaning, "{agent:?} {event}");
        }
        for (tool, kind) in agent.adapter().tools() {
            let first = *kinds.entry(tool).or_insert(*kind);
            assert_eq!(first, *kind, "{agent:?} {tool}");
        }
    }
    for agent in CodingAgent::ALL {
        for ignored in agent.adapter().ignored_events() {
            assert!(!meanings.contains_key(ignored), "{agent:?} {ignored}");
        }
    }
}

#[test]
fn every_agent_is_found_by_its_name_and_connects_a_gate_before_tools() {
    for agent in CodingAgent::ALL {
        assert_eq!(CodingAgent::from_name(agent.as_str()), Some(agent));
        let written = serde_json::to_string(&agent).unwrap();
        assert_eq!(written, format!("\"{}\"", agent.as_str()));
        let read: CodingAgent = serde_json::from_str(&written).unwrap();
        assert_eq!(read, agent);
        let gates = agent.adapter().events().iter();
        let gates = gates.filter(|(_, meaning)| *meaning == EventMeaning::BeforeTool);
        assert_eq!(gates.count(), 1, "{agent:?}");
    }
    assert!(CodingAgent::ALL.is_sorted());
    assert_eq!(CodingAgent::from_name("nano"), None);
    assert!(serde_json::from_str::<CodingAgent>("\"nano\"").is_err());
}
