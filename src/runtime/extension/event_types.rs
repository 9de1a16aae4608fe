//! Registered event types: their fields and validators.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::RegisterError;
use crate::engine::extensions::EventType;
use crate::trace::event::{EventSchema, can_be_registered};

/// Decides whether the details of an event are valid, beyond their types. It has to be quick.
pub type EventValidator = Arc<dyn Fn(&Map<String, Value>) -> bool + Send + Sync>;

/// An event type of a plugin.
///
/// ```
/// use std::sync::Arc;
///
/// use cra_core::runtime::extension::{EventTypeDefinition, Registry};
///
/// let mut registry = Registry::default();
/// registry.register_event_type(EventTypeDefinition {
///     name: "custom_analysis".to_owned(),
///     description: "Custom analysis event".to_owned(),
///     sync: false,
///     schema: vec![
///         ("analysis_type".to_owned(), "string".to_owned()),
///         ("score".to_owned(), "number".to_owned()),
///         ("details".to_owned(), "object".to_owned()),
///     ],
///     validate: Some(Arc::new(|payload| {
///         payload["score"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score))
///     })),
/// })?;
/// # Ok::<(), cra_core::runtime::extension::RegisterError>(())
/// ```
#[derive(Clone)]
pub struct EventTypeDefinition {
    /// Its name in records.
    pub name: String,
    /// Meaning, for people.
    pub description: String,
    /// Tells whether an event is on disk before any caller gets a reply.
    pub sync: bool,
    /// Fields, each with `string`, `number`, `boolean`, `object`, `array` or `any`. A field whose type ends
    /// with `?` may be absent.
    pub schema: Vec<(String, String)>,
    /// Further validation.
    pub validate: Option<EventValidator>,
}

impl fmt::Debug for EventTypeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventTypeDefinition")
            .field("name", &self.name)
            .field("sync", &self.sync)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// All registered event types.
#[derive(Clone, Default)]
pub struct EventTypes {
    types: BTreeMap<String, (EventType, Option<EventValidator>)>,
}

impl EventTypes {
    pub(super) fn register(
        &mut self,
        definition: EventTypeDefinition,
    ) -> Result<(), RegisterError> {
        let name = definition.name;
        let refuse = |what: String| RegisterError::Event {
            name: name.clone(),
            what,
        };
        if !can_be_registered(&name) {
            let what = "a name may have only letters, digits, dots, dashes and underscores, and \
                        must not be one of cra's own types";
            return Err(refuse(what.to_owned()));
        }
        if self.types.contains_key(&name) {
            return Err(refuse("the name is already registered".to_owned()));
        }
        let fields = definition.schema.iter();
        let fields = fields.map(|(field, kind)| (field.as_str(), kind.as_str()));
        let schema = EventSchema::compile(fields)
            .map_err(|(field, what)| refuse(format!("field `{field}`: {what}")))?;
        let event_type = EventType {
            description: definition.description,
            sync: definition.sync,
            schema,
        };
        self.types.insert(name, (event_type, definition.validate));
        Ok(())
    }

    /// Returns the event types, for the engine.
    pub(super) fn table(&self) -> BTreeMap<String, EventType> {
        let types = self.types.iter();
        types
            .map(|(name, (event_type, _))| (name.clone(), event_type.clone()))
            .collect()
    }

    /// Describes the fault in the details of an event, if its type is registered. A validator that panics
    /// counts as a rejection.
    pub(in crate::runtime) fn fault(
        &self,
        event_type: &str,
        details: &Map<String, Value>,
    ) -> Option<String> {
        let (known, validate) = self.types.get(event_type)?;
        if let Some(fault) = known.schema.first_mismatch(details) {
            return Some(fault);
        }
        let validate = validate.as_ref()?;
        match catch_unwind(AssertUnwindSafe(|| validate(details))) {
            Ok(true) => None,
            Ok(false) => Some("its validation rejected the event".to_owned()),
            Err(_) => Some("its validation crashed".to_owned()),
        }
    }

    /// Returns true if the event type is registered.
    pub(in crate::runtime) fn contains(&self, event_type: &str) -> bool {
        self.types.contains_key(event_type)
    }

    /// Validates the events in an answer. A fault is added to its event: the engine records the event as
    /// refused.
    pub(super) fn validate_events(&self, mut answer: Value) -> Value {
        if self.types.is_empty() {
            return answer;
        }
        for key in ["trace_events", "traceEvents"] {
            let notes = answer.get_mut(key).and_then(Value::as_array_mut);
            for note in notes.into_iter().flatten() {
                self.validate_event(note);
            }
        }
        answer
    }

    fn validate_event(&self, note: &mut Value) {
        let name = note.get("event_type").or_else(|| note.get("eventType"));
        let Some(name) = name.and_then(Value::as_str) else {
            return;
        };
        let empty = Map::new();
        let payload = note.get("payload").and_then(Value::as_object);
        let fault = self.fault(name, payload.unwrap_or(&empty));
        if let (Some(fault), Some(note)) = (fault, note.as_object_mut()) {
            note.insert("fault".to_owned(), fault.into());
        }
    }
}
