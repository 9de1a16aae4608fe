//! The text that a hash covers: the only code that writer and verifier share.
//!
//! The eleven fields of an event are joined by `:`. The encoding is injective, because only the payload
//! may contain a `:` freely: the timestamp has a fixed width, and identifiers, versions, types and
//! hashes cannot contain one. [`Envelope::split`] is the inverse: it parses a text only if a writer
//! would have written exactly these bytes, so no byte can move from one field to the next.

use crate::base::canonical_json;
use crate::base::clock::TimestampText;
use crate::base::digest::Digest;
use crate::base::id::{are_usual_names, is_id_length, is_restricted};
use crate::base::limits::MAX_ID_LEN;

use super::event::TRACE_VERSION;

/// The eleven hashed fields as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Version of the envelope.
    pub trace_version: &'a str,
    /// Event identifier.
    pub event_id: &'a str,
    /// Operation.
    pub trace_id: &'a str,
    /// Span.
    pub span_id: &'a str,
    /// Parent span; empty if there is none.
    pub parent_span_id: &'a str,
    /// Session.
    pub session_id: &'a str,
    /// Position in the chain.
    pub sequence: u64,
    /// Time of the event.
    pub timestamp: &'a str,
    /// Event type.
    pub event_type: &'a str,
    /// Details as canonical JSON; empty if they were pruned.
    pub payload: &'a str,
    /// Hash of the event before.
    pub previous_hash: &'a str,
}

impl<'a> Envelope<'a> {
    /// Appends the text that the hash covers to `out`.
    pub fn write(&self, out: &mut String) {
        self.write_with(out, |out| out.push_str(self.payload));
    }

    /// Appends the hashed text like [`Envelope::write`]; `payload` writes the details in place.
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

    /// True if retention dropped the details.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.payload.is_empty()
    }

    /// Parses a hashed text.
    ///
    /// # Errors
    /// A message, when the text is not exactly what [`Envelope::write`] writes for an event.
    pub fn split(text: &'a str) -> Result<Self, String> {
        let envelope = Self::split_fields(text)?;
        envelope.check()?;
        Ok(envelope)
    }

    /// Fast path that parses a text and checks its names, for texts with the usual names of 36 characters.
    /// `None` means that the fast path does not apply; the text may still be valid. Calls `beside` at
    /// intervals to interleave other work.
    #[inline]
    pub(super) fn split_fast(text: &'a str, mut beside: impl FnMut()) -> Option<Self> {
        let mut rest = text.strip_prefix(TRACE_VERSION)?.strip_prefix(':')?;
        let event_id = usual_field(&mut rest)?;
        let trace_id = usual_field(&mut rest)?;
        let span_id = usual_field(&mut rest)?;
        let parent_span_id = usual_field(&mut rest)?;
        let session_id = usual_field(&mut rest)?;
        beside();
        let (sequence, behind) = leading_number(rest)?;
        let (timestamp, behind) = behind
            .strip_prefix(':')?
            .split_at_checked(TimestampText::WIDTH)?;
        rest = behind.strip_prefix(':')?;
        let event_type = rest.get(..memchr::memchr(b':', rest.as_bytes())?)?;
        rest = rest.get(event_type.len() + 1..)?;
        let (payload, behind) = rest.split_at_checked(rest.len().checked_sub(HASH_SUFFIX_LEN)?)?;
        let envelope = Self {
            trace_version: TRACE_VERSION,
            event_id,
            trace_id,
            span_id,
            parent_span_id,
            session_id,
            sequence,
            timestamp,
            event_type,
            payload,
            previous_hash: behind.strip_prefix(':')?,
        };
        beside();
        envelope.has_usual_names(text).then_some(envelope)
    }

    /// True if the names have the usual form in the text of this envelope. `false` means nothing.
    #[inline]
    pub(super) fn has_usual_names(&self, text: &str) -> bool {
        let ids = [
            self.trace_version,
            self.event_id,
            self.trace_id,
            self.span_id,
            self.parent_span_id,
            self.session_id,
        ];
        let start = self.trace_version.len() + 1;
        let end: usize = ids.iter().map(|id| id.len() + 1).sum();
        // Five more separators follow the names; exactly five means that no name contains one.
        let usual = text
            .get(start..end)
            .is_some_and(|ids| are_usual_names(ids, 5));
        usual
            && self.trace_version == TRACE_VERSION
            && is_restricted(self.event_type)
            && self.has_names()
    }

    /// True if every name is present and none is too long.
    fn has_names(&self) -> bool {
        let names = [self.event_id, self.trace_id, self.span_id, self.session_id];
        names.iter().all(|name| is_id_length(name)) && self.parent_span_id.len() <= MAX_ID_LEN
    }

    /// Splits a text into fields. [`Envelope::check`] validates the fields.
    pub(super) fn split_fields(text: &'a str) -> Result<Self, String> {
        let mut rest = text;
        let trace_version = field(&mut rest, "trace_version")?;
        let event_id = field(&mut rest, "event_id")?;
        let trace_id = field(&mut rest, "trace_id")?;
        let span_id = field(&mut rest, "span_id")?;
        let parent_span_id = field(&mut rest, "parent_span_id")?;
        let session_id = field(&mut rest, "session_id")?;
        let sequence = field(&mut rest, "sequence")?;
        let sequence = parse_number(sequence).ok_or("sequence is not a number")?;
        let (timestamp, behind) = rest
            .split_at_checked(TimestampText::WIDTH)
            .ok_or("timestamp has the wrong format")?;
        rest = behind
            .strip_prefix(':')
            .ok_or("timestamp has the wrong format")?;
        let event_type = field(&mut rest, "event_type")?;
        let at = rest
            .len()
            .checked_sub(HASH_SUFFIX_LEN)
            .ok_or("is truncated")?;
        let (payload, behind) = rest.split_at_checked(at).ok_or("is truncated")?;
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

    /// Checks that every field is one that a writer writes.
    ///
    /// # Errors
    /// A message, when a field is not.
    pub fn check(&self) -> Result<(), String> {
        self.check_names()?;
        if !self.is_pruned() && !canonical_json::is_canonical_object(self.payload) {
            return Err(NOT_CANONICAL.to_owned());
        }
        if TimestampText::parse(self.timestamp).is_none() {
            return Err("timestamp has the wrong format".to_owned());
        }
        if self.previous_hash.parse::<Digest>().is_err() {
            return Err("previous_hash is not a SHA-256 hash".to_owned());
        }
        Ok(())
    }

    /// Checks that version and identifiers are ones that a writer writes.
    pub(super) fn check_names(&self) -> Result<(), String> {
        if self.trace_version != TRACE_VERSION {
            return Err(format!(
                "trace_version `{}` is not supported",
                clip_for_message(self.trace_version)
            ));
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
}

/// Message about a payload that [`canonical_json`] would have written differently.
pub(super) const NOT_CANONICAL: &str = "payload is not a JSON object in canonical form";

/// Length of a `:` and the hash after it.
pub(super) const HASH_SUFFIX_LEN: usize = 65;

fn field<'a>(rest: &mut &'a str, name: &str) -> Result<&'a str, String> {
    let ends = || format!("ends before the end of its {name}");
    let at = memchr::memchr(b':', rest.as_bytes()).ok_or_else(ends)?;
    let (field, behind) = rest.split_at_checked(at).ok_or_else(ends)?;
    *rest = behind.strip_prefix(':').ok_or_else(ends)?;
    Ok(field)
}

/// A field that probably has 36 characters. A shorter field may be returned together with the following
/// text.
fn usual_field<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let at = match rest.as_bytes().get(36) {
        Some(b':') => 36,
        Some(_) | None => memchr::memchr(b':', rest.as_bytes())?,
    };
    let (field, behind) = rest.split_at_checked(at)?;
    *rest = behind.strip_prefix(':')?;
    Some(field)
}

/// A leading number and the text after it. A number of more than 18 digits may overflow and is not
/// parsed.
fn leading_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    let mut length = 0;
    let number = digits.take(19).fold(0, |number: u64, digit| {
        length += 1;
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'))
    });
    let (digits, behind) = text.split_at_checked(length)?;
    let plain = digits == "0" || !digits.starts_with('0');
    (plain && (1..=18).contains(&length)).then_some((number, behind))
}

fn check_id(name: &str, id: &str) -> Result<(), String> {
    if is_restricted(id) {
        return Ok(());
    }
    Err(format!("{name} is not a valid identifier"))
}

/// Parses a number in its written form: no sign, no leading zero.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match leading_number(text) {
        Some((number, "")) => Some(number),
        Some(_) => None,
        // A long number, or no number.
        None => {
            let plain = !text.starts_with(['0', '+']);
            text.parse().ok().filter(|_| plain)
        }
    }
}

pub(super) fn clip_for_message(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    crate::base::text::one_line(&start)
}

/// Hash of a record.
#[must_use]
pub fn hash(envelope: &Envelope<'_>) -> Digest {
    let mut text = String::with_capacity(512);
    envelope.write(&mut text);
    Digest::of(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A name of the usual form, or another one.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "[a-zA-Z0-9._-]{0,40}"
        ]
    }

    fn text() -> impl Strategy<Value = String> {
        (prop::array::uniform5(name()), 0..1000_u64, "[a-z_]{0,20}").prop_map(
            |(names, sequence, kind)| {
                let names = names.join(":");
                let hash = "0".repeat(64);
                format!("1.0:{names}:{sequence}:2026-01-01T00:00:00.000000Z:{kind}:{{}}:{hash}")
            },
        )
    }

    #[test]
    fn usual_texts_take_the_fast_path() {
        let id = "01234567-89ab-cdef-0123-456789abcdef";
        let hash = "0".repeat(64);
        for parent in ["", id] {
            let text = format!(
                "1.0:{id}:{id}:{id}:{parent}:{id}:7:2026-01-01T00:00:00.000000Z:a_b:{{}}:{hash}"
            );
            let usual = Envelope::split_fast(&text, || ()).unwrap();
            assert_eq!(Ok(usual), Envelope::split(&text));
        }
    }

    proptest! {
        /// The fast path returns the same as the slow path and checks as strictly.
        #[test]
        fn fast_path_agrees_with_slow_path(
            text in text(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let mut bytes = text.into_bytes();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = if byte > 0x7f { b':' } else { byte };
            }
            let text = String::from_utf8(bytes).unwrap();
            if let Some(usual) = Envelope::split_fast(&text, || ()) {
                prop_assert_eq!(Ok(usual), Envelope::split_fields(&text));
                prop_assert_eq!(usual.check_names(), Ok(()));
            }
        }

        #[test]
        fn only_canonical_numbers_are_parsed(text in "[+0-9]{0,21}") {
            let strictly = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_number(&text), strictly);
        }
    }
}
