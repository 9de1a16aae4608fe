//! `when:` conditions: data, not a language; compiled at load time and linear in the examined values.
//!
//! Three-valued on purpose. A fact that is missing, or is of another type than the test, gives [`Truth::Unknown`], and
//! the rule decides what that means: for a gate it counts as true, because a request must not slip past it by leaving a
//! parameter out or by naming it differently. Only `exists` asks about absence. A fact that its moment does not have at
//! all, such as parameters at an input, is not missing: tests of it are false, and comparisons unknown.

use std::borrow::Cow;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::base::clock::Timestamp;
use crate::base::pattern::Pattern;

use super::model::compile_regex;

mod display;
mod fact;
mod leaf;

pub use leaf::{LeafReport, LeafTest};

/// A condition as written in the manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionDef {
    /// All parts must hold.
    All(Vec<ConditionDef>),
    /// At least one part must hold.
    Any(Vec<ConditionDef>),
    /// The part must not hold.
    Not(Box<ConditionDef>),
    /// A test of one fact.
    Leaf {
        /// Path of the fact: `params.amount`.
        path: String,
        /// The operators and expected values; all tests must pass.
        tests: Vec<(Operator, Value)>,
    },
}

/// Serializes the condition in the manifest format.
impl Serialize for ConditionDef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::All(parts) => map.serialize_entry("all", parts)?,
            Self::Any(parts) => map.serialize_entry("any", parts)?,
            Self::Not(part) => map.serialize_entry("not", part)?,
            Self::Leaf { path, tests } => {
                map.serialize_entry("path", path)?;
                for (operator, wanted) in tests {
                    map.serialize_entry(operator.as_str(), wanted)?;
                }
            }
        }
        map.end()
    }
}

impl JsonSchema for ConditionDef {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let part = generator.subschema_for::<Self>();
        let mut properties = serde_json::Map::new();
        properties.insert("path".to_owned(), json!({"type": "string"}));
        for (name, _) in Operator::NAMES {
            properties.insert((*name).to_owned(), Value::Bool(true));
        }
        let one_of = |key: &str, schema: Value| {
            json!({"type": "object", "properties": {key: schema}, "required": [key],
                   "additionalProperties": false})
        };
        let parts = json!({"type": "array", "items": part});
        json_schema!({
            "description": "Either `all`, `any` or `not` with conditions, or a `path` with operators. Times (`time.hour`, `time.minute`, `time.weekday`, `time.date`) are in UTC.",
            "oneOf": [
                one_of("all", parts.clone()),
                one_of("any", parts),
                one_of("not", part.to_value()),
                {"type": "object", "properties": properties, "required": ["path"],
                 "additionalProperties": false},
            ],
        })
    }
}

impl ConditionDef {
    /// Returns every path in the condition, in the order written.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::paths).collect(),
            Self::Not(part) => part.paths(),
            Self::Leaf { path, .. } => vec![path],
        }
    }
}

/// The operator of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// The fact equals the value.
    Eq,
    /// The fact differs from the value.
    Ne,
    /// The fact equals one of the values.
    In,
    /// The fact is greater than the value.
    Gt,
    /// The fact is greater than or equal to the value.
    Gte,
    /// The fact is less than the value.
    Lt,
    /// The fact is less than or equal to the value.
    Lte,
    /// A regular expression matches a part of the fact.
    Matches,
    /// A wildcard pattern matches the whole fact.
    Glob,
    /// The fact contains the text or the item.
    Contains,
    /// The fact starts with the text.
    StartsWith,
    /// The fact ends with the text.
    EndsWith,
    /// The fact exists (`true`) or does not exist (`false`).
    Exists,
}

impl Operator {
    /// Every operator with its name in manifests.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("in", Self::In),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("matches", Self::Matches),
        ("glob", Self::Glob),
        ("contains", Self::Contains),
        ("starts_with", Self::StartsWith),
        ("ends_with", Self::EndsWith),
        ("exists", Self::Exists),
    ];

    /// Returns the operator's name in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, operator)| *operator == self)
            .map_or("", |(name, _)| name)
    }
}

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The facts do not allow a decision.
    Unknown,
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The facts that conditions can read.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The requested action.
    pub action: Option<&'a str>,
    /// The parameters of the action.
    pub params: Option<&'a Value>,
    /// The text of the input.
    pub input: Option<&'a str>,
    /// The session's identifier.
    pub session: &'a str,
    /// The agent of the session.
    pub agent: &'a str,
    /// The intent that the session declared.
    pub intent: Option<&'a str>,
    /// Number of allowed runs in the session.
    pub actions: u64,
    /// Start time of the session.
    pub started_at: Timestamp,
    /// The current time.
    pub now: Timestamp,
}

/// A compiled condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// All parts must hold.
    All(Vec<Condition>),
    /// At least one part must hold.
    Any(Vec<Condition>),
    /// The part must not hold.
    Not(Box<Condition>),
    /// A test of one fact.
    Leaf(Leaf),
}

/// A test of one fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    path: FactPath,
    written: String,
    tests: Vec<LeafTest>,
}

/// The fact that a leaf reads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FactPath {
    Action,
    Params(Vec<String>),
    Input,
    Session(SessionFact),
    Time(TimeFact),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionFact {
    Id,
    Agent,
    Intent,
    Actions,
    AgeSeconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeFact {
    Hour,
    Minute,
    Weekday,
    Date,
}

/// An error in a condition, with its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ConditionError {
    /// Path from the condition's root: `all[1].matches`.
    pub path: String,
    /// Description of the error.
    pub what: String,
}

/// The facts with fixed names. `params` is not in the list because its path continues.
const FACT_NAMES: &[(&str, FactPath)] = &[
    ("action", FactPath::Action),
    ("input", FactPath::Input),
    ("session.id", FactPath::Session(SessionFact::Id)),
    ("session.agent", FactPath::Session(SessionFact::Agent)),
    ("session.intent", FactPath::Session(SessionFact::Intent)),
    ("session.actions", FactPath::Session(SessionFact::Actions)),
    (
        "session.age_seconds",
        FactPath::Session(SessionFact::AgeSeconds),
    ),
    ("time.hour", FactPath::Time(TimeFact::Hour)),
    ("time.minute", FactPath::Time(TimeFact::Minute)),
    ("time.weekday", FactPath::Time(TimeFact::Weekday)),
    ("time.date", FactPath::Time(TimeFact::Date)),
];

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// Every error in the condition, each with its path.
    pub fn compile(definition: &ConditionDef) -> Result<Self, Vec<ConditionError>> {
        let mut errors = Vec::new();
        let compiled = compile(definition, "", &mut errors);
        match compiled {
            Some(condition) if errors.is_empty() => Ok(condition),
            Some(_) | None => Err(errors),
        }
    }

    /// Evaluates the condition.
    #[must_use]
    pub fn evaluate(&self, facts: &Facts<'_>) -> Truth {
        match self {
            Self::All(parts) => {
                parts
                    .iter()
                    .fold(Truth::True, |sum, part| match (sum, part.evaluate(facts)) {
                        (Truth::False, _) | (_, Truth::False) => Truth::False,
                        (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
                        (Truth::True, Truth::True) => Truth::True,
                    })
            }
            Self::Any(parts) => parts.iter().fold(Truth::False, |sum, part| {
                match (sum, part.evaluate(facts)) {
                    (Truth::True, _) | (_, Truth::True) => Truth::True,
                    (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
                    (Truth::False, Truth::False) => Truth::False,
                }
            }),
            Self::Not(part) => part.evaluate(facts).not(),
            Self::Leaf(leaf) => leaf.evaluate(facts),
        }
    }

    /// Reports the expected and the actual value of each leaf, in the order written.
    #[must_use]
    pub fn explain(&self, facts: &Facts<'_>) -> Vec<LeafReport> {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().flat_map(|part| part.explain(facts)).collect()
            }
            Self::Not(part) => part.explain(facts),
            Self::Leaf(leaf) => leaf.explain(facts),
        }
    }
}

fn compile(
    definition: &ConditionDef,
    place: &str,
    errors: &mut Vec<ConditionError>,
) -> Option<Condition> {
    let at = |part: String| {
        if place.is_empty() {
            part
        } else {
            format!("{place}.{part}")
        }
    };
    let mut parts = |name: &str, definitions: &[ConditionDef]| {
        if definitions.is_empty() {
            let what = format!("`{name}` needs at least one condition");
            errors.push(ConditionError {
                path: at(name.to_owned()),
                what,
            });
        }
        let parts = definitions.iter().enumerate();
        let parts =
            parts.map(|(index, part)| compile(part, &at(format!("{name}[{index}]")), errors));
        // All parts are compiled before the first failure is returned, so that all errors are reported.
        parts
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Option<Vec<_>>>()
    };
    match definition {
        ConditionDef::All(definitions) => parts("all", definitions).map(Condition::All),
        ConditionDef::Any(definitions) => parts("any", definitions).map(Condition::Any),
        ConditionDef::Not(part) => {
            compile(part, &at("not".to_owned()), errors).map(|part| Condition::Not(Box::new(part)))
        }
        ConditionDef::Leaf { path, tests } => {
            let fact = fact_path(path).map_err(|what| {
                errors.push(ConditionError {
                    path: at("path".to_owned()),
                    what,
                });
            });
            if tests.is_empty() {
                let what = "a `path` needs at least one operator".to_owned();
                errors.push(ConditionError {
                    path: place.to_owned(),
                    what,
                });
            }
            let tests: Vec<_> = tests
                .iter()
                .filter_map(|(operator, wanted)| {
                    LeafTest::compile(*operator, wanted)
                        .map_err(|what| {
                            let path = at(operator.as_str().to_owned());
                            errors.push(ConditionError { path, what });
                        })
                        .ok()
                })
                .collect();
            Some(Condition::Leaf(Leaf {
                path: fact.ok()?,
                written: path.clone(),
                tests,
            }))
        }
    }
}

fn fact_path(text: &str) -> Result<FactPath, String> {
    if let Some((_, path)) = FACT_NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(path.clone());
    }
    let keys = match text.strip_prefix("params.") {
        Some(rest) => rest.split('.').map(str::to_owned).collect::<Vec<_>>(),
        None if text == "params" => Vec::new(),
        None => {
            let known: Vec<_> = FACT_NAMES
                .iter()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            return Err(format!(
                "unknown path `{}`; known paths: `params...`, {}",
                crate::base::text::one_line(text),
                known.join(", ")
            ));
        }
    };
    if keys.iter().any(String::is_empty) {
        return Err("a path must not have empty parts".to_owned());
    }
    Ok(FactPath::Params(keys))
}

/// A regular expression of a condition.
fn regex(pattern: &str) -> Result<Regex, String> {
    compile_regex(pattern).map_err(|error| {
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default();
        format!(
            "not a regular expression: {}",
            reason.trim_start_matches("error: ")
        )
    })
}

/// Compiles a wildcard pattern of a condition.
fn glob(pattern: &str) -> Pattern {
    Pattern::new(pattern)
}

#[cfg(test)]
mod tests;
