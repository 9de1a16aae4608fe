//! What the tools of agents do, in the words of an Atlas.
//!
//! Agents have many names for the same thing; an Atlas speaks of a few: `shell.run` {command}, `file.read`
//! {path}, `file.write` {path}, `web.fetch` {url}, `web.search` {query}, `agent.run` {prompt}; tools of MCP
//! servers are `mcp.SERVER.TOOL`, and every other one is `tool.NAME`. What a tool is told stays beside it, so
//! that an operator sees all of it.

use serde_json::{Map, Value};

/// What a use of a tool would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// In the words of an Atlas.
    pub name: String,
    /// What it is told.
    pub params: Map<String, Value>,
}

/// What a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Shell,
    Read,
    Look,
    Write,
    Patch,
    Fetch,
    Search,
    Agent,
}

/// The tools that are known, by the names that agents give them.
#[rustfmt::skip]
const TOOLS: &[(&str, Tool)] = &[
    ("Bash", Tool::Shell), ("PowerShell", Tool::Shell), ("Shell", Tool::Shell), ("bash", Tool::Shell),
    ("powershell", Tool::Shell), ("shell", Tool::Shell), ("run_shell_command", Tool::Shell),
    ("run_in_terminal", Tool::Shell), ("exec_command", Tool::Shell), ("local_shell", Tool::Shell),
    ("Read", Tool::Read), ("NotebookRead", Tool::Read), ("view", Tool::Read), ("read_file", Tool::Read),
    ("Glob", Tool::Look), ("Grep", Tool::Look), ("LS", Tool::Look), ("glob", Tool::Look), ("grep", Tool::Look),
    ("rg", Tool::Look), ("list_directory", Tool::Look), ("search_file_content", Tool::Look),
    ("read_many_files", Tool::Look), ("list_dir", Tool::Look), ("grep_search", Tool::Look),
    ("file_search", Tool::Look),
    ("Write", Tool::Write), ("Edit", Tool::Write), ("MultiEdit", Tool::Write), ("NotebookEdit", Tool::Write),
    ("write_file", Tool::Write), ("replace", Tool::Write), ("create", Tool::Write), ("edit", Tool::Write),
    ("str_replace_editor", Tool::Write), ("Delete", Tool::Write), ("create_file", Tool::Write),
    ("replace_string_in_file", Tool::Write), ("insert_edit_into_file", Tool::Write),
    ("apply_patch", Tool::Patch),
    ("WebFetch", Tool::Fetch), ("web_fetch", Tool::Fetch), ("fetch_webpage", Tool::Fetch),
    ("WebSearch", Tool::Search), ("web_search", Tool::Search), ("google_web_search", Tool::Search),
    ("Agent", Tool::Agent), ("Task", Tool::Agent), ("task", Tool::Agent), ("spawn_agent", Tool::Agent),
];

/// What lines of a patch name a file.
const PATCHED: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// What a use of a tool would do: one action, or one for each file of a patch.
///
/// # Errors
/// When it is a known tool and does not say what it is known to say: nobody can judge it.
pub fn actions(
    tool: &str,
    input: &Map<String, Value>,
    cwd: Option<&str>,
    subagent: Option<&str>,
) -> Result<Vec<Action>, String> {
    let mut params = input.clone();
    let beside = [("cwd", cwd), ("subagent", subagent), ("tool", Some(tool))];
    for (name, value) in beside {
        if let Some(value) = value {
            params.entry(name).or_insert_with(|| value.into());
        }
    }
    let plain = |name| Action {
        name,
        params: params.clone(),
    };
    if let Some(name) = of_server(tool) {
        return Ok(vec![plain(name)]);
    }
    let Some((_, known)) = TOOLS.iter().find(|(name, _)| *name == tool) else {
        return Ok(vec![plain(format!("tool.{}", tame(tool)))]);
    };
    let (name, key, values) = judged(*known, tool, input, cwd)?;
    let each = values.into_iter().map(|value| {
        let mut action = plain(name.to_owned());
        action.params.insert(key.to_owned(), value.into());
        action
    });
    Ok(each.collect())
}

/// What a known tool is judged by: the action, and what its one important parameter is, or are.
fn judged(
    known: Tool,
    tool: &str,
    input: &Map<String, Value>,
    cwd: Option<&str>,
) -> Result<(&'static str, &'static str, Vec<String>), String> {
    let needed = |names: &[&str]| {
        let name = names.first().copied().unwrap_or_default();
        text(input, names).ok_or_else(|| format!("`{tool}` does not say its `{name}`"))
    };
    Ok(match known {
        Tool::Shell => ("shell.run", "command", vec![command(input, tool)?]),
        Tool::Read => ("file.read", "path", vec![needed(PATHS)?]),
        Tool::Look => {
            // Without a path they look where the agent is.
            let path = text(input, PATHS).or_else(|| text(input, &["pattern", "query"]));
            let path = path.unwrap_or_else(|| cwd.unwrap_or(".").to_owned());
            ("file.read", "path", vec![path])
        }
        Tool::Write => ("file.write", "path", vec![needed(PATHS)?]),
        Tool::Patch => match patched(&needed(&["command", "input", "patch"])?) {
            files if files.is_empty() => {
                return Err(format!("the patch of `{tool}` names no file"));
            }
            files => ("file.write", "path", files),
        },
        Tool::Fetch => {
            let first = input.get("urls").and_then(|it| it.get(0)?.as_str());
            let url = text(input, &["url"]).or(first.map(str::to_owned));
            // Gemini puts addresses into its prompt.
            let url = url.map_or_else(|| needed(&["prompt"]), Ok)?;
            ("web.fetch", "url", vec![url])
        }
        Tool::Search => ("web.search", "query", vec![needed(&["query"])?]),
        Tool::Agent => {
            let prompt = text(input, &["prompt", "task", "message", "description"]);
            ("agent.run", "prompt", vec![prompt.unwrap_or_default()])
        }
    })
}

/// Names of what says where a file is.
const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "target_file",
    "dir_path",
    "directory",
];

/// A command: a text, or its words.
fn command(input: &Map<String, Value>, tool: &str) -> Result<String, String> {
    let words = |list: &Vec<Value>| {
        let words: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
        words.map(|words| words.join(" "))
    };
    let found = ["command", "cmd"]
        .iter()
        .find_map(|name| match input.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(list) => words(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        });
    found.ok_or_else(|| format!("`{tool}` does not say its `command`"))
}

/// The files that a patch touches.
fn patched(patch: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in patch.lines().map(str::trim_start) {
        let named = PATCHED.iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(named) = named.map(str::trim).filter(|it| !it.is_empty())
            && !found.iter().any(|known| known == named)
        {
            found.push(named.to_owned());
        }
    }
    found
}

/// The action of a tool of an MCP server.
fn of_server(tool: &str) -> Option<String> {
    if let Some(rest) = tool.strip_prefix("mcp__") {
        let (server, tool) = rest.rsplit_once("__").unwrap_or(("unknown", rest));
        return Some(format!("mcp.{}.{}", tame(server), tame(tool)));
    }
    let tool = tool
        .strip_prefix("MCP:")
        .or_else(|| tool.strip_prefix("mcp_"))?;
    Some(format!("mcp.{}", tame(tool)))
}

/// A name that may stand in an action's.
fn tame(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}

fn text(input: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| input.get(*name)?.as_str());
    found.filter(|it| !it.is_empty()).map(str::to_owned)
}
