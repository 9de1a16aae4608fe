//! The record as JSON Lines: one event per line, in canonical JSON.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::base::canonical_json::{canonical, object_length};
use crate::base::clock::TimestampText;
use crate::base::digest::{Digest, InterleavedDigest};
use crate::base::id::SessionId;
use crate::base::json::{self, StrictJsonError};

use super::event::{Event, TRACE_VERSION};
use super::hash::{Envelope, parse_number};
use super::verification::{
    LogVerifier, RecordLink, TrustAnchors, VerificationReport, check_fields,
};

/// Formats an event as a line, without the line feed.
#[must_use]
pub fn format_line(event: &Event) -> String {
    // INVARIANT: an event is a struct with string keys; it always becomes JSON.
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if event.pruned
        && let Some(fields) = value.as_object_mut()
    {
        // The missing payload already shows that the event was pruned: every field of a line is covered by the
        // hash.
        fields.remove("payload");
        fields.remove("pruned");
    }
    canonical(&value)
}

/// Appends the line of a record to `out`, without the line feed.
///
/// The envelope must be checked already: no field is escaped, because a checked field needs no
/// escaping.
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

/// Parses a line. Every field is checked to be one that a writer writes; the hash is not verified.
///
/// # Errors
/// A message, when the line is not exactly what [`format_line`] writes.
pub fn read_line(text: &str) -> Result<(Envelope<'_>, Digest), String> {
    let (envelope, hash) = scan(text)?;
    envelope.check()?;
    Ok((envelope, hash))
}

/// Converts a line to the form of [`format_line`], if another program wrote the same values in another form.
///
/// A text that is not an event is returned unchanged.
#[must_use]
pub fn to_canonical_line(text: &str) -> Cow<'_, str> {
    match read_line(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(_) => rewrite_line(text).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Canonical form of a line that has the fields of an event in another form; `None` otherwise.
fn rewrite_line(text: &str) -> Option<String> {
    let value: Value = json::read(text.as_bytes()).ok()?;
    if missing_or_extra(value.as_object()?).is_some() {
        return None;
    }
    Some(canonical(&value)).filter(|line| line != text)
}

/// Fields of a line, without validation.
fn scan(text: &str) -> Result<(Envelope<'_>, Digest), String> {
    let scanned = LineScanner { rest: text }.format_line();
    let (envelope, hash) = scanned.ok_or_else(|| explain(text))?;
    Ok((envelope, read_hash(hash)?))
}

fn read_hash(hash: &str) -> Result<Digest, String> {
    hash.parse()
        .map_err(|_| "hash is not a SHA-256 hash".to_owned())
}

/// Fast path that reads the fields of a usual line from both ends; the payload between them is not
/// parsed. `None` means that the fast path does not apply.
///
/// The fields are not proven. The caller must reject names that cannot occur in an envelope: only then
/// do the fields lie in the line as they seem to.
fn scan_fast(line: &str) -> Option<(Envelope<'_>, &str)> {
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
        // An empty parent would read as an absent one.
        parent_span_id: match parent_span_id {
            Some("") => return None,
            Some(parent) => parent,
            None => "",
        },
        session_id,
        sequence: parse_number(sequence)?,
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

/// Checks a line on its own and leaves the text that its hash covers in `text`.
fn check_line<'l>(line: &'l str, text: &mut String) -> Result<(Envelope<'l>, RecordLink), String> {
    let (envelope, hash) = match scan_fast(line) {
        Some((envelope, hash)) => (envelope, read_hash(hash)?),
        None => scan(line)?,
    };
    text.clear();
    envelope.write(text);
    let mut hashing = InterleavedDigest::of(text.as_bytes());
    hashing.step();
    if !envelope.has_usual_names(text) {
        envelope.check_names()?;
    }
    let checked = check_fields(&envelope, text, &hash, &mut hashing)?;
    Ok((envelope, checked))
}

/// Parses the event of a line for display. This proves nothing.
///
/// # Errors
/// When the line is not an event.
pub fn read_event(line: &[u8]) -> Result<Event, StrictJsonError> {
    #[derive(serde::Deserialize)]
    struct LineContent {
        payload: Option<serde::de::IgnoredAny>,
    }
    let mut event: Event = json::read(line)?;
    let content: LineContent = json::read(line)?;
    event.pruned = content.payload.is_none();
    Ok(event)
}

/// Scanner that walks over a line once, field by field, without building values.
struct LineScanner<'a> {
    rest: &'a str,
}

impl<'a> LineScanner<'a> {
    fn format_line(mut self) -> Option<(Envelope<'a>, &'a str)> {
        let event_id = self.text("{\"event_id\":\"")?;
        let event_type = self.text(",\"event_type\":\"")?;
        let hash = self.text(",\"hash\":\"")?;
        let parent = self.text(",\"parent_span_id\":\"");
        // An empty parent would read as an absent one.
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

    /// Text between `before` and the next quote.
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
        parse_number(digits)
    }

    /// The details; empty if they were pruned.
    fn payload(&mut self) -> Option<&'a str> {
        let Some(rest) = self.rest.strip_prefix(",\"payload\":") else {
            return Some("");
        };
        let (payload, rest) = rest.split_at_checked(object_length(rest)?)?;
        self.rest = rest;
        Some(payload)
    }
}

/// Required fields of a line; `parent_span_id` and `payload` are optional.
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

/// Explains why a line is invalid: the slow path, with a message.
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
        return Some(format!("has no valid `{missing}`"));
    }
    let parent = fields.get("parent_span_id");
    if parent.is_some_and(|parent| parent.as_str().is_none_or(str::is_empty)) {
        return Some("has an empty or invalid `parent_span_id`".to_owned());
    }
    let payload = fields.get("payload");
    (!payload.is_none_or(Value::is_object))
        .then(|| "has a `payload` that is not an object".to_owned())
}

/// Verifier of exported lines: the chains of all sessions in them, and the log if it is included. Lines
/// that cannot be parsed are faults; they are never skipped.
#[derive(Debug)]
pub struct LinesVerifier {
    log: LogVerifier,
    lines: u64,
    text: String,
}

impl LinesVerifier {
    /// Creates a verifier that checks lines against `trust`.
    #[must_use]
    pub fn new(trust: TrustAnchors) -> Self {
        Self {
            log: LogVerifier::new(trust),
            lines: 0,
            text: String::new(),
        }
    }

    /// Limits verification to one session and the log.
    #[must_use]
    pub fn only(mut self, session: SessionId) -> Self {
        self.log = self.log.limit_to(session);
        self
    }

    /// Processes the next line, without its line feed.
    pub fn push(&mut self, text: &[u8]) {
        self.lines += 1;
        let read = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned());
        match read.and_then(|line| check_line(line, &mut self.text)) {
            Ok((envelope, link)) => self.log.push(&envelope, &link, &self.text),
            Err(what) => match std::str::from_utf8(text).ok().and_then(rewrite_line) {
                Some(line) => self.push_rewritten(&line),
                None => self.record_fault(text, &what),
            },
        }
    }

    /// Processes a line that another program rewrote, in canonical form.
    fn push_rewritten(&mut self, rewritten: &str) {
        match check_line(rewritten, &mut self.text) {
            Ok((envelope, link)) => {
                self.log.push(&envelope, &link, &self.text);
                if let Ok(session) = envelope.session_id.parse() {
                    self.log.count_not_canonical(&session);
                }
            }
            Err(what) => self.record_fault(rewritten.as_bytes(), &what),
        }
    }

    /// Records an invalid line. If only its hash is wrong, the fault is that of its session.
    fn record_fault(&mut self, line: &[u8], what: &str) {
        let line = std::str::from_utf8(line).ok();
        let read = line.and_then(|line| read_line(line).ok());
        let session = read.and_then(|(envelope, _)| envelope.session_id.parse().ok());
        if let Some(session) = session {
            let place = self.log.chain_index(&session);
            return self.log.report_unreadable(Some(place), what);
        }
        let number = self.lines;
        self.log
            .report_unreadable(None, &format!("line {number} {what}"));
    }

    /// Requires the seals that a console makes: see [`LogVerifier::demand_seals`].
    pub fn demand_seals(&mut self) {
        self.log.demand_seals();
    }

    /// Number of lines read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Result of the verification.
    #[must_use]
    pub fn finish(self) -> VerificationReport {
        self.log.finish()
    }
}

/// Verifies the lines of a text. A file alone does not prove the length of a chain: without a head to
/// compare with, all of it is unsealed.
#[must_use]
pub fn verify(text: &[u8], trust: TrustAnchors) -> VerificationReport {
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
    fn usual_lines_take_the_fast_path() {
        for payload in ["", "{}", r#"{"a":"\",\"previous_hash\":\"x"}"#] {
            for session in [ID, "s-1"] {
                for line in lines(session, payload) {
                    let (envelope, hash) = scan_fast(&line).unwrap();
                    let read = (envelope, hash.parse().unwrap());
                    assert_eq!(Ok(read), read_line(&line), "{line}");
                }
            }
        }
    }

    proptest! {
        /// A changed line that the fast path accepts as a record is a valid record.
        #[test]
        fn fast_path_agrees_with_slow_path(
            line in prop::sample::select(lines("s-1", r#"{"a":"b"}"#)),
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,3}"), 0..3),
        ) {
            let mut line = line;
            for (place, text) in changes {
                let place = place.index(line.len());
                let end = (place + 1).min(line.len());
                line.replace_range(place..end, &text);
            }
            if let Some((envelope, hash)) = scan_fast(&line)
                && let (Ok(()), Ok(hash)) = (envelope.check(), hash.parse())
            {
                prop_assert_eq!(Ok((envelope, hash)), read_line(&line), "{}", line);
            }
        }
    }
}
