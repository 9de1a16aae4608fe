//! Readers for single values: each returns the decoded value, or reports the problem.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};

use super::super::diagnostic::{Code, Problems, quoted};
use super::super::suggest::closest_match;
use super::super::yaml::{YamlValue, json_map};
use super::fields::{PathNode, format_words};
use crate::base::json::compare_with;

/// Reads a text.
pub(super) fn text(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<String> {
    if let YamlValue::String(text) = &value.node.value {
        return Some(text.clone());
    }
    let help = match &value.node.value {
        YamlValue::Number(_) | YamlValue::Bool(_) => Some("put it in quotes"),
        YamlValue::Null => Some("give it a value, or remove the key"),
        YamlValue::String(_) | YamlValue::Seq(_) | YamlValue::Map(_) => None,
    };
    wrong_type(value, "text", help, problems)
}

/// Reads `true` or `false`.
pub(super) fn boolean(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<bool> {
    match &value.node.value {
        YamlValue::Bool(value) => Some(*value),
        YamlValue::Null
        | YamlValue::Number(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_)
        | YamlValue::Map(_) => wrong_type(value, "`true` or `false`", None, problems),
    }
}

/// Reads a whole number.
pub(super) fn integer(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<i64> {
    whole_number(value, problems, serde_json::Number::as_i64)
}

/// Largest number that is read as a double: up to 2^53 every whole number is exact. The schema has the same bound.
const LARGEST_NUMBER: f64 = 9_007_199_254_740_992.0;

/// Reads a number, whole or fractional.
pub(super) fn number(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<f64> {
    match &value.node.value {
        YamlValue::Number(number) => {
            let double = number.as_f64();
            let exact = double.filter(|double| {
                let is_equal = compare_with(number, *double) == Some(Ordering::Equal);
                is_equal && double.abs() <= LARGEST_NUMBER
            });
            if exact.is_none() {
                let message = format!("number `{number}` cannot be stored exactly");
                let help = format!("use a number from -{LARGEST_NUMBER} to {LARGEST_NUMBER}");
                problems.add(value.problem(Code::OutOfRange, message).help(help));
            }
            exact
        }
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_)
        | YamlValue::Map(_) => wrong_type(value, "a number", None, problems),
    }
}

/// Reads a whole number that is zero or greater.
pub(super) fn count<T: TryFrom<u64>>(
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
) -> Option<T> {
    whole_number(value, problems, |number| {
        number.as_u64().and_then(|number| T::try_from(number).ok())
    })
}

/// Returns true for a whole number. `60.0` counts as whole, as in JSON Schema.
fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|double| double.fract() == 0.0)
}

/// Converts a whole number written with a fraction (`60.0`) to an integer.
fn without_fraction(number: &serde_json::Number) -> serde_json::Number {
    let digits = number.as_f64().filter(|_| number.is_f64());
    let whole = digits.and_then(|double| format!("{double:.0}").parse::<serde_json::Number>().ok());
    whole.unwrap_or_else(|| number.clone())
}

fn whole_number<T>(
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
    read: impl Fn(&serde_json::Number) -> Option<T>,
) -> Option<T> {
    match &value.node.value {
        YamlValue::Number(number) if is_whole(number) => {
            let fitting = read(&without_fraction(number));
            if fitting.is_none() {
                let message = format!("number `{number}` is out of range");
                problems.add(value.problem(Code::OutOfRange, message));
            }
            fitting
        }
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Number(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_)
        | YamlValue::Map(_) => wrong_type(value, "a whole number", None, problems),
    }
}

/// Reads a list. An unreadable item is replaced by a placeholder, so that the other items keep their index.
pub(super) fn list<T>(
    read: fn(&PathNode<'_>, &mut Problems<'_>) -> T,
) -> impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<Vec<T>> {
    move |value, problems| {
        let items = items(value, problems)?;
        Some(
            items
                .iter()
                .enumerate()
                .map(|(index, node)| read(&value.item(index, node), problems))
                .collect(),
        )
    }
}

/// Adapts a map decoder to a key reader. A map decoder always returns a value, if only a placeholder.
pub(super) fn infallible<T>(
    read: fn(&PathNode<'_>, &mut Problems<'_>) -> T,
) -> impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<T> {
    move |value, problems| Some(read(value, problems))
}

/// Reads a map with keys chosen by the steward, in the order written.
pub(super) fn ordered_map<T>(
    read: fn(&PathNode<'_>, &mut Problems<'_>) -> T,
) -> impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<Vec<(String, T)>> {
    move |value, problems| {
        let YamlValue::Map(entries) = &value.node.value else {
            return wrong_type(value, "a map", None, problems);
        };
        let entries = entries.iter().enumerate().map(|(index, entry)| {
            let read = read(&value.entry(index, entry), problems);
            (entry.key.clone(), read)
        });
        Some(entries.collect())
    }
}

/// Reads a list of texts.
pub(super) fn texts(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    list(|value, problems| text(value, problems).unwrap_or_default())(value, problems)
}

fn items<'n>(
    value: &PathNode<'n>,
    problems: &mut Problems<'_>,
) -> Option<&'n [super::super::yaml::YamlNode]> {
    let help = match &value.node.value {
        YamlValue::Seq(items) => return Some(items),
        YamlValue::Null => Some("give it a value, or remove the key"),
        YamlValue::String(_) => Some("write it as a list: `[...]`"),
        YamlValue::Bool(_) | YamlValue::Number(_) | YamlValue::Map(_) => None,
    };
    wrong_type(value, "a list", help, problems)
}

/// Reads one of the given words; `noun` names their kind in messages.
pub(super) fn one_of<T: Copy>(
    noun: &'static str,
    names: &'static [(&'static str, T)],
) -> impl Fn(&PathNode<'_>, &mut Problems<'_>) -> Option<T> {
    move |value, problems| {
        let Some(word) = value.node.word() else {
            let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
                "an"
            } else {
                "a"
            };
            return wrong_type(value, &format!("{article} {noun}"), None, problems);
        };
        let known = names.iter().find(|(name, _)| *name == word);
        if known.is_none() {
            let words = names.iter().map(|(name, _)| *name);
            unknown_word(value, noun, word, words, problems);
        }
        known.map(|(_, named)| *named)
    }
}

/// Reports a word that is not in `known`.
pub(super) fn unknown_word<'w>(
    value: &PathNode<'_>,
    noun: &str,
    word: &str,
    known: impl Iterator<Item = &'w str> + Clone,
    problems: &mut Problems<'_>,
) {
    let all = format_words(known.clone());
    let help = match closest_match(word, known) {
        Some(near) => format!("did you mean `{near}`? known: {all}"),
        None => format!("known: {all}"),
    };
    let message = format!("unknown {noun} {}", quoted(word));
    problems.add(value.problem(Code::UnknownValue, message).help(help));
}

/// Reads a JSON Schema: an object or a boolean. Its content is checked when it is compiled.
pub(super) fn schema(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<Json> {
    match &value.node.value {
        YamlValue::Map(_) | YamlValue::Bool(_) => Some(value.node.to_json()),
        YamlValue::Null | YamlValue::Number(_) | YamlValue::String(_) | YamlValue::Seq(_) => {
            wrong_type(
                value,
                "a JSON Schema (a map, `true` or `false`)",
                None,
                problems,
            )
        }
    }
}

/// Reads a map with any content.
pub(super) fn object(
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
) -> Option<Map<String, Json>> {
    match &value.node.value {
        YamlValue::Map(entries) => Some(json_map(entries)),
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Number(_)
        | YamlValue::String(_)
        | YamlValue::Seq(_) => wrong_type(value, "a map", None, problems),
    }
}

fn wrong_type<T>(
    value: &PathNode<'_>,
    expected: &str,
    help: Option<&str>,
    problems: &mut Problems<'_>,
) -> Option<T> {
    let message = format!("expected {expected}, found {}", value.node.describe());
    problems.add(
        value
            .problem(Code::WrongType, message)
            .help(help.map(str::to_owned)),
    );
    None
}
