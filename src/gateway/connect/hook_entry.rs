//! One hook entry: its text, and how it is recognised.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{HookConfig, shell_words};
use crate::gateway::agents::settings::{self as agent_table, EventPhase};
use crate::gateway::hook::{Host, OfflineBehavior};

/// An entry of an event's list, with its fields in the order that people expect.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum HookEntry {
    /// Handlers that share a matcher. Our entry has none, so it runs for every tool.
    Group { hooks: [HookHandler; 1] },
    /// A single handler.
    Plain(HookHandler),
}

#[derive(Debug, Default, Serialize)]
pub(super) struct HookHandler {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(rename = "timeoutSec", skip_serializing_if = "Option::is_none")]
    timeout_sec: Option<u64>,
    #[serde(rename = "failClosed", skip_serializing_if = "Option::is_none")]
    fail_closed: Option<bool>,
    #[serde(rename = "statusMessage", skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// Returns all entries of an agent with their events.
pub(super) fn all_entries(host: Host, wiring: &HookConfig) -> Vec<(&'static str, HookEntry)> {
    let events = agent_table::events(host).iter();
    let entries = events.map(|(event, when)| (*event, entry(host, *when, wiring)));
    entries.collect()
}

fn entry(host: Host, when: EventPhase, wiring: &HookConfig) -> HookEntry {
    let timer = agent_table::timeout_s(host, when, wiring.timeout);
    let command = command(host, when, wiring);
    let status = (when == EventPhase::BeforeTool).then_some("Waiting for the operator (cra)");
    let shared = HookHandler {
        kind: Some("command"),
        command: Some(command.clone()),
        timeout: Some(timer),
        ..HookHandler::default()
    };
    match host {
        Host::ClaudeCode | Host::Codex => HookEntry::Group {
            hooks: [HookHandler { status, ..shared }],
        },
        Host::Gemini => HookEntry::Group {
            hooks: [HookHandler {
                name: Some(NAME),
                timeout: Some(timer * 1000),
                ..shared
            }],
        },
        // A hook that only reports must not stop the agent when it breaks.
        Host::Cursor => HookEntry::Plain(HookHandler {
            kind: None,
            fail_closed: when.is_gate().then_some(true),
            ..shared
        }),
        Host::Copilot => HookEntry::Plain(HookHandler {
            command: None,
            bash: Some(command),
            timeout: None,
            timeout_sec: Some(timer),
            ..shared
        }),
    }
}

/// Name of our hooks, for agents whose hooks have names.
pub(super) const NAME: &str = "cra";

/// Builds the command line of a hook. Claude Code, Codex and Gemini continue when a hook cannot be run or
/// dies, but stop when it exits with 2: the shell exits with 2 in that case. Cursor and Copilot stop
/// without help.
fn command(host: Host, when: EventPhase, wiring: &HookConfig) -> String {
    let timer = agent_table::timeout_s(host, when, wiring.timeout).to_string();
    let program = wiring.program.to_string_lossy();
    let offline = wiring.offline.as_str();
    let first = [
        &*program,
        "hook",
        host.as_str(),
        "--timer",
        &timer,
        "--offline",
        offline,
    ];
    let words = first
        .into_iter()
        .chain(wiring.place.iter().map(String::as_str));
    let key = wiring.key.as_deref().map(|key| ["--key", key]);
    let words = words.chain(key.into_iter().flatten());
    let words: Vec<_> = words.map(shell_words::quote).collect();
    let line = words.join(" ");
    match host {
        Host::ClaudeCode | Host::Codex | Host::Gemini if when.is_gate() => {
            // Codex ignores the exit code of a denial without a message.
            format!("{line} || {{ echo 'cra: its hook failed, so nothing goes on' >&2; exit 2; }}")
        }
        Host::ClaudeCode | Host::Codex | Host::Gemini | Host::Cursor | Host::Copilot => line,
    }
}

/// Returns the command line of a handler as words.
pub(super) fn command_words(handler: &Value) -> Vec<String> {
    let line = ["command", "bash", "powershell"];
    let line = line.iter().find_map(|name| handler.get(name)?.as_str());
    let mut words = shell_words::split(line.unwrap_or_default());
    let args = handler.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    words.extend(args.map(str::to_owned));
    words
}

/// Returns true if a handler runs our hook for that agent, with any program path and any other arguments.
pub(super) fn is_ours(host: Host, handler: &Value) -> bool {
    let words = command_words(handler);
    let Some(program) = program_index(&words) else {
        return false;
    };
    let rest = words.get(program..).unwrap_or_default();
    rest.windows(2)
        .any(|pair| pair == ["hook", host.as_str()].map(str::to_owned))
}

fn program_index(words: &[String]) -> Option<usize> {
    let named = |word: &String| {
        Path::new(word)
            .file_name()
            .is_some_and(|file_name| file_name == "cra")
    };
    words.iter().position(named)
}

/// Reads hook settings from a command line.
pub(super) fn parse_hook_config(words: &[String]) -> Option<HookConfig> {
    let rest = words.get(program_index(words)?..)?;
    let (program, rest) = rest.split_first()?;
    let after = |name: &str| {
        let at = rest.iter().position(|word| word == name)?;
        rest.get(at + 1).map(String::as_str)
    };
    let place = ["--data-dir", "--socket"];
    let place = place.iter().filter_map(|name| Some([*name, after(name)?]));
    Some(HookConfig {
        program: program.into(),
        timeout: after("--timer")?.parse().ok()?,
        offline: OfflineBehavior::from_name(after("--offline").unwrap_or("deny"))?,
        place: place.flatten().map(str::to_owned).collect(),
        key: after("--key").map(str::to_owned),
    })
}
