//! Hook entries in the settings of agents: added, removed and inspected.
//!
//! Only entries that run `cra hook AGENT` are ever changed. Everything else in a settings file stays as it
//! was written: other hooks, the order of names, indentation, comments. Comments and trailing commas are
//! accepted only if the agent reads them; otherwise the file is refused, because the agent may ignore it.
//!
//! Only [`mod@file`] and [`registry`] read or write files.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::hook_entry::command_words;
use self::json_text::{JsonNode, JsonSyntax, JsonText};
use super::agents::CodingAgent;
use super::agents::hook_event::EventMeaning;
use super::agents::settings::{GeneratedFile, HOOK_NAME, HookEntry, SettingsForm};
use super::hook::OfflineBehavior;
use super::protocol::proof::AnswerVerifier;

pub mod file;
mod hook_entry;
mod json_text;
pub mod registry;
mod shell_words;

pub(crate) use super::agents::settings::CompanionFile;
pub use super::agents::settings::{ConnectScope, Folders};
pub use json_text::JsonEditError;
pub(super) use shell_words::quote;

/// Mark of a setting whose value we replaced, before its name in the list of created members.
const REPLACED: &str = "replaced:";

/// Command line of an agent's hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookConfig {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Time in seconds that the agent waits at an event where a request may be held.
    pub timeout: u64,
    /// Behaviour when no console runs.
    pub offline: OfflineBehavior,
    /// Further arguments: where to find the console, if the user said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<String>,
    /// Text of the public key that verifies the console's answers. Entries of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl HookConfig {
    /// Describes the problem with the pinned key, given the console's own key.
    #[must_use]
    pub fn key_problem(
        &self,
        agent: CodingAgent,
        current: Option<&AnswerVerifier>,
    ) -> Option<String> {
        let remedy = format!(
            "so every step is denied; run cra connect {}",
            agent.as_str()
        );
        match (&self.key, current) {
            (None, _) => Some(format!("its hooks have no key of the console, {remedy}")),
            (Some(pinned), Some(current)) if *pinned != current.to_string() => Some(format!(
                "its hooks have another key than this console, {remedy}"
            )),
            (Some(_), Some(_) | None) => None,
        }
    }
}

/// A settings text after our entries were added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedSettings {
    /// The text.
    pub text: String,
    /// Members that were created for our entries, and are removed again when empty: `hooks`,
    /// `hooks/PreToolUse`.
    pub created: Vec<String>,
}

/// State of our entries in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsState {
    /// No entry of ours.
    Absent,
    /// Exactly the expected entries.
    Intact,
    /// Other entries than expected, with a description of each difference.
    Changed(Vec<String>),
}

/// Returns the settings file of an agent.
#[must_use]
pub fn settings_file(agent: CodingAgent, scope: ConnectScope, folders: &Folders) -> PathBuf {
    agent.adapter().settings_file(scope, folders)
}

/// Returns the settings files that earlier versions wrote for a connection.
pub(crate) fn former_settings_files(
    agent: CodingAgent,
    scope: ConnectScope,
    folders: &Folders,
) -> Vec<PathBuf> {
    agent.adapter().former_settings_files(scope, folders)
}

/// Returns the files that an agent needs next to its settings.
pub(crate) fn companion_files(agent: CodingAgent, file: &Path) -> Vec<CompanionFile> {
    agent.adapter().companion_files(file)
}

/// Returns the generated file of an agent, if its hooks are not entries.
fn generated_file(agent: CodingAgent) -> Option<GeneratedFile> {
    match agent.adapter().settings_form() {
        SettingsForm::Entries => None,
        SettingsForm::Generated(file) => Some(file),
    }
}

/// Returns true if the hooks of an agent are a generated file.
pub(crate) fn is_generated(agent: CodingAgent) -> bool {
    generated_file(agent).is_some()
}

/// Returns the text of a generated file.
fn render(file: GeneratedFile, agent: CodingAgent, wiring: &HookConfig) -> String {
    (file.render)(&hook_entry::generated_commands(agent, wiring))
}

/// Returns true if a generated file in this text runs our hook for that agent.
fn is_own_file(file: GeneratedFile, agent: CodingAgent, text: &str) -> bool {
    (file.gate_command)(text).is_some_and(|words| hook_entry::runs_hook(agent, &words))
}

/// Returns true if nothing in a settings text comes from its user: it needs no backup. `made` lists the
/// members that were created for our entries.
#[must_use]
pub fn is_only_ours(text: &str, agent: CodingAgent, made: &[String]) -> bool {
    if let Some(file) = generated_file(agent) {
        let wiring = read_hook_config(text, agent);
        return wiring.is_some_and(|wiring| render(file, agent, &wiring) == text);
    }
    let is_created = made.iter().any(String::is_empty);
    let without = disconnect(text, agent, Some(made));
    is_created && without.is_ok_and(|without| without != text && is_blank(&without))
}

/// Returns the names of the events that an agent is connected to.
pub fn event_names(agent: CodingAgent) -> impl Iterator<Item = &'static str> {
    agent.adapter().events().iter().map(|(name, _)| *name)
}

/// Returns whether the hooks of an agent intercept input, output and actions.
pub(super) fn intercepts(agent: CodingAgent) -> (bool, bool, bool) {
    let events = agent.adapter().events();
    let has = |wanted: EventMeaning| events.iter().any(|(_, meaning)| *meaning == wanted);
    (
        has(EventMeaning::Prompt),
        has(EventMeaning::Output),
        has(EventMeaning::BeforeTool),
    )
}

/// Returns the event before a tool call.
fn tool_event(agent: CodingAgent) -> &'static str {
    let mut events = agent.adapter().events().iter();
    let found = events.find(|(_, meaning)| *meaning == EventMeaning::BeforeTool);
    found.map_or("", |(name, _)| *name)
}

/// Adds our entries to a text, and removes outdated entries of ours.
///
/// # Errors
/// Fails when other parts of the text could not be preserved.
pub fn connect(
    text: &str,
    agent: CodingAgent,
    wiring: &HookConfig,
) -> Result<EditedSettings, JsonEditError> {
    if let Some(file) = generated_file(agent) {
        return Ok(EditedSettings {
            text: render(file, agent, wiring),
            created: Vec::new(),
        });
    }
    let mut text = JsonText::read(text, syntax(agent))?;
    let mut made = Vec::new();
    let root = text.root()?;
    if agent.adapter().has_version() && root.member("version").is_none() {
        text.add_member(&root, "version", &1);
        made.push("version".to_owned());
    }
    let root = text.root()?;
    if root.member("hooks").is_none() {
        text.add_member(&root, "hooks", &serde_json::Map::new());
        made.push("hooks".to_owned());
    }
    let wanted = hook_entry::all_entries(agent, wiring);
    for name in event_members(&text)? {
        if !wanted.iter().any(|(event, _)| *event == name) {
            take_out(&mut text, agent, &name)?;
        }
    }
    for (event, entry) in &wanted {
        put_in(&mut text, agent, event, entry, &mut made)?;
    }
    for (name, value) in agent.adapter().required_settings() {
        let root = text.root()?;
        match root.member(name) {
            None => {
                text.add_member(&root, name, value);
                made.push((*name).to_owned());
            }
            Some(there) if text.value(there) != *value => {
                let there = there.clone();
                text.replace(&there, value);
                made.push(format!("{REPLACED}{name}"));
            }
            Some(_) => {}
        }
    }
    Ok(EditedSettings {
        text: text.as_str().to_owned(),
        created: made,
    })
}

/// Removes our entries from a text, and members that were created for them. `made` lists those members; if
/// `None`, every member that is empty without our entries is removed.
///
/// # Errors
/// Fails when other parts of the text could not be preserved.
pub fn disconnect(
    text: &str,
    agent: CodingAgent,
    made: Option<&[String]>,
) -> Result<String, JsonEditError> {
    let given = text;
    if let Some(file) = generated_file(agent) {
        let is_ours = is_own_file(file, agent, text);
        return Ok(if is_ours {
            String::new()
        } else {
            text.to_owned()
        });
    }
    let mut text = JsonText::read(text, syntax(agent))?;
    let ours = |name: &str| made.is_none_or(|made| made.iter().any(|created| created == name));
    let mut found = false;
    for event in event_members(&text)? {
        if !take_out(&mut text, agent, &event)? {
            continue;
        }
        found = true;
        let hooks = hooks(&text)?;
        let empty = hooks.member(&event).is_some_and(|list| text.is_blank(list));
        if let (true, true, Some(at)) = (
            empty,
            ours(&format!("hooks/{event}")),
            hooks.position(&event),
        ) {
            text.remove(&hooks, at);
        }
    }
    if !found {
        return Ok(given.to_owned());
    }
    let root = text.root()?;
    let empty = root
        .member("hooks")
        .is_some_and(|hooks| text.is_blank(hooks));
    if let (true, true, Some(at)) = (empty, ours("hooks"), root.position("hooks")) {
        text.remove(&root, at);
    }
    for (name, value) in agent.adapter().required_settings() {
        let root = text.root()?;
        let (Some(there), Some(at)) = (root.member(name), root.position(name)) else {
            continue;
        };
        let is_unchanged = text.value(there) == *value;
        if is_unchanged && made.is_some() && ours(name) {
            text.remove(&root, at);
        } else if is_unchanged && made.is_some() && ours(&format!("{REPLACED}{name}")) {
            let there = there.clone();
            text.replace(&there, &!*value);
        }
    }
    let root = text.root()?;
    let version = root.member("version").map(|version| text.value(version)) == Some(1.into());
    // Hooks that were added later need the version. Hooks that were there before had none.
    let needed = root.member("hooks").is_some() && ours("hooks");
    if let (true, true, false, Some(at)) = (
        made.is_some() && ours("version"),
        version,
        needed,
        root.position("version"),
    ) {
        text.remove(&root, at);
    }
    Ok(text.as_str().to_owned())
}

/// Returns the syntax in which an agent reads its settings.
fn syntax(agent: CodingAgent) -> JsonSyntax {
    if agent.adapter().reads_comments() {
        JsonSyntax::WithComments
    } else {
        JsonSyntax::Strict
    }
}

/// Returns a JSON text without comments and trailing commas, and any other text as it is.
pub(crate) fn without_comments(text: &str) -> String {
    let read = JsonText::read(text, JsonSyntax::WithComments);
    let strict = read.ok().and_then(|text| text.strict().map(str::to_owned));
    strict.unwrap_or_else(|| text.to_owned())
}

/// Returns true if a text is an empty object without comments.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    JsonText::read(text, JsonSyntax::WithComments).is_ok_and(|text| {
        let empty = text.root().is_ok_and(|root| root.is_empty());
        empty && !text.has_comments()
    })
}

/// Compares the entries in a text with the expected ones.
///
/// # Errors
/// Fails when the text cannot be read.
pub fn inspect(
    text: &str,
    agent: CodingAgent,
    wiring: &HookConfig,
) -> Result<SettingsState, JsonEditError> {
    if let Some(file) = generated_file(agent) {
        return Ok(inspect_generated(file, text, agent, wiring));
    }
    let text = JsonText::read(text, syntax(agent))?;
    let wanted = hook_entry::all_entries(agent, wiring);
    let (mut missing, mut wrong) = (Vec::new(), Vec::new());
    for (event, entry) in &wanted {
        let found = ours_in(&text, agent, event)?;
        match found.as_slice() {
            [] => missing.push(format!("{event} is missing")),
            [one] if one.alone && one.value == serde_json::to_value(entry).unwrap_or_default() => {}
            [one] if one.alone => wrong.push(format!(
                "{event} was edited{}",
                describe_timeout_mismatch(agent, one)
            )),
            [_] => wrong.push(format!(
                "{event} was edited: its entry has other hooks, too"
            )),
            several => wrong.push(format!("{event} occurs {} times", several.len())),
        }
    }
    for event in event_members(&text)? {
        let known = wanted.iter().any(|(name, _)| *name == event);
        if !known && !ours_in(&text, agent, &event)?.is_empty() {
            wrong.push(format!("{event} is not expected"));
        }
    }
    if wrong.is_empty() && missing.len() == wanted.len() {
        return Ok(SettingsState::Absent);
    }
    wrong.extend(missing);
    wrong.extend(off_in(&text, agent)?);
    let root = text.root()?;
    for (name, value) in agent.adapter().required_settings() {
        if root.member(name).map(|there| text.value(there)) != Some((*value).into()) {
            wrong.push(format!("`{name}` must be {value}"));
        }
    }
    Ok(if wrong.is_empty() {
        SettingsState::Intact
    } else {
        SettingsState::Changed(wrong)
    })
}

/// Compares a generated file with the expected one.
fn inspect_generated(
    file: GeneratedFile,
    text: &str,
    agent: CodingAgent,
    wiring: &HookConfig,
) -> SettingsState {
    if render(file, agent, wiring) == text {
        SettingsState::Intact
    } else if is_own_file(file, agent, text) {
        SettingsState::Changed(vec!["the file was edited".to_owned()])
    } else {
        SettingsState::Absent
    }
}

/// Describes the settings in a text that disable our hooks. An unreadable text disables nothing.
#[must_use]
pub fn disabling_settings(text: &str, agent: CodingAgent) -> Vec<String> {
    if generated_file(agent).is_some() {
        return Vec::new();
    }
    let text = JsonText::read(text, syntax(agent));
    text.and_then(|text| off_in(&text, agent))
        .unwrap_or_default()
}

fn off_in(text: &JsonText, agent: CodingAgent) -> Result<Vec<String>, JsonEditError> {
    let root = text.root()?;
    let at = |path: &[&str]| {
        let node = path.iter().try_fold(&root, |node, name| node.member(name));
        node.map(|node| text.value(node))
    };
    let off = agent.adapter().off_switches().iter();
    let off = off.filter(|(path, off)| at(path).is_some_and(|value| value == *off));
    let named = agent.adapter().disabled_hook_lists().iter().filter(|path| {
        let listed = at(path);
        let listed = listed.as_ref().and_then(Value::as_array);
        listed.is_some_and(|names| names.iter().any(|name| name == HOOK_NAME))
    });
    let paths = off.map(|(path, _)| path).chain(named);
    Ok(paths
        .map(|path| format!("hooks are switched off by `{}`", path.join(".")))
        .collect())
}

/// Returns the settings of our hooks in a text, as the entry for the event before tools states them.
#[must_use]
pub fn read_hook_config(text: &str, agent: CodingAgent) -> Option<HookConfig> {
    if let Some(file) = generated_file(agent) {
        return hook_entry::parse_hook_config(&(file.gate_command)(text)?);
    }
    let text = JsonText::read(text, syntax(agent)).ok()?;
    let found = ours_in(&text, agent, tool_event(agent)).ok()?;
    let words = command_words(&found.first()?.handler);
    hook_entry::parse_hook_config(&words)
}

/// Describes the difference between the agent's timeout and the hook's own, or returns an empty text.
fn describe_timeout_mismatch(agent: CodingAgent, one: &OwnEntry) -> String {
    let pinned = agent.adapter().handler_timeout_s(&one.handler);
    let hook_timeout =
        hook_entry::parse_hook_config(&command_words(&one.handler)).map(|wiring| wiring.timeout);
    match (pinned, hook_timeout) {
        (None, _) => ": it has no timeout".to_owned(),
        (Some(pinned), Some(hook_timeout)) if pinned != hook_timeout => {
            format!(": the agent waits {pinned} s and the hook {hook_timeout} s")
        }
        (Some(_), Some(_) | None) => String::new(),
    }
}

/// One of our entries.
struct OwnEntry {
    /// Index of the item in the event's list.
    item: usize,
    /// Index of the handler in the item, if items hold several handlers.
    inner: usize,
    /// Tells whether this handler is alone in its item.
    alone: bool,
    /// The item.
    value: Value,
    /// The handler.
    handler: Value,
}

fn hooks(text: &JsonText) -> Result<JsonNode, JsonEditError> {
    let hooks = text.root()?.member("hooks").cloned();
    let Some(hooks) = hooks else {
        return Ok(JsonNode {
            span: 0..0,
            kind: json_text::JsonKind::Object(Vec::new()),
        });
    };
    text.check_object("hooks", &hooks)?;
    Ok(hooks)
}

/// Returns the names of the events that a text has hooks for.
fn event_members(text: &JsonText) -> Result<Vec<String>, JsonEditError> {
    let hooks = hooks(text)?;
    // Some agents keep switches next to the events.
    let lists = hooks
        .members()
        .iter()
        .filter(|member| is_list(&member.value));
    Ok(lists.map(|member| member.name.clone()).collect())
}

fn is_list(node: &JsonNode) -> bool {
    matches!(node.kind, json_text::JsonKind::Array(_))
}

fn ours_in(
    text: &JsonText,
    agent: CodingAgent,
    event: &str,
) -> Result<Vec<OwnEntry>, JsonEditError> {
    let hooks = hooks(text)?;
    let Some(list) = hooks.member(event) else {
        return Ok(Vec::new());
    };
    text.check_array(event, list)?;
    let mut found = Vec::new();
    for (item, node) in list.items().iter().enumerate() {
        let handlers = node.member("hooks").map(JsonNode::items);
        let handlers = match handlers {
            Some(handlers) => handlers.iter().collect(),
            None => vec![node],
        };
        let alone = handlers.len() == 1;
        for (inner, handler) in handlers.into_iter().enumerate() {
            let handler = text.value(handler);
            if hook_entry::is_ours(agent, &handler) {
                found.push(OwnEntry {
                    item,
                    inner,
                    alone,
                    value: text.value(node),
                    handler,
                });
            }
        }
    }
    Ok(found)
}

/// Removes our entries from one event. Returns true if there were any.
fn take_out(text: &mut JsonText, agent: CodingAgent, event: &str) -> Result<bool, JsonEditError> {
    let mut found = false;
    // Positions change with every removal.
    while let Some(one) = ours_in(text, agent, event)?.pop() {
        found = true;
        let hooks = hooks(text)?;
        let Some(list) = hooks.member(event) else {
            break;
        };
        let handlers = list
            .items()
            .get(one.item)
            .and_then(|item| item.member("hooks"));
        match handlers.filter(|_| !one.alone) {
            Some(handlers) => text.remove(handlers, one.inner),
            None => text.remove(list, one.item),
        }
    }
    Ok(found)
}

fn put_in(
    text: &mut JsonText,
    agent: CodingAgent,
    event: &str,
    entry: &HookEntry,
    made: &mut Vec<String>,
) -> Result<(), JsonEditError> {
    let found = ours_in(text, agent, event)?;
    if let [one] = found.as_slice()
        && one.alone
    {
        let hooks = hooks(text)?;
        let there = hooks
            .member(event)
            .and_then(|list| list.items().get(one.item));
        let same = serde_json::to_value(entry).is_ok_and(|value| value == one.value);
        if let (Some(there), false) = (there, same) {
            text.replace(there, entry);
        }
        return Ok(());
    }
    take_out(text, agent, event)?;
    let hooks = hooks(text)?;
    if let Some(list) = hooks.member(event) {
        text.add_item(list, entry);
    } else {
        text.add_member(&hooks, event, &[entry]);
        made.push(format!("hooks/{event}"));
    }
    Ok(())
}
