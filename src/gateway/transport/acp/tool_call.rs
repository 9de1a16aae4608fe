//! Translation of an agent's tool calls into actions of an Atlas.
//!
//! The protocol names a tool call by a kind, a title for people, files and, if the agent likes, its raw
//! input. Contract: everything in a call that could be its target is judged. A call whose kind does not
//! tell what it does is the action `acp.other`, which an Atlas has to know.

use serde_json::{Map, Value, json};

use super::message::text;
use crate::gateway::agents::tool_actions::{ToolAction, actions};

/// Names of raw input that hold a command.
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

/// Names of raw input that hold a path.
const PATHS: [&str; 9] = [
    "path",
    "file_path",
    "filePath",
    "fileName",
    "absolute_path",
    "notebook_path",
    "dir_path",
    "source",
    "destination",
];

/// A change of a file that a tool call announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnnouncedWrite {
    pub(super) path: String,
    pub(super) content: String,
}

/// Returns the actions of a tool call in a session with that working directory.
///
/// # Errors
/// Fails when the call cannot be judged.
pub(super) fn tool_actions(
    call: &Map<String, Value>,
    cwd: Option<&str>,
) -> Result<Vec<ToolAction>, String> {
    let kind = text(call, "kind").unwrap_or_else(|| "other".to_owned());
    let title = text(call, "title").unwrap_or_default();
    let raw = match call.get("rawInput") {
        Some(Value::Object(raw)) => raw.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
    };
    let cwd = text(&raw, "cwd").or_else(|| cwd.map(str::to_owned));
    let cwd = cwd.as_deref();
    let mut found = match kind.as_str() {
        "execute" => {
            let commands = commands(&raw, &title);
            let each = commands.into_iter().map(|command| {
                let mut input = raw.clone();
                for name in COMMANDS {
                    input.remove(name);
                }
                input.insert("command".to_owned(), command.into());
                actions("Bash", &input, cwd, None)
            });
            each.collect::<Result<Vec<_>, _>>()?.concat()
        }
        "edit" | "delete" | "move" => on_paths("Write", call, &raw, cwd)?,
        "read" => on_paths("Read", call, &raw, cwd)?,
        "search" => match on_paths("Read", call, &raw, cwd) {
            Ok(found) => found,
            Err(_) => actions("LS", &Map::new(), cwd, None)?,
        },
        "fetch" if raw.contains_key("url") => actions("WebFetch", &raw, cwd, None)?,
        "fetch" => {
            let input = Map::from_iter([("prompt".to_owned(), title.clone().into())]);
            actions("web_fetch", &input, cwd, None)?
        }
        // The title is the agent's own text: it must not choose the name of the action.
        "think" | "switch_mode" => vec![named_action(&kind, &raw, cwd)],
        _ => vec![named_action("other", &raw, cwd)],
    };
    if found.is_empty() {
        return Err("it names no target".to_owned());
    }
    for action in &mut found {
        action.params.insert("tool".to_owned(), json!(kind));
        action.params.insert("title".to_owned(), json!(title));
    }
    Ok(found)
}

/// Returns the action of a kind of call that has no files and no command.
fn named_action(kind: &str, raw: &Map<String, Value>, cwd: Option<&str>) -> ToolAction {
    let mut params = raw.clone();
    if let Some(cwd) = cwd {
        params.insert("cwd".to_owned(), cwd.into());
    }
    ToolAction {
        name: format!("acp.{kind}"),
        params,
    }
}

/// Returns the commands that a call may run: all that its raw input names. Without raw input, an agent
/// shows the command as title.
fn commands(raw: &Map<String, Value>, title: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |value: &Value| {
        let command = match value {
            Value::String(command) => command.clone(),
            Value::Array(words) => {
                let words = words.iter().map(|word| match word {
                    Value::String(word) => word.clone(),
                    other => other.to_string(),
                });
                words.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        };
        if !command.is_empty() && !found.contains(&command) {
            found.push(command);
        }
    };
    for value in COMMANDS.iter().filter_map(|name| raw.get(*name)) {
        add(value);
    }
    for value in raw
        .get("commands")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        add(value);
    }
    if found.is_empty() && !title.is_empty() {
        found.push(title.to_owned());
    }
    found
}

/// Returns the action of a known tool for each path that a call names.
fn on_paths(
    tool: &str,
    call: &Map<String, Value>,
    raw: &Map<String, Value>,
    cwd: Option<&str>,
) -> Result<Vec<ToolAction>, String> {
    let mut paths: Vec<String> = Vec::new();
    let mut add = |path: Option<&str>| {
        if let Some(path) = path.filter(|path| !path.is_empty())
            && !paths.iter().any(|known| known == path)
        {
            paths.push(path.to_owned());
        }
    };
    for location in list(call, "locations") {
        add(location.get("path").and_then(Value::as_str));
    }
    for content in list(call, "content") {
        add(content.get("path").and_then(Value::as_str));
    }
    for name in PATHS {
        add(raw.get(name).and_then(Value::as_str));
    }
    if paths.is_empty() {
        return Err("it names no file".to_owned());
    }
    let mut found = Vec::new();
    for path in paths {
        let mut input = raw.clone();
        for name in PATHS {
            input.remove(name);
        }
        input.insert("file_path".to_owned(), path.into());
        found.extend(actions(tool, &input, cwd, None)?);
    }
    Ok(found)
}

fn list<'c>(call: &'c Map<String, Value>, name: &str) -> impl Iterator<Item = &'c Value> {
    call.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Returns the changes of files that a call shows with their whole new text.
pub(super) fn announced_writes(call: &Map<String, Value>) -> Vec<AnnouncedWrite> {
    let diffs = list(call, "content")
        .filter(|content| content.get("type").and_then(Value::as_str) == Some("diff"));
    let writes = diffs.filter_map(|diff| {
        Some(AnnouncedWrite {
            path: diff.get("path")?.as_str()?.to_owned(),
            content: diff.get("newText")?.as_str()?.to_owned(),
        })
    });
    writes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(call: Value) -> Vec<(String, String)> {
        let Value::Object(call) = call else {
            panic!("a call is an object");
        };
        let found = tool_actions(&call, Some("/p")).expect("the call can be judged");
        let target = |action: &ToolAction| {
            let names = ["command", "path", "url", "input"];
            let target = names
                .iter()
                .find_map(|name| action.params.get(*name)?.as_str());
            (action.name.clone(), target.unwrap_or_default().to_owned())
        };
        found.iter().map(target).collect()
    }

    fn pair(name: &str, target: &str) -> (String, String) {
        (name.to_owned(), target.to_owned())
    }

    #[test]
    fn a_command_is_judged_by_raw_input_or_else_by_title() {
        let gemini = json!({"kind": "execute", "title": "rm -rf ~/x", "locations": []});
        assert_eq!(judged(gemini), [pair("shell.run", "rm -rf ~/x")]);
        let copilot = json!({"kind": "execute", "title": "say hi",
            "rawInput": {"command": "echo hi", "commands": ["echo hi", "rm -rf ~"]}});
        let both = [pair("shell.run", "echo hi"), pair("shell.run", "rm -rf ~")];
        assert_eq!(judged(copilot), both);
    }

    #[test]
    fn every_path_of_a_call_is_judged() {
        let edit = json!({"kind": "edit", "title": "Edit", "rawInput": {"fileName": ".env"},
            "locations": [{"path": "/p/a"}], "content": [{"type": "diff", "path": "b", "newText": ""}]});
        let paths = [
            pair("file.write", "/p/a"),
            pair("file.write", "/p/b"),
            pair("file.write", "/p/.env"),
        ];
        assert_eq!(judged(edit), paths);
        let read = json!({"kind": "read", "locations": [{"path": "x/../.env"}]});
        assert_eq!(judged(read), [pair("file.read", "/p/.env")]);
    }

    #[test]
    fn a_title_never_chooses_the_action_of_a_call() {
        let stamp = json!({"kind": "other", "title": "Skill", "rawInput": {"input": "x"}});
        assert_eq!(judged(stamp), [pair("acp.other", "x")]);
        assert_eq!(judged(json!({})), [pair("acp.other", "")]);
        assert_eq!(judged(json!({"kind": "new"})), [pair("acp.other", "")]);
        assert_eq!(judged(json!({"kind": "think"})), [pair("acp.think", "")]);
    }

    #[test]
    fn calls_without_a_target_cannot_be_judged() {
        for kind in ["execute", "edit", "read", "delete"] {
            let Value::Object(call) = json!({"kind": kind}) else {
                panic!("a call is an object");
            };
            assert!(tool_actions(&call, Some("/p")).is_err(), "{kind}");
        }
    }

    #[test]
    fn pages_to_fetch_are_found_in_raw_input_or_in_the_title() {
        let raw = json!({"kind": "fetch", "title": "x", "rawInput": {"url": "http://a/"}});
        assert_eq!(judged(raw), [pair("web.fetch", "http://a/")]);
        let title = json!({"kind": "fetch", "title": "see http://b/"});
        assert_eq!(judged(title), [pair("web.fetch", "see http://b/")]);
    }
}
