//! Parsing of payloads: the type, its fields, and unknown fields.

use serde_json::{Map, Value};

use super::Payload;

/// Event names of an earlier draft and their current names. Readers accept the old names; writers never
/// use them.
pub(super) const DRAFT_TYPES: [(&str, &str); 2] = [
    ("risk_checkpoint", "risk_detected"),
    ("error_handled", "error_occurred"),
];

/// Current name of an event type.
#[must_use]
pub fn canonical_type(event_type: &str) -> &str {
    let draft = DRAFT_TYPES.iter().find(|(draft, _)| *draft == event_type);
    draft.map_or(event_type, |(_, name)| name)
}

/// Reason why a payload cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The event type is unknown.
    #[error("unknown event type `{event_type}`")]
    UnknownType {
        /// The type.
        event_type: String,
    },
    /// The details do not match the type.
    #[error("payload of `{event_type}`: {source}")]
    Fields {
        /// The type.
        event_type: String,
        /// Cause of the mismatch.
        source: serde_json::Error,
    },
}

/// A payload recorded elsewhere, as far as this version understands it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedPayload {
    /// The known fields.
    pub payload: Payload,
    /// Fields that the type does not have. They were recorded, so they are kept.
    pub extra: Map<String, Value>,
}

impl Payload {
    /// Parses details that were recorded elsewhere. Unknown fields are kept separately instead of being
    /// rejected.
    ///
    /// # Errors
    /// When the type is unknown, or a required field is missing or has another type.
    pub fn read_lenient(
        event_type: &str,
        fields: Map<String, Value>,
    ) -> Result<ParsedPayload, PayloadError> {
        let known = Self::field_names(event_type);
        let (known, extra) = fields
            .into_iter()
            .partition(|(name, _)| known.contains(&name.as_str()));
        let payload = Self::read(event_type, known)?;
        Ok(ParsedPayload { payload, extra })
    }
}
