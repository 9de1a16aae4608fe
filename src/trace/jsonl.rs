//! The record as text: one event a line, in canonical JSON.

use serde_json::{Map, Value};

use crate::base::canon::{canonical, object_length};
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::event::Event;
use super::hash::Envelope;
use super::verify::{Link, LogVerifier, Report, Trust};

/// The line of an event, without the line feed.
#[must_use]
pub fn line(event: &Event) -> String {
    // INVARIANT: an event is a struct with string keys; it always becomes JSON.
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if event.pruned
        && let Some(fields) = value.as_object_mut()
    {
        // That it was pruned is told by what is not there: no field stands outside of the hash.
        fields.remove("payload");
        fields.remove("pruned");
    }
    canonical(&value)
}

/// Writes the line of a record behind what is in `out` already, without the line feed.
///
/// The envelope has to be a checked one: nothing in it is escaped, because nothing in it needs to be.
pub fn write_line(envelope: &Envelope<'_>, hash: &Digest, out: &mut String) {
    use std::fmt::Write;
    let text = |out: &mut String, before: &str, text: &str| {
        out.push_str(before);
        out.push_str(text);
    };
    text(out, "{\"event_id\":\"", envelope.event_id);
    text(out, "\",\"event_type\":\"", envelope.event_type);
    text(out, "\",\"hash\":\"", hash.hex().as_str());
    if !envelope.parent_span_id.is_empty() {
        text(out, "\",\"parent_span_id\":\"", envelope.parent_span_id);
    }
    out.push('"');
    if !envelope.is_pruned() {
        text(out, ",\"payload\":", envelope.payload);
    }
    text(out, ",\"previous_hash\":\"", envelope.previous_hash);
    // Writing to a string cannot fail.
    let _ = write!(out, "\",\"sequence\":{}", envelope.sequence);
    text(out, ",\"session_id\":\"", envelope.session_id);
    text(out, "\",\"span_id\":\"", envelope.span_id);
    text(out, "\",\"timestamp\":\"", envelope.timestamp);
    text(out, "\",\"trace_id\":\"", envelope.trace_id);
    text(out, "\",\"trace_version\":\"", envelope.trace_version);
    out.push_str("\"}");
}

/// Reads a line as it lies. Every field is one that a writer writes; whether the hash is that of the
/// rest is not looked at.
///
/// # Errors
/// In words, when it is not exactly what [`line()`] writes.
pub fn read_line(text: &str) -> Result<(Envelope<'_>, Digest), String> {
    let (envelope, hash) = scan(text)?;
    envelope.check()?;
    Ok((envelope, hash))
}

/// The fields of a line as they lie.
fn scan(text: &str) -> Result<(Envelope<'_>, Digest), String> {
    let scanned = Scanner { rest: text }.line();
    let (envelope, hash) = scanned.ok_or_else(|| explain(text))?;
    let hash = hash.parse().map_err(|_| "hash is not a hash".to_owned())?;
    Ok((envelope, hash))
}

/// Reads the event of a line, for showing it. Nothing is proven by that.
///
/// # Errors
/// When it is not an event at all.
pub fn read_event(line: &[u8]) -> Result<Event, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Content {
        payload: Option<serde::de::IgnoredAny>,
    }
    let mut event: Event = serde_json::from_slice(line)?;
    let content: Content = serde_json::from_slice(line)?;
    event.pruned = content.payload.is_none();
    Ok(event)
}

/// Goes over a line once, from field to field, without reading it into values.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn line(mut self) -> Option<(Envelope<'a>, &'a str)> {
        let event_id = self.text("{\"event_id\":\"")?;
        let event_type = self.text(",\"event_type\":\"")?;
        let hash = self.text(",\"hash\":\"")?;
        let parent = self.text(",\"parent_span_id\":\"");
        // An empty one would read as one that is absent.
        let parent_span_id = match parent {
            Some("") => return None,
            Some(parent) => parent,
            None => "",
        };
        let payload = self.payload()?;
        let previous_hash = self.text(",\"previous_hash\":\"")?;
        let sequence = self.number(",\"sequence\":")?;
        let session_id = self.text(",\"session_id\":\"")?;
        let span_id = self.text(",\"span_id\":\"")?;
        let timestamp = self.text(",\"timestamp\":\"")?;
        let trace_id = self.text(",\"trace_id\":\"")?;
        let trace_version = self.text(",\"trace_version\":\"")?;
        let envelope = Envelope {
            trace_version,
            event_id,
            trace_id,
            span_id,
            parent_span_id,
            session_id,
            sequence,
            timestamp,
            event_type,
            payload,
            previous_hash,
        };
        (self.rest == "}").then_some((envelope, hash))
    }

    /// What stands between `before` and the next quote.
    fn text(&mut self, before: &str) -> Option<&'a str> {
        let rest = self.rest.strip_prefix(before)?;
        let (text, rest) = rest.split_at_checked(memchr::memchr(b'"', rest.as_bytes())?)?;
        self.rest = rest.strip_prefix('"')?;
        Some(text)
    }

    fn number(&mut self, before: &str) -> Option<u64> {
        let rest = self.rest.strip_prefix(before)?;
        let length = rest.bytes().position(|byte| !byte.is_ascii_digit())?;
        let (digits, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        let plain = digits == "0" || !digits.starts_with('0');
        digits.parse().ok().filter(|_| plain)
    }

    /// The details; empty where there are none because they were pruned.
    fn payload(&mut self) -> Option<&'a str> {
        let Some(rest) = self.rest.strip_prefix(",\"payload\":") else {
            return Some("");
        };
        let (payload, rest) = rest.split_at_checked(object_length(rest)?)?;
        self.rest = rest;
        Some(payload)
    }
}

/// The fields a line has, beside the optional `parent_span_id` and `payload`.
const FIELDS: [&str; 10] = [
    "trace_version",
    "event_id",
    "trace_id",
    "span_id",
    "session_id",
    "sequence",
    "timestamp",
    "event_type",
    "previous_hash",
    "hash",
];

/// Why a line is not one: slowly, and in words.
fn explain(text: &str) -> String {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return format!("is not JSON: {error}"),
    };
    let Value::Object(fields) = &value else {
        return "is not a JSON object".to_owned();
    };
    missing_or_extra(fields).unwrap_or_else(|| "is not in canonical form".to_owned())
}

fn missing_or_extra(fields: &Map<String, Value>) -> Option<String> {
    let known = |key: &str| FIELDS.contains(&key) || matches!(key, "parent_span_id" | "payload");
    if let Some(extra) = fields.keys().find(|key| !known(key)) {
        let extra = crate::base::text::one_line(extra);
        return Some(format!("has a field `{extra}` that no hash covers"));
    }
    let fits = |name: &str, value: &Value| match name {
        "sequence" => value.is_u64(),
        _ => value.is_string(),
    };
    let missing = FIELDS.iter().find(|name| {
        let value = fields.get(**name);
        !value.is_some_and(|value| fits(name, value))
    });
    if let Some(missing) = missing {
        return Some(format!("has no `{missing}` as it should be"));
    }
    let parent = fields.get("parent_span_id");
    if parent.is_some_and(|parent| parent.as_str().is_none_or(str::is_empty)) {
        return Some("has a `parent_span_id` that is none".to_owned());
    }
    let payload = fields.get("payload");
    (!payload.is_none_or(Value::is_object)).then(|| "has a `payload` that is no object".to_owned())
}

/// Checks exported lines: the chains of all sessions in them, and the log if it is among them. Lines
/// that cannot be read are faults, never passed over.
#[derive(Debug)]
pub struct LinesVerifier {
    log: LogVerifier,
    lines: u64,
    text: String,
}

impl LinesVerifier {
    /// A verifier that holds lines against `trust`.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        Self {
            log: LogVerifier::new(trust),
            lines: 0,
            text: String::new(),
        }
    }

    /// Looks at one session and the log alone.
    #[must_use]
    pub fn only(mut self, session: SessionId) -> Self {
        self.log = self.log.only(session);
        self
    }

    /// Takes the next line, without its line feed.
    pub fn push(&mut self, text: &[u8]) {
        self.lines += 1;
        let number = self.lines;
        let read = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned());
        let read = read.and_then(|text| {
            let (envelope, hash) = scan(text)?;
            // That the payload is canonical was seen when its end was looked for.
            envelope.check_names()?;
            let link = Link::of(&envelope, hash)?;
            Ok((envelope, link))
        });
        match read {
            Ok((envelope, link)) => {
                self.text.clear();
                envelope.write(&mut self.text);
                if !envelope.is_pruned() && Digest::of(&self.text) != link.hash {
                    let place = envelope.session_id.parse();
                    let place = place.ok().map(|session| self.log.place(&session));
                    self.log
                        .unreadable(place, "hash does not match the content");
                    return;
                }
                self.log.push(&envelope, &link, &self.text);
            }
            Err(what) => self.log.unreadable(None, &format!("line {number} {what}")),
        }
    }

    /// Holds the lines against what a console does: see [`LogVerifier::demand_seals`].
    pub fn demand_seals(&mut self) {
        self.log.demand_seals();
    }

    /// Lines that were read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// What the lines prove.
    #[must_use]
    pub fn finish(self) -> Report {
        self.log.finish()
    }
}

/// Checks the lines of a text. A file alone says nothing about how long a chain was: without a head to
/// hold it against, all of it is unsealed.
#[must_use]
pub fn verify(text: &[u8], trust: Trust) -> Report {
    let mut verifier = LinesVerifier::new(trust);
    if !text.is_empty() {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        text.split(|byte| *byte == b'\n')
            .for_each(|line| verifier.push(line));
    }
    verifier.finish()
}
