//! Access to JSON of arbitrary shape that records faults.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::Value;

use crate::base::text::one_line;

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SnapshotFault {
    /// Path of the value.
    pub place: String,
    /// Description of the fault.
    pub what: String,
}

/// Faults of one file, in the order found.
#[derive(Debug, Default)]
pub(super) struct SnapshotFaults(RefCell<Vec<SnapshotFault>>);

impl SnapshotFaults {
    pub(super) fn into_inner(self) -> Vec<SnapshotFault> {
        self.0.into_inner()
    }
}

/// A value in a file, with its path.
pub(super) struct JsonView<'v> {
    value: Option<&'v Value>,
    path: String,
    faults: &'v SnapshotFaults,
}

impl<'v> JsonView<'v> {
    pub(super) fn root(value: &'v Value, faults: &'v SnapshotFaults) -> Self {
        Self {
            value: Some(value),
            path: String::new(),
            faults,
        }
    }

    /// A field. A field of a value that is not an object is absent, and the fault is recorded once.
    pub(super) fn at(&self, key: &str) -> JsonView<'v> {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            above => format!("{above}.{key}"),
        };
        let value = match self.value {
            Some(Value::Object(fields)) => fields.get(key),
            Some(_) | None => None,
        };
        JsonView {
            value: value.filter(|value| !value.is_null()),
            path,
            faults: self.faults,
        }
    }

    /// First of several fields that exists; the path of the first field if none does.
    pub(super) fn first(&self, keys: &[&str]) -> JsonView<'v> {
        let found = keys.iter().map(|key| self.at(key));
        let mut found = found.filter(|look| look.value.is_some());
        let none = || self.at(keys.first().copied().unwrap_or_default());
        found.next().unwrap_or_else(none)
    }

    /// Records a fault if the value exists and is not an object.
    pub(super) fn expect_object(self) -> Self {
        if let Some(value) = self.value
            && !value.is_object()
        {
            self.record_wrong_type::<()>("an object");
        }
        self
    }

    /// A text in one line; `None` if it is empty.
    pub(super) fn text(&self) -> Option<String> {
        let text = match self.value? {
            Value::String(text) => one_line(text.trim()),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return self.record_wrong_type("a text");
            }
        };
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self.value? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => {
                let digits = text.trim().trim_end_matches('%').trim_end();
                let number = digits
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite());
                number.or_else(|| self.record_wrong_type("a number"))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.record_wrong_type("a number")
            }
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.value? {
            Value::Bool(truth) => Some(*truth),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.record_wrong_type("true or false"),
        }
    }

    /// Items of a list, each with its path.
    pub(super) fn list(&self) -> Vec<JsonView<'v>> {
        let items = match self.value {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => return self.record_wrong_type("a list").unwrap_or_default(),
        };
        let item = |(index, value)| JsonView {
            value: Some(value),
            path: format!("{}[{index}]", self.path),
            faults: self.faults,
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Items of a list, or fields of an object with their names.
    pub(super) fn entries(&self) -> Vec<(Option<String>, JsonView<'v>)> {
        let Some(Value::Object(fields)) = self.value else {
            return self.list().into_iter().map(|item| (None, item)).collect();
        };
        let entry = |key: &String| (Some(one_line(key)), self.at(key));
        fields.keys().map(entry).collect()
    }

    /// Text of this value, if it is a string.
    pub(super) fn own_text(&self) -> Option<String> {
        match self.value {
            Some(Value::String(_)) => self.text(),
            Some(_) | None => None,
        }
    }

    /// A list of texts. A single text counts as a list of one.
    pub(super) fn texts(&self) -> Vec<String> {
        match self.value {
            Some(Value::String(_)) => self.text().into_iter().collect(),
            Some(_) | None => self.list().iter().filter_map(JsonView::text).collect(),
        }
    }

    /// The raw JSON value.
    pub(super) fn raw(&self) -> Option<&'v Value> {
        self.value
    }

    /// Records a fault: the value is not of the wanted kind.
    pub(super) fn record_wrong_type<T>(&self, wanted: &str) -> Option<T> {
        let found = match self.value {
            Some(Value::Bool(_)) => "true or false",
            Some(Value::Number(_)) => "a number",
            Some(Value::String(_)) => "a text",
            Some(Value::Array(_)) => "a list",
            Some(Value::Object(_)) => "an object",
            Some(Value::Null) | None => "nothing",
        };
        self.add_fault(&format!("is {found}, not {wanted}"));
        None
    }

    /// Records a fault at this path.
    pub(super) fn add_fault(&self, what: &str) {
        let place = match self.path.as_str() {
            "" => "the file".to_owned(),
            path => one_line(path),
        };
        let what = what.to_owned();
        self.faults
            .0
            .borrow_mut()
            .push(SnapshotFault { place, what });
    }
}
