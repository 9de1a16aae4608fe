//! Reader for other YAML and JSON files, with the position of every value.
//!
//! A decoder walks [`LocatedValue`] values and reports into [`FileProblems`]. Problems are shown like those of an Atlas, with
//! the source line underlined.

use std::path::Path;

use serde_json::Value;

use super::diagnostic::{ByteSpan, Code, ManifestProblem, Problems, quoted, shortened};
use super::loader::{LoadError, read_bytes, to_text};
use super::suggest::closest_match;
use super::yaml::{self, YamlNode, YamlValue};

/// All problems of a file.
pub(crate) struct FileProblems<'s>(Problems<'s>);

/// Reads and decodes a file, or returns all its problems.
pub(crate) fn decode_file<T>(
    path: &Path,
    decode: impl FnOnce(&LocatedValue<'_>, &mut FileProblems<'_>) -> Option<T>,
) -> Result<T, LoadError> {
    decode_bytes(&path.to_string_lossy(), read_bytes(path)?, decode)
}

/// Decodes the bytes of a file; messages use `name` as the file name.
pub(crate) fn decode_bytes<T>(
    name: &str,
    bytes: Vec<u8>,
    decode: impl FnOnce(&LocatedValue<'_>, &mut FileProblems<'_>) -> Option<T>,
) -> Result<T, LoadError> {
    let source = to_text(name, bytes)?;
    let mut faults = FileProblems(Problems::new(name, &source));
    let root = yaml::parse(&source, &mut faults.0).filter(|_| !faults.0.has_errors());
    let decoded = root.and_then(|root| decode(&LocatedValue::root(&root), &mut faults));
    match decoded {
        Some(decoded) if !faults.0.has_errors() => Ok(decoded),
        Some(_) | None => Err(LoadError::Invalid {
            diagnostics: faults.0.into_diagnostics(),
            source_text: source,
        }),
    }
}

/// A value of a file, with its path and its position.
#[derive(Clone)]
pub(crate) struct LocatedValue<'n> {
    node: &'n YamlNode,
    path: String,
    /// Position reported when a key is missing in the value.
    place: ByteSpan,
}

impl<'n> LocatedValue<'n> {
    fn root(node: &'n YamlNode) -> Self {
        Self {
            node,
            path: String::new(),
            place: node.start_span(),
        }
    }

    /// Returns the value as JSON.
    pub(crate) fn json(&self) -> Value {
        self.node.to_json()
    }

    /// Returns true for a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, YamlValue::Seq(_))
    }

    /// Returns the value of a key, if the map has it.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let YamlValue::Map(entries) = &self.node.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some(Self {
            node: &entry.node,
            path: super::decoder::join(&self.path, key),
            place: entry.key_span,
        })
    }

    /// Returns the value of a required key.
    pub(crate) fn require(&self, key: &str, faults: &mut FileProblems<'_>) -> Option<Self> {
        let found = self.get(key);
        if found.is_none() && matches!(self.node.value, YamlValue::Map(_)) {
            let problem = ManifestProblem::new(Code::MissingKey, format!("missing key `{key}`"));
            let path = super::decoder::join(&self.path, key);
            faults.0.add(problem.path(path).at(self.place));
        }
        found
    }

    /// Rejects a value that is not a map, and every key that is not in `known`.
    pub(crate) fn reject_unknown_keys(&self, known: &[&str], faults: &mut FileProblems<'_>) {
        let YamlValue::Map(entries) = &self.node.value else {
            let _: Option<()> = self.wrong_type("a map", faults);
            return;
        };
        let strange = entries.iter().filter(|e| !known.contains(&e.key.as_str()));
        for entry in strange {
            let message = format!("unknown key {}", quoted(&entry.key));
            let path = super::decoder::join(&self.path, &shortened(&entry.key));
            let problem = ManifestProblem::new(Code::UnknownKey, message).path(path);
            let help = advice(&entry.key, known);
            faults.0.add(problem.at(entry.key_span).help(help));
        }
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self, faults: &mut FileProblems<'_>) -> Vec<Self> {
        let YamlValue::Seq(items) = &self.node.value else {
            return self.wrong_type("a list", faults).unwrap_or_default();
        };
        let item = |(index, node): (usize, &'n YamlNode)| Self {
            node,
            path: format!("{}[{index}]", self.path),
            place: node.start_span(),
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Returns the texts of a list.
    pub(crate) fn texts(&self, faults: &mut FileProblems<'_>) -> Vec<String> {
        let items = self.items(faults);
        items.iter().filter_map(|item| item.text(faults)).collect()
    }

    /// Reads a text.
    pub(crate) fn text(&self, faults: &mut FileProblems<'_>) -> Option<String> {
        match &self.node.value {
            YamlValue::String(text) => Some(text.clone()),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::Seq(_)
            | YamlValue::Map(_) => self.wrong_type("text", faults),
        }
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&self, faults: &mut FileProblems<'_>) -> Option<bool> {
        match &self.node.value {
            YamlValue::Bool(value) => Some(*value),
            YamlValue::Null
            | YamlValue::Number(_)
            | YamlValue::String(_)
            | YamlValue::Seq(_)
            | YamlValue::Map(_) => self.wrong_type("`true` or `false`", faults),
        }
    }

    /// Reads a whole number that is zero or greater.
    pub(crate) fn count(&self, faults: &mut FileProblems<'_>) -> Option<u64> {
        let number = match &self.node.value {
            YamlValue::Number(number) => number.as_u64(),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::String(_)
            | YamlValue::Seq(_)
            | YamlValue::Map(_) => None,
        };
        number.or_else(|| self.wrong_type("a whole number, 0 or greater", faults))
    }

    /// Reads one of the given words; `noun` names their kind in messages.
    pub(crate) fn word(
        &self,
        noun: &str,
        known: &[&'static str],
        faults: &mut FileProblems<'_>,
    ) -> Option<&'static str> {
        let text = self.text(faults)?;
        let found = known.iter().find(|word| **word == text);
        if found.is_none() {
            let message = format!("unknown {noun} {}", quoted(&text));
            let problem = self.problem(Code::UnknownValue, message);
            faults.0.add(problem.help(advice(&text, known)));
        }
        found.copied()
    }

    /// Returns the line of the value, from 1.
    pub(crate) fn line(&self, faults: &FileProblems<'_>) -> usize {
        faults.0.line(self.place)
    }

    /// Reports a value that cannot be used.
    pub(crate) fn report(&self, code: Code, message: &str, faults: &mut FileProblems<'_>) {
        faults.0.add(self.problem(code, message));
    }

    fn wrong_type<T>(&self, expected: &str, faults: &mut FileProblems<'_>) -> Option<T> {
        let message = format!("expected {expected}, found {}", self.node.describe());
        faults.0.add(self.problem(Code::WrongType, message));
        None
    }

    fn problem(&self, code: Code, message: impl Into<String>) -> ManifestProblem {
        let problem = ManifestProblem::new(code, message).path(self.path.clone());
        problem.at(self.node.start_span())
    }
}

fn advice(word: &str, known: &[&str]) -> String {
    match closest_match(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: `{}`", known.join("`, `")),
    }
}
