//! The record as text: one event a line, in canonical JSON.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::base::canon::canonical;
use crate::base::id::SessionId;

use super::event::Event;
use super::verify::{Checked, Known, RawEvent, Verifier};

/// The line of an event, without the line feed.
#[must_use]
pub fn line(event: &Event) -> String {
    // INVARIANT: an event is a struct with string keys; it always becomes JSON.
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if event.pruned
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("payload");
    }
    canonical(&value)
}

/// The fields a line has, beside the optional `parent_span_id`.
const FIELDS: [&str; 11] = [
    "trace_version",
    "event_id",
    "trace_id",
    "span_id",
    "session_id",
    "sequence",
    "timestamp",
    "event_type",
    "payload",
    "previous_hash",
    "hash",
];

/// Reads a line as it lies, believing nothing.
///
/// # Errors
/// In words, when it is not exactly what [`line()`] writes.
pub fn read_line(text: &str) -> Result<RawEvent, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    if canonical(&value) != text {
        return Err("is not in canonical form".to_owned());
    }
    let Value::Object(fields) = value else {
        return Err("is not a JSON object".to_owned());
    };
    if let Some(extra) = fields
        .keys()
        .find(|key| !FIELDS.contains(&key.as_str()) && *key != "parent_span_id")
    {
        let extra = crate::base::text::one_line(extra);
        return Err(format!("has a field `{extra}` that no hash covers"));
    }
    let text = |name: &str| {
        let value = fields.get(name).and_then(Value::as_str);
        value
            .map(str::to_owned)
            .ok_or(format!("has no text `{name}`"))
    };
    Ok(RawEvent {
        trace_version: text("trace_version")?,
        event_id: text("event_id")?,
        trace_id: text("trace_id")?,
        span_id: text("span_id")?,
        parent_span_id: optional(&fields, "parent_span_id")?,
        session_id: text("session_id")?,
        sequence: fields
            .get("sequence")
            .and_then(Value::as_u64)
            .ok_or("has no number `sequence`")?,
        timestamp: text("timestamp")?,
        event_type: text("event_type")?,
        payload: canonical(fields.get("payload").ok_or("has no `payload`")?),
        previous_hash: text("previous_hash")?,
        hash: text("hash")?,
    })
}

fn optional(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{name}` that is not text")),
    }
}

/// Checks exported lines: the chains of all sessions in them, in the order they appear.
///
/// Lines that cannot be read are faults, never passed over. A file says nothing about how long a
/// chain was, so the best it gets is [`super::verify::Verdict::Unproven`].
#[must_use]
pub fn verify(text: &str) -> Vec<Checked> {
    let mut chains = Chains::default();
    let mut unreadable = None;
    for (index, line) in text.split_terminator('\n').enumerate() {
        let number = index + 1;
        let read = read_line(line).and_then(|raw| {
            let session = raw.session_id.parse::<SessionId>();
            let session = session.map_err(|error| error.to_string())?;
            Ok((session, raw))
        });
        match read {
            Ok((session, raw)) => chains.of(session).push(&raw),
            Err(what) => {
                unreadable.get_or_insert_with(|| format!("line {number} {what}"));
            }
        }
    }
    // A line that belongs nowhere puts every chain of the file in doubt. The first says enough.
    if let Some(what) = unreadable {
        if chains.verifiers.is_empty()
            // INVARIANT: the text is a legal identifier.
            && let Ok(unknown) = "unknown".parse()
        {
            chains.of(unknown);
        }
        for verifier in &mut chains.verifiers {
            verifier.push_unreadable(what.clone());
        }
    }
    let verifiers = chains.verifiers.into_iter();
    verifiers
        .map(|verifier| verifier.finish(Known::Nothing))
        .collect()
}

/// The chains of a file, in the order they appear.
#[derive(Default)]
struct Chains {
    verifiers: Vec<Verifier>,
    places: HashMap<SessionId, usize>,
}

impl Chains {
    fn of(&mut self, session: SessionId) -> &mut Verifier {
        let place = *self.places.entry(session.clone()).or_insert_with(|| {
            self.verifiers.push(Verifier::new(session));
            self.verifiers.len() - 1
        });
        #[expect(
            clippy::indexing_slicing,
            reason = "the place was found or made just now"
        )]
        &mut self.verifiers[place]
    }
}
