//! The record as text: one event a line, in canonical JSON.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::base::canon::{canonical, object_length};
use crate::base::clock::TimestampText;
use crate::base::digest::{Digest, Hashing};
use crate::base::id::SessionId;
use crate::base::json::{self, JsonError};

use super::event::{Event, TRACE_VERSION};
use super::hash::{Envelope, read_number};
use super::verify::{Link, LogVerifier, Report, Trust, check_fields};

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

/// A line as [`line()`] writes it, also where another program wrote the same values in another form.
///
/// It says nothing about a text that is no event: that is returned as it is.
#[must_use]
pub fn in_canonical_form(text: &str) -> Cow<'_, str> {
    match read_line(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(_) => rewritten(text).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// The canonical form of a line that has the fields of an event and another form.
fn rewritten(text: &str) -> Option<String> {
    let value: Value = json::read(text.as_bytes()).ok()?;
    if missing_or_extra(value.as_object()?).is_some() {
        return None;
    }
    Some(canonical(&value)).filter(|line| line != text)
}

/// The fields of a line as they lie.
fn scan(text: &str) -> Result<(Envelope<'_>, Digest), String> {
    let scanned = Scanner { rest: text }.line();
    let (envelope, hash) = scanned.ok_or_else(|| explain(text))?;
    Ok((envelope, read_hash(hash)?))
}

fn read_hash(hash: &str) -> Result<Digest, String> {
    hash.parse().map_err(|_| "hash is not a hash".to_owned())
}

/// The fields of a line that is as they mostly are, from both of its ends: what is left between them is the
/// payload, which is not looked at. `None` says nothing about the line.
///
/// Nothing is proven of the fields either. A name that cannot stand in an envelope must be refused
/// afterwards: only then do they lie in the line as they seem to.
fn usual(line: &str) -> Option<(Envelope<'_>, &str)> {
    let mut rest = line;
    let mut from_start = |before: &str, width: usize| {
        let behind = rest.strip_prefix(before)?;
        let width = match behind.as_bytes().get(width) {
            Some(b'"') => width,
            Some(_) | None => memchr::memchr(b'"', behind.as_bytes())?,
        };
        let (field, behind) = behind.split_at_checked(width)?;
        rest = behind;
        Some(field)
    };
    let event_id = from_start("{\"event_id\":\"", 36)?;
    let event_type = from_start("\",\"event_type\":\"", 0)?;
    let hash = from_start("\",\"hash\":\"", 64)?;
    let parent_span_id = from_start("\",\"parent_span_id\":\"", 36);
    let mut rest = rest.strip_prefix('"')?.strip_suffix("\"}")?;
    let mut from_end = |before: &str, width: usize| {
        let (ahead, field) = rest.split_at_checked(rest.len().checked_sub(width)?)?;
        rest = ahead.strip_suffix(before)?;
        Some(field)
    };
    let trace_version = from_end("\",\"trace_version\":\"", TRACE_VERSION.len())?;
    let trace_id = from_end("\",\"trace_id\":\"", 36)?;
    let timestamp = from_end("\",\"timestamp\":\"", TimestampText::WIDTH)?;
    let span_id = from_end(",\"span_id\":\"", 36)?;
    let rest = rest.strip_suffix('"')?;
    let (rest, session_id) = rest.split_at_checked(memchr::memrchr(b'"', rest.as_bytes())? + 1)?;
    let rest = rest.strip_suffix(",\"session_id\":\"")?;
    let (rest, sequence) = rest.split_at_checked(memchr::memrchr(b':', rest.as_bytes())? + 1)?;
    let rest = rest.strip_suffix("\",\"sequence\":")?;
    let (rest, previous_hash) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    let payload = rest.strip_suffix(",\"previous_hash\":\"")?;
    let envelope = Envelope {
        trace_version,
        event_id,
        trace_id,
        span_id,
        // An empty one would read as one that is absent.
        parent_span_id: match parent_span_id {
            Some("") => return None,
            Some(parent) => parent,
            None => "",
        },
        session_id,
        sequence: read_number(sequence)?,
        timestamp,
        event_type,
        payload: match payload {
            "" => "",
            some => some.strip_prefix(",\"payload\":")?,
        },
        previous_hash,
    };
    Some((envelope, hash))
}

/// Checks a line by itself, and leaves the text that its hash covers in `text`.
fn check_line<'l>(line: &'l str, text: &mut String) -> Result<(Envelope<'l>, Link), String> {
    let (envelope, said) = match usual(line) {
        Some((envelope, said)) => (envelope, read_hash(said)?),
        None => scan(line)?,
    };
    text.clear();
    envelope.write(text);
    let mut hashing = Hashing::of(text.as_bytes());
    hashing.step();
    if !envelope.has_usual_names(text) {
        envelope.check_names()?;
    }
    let checked = check_fields(&envelope, text, &said, &mut hashing)?;
    Ok((envelope, checked))
}

/// Reads the event of a line, for showing it. Nothing is proven by that.
///
/// # Errors
/// When it is not an event at all.
pub fn read_event(line: &[u8]) -> Result<Event, JsonError> {
    #[derive(serde::Deserialize)]
    struct Content {
        payload: Option<serde::de::IgnoredAny>,
    }
    let mut event: Event = json::read(line)?;
    let content: Content = json::read(line)?;
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
        read_number(digits)
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
    let value: Value = match json::read(text.as_bytes()) {
        Ok(value) => value,
        Err(error) => return format!("is {error}"),
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
        let read = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned());
        match read.and_then(|line| check_line(line, &mut self.text)) {
            Ok((envelope, link)) => self.log.push(&envelope, &link, &self.text),
            Err(what) => match std::str::from_utf8(text).ok().and_then(rewritten) {
                Some(line) => self.push_rewritten(&line),
                None => self.fail(text, &what),
            },
        }
    }

    /// Takes a line that another program wrote anew, in canonical form.
    fn push_rewritten(&mut self, rewritten: &str) {
        match check_line(rewritten, &mut self.text) {
            Ok((envelope, link)) => {
                self.log.push(&envelope, &link, &self.text);
                if let Ok(session) = envelope.session_id.parse() {
                    self.log.not_canonical(&session);
                }
            }
            Err(what) => self.fail(rewritten.as_bytes(), &what),
        }
    }

    /// Notes a line that does not hold: as its session's, if it is a record but for its hash.
    fn fail(&mut self, line: &[u8], what: &str) {
        let line = std::str::from_utf8(line).ok();
        let read = line.and_then(|line| read_line(line).ok());
        let session = read.and_then(|(envelope, _)| envelope.session_id.parse().ok());
        if let Some(session) = session {
            let place = self.log.place(&session);
            return self.log.unreadable(Some(place), what);
        }
        let number = self.lines;
        self.log.unreadable(None, &format!("line {number} {what}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn lines(session: &str, payload: &str) -> Vec<String> {
        let hash = Digest::of("x");
        let previous = hash.to_string();
        let lines = ["", ID, "p-1"].map(|parent_span_id| {
            let envelope = Envelope {
                trace_version: TRACE_VERSION,
                event_id: ID,
                trace_id: ID,
                span_id: ID,
                parent_span_id,
                session_id: session,
                sequence: 12,
                timestamp: "2026-01-01T00:00:00.000000Z",
                event_type: "action_completed",
                payload,
                previous_hash: &previous,
            };
            let mut line = String::new();
            write_line(&envelope, &hash, &mut line);
            line
        });
        lines.to_vec()
    }

    #[test]
    fn a_line_as_they_mostly_are_is_read_from_its_ends() {
        for payload in ["", "{}", r#"{"a":"\",\"previous_hash\":\"x"}"#] {
            for session in [ID, "s-1"] {
                for line in lines(session, payload) {
                    let (envelope, hash) = usual(&line).unwrap();
                    let read = (envelope, hash.parse().unwrap());
                    assert_eq!(Ok(read), read_line(&line), "{line}");
                }
            }
        }
    }

    proptest! {
        /// Whatever is changed in a line: read from its ends and found to be a record, it is one.
        #[test]
        fn from_its_ends_is_never_otherwise(
            line in prop::sample::select(lines("s-1", r#"{"a":"b"}"#)),
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,3}"), 0..3),
        ) {
            let mut line = line;
            for (place, text) in changes {
                let place = place.index(line.len());
                let end = (place + 1).min(line.len());
                line.replace_range(place..end, &text);
            }
            if let Some((envelope, hash)) = usual(&line)
                && let (Ok(()), Ok(hash)) = (envelope.check(), hash.parse())
            {
                prop_assert_eq!(Ok((envelope, hash)), read_line(&line), "{}", line);
            }
        }
    }
}
