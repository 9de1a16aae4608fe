//! Reading payloads: which type, which fields, and what is left over.

use serde_json::{Map, Value};

use super::Payload;

/// Names that an earlier draft had for events, and the names they go by. They are understood where a
/// record is read; nothing is written under them.
pub(super) const DRAFT_TYPES: [(&str, &str); 2] = [
    ("risk_checkpoint", "risk_detected"),
    ("error_handled", "error_occurred"),
];

/// The name that an event type goes by.
#[must_use]
pub fn canonical_type(event_type: &str) -> &str {
    let draft = DRAFT_TYPES.iter().find(|(draft, _)| *draft == event_type);
    draft.map_or(event_type, |(_, name)| name)
}

/// Why a payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// No such event type.
    #[error("unknown event type `{event_type}`")]
    UnknownType {
        /// The type.
        event_type: String,
    },
    /// The details are not the ones the type calls for.
    #[error("payload of `{event_type}`: {source}")]
    Fields {
        /// The type.
        event_type: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// A payload that was recorded elsewhere, as far as it is known here.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPayload {
    /// What is known of it.
    pub payload: Payload,
    /// The fields that its type does not have. They were recorded, so they are kept.
    pub extra: Map<String, Value>,
}

impl Payload {
    /// Reads details that were recorded elsewhere: fields that the type does not have are kept apart
    /// instead of being refused.
    ///
    /// # Errors
    /// When the type is unknown, or fields that it calls for are missing or something else.
    pub fn read_lenient(
        event_type: &str,
        fields: Map<String, Value>,
    ) -> Result<ReadPayload, PayloadError> {
        let known = Self::field_names(event_type);
        let (known, extra) = fields
            .into_iter()
            .partition(|(name, _)| known.contains(&name.as_str()));
        let payload = Self::read(event_type, known)?;
        Ok(ReadPayload { payload, extra })
    }
}
