//! A sealed event as it is stored: exactly the text that its hash covers.

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::event::Event;
use super::hash::Envelope;

/// Type of the event that ends a session.
pub(super) const SESSION_ENDED: &str = "session_ended";

/// One record. After sealing it never changes, except that its details may be pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Session whose chain contains the record.
    pub session: SessionId,
    /// Position in that chain, from 0.
    pub sequence: u64,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// True if the record ends its session.
    pub ends_session: bool,
    /// The hashed text: see [`Envelope`].
    pub text: String,
    /// Hash of the text.
    pub hash: Digest,
}

impl Record {
    /// Parses a stored record.
    ///
    /// # Errors
    /// A message, when the text is not that of a record. The hash is not verified.
    pub fn read(text: String, hash: Digest) -> Result<Self, String> {
        let envelope = Envelope::split(&text)?;
        let wrong = |_| "is not a record".to_owned();
        Ok(Self {
            session: envelope
                .session_id
                .parse()
                .map_err(|error| format!("{error}"))?,
            sequence: envelope.sequence,
            timestamp: envelope.timestamp.parse().map_err(wrong)?,
            ends_session: envelope.event_type == SESSION_ENDED,
            text,
            hash,
        })
    }

    /// Fields of the record.
    ///
    /// # Errors
    /// A message, when the text is not that of a record.
    pub fn envelope(&self) -> Result<Envelope<'_>, String> {
        Envelope::split(&self.text)
    }

    /// Text without the details: what remains after pruning.
    #[must_use]
    pub fn without_content(&self) -> String {
        let content = self.text.split_once('{');
        let parts = content.and_then(|(before, rest)| Some((before, rest.rsplit_once(':')?.1)));
        match parts {
            Some((before, previous)) => format!("{before}:{previous}"),
            None => self.text.clone(),
        }
    }

    /// Event that the record holds.
    ///
    /// # Errors
    /// A message, when the text is not that of a record.
    pub fn event_of(&self) -> Result<Event, String> {
        event_of(&self.envelope()?, self.hash)
    }
}

/// Converts an envelope to its event.
///
/// # Errors
/// A message, when the envelope is not that of an event.
pub fn event_of(envelope: &Envelope<'_>, hash: Digest) -> Result<Event, String> {
    let id = |error: crate::base::id::IdError| error.to_string();
    let parent = Some(envelope.parent_span_id).filter(|parent| !parent.is_empty());
    let parent = parent.map(str::parse).transpose().map_err(id)?;
    let payload = match envelope.payload {
        "" => serde_json::Map::new(),
        text => serde_json::from_str(text).map_err(|error| format!("payload: {error}"))?,
    };
    Ok(Event {
        trace_version: envelope.trace_version.to_owned(),
        event_id: envelope.event_id.parse().map_err(id)?,
        trace_id: envelope.trace_id.parse().map_err(id)?,
        span_id: envelope.span_id.parse().map_err(id)?,
        parent_span_id: parent,
        session_id: envelope.session_id.parse().map_err(id)?,
        sequence: envelope.sequence,
        timestamp: envelope
            .timestamp
            .parse()
            .map_err(|error| format!("timestamp: {error}"))?,
        event_type: envelope.event_type.to_owned(),
        payload,
        pruned: envelope.is_pruned(),
        previous_hash: envelope
            .previous_hash
            .parse()
            .map_err(|error| format!("previous_hash: {error}"))?,
        hash,
    })
}
