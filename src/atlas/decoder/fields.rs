//! A cursor over a map that reports every key the decoder did not read.
//!
//! The keys that a decoder reads are the known keys, so that there is no second list of keys to maintain.

use super::super::diagnostic::{ByteSpan, Code, ManifestProblem, Problems, quoted, shortened};
use super::super::suggest::closest_match;
use super::super::yaml::{YamlEntry, YamlNode, YamlValue};

/// The kinds of map in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::atlas) enum Section {
    Manifest,
    Steward,
    Access,
    AccessRate,
    Delivery,
    Notifications,
    Channels,
    Capability,
    Checkpoint,
    Trigger,
    Question,
    Validation,
    Guidance,
    Context,
    Policy,
    Action,
    Condition,
    ContextConfig,
    RiskConfig,
    CheckpointConfig,
    CacheConfig,
    TraceConfig,
}

/// Beginning of keys that stewards add for themselves.
pub(in crate::atlas) const OWN_KEY: &str = "x-";

impl Section {
    /// Tells whether a steward may add no keys here: rules about who may do what say nothing beside themselves.
    fn is_strict(self) -> bool {
        match self {
            Self::Access
            | Self::AccessRate
            // A steward who misspells a notification key would wait for notices that never come.
            | Self::Notifications
            | Self::Channels
            | Self::Trigger
            | Self::Policy
            | Self::Condition
            | Self::Validation
            | Self::ContextConfig
            | Self::RiskConfig
            | Self::CheckpointConfig
            | Self::CacheConfig
            | Self::TraceConfig => true,
            Self::Manifest
            | Self::Steward
            | Self::Delivery
            | Self::Capability
            | Self::Checkpoint
            | Self::Question
            | Self::Guidance
            | Self::Context
            | Self::Action => false,
        }
    }
}

/// Keys of a question that stewards put into its `validation` by mistake.
const QUESTION_KEYS: [&str; 10] = [
    "schema",
    "min",
    "max",
    "options",
    "expect",
    "on_invalid",
    "max_retries",
    "required",
    "hint",
    "sensitive",
];

/// Keys of a question's `validation`, of a trigger and of guidance that stewards put one level too high by mistake.
const VALIDATION_KEYS: [&str; 6] = [
    "pattern",
    "min_length",
    "max_length",
    "must_contain",
    "must_not_contain",
    "custom_validator",
];
const TRIGGER_KEYS: [&str; 12] = [
    "type",
    "patterns",
    "case_sensitive",
    "match_mode",
    "threshold",
    "min_tier",
    "capability_ids",
    "seconds",
    "actions",
    "trigger_id",
    "params",
    "on",
];
const GUIDANCE_KEYS: [&str; 5] = ["format", "content", "append", "expires_after", "labels"];

impl Section {
    /// Returns the correct location of a key that belongs to a neighbouring map. Ignoring such a key would silently
    /// drop a rule.
    fn correct_location(self, key: &str) -> Option<&'static str> {
        let of_question = || {
            let is_own = QUESTION_KEYS.contains(&key) || key == "validation";
            is_own.then_some("in a question, under `questions`")
        };
        match self {
            Self::Validation => QUESTION_KEYS
                .contains(&key)
                .then_some("in the question itself, next to `validation`"),
            Self::Question => VALIDATION_KEYS
                .contains(&key)
                .then_some("in the question's `validation`"),
            Self::Checkpoint if TRIGGER_KEYS.contains(&key) => Some("in the `trigger`"),
            Self::Checkpoint if GUIDANCE_KEYS.contains(&key) => Some("in the `guidance`"),
            Self::Checkpoint => of_question(),
            _ => None,
        }
    }
}

/// A node with its path.
pub(super) struct PathNode<'n> {
    pub(super) node: &'n YamlNode,
    pub(super) path: String,
    /// Position reported when a key is missing in the node.
    place: ByteSpan,
}

impl<'n> PathNode<'n> {
    pub(super) fn root(node: &'n YamlNode) -> Self {
        Self {
            node,
            path: String::new(),
            place: node.start_span(),
        }
    }

    pub(super) fn item(&self, index: usize, node: &'n YamlNode) -> Self {
        Self {
            node,
            path: format!("{}[{index}]", self.path),
            place: node.start_span(),
        }
    }

    /// The value of the `index`-th key of a map with keys chosen by the steward.
    pub(super) fn entry(&self, index: usize, entry: &'n YamlEntry) -> Self {
        Self {
            node: &entry.node,
            path: format!("{}[{index}]", self.path),
            place: entry.key_span,
        }
    }

    /// Creates a problem with this value, at its position.
    pub(super) fn problem(&self, code: Code, message: impl Into<String>) -> ManifestProblem {
        let span = match self.node.value {
            // Highlights only the start of a list or map, not all of it.
            YamlValue::Seq(_) | YamlValue::Map(_) => self.node.start_span(),
            YamlValue::Null | YamlValue::Bool(_) | YamlValue::Number(_) | YamlValue::String(_) => {
                self.node.span
            }
        };
        ManifestProblem::new(code, message)
            .path(self.path.clone())
            .at(span)
    }
}

/// The name of a key and its aliases.
#[derive(Clone, Copy)]
pub(super) struct FieldKey {
    name: &'static str,
    aliases: &'static [&'static str],
}

impl FieldKey {
    pub(super) const fn with_aliases(name: &'static str, aliases: &'static [&'static str]) -> Self {
        Self { name, aliases }
    }

    fn is(&self, written: &str) -> bool {
        self.name == written || self.aliases.contains(&written)
    }
}

impl From<&'static str> for FieldKey {
    fn from(name: &'static str) -> Self {
        Self::with_aliases(name, &[])
    }
}

/// The fields of one map.
pub(super) struct MapFields<'n, 'p, 's> {
    section: Section,
    path: &'p str,
    place: ByteSpan,
    entries: &'n [YamlEntry],
    taken: Vec<bool>,
    known: Vec<&'static str>,
    /// Suppresses reports about the keys of a map that was already reported as invalid or of unknown kind.
    muted: bool,
    pub(super) problems: &'p mut Problems<'s>,
}

/// Decodes a map by its fields, then reports the keys that the decoder did not read.
pub(super) fn decode_map<T>(
    value: &PathNode<'_>,
    section: Section,
    problems: &mut Problems<'_>,
    build: impl FnOnce(&mut MapFields<'_, '_, '_>) -> T,
) -> T {
    let entries = match &value.node.value {
        YamlValue::Map(entries) => Some(entries.as_slice()),
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Number(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_) => {
            let message = format!("expected a map, found {}", value.node.describe());
            problems.add(value.problem(Code::WrongType, message));
            None
        }
    };
    let mut fields = MapFields {
        section,
        path: &value.path,
        place: value.place,
        muted: entries.is_none(),
        entries: entries.unwrap_or_default(),
        taken: vec![false; entries.map_or(0, <[_]>::len)],
        known: Vec::new(),
        problems,
    };
    let decoded = build(&mut fields);
    fields.finish();
    decoded
}

impl MapFields<'_, '_, '_> {
    /// Returns true if the map contains the key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Reads a required key.
    pub(super) fn required<T>(
        &mut self,
        key: impl Into<FieldKey>,
        read: impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<T>,
    ) -> Option<T> {
        let key = key.into();
        if !self.muted && !self.entries.iter().any(|entry| key.is(&entry.key)) {
            let name = key.name;
            let problem = ManifestProblem::new(Code::MissingKey, format!("missing key `{name}`"))
                .path(join(self.path, name))
                .at(self.place);
            self.problems.add(problem);
        }
        self.optional(key, read)
    }

    /// Reads an optional key.
    pub(super) fn optional<T>(
        &mut self,
        key: impl Into<FieldKey>,
        read: impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<T>,
    ) -> Option<T> {
        let key = key.into();
        self.known.push(key.name);
        let index = self.find(key)?;
        let entry = self.entries.get(index)?;
        let value = PathNode {
            node: &entry.node,
            path: join(self.path, &entry.key),
            place: entry.key_span,
        };
        read(&value, self.problems)
    }

    /// Returns the index of a key under any of its names, and reports aliases with their canonical name.
    fn find(&mut self, key: FieldKey) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        let written: Vec<_> = entries.filter(|(_, entry)| key.is(&entry.key)).collect();
        let first = written.first().map(|(index, _)| *index);
        for (index, entry) in written {
            self.mark_as_read(index);
            let problem = if Some(index) != first {
                let message = format!("{} is written under two names", quoted(key.name));
                ManifestProblem::new(Code::Contradiction, message)
            } else if entry.key != key.name {
                let message = format!("key `{}` is an alias of `{}`", entry.key, key.name);
                ManifestProblem::new(Code::Alias, message)
            } else {
                continue;
            };
            let path = join(self.path, &entry.key);
            let help = format!("write `{}`, the canonical name", key.name);
            self.problems
                .add(problem.path(path).at(entry.key_span).help(help));
        }
        first
    }

    /// Rejects a key with a message and advice.
    pub(super) fn reject_key(&mut self, key: &str, message: &str, help: &str) {
        let Some(index) = self.entries.iter().position(|entry| entry.key == key) else {
            return;
        };
        self.mark_as_read(index);
        let place = self.entries.get(index).map(|entry| entry.key_span);
        self.problems.add(
            ManifestProblem::new(Code::Contradiction, message)
                .path(join(self.path, key))
                .at(place)
                .help(help.to_owned()),
        );
    }

    /// Reports a problem with the value of a key.
    pub(super) fn report_problem(&mut self, code: Code, key: &str, message: &str) {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        let span = entry.map_or(self.place, |entry| entry.key_span);
        let problem = ManifestProblem::new(code, message)
            .path(join(self.path, key))
            .at(span);
        self.problems.add(problem);
    }

    /// Suppresses reports about the remaining keys, because their meaning is unknown.
    pub(super) fn suppress_reports(&mut self) {
        self.muted = true;
    }

    fn mark_as_read(&mut self, index: usize) {
        if let Some(taken) = self.taken.get_mut(index) {
            *taken = true;
        }
    }

    /// Advice about a key that is not known.
    fn help_for(&self, key: &str) -> String {
        if let Some(place) = self.section.correct_location(key) {
            return format!("write it {place}");
        }
        if let Some(near) = closest_match(key, self.known.iter().copied()) {
            return format!("did you mean `{near}`?");
        }
        let known = format_words(self.known.iter().copied());
        if self.section.is_strict() {
            format!("known here: {known}")
        } else {
            format!("known here: {known}; start your own keys with `{OWN_KEY}`")
        }
    }

    fn finish(self) {
        if self.muted {
            return;
        }
        for (entry, taken) in self.entries.iter().zip(&self.taken) {
            if *taken {
                continue;
            }
            let key = quoted(&entry.key);
            let known = || format_words(self.known.iter().copied());
            let is_own = entry.key.starts_with(OWN_KEY) && !self.section.is_strict();
            let (code, message, help) = if is_own {
                let message = format!("custom key {key} is ignored");
                (
                    Code::IgnoredKey,
                    message,
                    format!("known here: {}", known()),
                )
            } else {
                // A key that is not understood may be a rule that was meant and is not there.
                let message = format!("unknown key {key}");
                (Code::UnknownKey, message, self.help_for(&entry.key))
            };
            self.problems.add(
                ManifestProblem::new(code, message)
                    .path(join(self.path, &shortened(&entry.key)))
                    .at(entry.key_span)
                    .help(help),
            );
        }
    }
}

/// Returns the path of `key` inside `path`.
pub(in crate::atlas) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Joins words in backticks with commas.
pub(super) fn format_words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let quoted: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
