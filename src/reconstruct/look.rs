//! Looking into JSON that may be anything, and noting what is not as it should be.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::Value;

use crate::base::text::one_line;

/// Something in a file that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// Where, as a path.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// Faults of one file, as they are found.
#[derive(Debug, Default)]
pub(super) struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    pub(super) fn into_inner(self) -> Vec<Fault> {
        self.0.into_inner()
    }
}

/// A place in a file.
pub(super) struct Look<'v> {
    value: Option<&'v Value>,
    path: String,
    faults: &'v Faults,
}

impl<'v> Look<'v> {
    pub(super) fn at_all(value: &'v Value, faults: &'v Faults) -> Self {
        Self {
            value: Some(value),
            path: String::new(),
            faults,
        }
    }

    /// A field. One of something that is no object is not there, and that is noted once.
    pub(super) fn at(&self, key: &str) -> Look<'v> {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            above => format!("{above}.{key}"),
        };
        let value = match self.value {
            Some(Value::Object(fields)) => fields.get(key),
            Some(_) | None => None,
        };
        Look {
            value: value.filter(|value| !value.is_null()),
            path,
            faults: self.faults,
        }
    }

    /// The first of several fields that is there; the place of the first one where none is.
    pub(super) fn first(&self, keys: &[&str]) -> Look<'v> {
        let found = keys.iter().map(|key| self.at(key));
        let mut found = found.filter(|look| look.value.is_some());
        let none = || self.at(keys.first().copied().unwrap_or_default());
        found.next().unwrap_or_else(none)
    }

    /// Notes it where this is there and no object.
    pub(super) fn expect_object(self) -> Self {
        if let Some(value) = self.value
            && !value.is_object()
        {
            self.wrong::<()>("an object");
        }
        self
    }

    /// A text: of one line, and nothing where there is nothing in it.
    pub(super) fn text(&self) -> Option<String> {
        let text = match self.value? {
            Value::String(text) => one_line(text.trim()),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return self.wrong("a text");
            }
        };
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self.value? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => {
                let digits = text.trim().trim_end_matches('%').trim_end();
                let number = digits.parse::<f64>().ok().filter(|it| it.is_finite());
                number.or_else(|| self.wrong("a number"))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong("a number")
            }
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self.value? {
            Value::Bool(truth) => Some(*truth),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.wrong("true or false"),
        }
    }

    /// Each item of a list, with its place.
    pub(super) fn list(&self) -> Vec<Look<'v>> {
        let items = match self.value {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => return self.wrong("a list").unwrap_or_default(),
        };
        let item = |(index, value)| Look {
            value: Some(value),
            path: format!("{}[{index}]", self.path),
            faults: self.faults,
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Each item of a list, or each field of an object with its name.
    pub(super) fn entries(&self) -> Vec<(Option<String>, Look<'v>)> {
        let Some(Value::Object(fields)) = self.value else {
            return self.list().into_iter().map(|item| (None, item)).collect();
        };
        let entry = |key: &String| (Some(one_line(key)), self.at(key));
        fields.keys().map(entry).collect()
    }

    /// The text that stands here itself, if one does.
    pub(super) fn own_text(&self) -> Option<String> {
        match self.value {
            Some(Value::String(_)) => self.text(),
            Some(_) | None => None,
        }
    }

    /// A list of texts. One text is a list of it.
    pub(super) fn texts(&self) -> Vec<String> {
        match self.value {
            Some(Value::String(_)) => self.text().into_iter().collect(),
            Some(_) | None => self.list().iter().filter_map(Look::text).collect(),
        }
    }

    /// As it lies.
    pub(super) fn raw(&self) -> Option<&'v Value> {
        self.value
    }

    /// Notes that something else stands here than should.
    pub(super) fn wrong<T>(&self, wanted: &str) -> Option<T> {
        let found = match self.value {
            Some(Value::Bool(_)) => "true or false",
            Some(Value::Number(_)) => "a number",
            Some(Value::String(_)) => "a text",
            Some(Value::Array(_)) => "a list",
            Some(Value::Object(_)) => "an object",
            Some(Value::Null) | None => "nothing",
        };
        self.note(&format!("is {found}, not {wanted}"));
        None
    }

    /// Notes something about this place.
    pub(super) fn note(&self, what: &str) {
        let place = match self.path.as_str() {
            "" => "the file".to_owned(),
            path => one_line(path),
        };
        let what = what.to_owned();
        self.faults.0.borrow_mut().push(Fault { place, what });
    }
}
