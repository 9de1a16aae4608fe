//! The details of an event, read without believing them.
//!
//! A record may come from another version, from elsewhere, or from a hand that changed it: a field may
//! be missing, or be something else than its name says. Whoever reads it takes what is there.

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

    /// A text, if it is one.
    pub(crate) fn text(self, name: &str) -> Option<&'e str> {
        self.value(name)?.as_str()
    }

    /// A text of its own, empty where there is none.
    pub(crate) fn owned(self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    pub(crate) fn number(self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        self.value(name)?.as_bool()
    }

    /// The details that stand under a name, if they are details.
    pub(crate) fn within(self, name: &str) -> Option<Self> {
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
