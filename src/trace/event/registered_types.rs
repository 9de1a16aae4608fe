//! Event types that Atlases or extensions register.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Payload;
use super::large_numbers::NUMBERS_AS_TEXT;
use super::parse::DRAFT_TYPES;
use crate::base::event_type::BUILT_IN_TYPES;
use crate::base::id::is_restricted;

/// Event of a registered type, with the fields of that type.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredEvent {
    event_type: String,
    fields: Map<String, Value>,
}

impl RegisteredEvent {
    /// Creates an event of that type; `None` if the name is not a valid registered type.
    #[must_use]
    pub fn new(event_type: &str, fields: Map<String, Value>) -> Option<Self> {
        can_be_registered(event_type).then(|| Self {
            event_type: event_type.to_owned(),
            fields,
        })
    }

    /// Type of the event.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// Details of the event.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    pub(super) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.fields
    }
}

impl From<RegisteredEvent> for Payload {
    fn from(registered: RegisteredEvent) -> Self {
        Self::Registered(registered)
    }
}

/// True if a registered event type may have this name. The name is part of the envelope and must not
/// equal a built-in type.
#[must_use]
pub fn can_be_registered(name: &str) -> bool {
    let draft = DRAFT_TYPES.iter().any(|(draft, _)| *draft == name);
    is_restricted(name) && !draft && !BUILT_IN_TYPES.contains(&name)
}

/// Field schema of a registered type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSchema(BTreeMap<String, SchemaField>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchemaField {
    kind: FieldKind,
    required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    String,
    Number,
    Boolean,
    Object,
    Array,
    Any,
}

/// Names of the field kinds. A `?` after the name makes the field optional.
pub const FIELD_KINDS: [&str; 6] = ["string", "number", "boolean", "object", "array", "any"];

/// Name of the field that lists redactions. Registered types cannot declare a field of this name.
pub const REDACTED: &str = "redacted";

impl EventSchema {
    /// Compiles fields by name, each with its kind: `score: number`, `note: string?`.
    ///
    /// # Errors
    /// A message that names the field, when a name or kind is invalid.
    pub fn compile<'f>(
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, (String, String)> {
        let mut compiled = BTreeMap::new();
        for (name, word) in fields {
            let wrong = |what: String| (name.to_owned(), what);
            if name == REDACTED {
                let what = "this name is reserved for the list of redacted fields".to_owned();
                return Err(wrong(what));
            }
            if name == NUMBERS_AS_TEXT {
                let what =
                    "this name is reserved for the list of numbers recorded as text".to_owned();
                return Err(wrong(what));
            }
            let (kind, required) = match word.strip_suffix('?') {
                Some(kind) => (kind, false),
                None => (word, true),
            };
            let kind = match kind {
                "string" => FieldKind::String,
                "number" => FieldKind::Number,
                "boolean" => FieldKind::Boolean,
                "object" => FieldKind::Object,
                "array" => FieldKind::Array,
                "any" => FieldKind::Any,
                _ => {
                    let known = FIELD_KINDS.join("`, `");
                    return Err(wrong(format!(
                        "the kind of a field must be one of `{known}`"
                    )));
                }
            };
            compiled.insert(name.to_owned(), SchemaField { kind, required });
        }
        Ok(Self(compiled))
    }

    /// First mismatch between the schema and an event's details.
    #[must_use]
    pub fn first_mismatch(&self, details: &Map<String, Value>) -> Option<String> {
        for (name, field) in &self.0 {
            match details.get(name) {
                None if field.required => return Some(format!("field `{name}` is missing")),
                Some(value) if !field.kind.fits(value) => {
                    return Some(format!("field `{name}` must be {}", field.kind.as_str()));
                }
                None | Some(_) => {}
            }
        }
        let mut names = details.keys();
        let strange = names.find(|name| !self.0.contains_key(*name))?;
        let strange: String = strange.chars().take(64).collect();
        Some(format!("field `{strange}` is not declared"))
    }
}

impl FieldKind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Any => true,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Any => "any value",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    // covers T33
    #[test]
    fn schema_rejects_missing_extra_and_mistyped_fields() {
        let schema = EventSchema::compile([
            ("analysis_type", "string"),
            ("score", "number"),
            ("details", "object"),
            ("note", "string?"),
        ])
        .unwrap();
        let good = json!({"analysis_type": "tone", "score": 0.5, "details": {}});
        assert_eq!(schema.first_mismatch(&details(&good)), None);
        let cases = [
            (json!({"score": "high"}), "field `score` must be a number"),
            (json!({"details": []}), "field `details` must be an object"),
            (json!({"note": null}), "field `note` must be a string"),
            (json!({"more": 1}), "field `more` is not declared"),
        ];
        for (change, fault) in cases {
            let mut bad = details(&good);
            bad.extend(details(&change));
            assert_eq!(schema.first_mismatch(&bad).as_deref(), Some(fault));
        }
        let mut missing = details(&good);
        missing.remove("score");
        assert_eq!(
            schema.first_mismatch(&missing).as_deref(),
            Some("field `score` is missing")
        );
        for (name, kind) in [("x", "text"), ("x", "number??"), (REDACTED, "any")] {
            assert_eq!(EventSchema::compile([(name, kind)]).unwrap_err().0, name);
        }
    }

    // covers T33
    #[test]
    fn registered_types_cannot_take_a_built_in_name() {
        for name in BUILT_IN_TYPES {
            assert!(RegisteredEvent::new(name, Map::new()).is_none(), "{name}");
        }
        for name in ["risk_checkpoint", "error_handled", "", "a b", "a:b"] {
            assert!(RegisteredEvent::new(name, Map::new()).is_none(), "{name}");
        }
        let own = RegisteredEvent::new("custom_analysis", Map::new()).unwrap();
        assert_eq!(Payload::from(own).event_type(), "custom_analysis");
    }
}
