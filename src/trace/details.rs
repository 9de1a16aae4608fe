//! Access to the details of an event that does not trust their shape.
//!
//! A record may come from another version or another machine, or may have been tampered with. A field
//! may be missing or have another type than expected. Readers take the fields that are valid and skip
//! the rest.

use serde_json::{Map, Value};

use super::event::{Event, NUMBERS_AS_TEXT};
use crate::base::json::with_numbers;

/// The details of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'e>(&'e Map<String, Value>);

impl<'e> Details<'e> {
    pub(crate) fn of(event: &'e Event) -> Self {
        Self(&event.payload)
    }

    pub(crate) fn new(details: &'e Map<String, Value>) -> Self {
        Self(details)
    }

    pub(crate) fn value(self, name: &str) -> Option<&'e Value> {
        self.0.get(name)
    }

    /// A string field; `None` if absent or of another type.
    pub(crate) fn text(self, name: &str) -> Option<&'e str> {
        self.value(name)?.as_str()
    }

    /// A string field as an owned `String`; empty if absent.
    pub(crate) fn text_or_empty(self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    pub(crate) fn number(self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        self.value(name)?.as_bool()
    }

    /// A nested object; `None` if absent or of another type.
    pub(crate) fn nested(self, name: &str) -> Option<Self> {
        self.value(name)?.as_object().map(Self)
    }

    /// The justification of an approval, marked where it was put together from the answers.
    pub(crate) fn justification(self) -> Option<String> {
        let text = self.text("justification").filter(|text| !text.is_empty())?;
        Some(match self.text("justification_source") {
            Some("answers") => format!("from the answers: {text}"),
            Some(_) | None => text.to_owned(),
        })
    }

    /// The parameters of a request, with numbers that were recorded as text as numbers again.
    pub(crate) fn params(self) -> Option<Value> {
        let params = self.value("action_params")?.clone();
        let paths: Vec<_> = self.texts(NUMBERS_AS_TEXT).collect();
        Some(with_numbers("action_params", params, &paths))
    }

    /// The texts of a list.
    pub(crate) fn texts(self, name: &str) -> impl Iterator<Item = &'e str> + use<'e> {
        let list = self.value(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }
}
