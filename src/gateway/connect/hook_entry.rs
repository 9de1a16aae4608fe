//! The command line of a hook: its words, and how it is recognised.

use std::path::Path;

use serde_json::Value;

use super::{HookConfig, shell_words};
use crate::gateway::agents::CodingAgent;
use crate::gateway::agents::hook_event::EventMeaning;
use crate::gateway::agents::settings::{HookCommands, HookEntry, HookLine};
use crate::gateway::hook::OfflineBehavior;

/// Timeout in seconds of an event at which nothing is held.
const OTHER_TIMEOUT_S: u64 = 30;

/// Returns all entries of an agent with their events.
pub(super) fn all_entries(
    agent: CodingAgent,
    wiring: &HookConfig,
) -> Vec<(&'static str, HookEntry)> {
    let events = agent.adapter().events().iter();
    let entries = events.map(|(event, meaning)| {
        let timeout_s = timeout_s(agent, *meaning, wiring.timeout);
        let line = HookLine {
            meaning: *meaning,
            command: command(agent, *meaning, timeout_s, wiring),
            timeout_s,
        };
        (*event, agent.adapter().entry(line))
    });
    entries.collect()
}

/// Returns the timeout of an event's hook in seconds.
fn timeout_s(agent: CodingAgent, meaning: EventMeaning, gate_timeout_s: u64) -> u64 {
    match meaning {
        EventMeaning::End => agent.adapter().end_timeout_s(),
        meaning if meaning.is_gate() => gate_timeout_s,
        _ => OTHER_TIMEOUT_S,
    }
}

/// Returns the commands of a generated file.
pub(super) fn generated_commands(agent: CodingAgent, wiring: &HookConfig) -> HookCommands {
    HookCommands {
        gate: hook_words(agent, wiring.timeout, wiring),
        event: hook_words(agent, OTHER_TIMEOUT_S, wiring),
        gate_timeout_s: wiring.timeout,
        event_timeout_s: OTHER_TIMEOUT_S,
    }
}

/// Returns the words of the command of a hook.
fn hook_words(agent: CodingAgent, timeout_s: u64, wiring: &HookConfig) -> Vec<String> {
    let timer = timeout_s.to_string();
    let program = wiring.program.to_string_lossy();
    let first = [
        &*program,
        "hook",
        agent.as_str(),
        "--timer",
        &timer,
        "--offline",
        wiring.offline.as_str(),
    ];
    let words = first.into_iter().map(str::to_owned);
    let words = words.chain(wiring.place.iter().cloned());
    let key = wiring.key.iter();
    let key = key.flat_map(|key| ["--key".to_owned(), key.clone()]);
    words.chain(key).collect()
}

/// Builds the command line of a hook. Some agents continue when a hook cannot be run or dies, but stop when
/// it exits with 2: the shell exits with 2 in that case.
fn command(
    agent: CodingAgent,
    meaning: EventMeaning,
    timeout_s: u64,
    wiring: &HookConfig,
) -> String {
    let words = hook_words(agent, timeout_s, wiring);
    let words: Vec<_> = words.iter().map(|word| shell_words::quote(word)).collect();
    let line = words.join(" ");
    if !meaning.can_be_refused() || !agent.adapter().needs_exit_code() {
        return line;
    }
    // Codex ignores the exit code of a denial without a message.
    format!("{line} || {{ echo 'cra: its hook failed, so nothing goes on' >&2; exit 2; }}")
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
pub(super) fn is_ours(agent: CodingAgent, handler: &Value) -> bool {
    runs_hook(agent, &command_words(handler))
}

/// Returns true if a command runs our hook for that agent.
pub(super) fn runs_hook(agent: CodingAgent, words: &[String]) -> bool {
    let Some(program) = program_index(words) else {
        return false;
    };
    let rest = words.get(program..).unwrap_or_default();
    rest.windows(2)
        .any(|pair| pair == ["hook", agent.as_str()].map(str::to_owned))
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
