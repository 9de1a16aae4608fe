//! Spans for OpenTelemetry tools: one object in the JSON encoding of OTLP (`resourceSpans`).
//!
//! Every span of the record becomes one OTLP span, and every event a span event with its details as
//! canonical JSON. A span lasts from its first event to the last event of any span below it.
//!
//! Identifiers are converted deterministically:
//! - `traceId` (32 hexadecimal digits): the `trace_id` without its hyphens where it is a UUID, else the
//!   first half of its SHA-256;
//! - `spanId` (16 hexadecimal digits): the first quarter of the SHA-256 of the `span_id`.
//!
//! In the record a span may have a parent of another operation (an action below its session). In OTLP a
//! parent belongs to the same trace, so such a span has a link instead of a parent. Our own names are
//! under `cra.`; the attributes include the identifiers as recorded.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{ExportError, export_events, imported};
use crate::base::canonical_json::canonical;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{SessionId, SpanId, TraceId};
use crate::trace::event::Event;
use crate::trace::source::EventSource;
use crate::trace::spans::{SpanTree, is_stop};
use crate::trace::summary::{clip_line, event_subject, sentence};

/// Longest name of a span.
const MAX_NAME_CHARS: usize = 120;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL_ERROR: u8 = 1;

/// `STATUS_CODE_ERROR`. Spans that were not stopped have no status, because the record does not assert
/// success.
const ERROR: u8 = 2;

/// Writes the spans of the given sessions.
///
/// # Errors
/// When the record cannot be read, or the writer fails.
pub fn write<S: EventSource>(
    source: &S,
    sessions: &[SessionId],
    out: &mut impl Write,
) -> Result<(), ExportError<S::Error>> {
    out.write_str("{\"resourceSpans\":[")?;
    let mut first = true;
    for session in sessions {
        let end = source.end(session).map_err(ExportError::Read)?;
        // A resource without a span is left out, as the specification requires.
        if end == 0 {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.write_char(',')?;
        }
        write_session(source, session, end, out)?;
    }
    out.write_str("]}\n")?;
    Ok(())
}

fn write_session<S: EventSource>(
    source: &S,
    session: &SessionId,
    end: u64,
    out: &mut impl Write,
) -> Result<(), ExportError<S::Error>> {
    let mut spans = SpanTree::default();
    let mut agent = String::new();
    export_events(source, session, end, |event| {
        if agent.is_empty() && event.event_type == "session_started" {
            event_subject(&event)
                .unwrap_or_default()
                .clone_into(&mut agent);
        }
        spans.add(&event);
        Ok(())
    })?;
    spans.resolve_parents();
    let mark = imported(source, session)?;
    let mark = mark.map(|mark| ("cra.imported", json!(mark)));
    let known = [
        ("service.name", json!("cra")),
        ("service.version", json!(env!("CARGO_PKG_VERSION"))),
        ("cra.session_id", json!(session.as_str())),
        ("cra.agent", json!(agent)),
    ];
    let resource = attributes(known.into_iter().chain(mark));
    let scope = json!({ "name": "cra.trace", "version": env!("CARGO_PKG_VERSION") });
    write!(
        out,
        "{{\"resource\":{{\"attributes\":{resource}}},\"scopeSpans\":[{{\"scope\":{scope},\"spans\":["
    )?;
    let mut waiting: HashMap<SpanId, Vec<Event>> = HashMap::new();
    let mut first = true;
    export_events(source, session, end, |event| {
        let all = spans.of(&event).map_or(1, |span| span.events);
        let id = event.span_id.clone();
        let so_far = waiting.entry(id.clone()).or_default();
        so_far.push(event);
        if (so_far.len() as u64) < all {
            return Ok(());
        }
        let events = waiting.remove(&id).unwrap_or_default();
        if !std::mem::take(&mut first) {
            out.write_char(',')?;
        }
        write_span(&events, &spans, out)?;
        Ok(())
    })?;
    out.write_str("]}]}")?;
    Ok(())
}

fn write_span(events: &[Event], spans: &SpanTree, out: &mut impl Write) -> std::fmt::Result {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let trace = trace_id(&first.trace_id);
    let (start, end, stopped) = spans
        .of(first)
        .map_or((first.timestamp, first.timestamp, false), |span| {
            (span.start, span.end, span.stopped)
        });
    let mut span = json!({
        "traceId": trace,
        "spanId": span_id(&first.span_id),
        "name": span_name(first),
        "kind": INTERNAL_ERROR,
        "startTimeUnixNano": unix_nanos(start),
        "endTimeUnixNano": unix_nanos(end),
        "attributes": attributes([
            ("cra.trace_id", json!(first.trace_id.as_str())),
            ("cra.span_id", json!(first.span_id.as_str())),
            ("cra.session_id", json!(first.session_id.as_str())),
            ("cra.event_type", json!(first.event_type)),
            ("cra.sequence", json!(first.sequence)),
        ].into_iter().chain(decision_attributes(events))),
        "events": events.iter().map(span_event).collect::<Vec<_>>(),
    });
    if let (Some(fields), Some(parent)) = (span.as_object_mut(), &first.parent_span_id) {
        let above = spans.trace(parent);
        if above.is_none_or(|above| *above == first.trace_id) {
            fields.insert("parentSpanId".to_owned(), json!(span_id(parent)));
        } else if let Some(above) = above {
            let link = json!([{
                "traceId": trace_id(above),
                "spanId": span_id(parent),
                "attributes": attributes([("cra.link", json!("parent"))]),
            }]);
            fields.insert("links".to_owned(), link);
        }
    }
    if let (Some(fields), true) = (span.as_object_mut(), stopped) {
        let why = events.iter().find(|event| is_stop(event)).map(sentence);
        let why = why.unwrap_or_else(|| "a child span was blocked or failed".to_owned());
        let status = json!({ "code": ERROR, "message": why });
        fields.insert("status".to_owned(), status);
    }
    write!(out, "{span}")
}

/// Span attributes and the event fields they are read from; the last event with such a field wins.
const DECISION_ATTRIBUTES: [(&str, &[&str]); 6] = [
    ("cra.action", &["action_type", "blocked_action"]),
    ("cra.risk", &["risk_tier"]),
    ("cra.decision", &["decision", "outcome", "final_status"]),
    (
        "cra.operator",
        &[
            "passed_by",
            "approver",
            "verified_by",
            "decided_by",
            "answered_by",
            "by",
            "operator",
        ],
    ),
    ("cra.checkpoint", &["checkpoint_id"]),
    ("cra.policy", &["policy_id"]),
];

/// Span attributes about the request and its decision.
fn decision_attributes(events: &[Event]) -> impl Iterator<Item = (&'static str, Value)> {
    DECISION_ATTRIBUTES
        .into_iter()
        .filter_map(|(attribute, names)| {
            let mut events = events.iter().rev();
            let found = events.find_map(|event| {
                let fields = &event.payload;
                let decided = decision_of(event).filter(|_| attribute == "cra.decision");
                let named = names.iter().find_map(|name| fields.get(*name)?.as_str());
                decided.or(named).map(str::to_owned)
            })?;
            Some((attribute, json!(found)))
        })
}

/// Decision that an event type implies, for types without a decision field.
fn decision_of(event: &Event) -> Option<&'static str> {
    match event.event_type.as_str() {
        "checkpoint_passed" => Some("passed"),
        "policy_override" => Some("overridden"),
        "action_blocked" => Some("blocked"),
        _ => None,
    }
}

fn span_event(event: &Event) -> Value {
    let mut named = vec![
        ("cra.sequence", json!(event.sequence)),
        ("cra.event_id", json!(event.event_id.as_str())),
        ("cra.hash", json!(event.hash.to_string())),
        ("cra.summary", json!(sentence(event))),
    ];
    if event.pruned {
        named.push(("cra.pruned", json!(true)));
    } else {
        let payload = canonical(&Value::Object(event.payload.clone()));
        named.push(("cra.payload", json!(payload)));
    }
    json!({
        "timeUnixNano": unix_nanos(event.timestamp),
        "name": event.event_type,
        "attributes": attributes(named),
    })
}

fn span_name(event: &Event) -> String {
    let about = event_subject(event).unwrap_or_default();
    let name = format!("{} {about}", event.event_type);
    clip_line(name.trim_end(), MAX_NAME_CHARS)
}

/// Attributes in the OTLP encoding: 64-bit integers are strings.
fn attributes<'a>(named: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let named = named.into_iter().map(|(key, value)| {
        let value = match value {
            Value::Bool(flag) => json!({ "boolValue": flag }),
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::String(text) => json!({ "stringValue": text }),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                json!({ "stringValue": canonical(&value) })
            }
        };
        json!({ "key": key, "value": value })
    });
    named.collect()
}

fn unix_nanos(moment: Timestamp) -> String {
    let nanos = i128::from(moment.micros()) * 1000;
    nanos.to_string()
}

fn trace_id(id: &TraceId) -> String {
    match Uuid::try_parse(id.as_str()) {
        // In OTLP all zeros means "no trace".
        Ok(id) if !id.is_nil() => id.simple().to_string(),
        Ok(_) | Err(_) => hash_digits(id.as_str(), 32),
    }
}

fn span_id(id: &SpanId) -> String {
    hash_digits(id.as_str(), 16)
}

fn hash_digits(text: &str, count: usize) -> String {
    let digest = Digest::of(text).to_string();
    digest.chars().take(count).collect()
}
