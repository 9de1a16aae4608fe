//! The text that a hash covers: the one thing that writer and verifier share.
//!
//! The eleven fields of an event are joined by `:`. That is injective, because only the payload may
//! contain a `:` freely: the timestamp has a fixed width, and identifiers, versions, types and hashes
//! cannot contain one. [`Envelope::split`] is the other way: it takes a text apart only where it is
//! exactly what a writer would have written, so no byte can move from one field to the next.

use crate::base::canon;
use crate::base::clock::TimestampText;
use crate::base::digest::Digest;
use crate::base::id::{are_restricted, is_restricted};
use crate::base::limits::MAX_ID_LEN;

use super::event::TRACE_VERSION;

/// The eleven hashed fields, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Version of the envelope.
    pub trace_version: &'a str,
    /// The event.
    pub event_id: &'a str,
    /// The operation.
    pub trace_id: &'a str,
    /// The span.
    pub span_id: &'a str,
    /// The span above; empty when there is none.
    pub parent_span_id: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// Place in the chain.
    pub sequence: u64,
    /// When.
    pub timestamp: &'a str,
    /// What.
    pub event_type: &'a str,
    /// Details, as canonical JSON; empty where they were pruned.
    pub payload: &'a str,
    /// Hash of the event before.
    pub previous_hash: &'a str,
}

impl<'a> Envelope<'a> {
    /// The text that the hash covers, written behind what is in `out` already.
    pub fn write(&self, out: &mut String) {
        self.write_with(out, |out| out.push_str(self.payload));
    }

    /// The same, with details that are written in their place.
    pub fn write_with(&self, out: &mut String, payload: impl FnOnce(&mut String)) {
        let before = [
            self.trace_version,
            self.event_id,
            self.trace_id,
            self.span_id,
            self.parent_span_id,
            self.session_id,
        ];
        for field in before {
            out.push_str(field);
            out.push(':');
        }
        out.push_str(itoa::Buffer::new().format(self.sequence));
        for field in [self.timestamp, self.event_type] {
            out.push(':');
            out.push_str(field);
        }
        out.push(':');
        payload(out);
        out.push(':');
        out.push_str(self.previous_hash);
    }

    /// Whether the details were dropped because they were old.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.payload.is_empty()
    }

    /// Takes a text apart.
    ///
    /// # Errors
    /// In words, when it is not exactly what [`Envelope::write`] writes for an event.
    pub fn split(text: &'a str) -> Result<Self, String> {
        let envelope = Self::take_apart(text)?;
        envelope.check()?;
        Ok(envelope)
    }

    /// Takes a text apart. Whether every field is one that a writer writes is for [`Envelope::check`].
    pub(super) fn take_apart(text: &'a str) -> Result<Self, String> {
        let mut rest = text;
        let trace_version = field(&mut rest, "trace_version")?;
        let event_id = field(&mut rest, "event_id")?;
        let trace_id = field(&mut rest, "trace_id")?;
        let span_id = field(&mut rest, "span_id")?;
        let parent_span_id = field(&mut rest, "parent_span_id")?;
        let session_id = field(&mut rest, "session_id")?;
        let sequence = field(&mut rest, "sequence")?;
        let sequence = read_number(sequence).ok_or("sequence is not a number")?;
        let (timestamp, behind) = rest
            .split_at_checked(TimestampText::WIDTH)
            .ok_or("timestamp is not in the fixed form")?;
        rest = behind
            .strip_prefix(':')
            .ok_or("timestamp is not in the fixed form")?;
        let event_type = field(&mut rest, "event_type")?;
        let at = rest.len().checked_sub(HASH_BEHIND).ok_or("is cut off")?;
        let (payload, behind) = rest.split_at_checked(at).ok_or("is cut off")?;
        let previous_hash = behind.strip_prefix(':').ok_or("has no previous_hash")?;
        Ok(Self {
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
        })
    }

    /// Whether every field is one that a writer writes.
    ///
    /// # Errors
    /// In words, when one is not.
    pub fn check(&self) -> Result<(), String> {
        self.check_names_and_content()?;
        if TimestampText::read(self.timestamp).is_none() {
            return Err("timestamp is not in the fixed form".to_owned());
        }
        if self.previous_hash.parse::<Digest>().is_err() {
            return Err("previous_hash is not a hash".to_owned());
        }
        Ok(())
    }

    /// The part of [`Envelope::check`] that leaves out what a verifier reads anyway.
    fn check_names_and_content(&self) -> Result<(), String> {
        self.check_names()?;
        self.check_content()
    }

    /// Whether version and identifiers are ones that a writer writes.
    pub(super) fn check_names(&self) -> Result<(), String> {
        if self.trace_version != TRACE_VERSION {
            return Err(format!("trace_version is `{}`", shown(self.trace_version)));
        }
        let ids = [
            ("event_id", self.event_id),
            ("trace_id", self.trace_id),
            ("span_id", self.span_id),
            ("session_id", self.session_id),
            ("event_type", self.event_type),
        ];
        for (name, id) in ids {
            check_id(name, id)?;
        }
        if !self.parent_span_id.is_empty() {
            check_id("parent_span_id", self.parent_span_id)?;
        }
        Ok(())
    }

    /// The same for an envelope that was just taken apart, with the text it was taken from.
    pub(super) fn check_taken_apart(&self, text: &str) -> Result<(), String> {
        let names = [
            self.event_id,
            self.trace_id,
            self.span_id,
            self.session_id,
            self.event_type,
        ];
        let behind = TimestampText::WIDTH + 2 + self.event_type.len() + 1 + self.payload.len();
        let before = text.len().checked_sub(behind + HASH_BEHIND);
        let before = before.and_then(|end| text.get(..end));
        let parent = self.parent_span_id.len() <= MAX_ID_LEN;
        let quick = before.is_some_and(|before| {
            // From the first identifier up to the sequence there is nothing else.
            parent && are_restricted(before, &names) && are_restricted(self.event_type, &[])
        });
        if quick && self.trace_version == TRACE_VERSION {
            return self.check_content();
        }
        // Slowly, to say what is wrong.
        self.check_names_and_content()
    }

    fn check_content(&self) -> Result<(), String> {
        if !self.is_pruned() && !canon::is_canonical_object(self.payload) {
            return Err("payload is not a JSON object in canonical form".to_owned());
        }
        Ok(())
    }
}

/// A `:` and the hash behind it.
const HASH_BEHIND: usize = 65;

fn field<'a>(rest: &mut &'a str, name: &str) -> Result<&'a str, String> {
    let ends = || format!("ends before its {name} does");
    let at = memchr::memchr(b':', rest.as_bytes()).ok_or_else(ends)?;
    let (field, behind) = rest.split_at_checked(at).ok_or_else(ends)?;
    *rest = behind.strip_prefix(':').ok_or_else(ends)?;
    Ok(field)
}

fn check_id(name: &str, id: &str) -> Result<(), String> {
    if is_restricted(id) {
        return Ok(());
    }
    Err(format!(
        "{name} has characters that an identifier cannot have"
    ))
}

/// A number as it is written: no sign, no leading zero.
fn read_number(text: &str) -> Option<u64> {
    let plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| plain)
}

pub(super) fn shown(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    crate::base::text::one_line(&start)
}

/// The hash of a record.
#[must_use]
pub fn hash(envelope: &Envelope<'_>) -> Digest {
    let mut text = String::with_capacity(512);
    envelope.write(&mut text);
    Digest::of(text)
}
