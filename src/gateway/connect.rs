//! Hook entries in the settings of agents: put in, taken out, and looked after.
//!
//! Only entries that run `cra hook AGENT` are ever changed. Everything else in a settings file stays as somebody
//! wrote it: other hooks, the order of names, indentation. A text that is no strict JSON is refused, because
//! what is beside JSON in it (comments, trailing commas) could not be kept.
//!
//! Nothing here reads or writes files but [`mod@file`] and [`registry`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::entry::{Entry, command_words};
use self::json::{Node, Text};
use super::hook::{Host, Offline};
use super::proof::AnswerVerifier;

pub mod bounds;
mod entry;
pub mod file;
mod json;
pub mod registry;
mod table;
pub mod trust;
mod words;

pub use json::JsonError;
pub(super) use table::intercepts;
pub use table::{Folders, Scope, event_names, settings_file};
pub(super) use words::quote;

/// How an agent's hooks are to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    /// The program: an absolute path.
    pub program: PathBuf,
    /// How long the agent waits where something may be held, in seconds.
    pub timeout: u64,
    /// What is done when no console is there.
    pub offline: Offline,
    /// What else the program is told: where the console is, if that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<String>,
    /// Text of the public key that the console's answers are verified with. Entries of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Wiring {
    /// Describes what is wrong with the pinned key, given the console's own key.
    #[must_use]
    pub fn key_trouble(&self, host: Host, current: Option<&AnswerVerifier>) -> Option<String> {
        let way = format!("so every step is denied; run cra connect {}", host.as_str());
        match (&self.key, current) {
            (None, _) => Some(format!("its hooks pin no key of the console, {way}")),
            (Some(pinned), Some(current)) if *pinned != current.to_string() => Some(format!(
                "its hooks pin another key than this console's, {way}"
            )),
            (Some(_), Some(_) | None) => None,
        }
    }
}

/// A text with our entries, or without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The text.
    pub text: String,
    /// What was made on the way, and goes again when it is empty: `hooks`, `hooks/PreToolUse`.
    pub made: Vec<String>,
}

/// What a settings file says about us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// Exactly what it should.
    Intact,
    /// Something else, and what.
    Changed(Vec<String>),
}

/// Puts our entries into a text, and takes out those of ours that do not belong there any more.
///
/// # Errors
/// When the text is not such that everything else in it can be kept.
pub fn connect(text: &str, host: Host, wiring: &Wiring) -> Result<Changed, JsonError> {
    let mut text = Text::read(text)?;
    let mut made = Vec::new();
    let root = text.root()?;
    if table::has_version(host) && root.member("version").is_none() {
        text.add_member(&root, "version", &1);
        made.push("version".to_owned());
    }
    let root = text.root()?;
    if root.member("hooks").is_none() {
        text.add_member(&root, "hooks", &serde_json::Map::new());
        made.push("hooks".to_owned());
    }
    let wanted = entry::all(host, wiring);
    for name in event_members(&text)? {
        if !wanted.iter().any(|(event, _)| *event == name) {
            take_out(&mut text, host, &name)?;
        }
    }
    for (event, entry) in &wanted {
        put_in(&mut text, host, event, entry, &mut made)?;
    }
    Ok(Changed {
        text: text.as_str().to_owned(),
        made,
    })
}

/// Takes our entries out of a text, and what was only there for them. `made` is what was made for them;
/// where nobody knows, everything that is empty without them.
///
/// # Errors
/// When the text is not such that everything else in it can be kept.
pub fn disconnect(text: &str, host: Host, made: Option<&[String]>) -> Result<String, JsonError> {
    let given = text;
    let mut text = Text::read(text)?;
    let ours = |name: &str| made.is_none_or(|made| made.iter().any(|it| it == name));
    let mut found = false;
    for event in event_members(&text)? {
        if !take_out(&mut text, host, &event)? {
            continue;
        }
        found = true;
        let hooks = hooks(&text)?;
        let empty = hooks.member(&event).is_some_and(Node::is_empty);
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
    let empty = root.member("hooks").is_some_and(Node::is_empty);
    if let (true, true, Some(at)) = (empty, ours("hooks"), root.position("hooks")) {
        text.remove(&root, at);
    }
    let root = text.root()?;
    let version = root.member("version").map(|it| text.value(it)) == Some(1.into());
    // Hooks that came later need the version; those that were there before had none.
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

/// Whether a text has nothing in it.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    Text::read(text)
        .and_then(|it| it.root())
        .is_ok_and(|it| it.is_empty())
}

/// What a text says about us.
///
/// # Errors
/// When it cannot be read.
pub fn inspect(text: &str, host: Host, wiring: &Wiring) -> Result<State, JsonError> {
    let text = Text::read(text)?;
    let wanted = entry::all(host, wiring);
    let (mut missing, mut wrong) = (Vec::new(), Vec::new());
    for (event, entry) in &wanted {
        let found = ours_in(&text, host, event)?;
        match found.as_slice() {
            [] => missing.push(format!("{event} is missing")),
            [one] if one.alone && one.value == serde_json::to_value(entry).unwrap_or_default() => {}
            [one] if one.alone => wrong.push(format!("{event} was edited{}", differs(host, one))),
            [_] => wrong.push(format!("{event} was edited: it shares an entry")),
            several => wrong.push(format!("{event} is there {} times", several.len())),
        }
    }
    for event in event_members(&text)? {
        let known = wanted.iter().any(|(name, _)| *name == event);
        if !known && !ours_in(&text, host, &event)?.is_empty() {
            wrong.push(format!("{event} should not be there"));
        }
    }
    if wrong.is_empty() && missing.len() == wanted.len() {
        return Ok(State::Absent);
    }
    wrong.extend(missing);
    wrong.extend(off_in(&text, host)?);
    Ok(if wrong.is_empty() {
        State::Intact
    } else {
        State::Changed(wrong)
    })
}

/// What switches our hooks off in a text, in words. One that cannot be read switches nothing off.
#[must_use]
pub fn switched_off(text: &str, host: Host) -> Vec<String> {
    let text = Text::read(text);
    text.and_then(|it| off_in(&it, host)).unwrap_or_default()
}

fn off_in(text: &Text, host: Host) -> Result<Vec<String>, JsonError> {
    let root = text.root()?;
    let at = |path: &[&str]| {
        let node = path.iter().try_fold(&root, |node, name| node.member(name));
        node.map(|node| text.value(node))
    };
    let off = table::switches(host).iter();
    let off = off.filter(|(path, off)| at(path).is_some_and(|it| it == *off));
    let named = table::lists_of_those_off(host).iter().filter(|path| {
        let listed = at(path);
        let listed = listed.as_ref().and_then(Value::as_array);
        listed.is_some_and(|it| it.iter().any(|name| name == entry::NAME))
    });
    let paths = off.map(|(path, _)| path).chain(named);
    Ok(paths
        .map(|path| format!("hooks are switched off by `{}`", path.join(".")))
        .collect())
}

/// How our entries in a text are wired, as the one before tools says it.
#[must_use]
pub fn wiring_in(text: &str, host: Host) -> Option<Wiring> {
    let text = Text::read(text).ok()?;
    let found = ours_in(&text, host, table::gate(host)).ok()?;
    let words = command_words(&found.first()?.handler);
    entry::wiring_of(&words)
}

/// How the two timers of an entry differ, if they do: the agent's own, and the one that the hook goes by.
fn differs(host: Host, one: &Ours) -> String {
    let pinned = table::pinned(host, &one.handler);
    let told = entry::wiring_of(&command_words(&one.handler)).map(|it| it.timeout);
    match (pinned, told) {
        (None, _) => ": no timeout is pinned".to_owned(),
        (Some(pinned), Some(told)) if pinned != told => {
            format!(": the agent waits {pinned} s and the hook {told} s")
        }
        (Some(_), Some(_) | None) => String::new(),
    }
}

/// One of our entries.
struct Ours {
    /// Which item of the list it is in.
    item: usize,
    /// Which handler of that item, where items have several.
    inner: usize,
    /// Whether nothing else is in that item.
    alone: bool,
    /// The item.
    value: Value,
    /// The handler.
    handler: Value,
}

fn hooks(text: &Text) -> Result<Node, JsonError> {
    let hooks = text.root()?.member("hooks").cloned();
    let Some(hooks) = hooks else {
        return Ok(Node {
            span: 0..0,
            kind: json::Kind::Object(Vec::new()),
        });
    };
    text.object("hooks", &hooks)?;
    Ok(hooks)
}

/// The names of the events that a text has hooks for.
fn event_members(text: &Text) -> Result<Vec<String>, JsonError> {
    let hooks = hooks(text)?;
    // Beside events some agents keep switches there.
    let lists = hooks.members().iter().filter(|it| is_list(&it.value));
    Ok(lists.map(|it| it.name.clone()).collect())
}

fn is_list(node: &Node) -> bool {
    matches!(node.kind, json::Kind::Array(_))
}

fn ours_in(text: &Text, host: Host, event: &str) -> Result<Vec<Ours>, JsonError> {
    let hooks = hooks(text)?;
    let Some(list) = hooks.member(event) else {
        return Ok(Vec::new());
    };
    text.array(event, list)?;
    let mut found = Vec::new();
    for (item, node) in list.items().iter().enumerate() {
        let handlers = node.member("hooks").map(Node::items);
        let handlers = match handlers {
            Some(handlers) => handlers.iter().collect(),
            None => vec![node],
        };
        let alone = handlers.len() == 1;
        for (inner, handler) in handlers.into_iter().enumerate() {
            let handler = text.value(handler);
            if entry::is_ours(host, &handler) {
                found.push(Ours {
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

/// Takes our entries out of one event. Tells whether there were any.
fn take_out(text: &mut Text, host: Host, event: &str) -> Result<bool, JsonError> {
    let mut found = false;
    // Places move with every change.
    while let Some(one) = ours_in(text, host, event)?.pop() {
        found = true;
        let hooks = hooks(text)?;
        let Some(list) = hooks.member(event) else {
            break;
        };
        let handlers = list.items().get(one.item).and_then(|it| it.member("hooks"));
        match handlers.filter(|_| !one.alone) {
            Some(handlers) => text.remove(handlers, one.inner),
            None => text.remove(list, one.item),
        }
    }
    Ok(found)
}

fn put_in(
    text: &mut Text,
    host: Host,
    event: &str,
    entry: &Entry,
    made: &mut Vec<String>,
) -> Result<(), JsonError> {
    let found = ours_in(text, host, event)?;
    if let [one] = found.as_slice()
        && one.alone
    {
        let hooks = hooks(text)?;
        let there = hooks.member(event).and_then(|it| it.items().get(one.item));
        let same = serde_json::to_value(entry).is_ok_and(|it| it == one.value);
        if let (Some(there), false) = (there, same) {
            text.replace(there, entry);
        }
        return Ok(());
    }
    take_out(text, host, event)?;
    let hooks = hooks(text)?;
    if let Some(list) = hooks.member(event) {
        text.add_item(list, entry);
    } else {
        text.add_member(&hooks, event, &[entry]);
        made.push(format!("hooks/{event}"));
    }
    Ok(())
}
