//! Translation of agents' tools into actions of an Atlas.
//!
//! Agents have many names for one thing. An Atlas has a few: `shell.run` {command}, `file.read` {path},
//! `file.write` {path}, `web.fetch` {url}, `web.search` {query}, `agent.run` {prompt}. Tools of MCP servers
//! are `mcp.SERVER.TOOL`, and every other tool is `tool.NAME`. All parameters of the tool are kept in the
//! action, so that an operator sees them.
//!
//! Contract: every value that a tool could use as its target is judged. If a call names several targets,
//! each one is a separate action; if it is unclear which one counts, the call is an error. Values from the
//! agent (`cwd`, `tool`, `subagent`) take precedence over values from the model under equal names, which
//! are kept as `asked_NAME`.

use serde_json::{Map, Value};

use super::CodingAgent;

/// An action of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAction {
    /// Name as an Atlas uses it.
    pub name: String,
    /// Parameters.
    pub params: Map<String, Value>,
}

/// Kind of tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// Runs a command.
    Shell,
    /// Types into a shell that runs already.
    ShellInput,
    /// Reads the files that it names.
    Read,
    /// Reads files by lists of patterns.
    ReadMany,
    /// Finds files by a pattern of names.
    Find,
    /// Searches files for a text.
    Grep,
    /// Lists a folder.
    List,
    /// Writes the files that it names.
    Write,
    /// Changes the files that a patch names.
    Patch,
    /// Fetches the address that it names.
    Fetch,
    /// Fetches every address in its input: Gemini puts addresses into its prompt.
    FetchAny,
    /// Searches the web.
    Search,
    /// Starts another agent.
    Agent,
}

impl ToolKind {
    /// Finds the kind of a tool by its name, in the tables of all agents.
    fn from_name(tool: &str) -> Option<Self> {
        let mut all = CodingAgent::ALL
            .into_iter()
            .flat_map(|agent| agent.adapter().tools());
        all.find(|(name, _)| *name == tool).map(|(_, kind)| *kind)
    }
}

/// Prefixes of patch lines that name a file.
const PATCH_FILE_MARKS: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Returns the actions of a tool call: one, or one for each target.
///
/// # Errors
/// Fails when a known tool lacks an expected parameter, or has two different values for it: the call cannot be
/// judged.
pub fn actions(
    tool: &str,
    input: &Map<String, Value>,
    cwd: Option<&str>,
    subagent: Option<&str>,
) -> Result<Vec<ToolAction>, String> {
    let mut params = input.clone();
    let beside = [("cwd", cwd), ("subagent", subagent), ("tool", Some(tool))];
    for (name, value) in beside {
        set_param(&mut params, name, value.map(Value::from));
    }
    let plain = |name| ToolAction {
        name,
        params: params.clone(),
    };
    if let Some(name) = mcp_action(tool) {
        return Ok(vec![plain(name)]);
    }
    let Some(known) = ToolKind::from_name(tool) else {
        return Ok(vec![plain(format!("tool.{}", safe_name(tool)))]);
    };
    let judged = deciding_params(known, input, cwd);
    let (name, key, values) = judged.map_err(|why| format!("`{tool}` {why}"))?;
    let each = values.into_iter().map(|value| {
        let mut action = plain(name.to_owned());
        set_param(&mut action.params, key, Some(value.into()));
        action
    });
    Ok(each.collect())
}

/// Sets a parameter to a reliable value. A different value under that name is kept as `asked_NAME`.
fn set_param(params: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(asked) = params.remove(name)
        && Some(&asked) != value.as_ref()
    {
        params.insert(format!("asked_{name}"), asked);
    }
    if let Some(value) = value {
        params.insert(name.to_owned(), value);
    }
}

/// Returns the basis of judgement of a known tool: action name, name of the deciding parameter, and its
/// values.
fn deciding_params(
    known: ToolKind,
    input: &Map<String, Value>,
    cwd: Option<&str>,
) -> Result<(&'static str, &'static str, Vec<String>), String> {
    let needed = |names: &[&str]| {
        single_text(input, names)?.ok_or_else(|| missing_param_error(names.first().unwrap_or(&"")))
    };
    let here = || cwd.unwrap_or(".").to_owned();
    let places = |found: Vec<String>| {
        let found = found.iter().map(|path| located(path, cwd));
        found.collect::<Vec<_>>()
    };
    // Patterns apply below each named folder or file, or below the agent's working directory.
    let below = |patterns: Vec<String>| {
        let mut folders = paths(input)?;
        if folders.is_empty() {
            folders.push(here());
        }
        let folders = places(folders);
        if patterns.is_empty() {
            return Ok(folders);
        }
        let each = folders.iter().flat_map(|folder| {
            let located = patterns
                .iter()
                .map(|pattern| located(pattern, Some(folder)));
            located.collect::<Vec<_>>()
        });
        Ok::<_, String>(each.collect())
    };
    Ok(match known {
        ToolKind::Shell => ("shell.run", "command", vec![command(input)?]),
        ToolKind::ShellInput => {
            let typed = needed(&["input", "chars", "text", "command"])?;
            ("shell.run", "command", vec![typed])
        }
        ToolKind::Read => match places(paths(input)?) {
            found if found.is_empty() => return Err(missing_param_error("file_path")),
            found => ("file.read", "path", found),
        },
        ToolKind::ReadMany => {
            let mut found = paths(input)?;
            found.extend(all_texts(input, &["include"])?);
            match places(found) {
                found if found.is_empty() => return Err(missing_param_error("include")),
                found => ("file.read", "path", found),
            }
        }
        ToolKind::Find => {
            let patterns = ["pattern", "query", "glob_pattern", "globPattern"];
            ("file.read", "path", below(all_texts(input, &patterns)?)?)
        }
        ToolKind::Grep => ("file.read", "path", below(all_texts(input, FILTERS)?)?),
        ToolKind::List => ("file.read", "path", below(Vec::new())?),
        ToolKind::Write => match places(paths(input)?) {
            // Copilot calls a patch an edit where it uses names of other agents.
            found if found.is_empty() => {
                let patch =
                    single_text(input, PATCH)?.ok_or_else(|| missing_param_error("file_path"))?;
                ("file.write", "path", places(patched(&patch)?))
            }
            found => ("file.write", "path", found),
        },
        ToolKind::Patch => ("file.write", "path", places(patched(&needed(PATCH)?)?)),
        ToolKind::Fetch => ("web.fetch", "url", vec![needed(&["url"])?]),
        ToolKind::FetchAny => match all_texts(input, &["url", "urls", "prompt"])? {
            found if found.is_empty() => return Err(missing_param_error("url")),
            found => ("web.fetch", "url", found),
        },
        ToolKind::Search => ("web.search", "query", vec![needed(&["query"])?]),
        ToolKind::Agent => ("agent.run", "prompt", vec![mission(input)?]),
    })
}

/// Returns the task for another agent. If no field is known to hold it, returns the whole input.
fn mission(input: &Map<String, Value>) -> Result<String, String> {
    let mut texts = all_texts(input, &["prompt", "task", "message"])?;
    if texts.is_empty() {
        texts.extend(single_text(input, &["description"])?);
    }
    if texts.is_empty() && input.is_empty() {
        return Err(missing_param_error("prompt"));
    }
    if texts.is_empty() {
        texts.push(Value::from(input.clone()).to_string());
    }
    Ok(texts.join("\n"))
}

fn missing_param_error(name: &str) -> String {
    format!("has no `{name}`")
}

/// Names of parameters that hold one path.
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

/// Names of parameters that hold several paths.
const PATH_LISTS: &[&str] = &["paths", "file_paths", "filePaths", "files"];

/// Names of parameters that select the files to search.
const FILTERS: &[&str] = &["glob", "include", "includePattern", "include_pattern"];

/// Names of parameters that hold a patch.
const PATCH: &[&str] = &["command", "input", "patch", "patchText"];

/// Returns the named paths: single ones and lists.
fn paths(input: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut found: Vec<_> = single_text(input, PATHS)?.into_iter().collect();
    let listed = all_texts(input, PATH_LISTS)?;
    found.extend(listed);
    Ok(found)
}

/// Returns a normalised path: absolute from the working directory, without `.` and `..`. Links are not
/// followed.
fn located(path: &str, cwd: Option<&str>) -> String {
    let whole = match cwd {
        Some(cwd) if !path.starts_with(['/', '~']) => format!("{cwd}/{path}"),
        Some(_) | None => path.to_owned(),
    };
    let absolute = whole.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|part| *part != "..") => drop(parts.pop()),
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let root = if absolute { "/" } else { "" };
    match parts.join("/") {
        rest if rest.is_empty() && !absolute => ".".to_owned(),
        rest => format!("{root}{rest}"),
    }
}

/// Returns a command, given as a text or as a list of words.
fn command(input: &Map<String, Value>) -> Result<String, String> {
    let words = |list: &Vec<Value>| {
        let words: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
        words.map(|words| words.join(" "))
    };
    let mut found: Vec<String> = Vec::new();
    for name in ["command", "cmd"] {
        let texts = match input.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(list)) => Some(words(list).ok_or_else(|| no_text(name))?),
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                return Err(no_text(name));
            }
        };
        found.extend(texts.filter(|text| !text.is_empty()));
    }
    found.dedup();
    match found.as_slice() {
        [] => Err(missing_param_error("command")),
        [command] => Ok(command.clone()),
        more => Err(conflict_error("command", more.len())),
    }
}

/// Returns the files that a patch changes.
fn patched(patch: &str) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    for line in patch.lines().map(str::trim_start) {
        let named = PATCH_FILE_MARKS
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        if let Some(named) = named.map(str::trim).filter(|path| !path.is_empty())
            && !found.iter().any(|known| known == named)
        {
            found.push(named.to_owned());
        }
    }
    if found.is_empty() {
        return Err("has a patch that names no file".to_owned());
    }
    Ok(found)
}

/// Returns the action for a tool of an MCP server. The server's name comes first and ends at the first
/// separator: users name servers, and servers name tools.
fn mcp_action(tool: &str) -> Option<String> {
    let marked = tool.strip_prefix("mcp__");
    let alone = || {
        let alone = tool.strip_prefix("MCP:");
        alone.or_else(|| tool.strip_prefix("mcp_"))
    };
    let (server, tool) = match marked {
        Some(rest) => rest.split_once("__").unwrap_or(("unknown", rest)),
        None => ("unknown", alone()?),
    };
    Some(format!("mcp.{}.{}", safe_name(server), safe_name(tool)))
}

/// Replaces characters that an action name cannot have. A dot would make the name part of another one.
fn safe_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}

/// Returns the single text that these parameters hold, if any holds one.
fn single_text(input: &Map<String, Value>, names: &[&str]) -> Result<Option<String>, String> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        match input.get(*name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() || found.contains(&text.as_str()) => {}
            Some(Value::String(text)) => found.push(text),
            Some(_) => return Err(no_text(name)),
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        more => Err(conflict_error(names.first().unwrap_or(&""), more.len())),
    }
}

/// Returns all texts of these parameters: single ones and lists.
fn all_texts(input: &Map<String, Value>, names: &[&str]) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let texts = match input.get(*name) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(list)) => list.iter().collect(),
            Some(one) => vec![one],
        };
        for text in texts {
            let text = text.as_str().ok_or_else(|| no_text(name))?;
            if !text.is_empty() && !found.iter().any(|known| known == text) {
                found.push(text.to_owned());
            }
        }
    }
    Ok(found)
}

fn no_text(name: &str) -> String {
    format!("has a `{name}` that is not text")
}

fn conflict_error(name: &str, times: usize) -> String {
    format!("has {times} different values for `{name}`")
}

#[cfg(test)]
mod tests;
