//! Single tests of single facts.

use std::cmp::Ordering;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use super::{Facts, Leaf, Operator, Truth, glob, regex};
use crate::base::json::compare;
use crate::base::pattern::Pattern;

/// The expected value, the actual value and the result of a leaf.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeafReport {
    /// Path of the fact.
    pub path: String,
    /// Operator and expected value: `gt 1000`.
    pub wanted: String,
    /// Actual value; absent when the fact does not exist.
    pub actual: Option<Value>,
    /// Result of the test.
    pub truth: Truth,
}

impl LeafReport {
    /// Tells whether the leaf cannot be judged because its fact is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.truth == Truth::Unknown && self.actual.is_none()
    }
}

/// Result of looking for a fact.
#[derive(Clone, Copy)]
enum Found<'v> {
    /// The fact.
    Value(&'v Value),
    /// The moment can have it, and does not.
    Missing,
    /// The moment never has it.
    Elsewhere,
}

impl<'v> Found<'v> {
    fn of(actual: Option<&'v Value>, is_of_moment: bool) -> Self {
        match actual {
            Some(actual) => Self::Value(actual),
            None if is_of_moment => Self::Missing,
            None => Self::Elsewhere,
        }
    }
}

/// One test, compiled.
#[derive(Clone, Debug)]
pub struct LeafTest {
    operator: Operator,
    wanted: Value,
    matcher: Matcher,
}

impl PartialEq for LeafTest {
    fn eq(&self, other: &Self) -> bool {
        // The matcher is derived from these two fields.
        (self.operator, &self.wanted) == (other.operator, &other.wanted)
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    /// Needs only the operator and the value.
    Plain,
    Regex(Regex),
    Glob(Pattern),
}

/// Displays the operator and the expected value: `gt 1000`.
impl std::fmt::Display for LeafTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.operator.as_str(), self.wanted)
    }
}

impl LeafTest {
    /// Compiles a test.
    ///
    /// # Errors
    /// Returns a message when the operator does not accept the value.
    pub(super) fn compile(operator: Operator, wanted: &Value) -> Result<Self, String> {
        let name = operator.as_str();
        let text = || wanted.as_str().ok_or(format!("`{name}` needs a text"));
        let matcher = match operator {
            Operator::Matches => Matcher::Regex(regex(text()?)?),
            Operator::Glob => Matcher::Glob(glob(text()?)),
            Operator::StartsWith | Operator::EndsWith => {
                text()?;
                Matcher::Plain
            }
            Operator::In if wanted.as_array().is_none_or(Vec::is_empty) => {
                return Err("`in` needs a list of values".to_owned());
            }
            Operator::Exists if !wanted.is_boolean() => {
                return Err("`exists` needs `true` or `false`".to_owned());
            }
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte
                if !(wanted.is_number() || wanted.is_string()) =>
            {
                return Err(format!("`{name}` needs a number or a text"));
            }
            Operator::Eq
            | Operator::Ne
            | Operator::In
            | Operator::Gt
            | Operator::Gte
            | Operator::Lt
            | Operator::Lte
            | Operator::Contains
            | Operator::Exists => Matcher::Plain,
        };
        Ok(Self {
            operator,
            wanted: wanted.clone(),
            matcher,
        })
    }

    fn evaluate(&self, found: Found<'_>) -> Truth {
        if self.operator == Operator::Exists {
            let is_there = matches!(found, Found::Value(_));
            return Truth::from(self.wanted == Value::Bool(is_there));
        }
        let actual = match found {
            Found::Value(actual) => actual,
            // A request that leaves a fact out cannot be judged by it.
            Found::Missing => return Truth::Unknown,
            Found::Elsewhere => return self.elsewhere(),
        };
        match self.operator {
            Operator::Eq => equal(actual, &self.wanted),
            Operator::Ne => equal(actual, &self.wanted).not(),
            Operator::In => self.is_in(actual),
            Operator::Gt => self.compare_order(actual, Ordering::is_gt),
            Operator::Gte => self.compare_order(actual, Ordering::is_ge),
            Operator::Lt => self.compare_order(actual, Ordering::is_lt),
            Operator::Lte => self.compare_order(actual, Ordering::is_le),
            Operator::Contains => self.contains(actual),
            Operator::Matches | Operator::Glob | Operator::StartsWith | Operator::EndsWith => {
                actual
                    .as_str()
                    .map_or(Truth::Unknown, |text| self.is_like(text))
            }
            Operator::Exists => Truth::Unknown,
        }
    }

    /// The result for a fact that the moment never has: it is not this, and has no order.
    fn elsewhere(&self) -> Truth {
        match self.operator {
            Operator::Ne => Truth::True,
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => Truth::Unknown,
            Operator::Eq
            | Operator::In
            | Operator::Matches
            | Operator::Glob
            | Operator::Contains
            | Operator::StartsWith
            | Operator::EndsWith
            | Operator::Exists => Truth::False,
        }
    }

    fn is_in(&self, actual: &Value) -> Truth {
        let mut unknown = Truth::False;
        for wanted in self.wanted.as_array().into_iter().flatten() {
            match equal(actual, wanted) {
                Truth::True => return Truth::True,
                Truth::Unknown => unknown = Truth::Unknown,
                Truth::False => {}
            }
        }
        unknown
    }

    fn compare_order(&self, actual: &Value, holds: fn(Ordering) -> bool) -> Truth {
        let order = match (actual, &self.wanted) {
            (Value::Number(actual), Value::Number(wanted)) => compare(actual, wanted),
            (Value::String(actual), Value::String(wanted)) => Some(actual.cmp(wanted)),
            _ => None,
        };
        order.map_or(Truth::Unknown, |order| Truth::from(holds(order)))
    }

    fn contains(&self, actual: &Value) -> Truth {
        match (actual, &self.wanted) {
            (Value::String(actual), Value::String(wanted)) => Truth::from(actual.contains(wanted)),
            (Value::Array(items), wanted) => {
                let found = items.iter().map(|item| equal(item, wanted));
                found.fold(Truth::False, |sum, one| match (sum, one) {
                    (Truth::True, _) | (_, Truth::True) => Truth::True,
                    (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
                    (Truth::False, Truth::False) => Truth::False,
                })
            }
            (Value::Object(fields), Value::String(wanted)) => {
                Truth::from(fields.contains_key(wanted))
            }
            _ => Truth::Unknown,
        }
    }

    fn is_like(&self, text: &str) -> Truth {
        let wanted = self.wanted.as_str().unwrap_or_default();
        Truth::from(match &self.matcher {
            Matcher::Regex(regex) => regex.is_match(text),
            Matcher::Glob(pattern) => pattern.matches(text),
            Matcher::Plain if self.operator == Operator::StartsWith => text.starts_with(wanted),
            Matcher::Plain => text.ends_with(wanted),
        })
    }
}

/// Compares two values. For different types the result is unknown: `"5"` may be meant as `5`.
fn equal(actual: &Value, wanted: &Value) -> Truth {
    match (actual, wanted) {
        (Value::Number(actual), Value::Number(wanted)) => {
            compare(actual, wanted).map_or(Truth::Unknown, |order| Truth::from(order.is_eq()))
        }
        (Value::Null, Value::Null) => Truth::True,
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => {
            Truth::from(actual == wanted)
        }
        (Value::Array(actual), Value::Array(wanted)) if actual.len() == wanted.len() => {
            let items = actual.iter().zip(wanted);
            all(items.map(|(actual, wanted)| equal(actual, wanted)))
        }
        (Value::Object(actual), Value::Object(wanted)) if actual.len() == wanted.len() => {
            all(wanted.iter().map(|(key, wanted)| {
                let found = actual.get(key);
                found.map_or(Truth::False, |found| equal(found, wanted))
            }))
        }
        (Value::Null, _)
        | (_, Value::Null)
        | (Value::Array(_), Value::Array(_))
        | (Value::Object(_), Value::Object(_)) => Truth::False,
        _ => Truth::Unknown,
    }
}

/// Combines truth values with a logical and.
fn all(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut sum = Truth::True;
    for part in parts {
        match part {
            Truth::False => return Truth::False,
            Truth::Unknown => sum = Truth::Unknown,
            Truth::True => {}
        }
    }
    sum
}

impl Leaf {
    pub(super) fn evaluate(&self, facts: &Facts<'_>) -> Truth {
        let actual = self.path.read(facts);
        let found = Found::of(actual.as_deref(), self.path.is_of(facts));
        let mut sum = Truth::True;
        for test in &self.tests {
            match test.evaluate(found) {
                Truth::False => return Truth::False,
                Truth::Unknown => sum = Truth::Unknown,
                Truth::True => {}
            }
        }
        sum
    }

    pub(super) fn explain(&self, facts: &Facts<'_>) -> Vec<LeafReport> {
        let actual = self.path.read(facts);
        let found = Found::of(actual.as_deref(), self.path.is_of(facts));
        let report = |test: &LeafTest| LeafReport {
            path: self.written.clone(),
            wanted: test.to_string(),
            actual: actual.as_deref().cloned(),
            truth: test.evaluate(found),
        };
        self.tests.iter().map(report).collect()
    }
}
