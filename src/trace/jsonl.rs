//! The record as text: one event a line, in canonical JSON.

use serde_json::{Map, Value};

use crate::base::canon::canonical;
use crate::base::id::SessionId;

use super::event::Event;
use super::verify::{Checked, Known, RawEvent, Verifier};

/// The line of an event, without the line feed.
#[must_use]
pub fn line(event: &Event) -> String {
    // INVARIANT: an event is a struct with string keys; it always becomes JSON.
    canonical(&serde_json::to_value(event).unwrap_or_default())
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
    let mut chains: Vec<(SessionId, Verifier)> = Vec::new();
    let mut unreadable = Vec::new();
    for (index, line) in text.split_terminator('\n').enumerate() {
        let number = index + 1;
        let read = read_line(line).and_then(|raw| {
            let session = raw.session_id.parse::<SessionId>();
            let session = session.map_err(|error| error.to_string())?;
            Ok((session, raw))
        });
        match read {
            Ok((session, raw)) => chain_of(&mut chains, session).push(&raw),
            Err(what) => unreadable.push(format!("line {number} {what}")),
        }
    }
    // A line that belongs nowhere puts every chain of the file in doubt.
    for what in unreadable {
        if chains.is_empty() {
            // INVARIANT: the text is a legal identifier.
            if let Ok(unknown) = "unknown".parse() {
                chain_of(&mut chains, unknown);
            }
        }
        for (_, verifier) in &mut chains {
            verifier.push_unreadable(what.clone());
        }
    }
    chains
        .into_iter()
        .map(|(_, verifier)| verifier.finish(Known::Nothing))
        .collect()
}

fn chain_of(chains: &mut Vec<(SessionId, Verifier)>, session: SessionId) -> &mut Verifier {
    let index = chains
        .iter()
        .position(|(known, _)| *known == session)
        .unwrap_or_else(|| {
            chains.push((session.clone(), Verifier::new(session)));
            chains.len() - 1
        });
    #[expect(
        clippy::indexing_slicing,
        reason = "the index was found or pushed just now"
    )]
    &mut chains[index].1
}
