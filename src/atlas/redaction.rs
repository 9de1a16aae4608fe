//! Redaction of requests before they are recorded: the rules and their application.
//!
//! Contract: redaction never fails open. A value that is too deep, too long or too large to be examined piece by
//! piece is redacted as a whole. A marker replaces redacted text, and a separate list names each redaction with its
//! rule. Text that merely looks like the marker is not in the list.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexSet};
use serde_json::{Map, Value};

mod argument_list;
mod path;
mod secret_forms;

use self::argument_list::ArgumentCut;
use self::path::Path;
use super::Atlas;
use crate::base::canonical_json::digits_of_large;
use crate::base::limits::{
    MAX_REDACT_PATH, MAX_REDACT_PLACES, MAX_REDACTED_PATHS, MAX_SECRET_BYTES, MAX_SECRETS,
};
use crate::base::pattern::{Pattern, Patterns};

/// Replaces redacted text.
pub const MARKER: &str = "[redacted]";

/// Secrets shorter than this are only found as separate words, because they are part of many words.
const SHORT_SECRET: usize = 4;

/// A redaction rule.
#[derive(Clone, Debug)]
pub struct RedactionRule {
    /// Name in records: the Atlas and the index of the rule.
    pub name: String,
    /// Actions that the rule covers; all actions when empty.
    pub actions: Patterns,
    /// Parameter paths to redact, in lower case.
    pub params: Vec<Pattern>,
    /// Patterns to redact in any text.
    pub values: Vec<Regex>,
    /// All value patterns combined, to skip texts without a match quickly. Absent if the set would be too large.
    pub any: Option<RegexSet>,
}

impl RedactionRule {
    fn covers(&self, action: Option<&str>) -> bool {
        self.actions.is_empty() || action.is_some_and(|action| self.actions.matches(action))
    }
}

/// The redactions by one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionSummary {
    /// Paths of the redactions, up to a limit.
    pub paths: Vec<String>,
    /// Number of redactions.
    pub count: u64,
}

/// The redactions, by rule.
pub type Redactions = BTreeMap<String, RedactionSummary>;

/// Applies the rules for one action, and the built-in secret forms, to all records about it.
#[derive(Debug, Default)]
pub struct Redactor<'a> {
    rules: Vec<&'a RedactionRule>,
    secrets: KnownSecrets,
    redactions: Redactions,
}

/// The secrets redacted from the parameters; they are also searched in texts derived from the parameters.
#[derive(Debug, Default)]
struct KnownSecrets {
    /// The secrets, each with its rule.
    texts: BTreeMap<String, String>,
    bytes: usize,
    finder: Option<AhoCorasick>,
    overflow: bool,
}

impl<'a> Redactor<'a> {
    /// Creates a redactor with the rules for `action`; without an action, only rules for all actions apply.
    #[must_use]
    pub fn new(atlases: &'a [Atlas], action: Option<&str>) -> Self {
        let rules = atlases.iter().flat_map(|atlas| &atlas.recording.redact);
        Self {
            rules: rules.filter(|rule| rule.covers(action)).collect(),
            ..Self::default()
        }
    }

    /// Creates a redactor with every rule of these Atlases, for texts about any action.
    #[must_use]
    pub fn of_all(atlases: &'a [Atlas]) -> Self {
        let rules = atlases.iter().flat_map(|atlas| &atlas.recording.redact);
        Self {
            rules: rules.collect(),
            ..Self::default()
        }
    }

    /// Returns all redactions so far.
    #[must_use]
    pub fn into_redactions(self) -> Redactions {
        self.redactions
    }

    /// Redacts parameters recorded under `field`. Secrets found here are redacted from later texts as well.
    pub fn redact_params(&mut self, field: &str, params: &Value) -> Value {
        let mut path = Path::at(field);
        let redacted = self.redact_param_value(params, &mut path);
        self.secrets.compile();
        redacted
    }

    /// Collects the secrets of parameters without listing their redaction.
    pub fn learn_secrets(&mut self, params: &Value) {
        let known = self.redactions.clone();
        self.redact_params("", params);
        self.redactions = known;
    }

    /// Redacts a text from another source, recorded under `field`.
    pub fn redact_text(&mut self, field: &str, text: &str) -> String {
        let places = self.ranges_to_redact(text);
        self.replace_ranges(field, text, places)
    }

    /// Texts of a list, as they are recorded under `field`.
    pub fn texts(&mut self, field: &str, texts: &[String]) -> Vec<String> {
        texts
            .iter()
            .map(|text| self.redact_text(field, text))
            .collect()
    }

    /// Redacts data of another program, as it is recorded under `field`.
    pub fn redact_data(&mut self, field: &str, data: &Value) -> Value {
        let mut path = Path::at(field);
        self.redact_value(data, &mut path)
    }

    fn redact_param_value(&mut self, value: &Value, path: &mut Path) -> Value {
        if let Some(rule) = self.rule_at(path).or_else(|| path.secret_rule(value)) {
            self.count_redaction(&rule, &path.shown);
            self.secrets.add_value(value, &rule);
            return MARKER.into();
        }
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => match digits_of_large(number) {
                // The number is recorded as text, so it is redacted as text.
                Some(digits) => self.redact_number(value, &digits, |redactor| {
                    redactor.redact_param_text(&digits, path)
                }),
                None => value.clone(),
            },
            Value::String(text) => self.redact_param_text(text, path).into(),
            Value::Array(items) => self.items(None, items, path, Self::redact_param_value),
            Value::Object(fields) => {
                self.fields(fields, path, Self::pattern_ranges, Self::redact_param_value)
            }
        }
    }

    fn redact_param_text(&mut self, text: &str, path: &Path) -> String {
        let places = self.pattern_ranges(text);
        for place in &places {
            let secret = text.get(place.from..place.to).unwrap_or_default();
            self.secrets.add(secret, &place.rule);
        }
        self.replace_ranges(&path.shown, text, places)
    }

    /// Returns the number unchanged, or the rest of its digits if some were redacted.
    fn redact_number(
        &mut self,
        number: &Value,
        digits: &str,
        cut: impl FnOnce(&mut Self) -> String,
    ) -> Value {
        let left = cut(self);
        if left == digits {
            number.clone()
        } else {
            left.into()
        }
    }

    fn redact_value(&mut self, value: &Value, path: &mut Path) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => {
                let rule = self.secrets.texts.get(&number.to_string()).cloned();
                match rule {
                    Some(rule) => {
                        self.count_redaction(&rule, &path.shown);
                        MARKER.into()
                    }
                    None => match digits_of_large(number) {
                        Some(digits) => self.redact_number(value, &digits, |redactor| {
                            redactor.redact_text(&path.shown, &digits)
                        }),
                        None => value.clone(),
                    },
                }
            }
            Value::String(text) => match path.secret_rule(value) {
                Some(rule) => {
                    self.count_redaction(&rule, &path.shown);
                    MARKER.into()
                }
                None => self.redact_text(&path.shown, text).into(),
            },
            Value::Array(items) => self.items(None, items, path, Self::redact_value),
            Value::Object(fields) => {
                self.fields(fields, path, Self::ranges_to_redact, Self::redact_value)
            }
        }
    }

    /// A list. `program` is the command that its items are the arguments of, where it stands apart.
    fn items(
        &mut self,
        program: Option<&str>,
        items: &[Value],
        path: &mut Path,
        each: impl Fn(&mut Self, &Value, &mut Path) -> Value,
    ) -> Value {
        let mut secrets = argument_list::find(program, items, MAX_REDACT_PLACES + 1);
        let items = items.iter().enumerate();
        let items = items.map(|(index, item)| {
            let name = index.to_string();
            let before = path.enter(&name, &name);
            let own = secrets.extract_if(.., |cut| cut.index == index).collect();
            let item = match item.as_str() {
                Some(text) if self.rule_at(path).is_none() => self.argument(text, path, own),
                Some(_) | None => None,
            }
            .unwrap_or_else(|| each(self, item, path));
            path.leave(before);
            item
        });
        items.collect()
    }

    /// An argument of a command line with secrets that only the line tells; nothing where there are none.
    fn argument(&mut self, text: &str, path: &Path, secrets: Vec<ArgumentCut>) -> Option<Value> {
        if secrets.is_empty() {
            return None;
        }
        let mut places = self.ranges_to_redact(text);
        for cut in secrets {
            let rule = built_in(cut.form);
            self.secrets
                .add(text.get(cut.from..cut.to).unwrap_or_default(), &rule);
            places.push(RedactedRange {
                from: cut.from,
                to: cut.to,
                rule,
            });
        }
        Some(self.replace_ranges(&path.shown, text, places).into())
    }

    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        path: &mut Path,
        places: impl Fn(&Self, &str) -> Vec<RedactedRange>,
        each: impl Fn(&mut Self, &Value, &mut Path) -> Value,
    ) -> Value {
        let mut kept = Map::new();
        for (key, field) in fields {
            // A key can be a secret, too. A number distinguishes keys that are equal after redaction.
            let cut = places(self, key);
            let mut shown = self.replace_ranges(&path.shown, key, cut);
            if shown != *key {
                shown = format!("{shown} {}", kept.len());
            }
            let before = path.enter(key, &shown);
            let field = match (field, program_of(fields, key)) {
                (Value::Array(items), Some(program)) if self.rule_at(path).is_none() => {
                    self.items(Some(program), items, path, &each)
                }
                _ => each(self, field, path),
            };
            path.leave(before);
            kept.insert(shown, field);
        }
        kept.into()
    }

    /// Returns the rule that redacts the value at a path, if any.
    fn rule_at(&self, path: &Path) -> Option<String> {
        if path.depth == 0 {
            return None;
        }
        if path.too_long {
            let first = self.rules.first()?;
            return Some(format!("{} (path too long)", first.name));
        }
        let matching = self.rules.iter().find(|rule| {
            let mut patterns = rule.params.iter();
            patterns.any(|pattern| pattern.matches(&path.matched))
        });
        matching.map(|rule| rule.name.clone())
    }

    /// Returns all ranges of a text to redact.
    fn ranges_to_redact(&self, text: &str) -> Vec<RedactedRange> {
        let mut places = self.secret_ranges(text);
        places.extend(self.pattern_ranges(text));
        places
    }

    /// Returns the ranges where value patterns match.
    fn pattern_ranges(&self, text: &str) -> Vec<RedactedRange> {
        let mut places = Vec::new();
        for rule in &self.rules {
            if rule.any.as_ref().is_some_and(|any| !any.is_match(text)) {
                continue;
            }
            for pattern in &rule.values {
                let found = pattern.find_iter(text).filter(|found| !found.is_empty());
                // One more than the limit is enough to detect that there are too many.
                places.extend(
                    found
                        .take(MAX_REDACT_PLACES + 1)
                        .map(|found| RedactedRange {
                            from: found.start(),
                            to: found.end(),
                            rule: rule.name.clone(),
                        }),
                );
            }
        }
        let secrets = secret_forms::find_secrets(text, MAX_REDACT_PLACES + 1).into_iter();
        places.extend(secrets.map(|found| RedactedRange {
            from: found.from,
            to: found.to,
            rule: built_in(found.form),
        }));
        places
    }

    /// Returns the ranges with secrets of the parameters.
    fn secret_ranges(&self, text: &str) -> Vec<RedactedRange> {
        if self.secrets.overflow {
            let rule = self.rules.first().map(|rule| rule.name.clone());
            let whole = RedactedRange {
                from: 0,
                to: text.len(),
                rule: rule.unwrap_or_else(|| built_in("too_many_secrets")),
            };
            return vec![whole];
        }
        let Some(finder) = &self.secrets.finder else {
            return Vec::new();
        };
        let rules: Vec<_> = self.secrets.texts.values().collect();
        let found = finder.find_iter(text).filter(|hit| {
            let secret = text.get(hit.range()).unwrap_or_default();
            secret.chars().count() >= SHORT_SECRET || is_separate_word(text, hit.start(), hit.end())
        });
        let found = found.take(MAX_REDACT_PLACES + 1);
        found
            .map(|hit| RedactedRange {
                from: hit.start(),
                to: hit.end(),
                rule: rules
                    .get(hit.pattern().as_usize())
                    .map(|rule| (*rule).clone())
                    .unwrap_or_default(),
            })
            .collect()
    }

    /// Replaces the ranges of the text with the marker.
    fn replace_ranges(
        &mut self,
        field: &str,
        text: &str,
        mut places: Vec<RedactedRange>,
    ) -> String {
        let Some(first) = places.first() else {
            return text.to_owned();
        };
        if places.len() > MAX_REDACT_PLACES {
            let rule = first.rule.clone();
            self.count_redaction(&rule, field);
            return MARKER.to_owned();
        }
        places.sort_by_key(|place| (place.from, std::cmp::Reverse(place.to)));
        let mut kept = String::with_capacity(text.len());
        let mut end = 0;
        let mut marked = None;
        for place in &places {
            self.count_redaction(&place.rule, field);
            if place.from > end || marked.is_none() {
                kept.push_str(text.get(end..place.from).unwrap_or_default());
                kept.push_str(MARKER);
                marked = Some(());
            }
            end = end.max(place.to);
        }
        kept.push_str(text.get(end..).unwrap_or_default());
        kept
    }

    fn count_redaction(&mut self, rule: &str, path: &str) {
        let left_out = self.redactions.entry(rule.to_owned()).or_default();
        left_out.count += 1;
        let path = shortened(path);
        if left_out.paths.len() < MAX_REDACTED_PATHS && !left_out.paths.contains(&path) {
            left_out.paths.push(path);
        }
    }
}

impl KnownSecrets {
    /// Adds every text and number of a redacted value.
    fn add_value(&mut self, value: &Value, rule: &str) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.add(&number.to_string(), rule),
            Value::String(text) => self.add(text, rule),
            Value::Array(items) => {
                for item in items {
                    self.add_value(item, rule);
                }
            }
            Value::Object(fields) => {
                for field in fields.values() {
                    self.add_value(field, rule);
                }
            }
        }
    }

    fn add(&mut self, text: &str, rule: &str) {
        let text = text.trim();
        if text.is_empty() || self.overflow {
            return;
        }
        self.bytes += text.len();
        if self.texts.len() >= MAX_SECRETS || self.bytes > MAX_SECRET_BYTES {
            self.overflow = true;
            return;
        }
        // Texts may quote the secret in its JSON form.
        let quoted = Value::from(text).to_string();
        let quoted = quoted
            .strip_prefix('"')
            .and_then(|inner| inner.strip_suffix('"'));
        for form in [text, quoted.unwrap_or(text)] {
            let known = self.texts.entry(form.to_owned());
            known.or_insert_with(|| rule.to_owned());
        }
    }

    fn compile(&mut self) {
        if self.overflow || self.texts.is_empty() {
            return;
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.texts.keys());
        match finder {
            Ok(finder) => self.finder = Some(finder),
            Err(_) => self.overflow = true,
        }
    }
}

/// The command whose arguments the field `key` of an object has, where another field of it names the command.
fn program_of<'f>(fields: &'f Map<String, Value>, key: &str) -> Option<&'f str> {
    const ARGUMENTS: [&str; 4] = ["args", "argv", "arguments", "parameters"];
    const PROGRAM: [&str; 5] = ["command", "cmd", "program", "executable", "file"];
    let is_list = ARGUMENTS.iter().any(|name| key.eq_ignore_ascii_case(name));
    let mut names = fields.iter().filter(|_| is_list);
    names.find_map(|(name, field)| {
        let is_program = PROGRAM.iter().any(|known| name.eq_ignore_ascii_case(known));
        field.as_str().filter(|_| is_program)
    })
}

/// A place of a text that is left out.
struct RedactedRange {
    from: usize,
    to: usize,
    rule: String,
}

/// Name of a built-in form of secrets, as records list it.
fn built_in(form: &str) -> String {
    format!("built-in/{form}")
}

/// Returns whether a range of a text is not part of a longer word.
fn is_separate_word(text: &str, from: usize, to: usize) -> bool {
    let before = text.get(..from).and_then(|part| part.chars().next_back());
    let after = text.get(to..).and_then(|part| part.chars().next());
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

fn shortened(path: &str) -> String {
    path.chars().take(MAX_REDACT_PATH).collect()
}

#[cfg(test)]
mod tests;
