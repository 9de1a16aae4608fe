//! Scanner that checks in one pass, without building values, if a text is canonical.
//!
//! Parsing a payload into values and writing it again costs several times as much as hashing it. This scanner
//! accepts exactly the texts that [`super::canonical`] writes; a property test compares the two.

use std::cmp::Ordering;

use serde_json::Value;

/// Maximum nesting depth. JSON readers stop at about the same depth.
const MAX_DEPTH: usize = 128;

/// Returns the length of the canonical JSON object at the start of `text`, or `None` if there is none.
#[must_use]
pub fn object_length(text: &str) -> Option<usize> {
    object_length_interleaved(text, || ())
}

/// Works like [`object_length`], and calls `beside` after each field so that the caller can interleave other work.
#[inline]
pub fn object_length_interleaved(text: &str, beside: impl FnMut()) -> Option<usize> {
    let mut scanner = CanonicalScanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        interleave: beside,
    };
    if scanner.peek()? != b'{' {
        return None;
    }
    scanner.value(0)?;
    Some(scanner.at)
}

/// Returns true if `text` is exactly one canonical JSON object.
#[must_use]
pub fn is_canonical_object(text: &str) -> bool {
    object_length(text) == Some(text.len())
}

struct CanonicalScanner<'t, F> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    interleave: F,
}

impl<'t, F: FnMut()> CanonicalScanner<'t, F> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        rest.starts_with(word.as_bytes())
            .then(|| self.at += word.len())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b'"' => self.string().map(drop),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(());
        }
        let mut before: Option<ObjectKey<'t>> = None;
        loop {
            let key = self.string()?;
            if let Some(before) = before
                && before.compare_utf16(key) != Ordering::Less
            {
                return None;
            }
            before = Some(key);
            self.take(b':')?;
            self.value(depth)?;
            (self.interleave)();
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'[')?;
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(depth)?;
            if self.take(b',').is_none() {
                return self.take(b']');
            }
        }
    }

    /// Scans a string and returns it without its quotes. Only required escapes are accepted, in their canonical
    /// form.
    #[inline]
    fn string(&mut self) -> Option<ObjectKey<'t>> {
        let (quote, rest) = self.bytes.get(self.at..)?.split_first()?;
        if *quote != b'"' {
            return None;
        }
        let run = ordinary(rest)?;
        let (text, behind) = rest.split_at_checked(run.length)?;
        if behind.first() != Some(&b'"') {
            return self.escaped_string();
        }
        self.at += run.length + 2;
        let plain = run.ascii;
        Some(ObjectKey { text, plain })
    }

    /// Scans a string that contains an escape, which is rare.
    #[cold]
    fn escaped_string(&mut self) -> Option<ObjectKey<'t>> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let run = ordinary(self.bytes.get(self.at..)?)?;
            self.at += run.length;
            match self.peek()? {
                b'"' => {
                    let text = self.bytes.get(start..self.at)?;
                    self.at += 1;
                    return Some(ObjectKey { text, plain: false });
                }
                b'\\' => {
                    self.at += 1;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                let &[b'0', b'0', high @ b'0'..=b'1', low] = digits else {
                    return None;
                };
                let short = high == b'0' && matches!(low, b'8' | b'9' | b'a' | b'c' | b'd');
                let lower_hex = matches!(low, b'0'..=b'9' | b'a'..=b'f');
                (lower_hex && !short).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.strip_prefix(b"-").unwrap_or(rest);
        let length = digits.iter().position(|byte| !byte.is_ascii_digit());
        let length = length.unwrap_or(digits.len());
        match (digits.first()?, digits.get(length)) {
            (b'1'..=b'9', Some(b',' | b'}' | b']')) if length <= 15 => {
                self.at += length + rest.len() - digits.len();
                Some(())
            }
            _ => self.unusual_number(),
        }
    }

    /// Scans zero or a number that is not a short integer: parses it, writes it again and compares.
    #[cold]
    fn unusual_number(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let text = self.text.get(self.at..self.at + length)?;
        self.at += length;
        if text == "0" {
            return Some(());
        }
        let value: Value = serde_json::from_str(text).ok()?;
        (value.is_number() && super::canonical(&value) == text).then_some(())
    }
}

/// A run of bytes that need no escape in a string, up to a control character, `"` or `\`.
pub(in crate::base) struct UnescapedRun {
    pub(in crate::base) length: usize,
    /// True if all bytes are ASCII. Can be false because of the bytes after the run.
    pub(in crate::base) ascii: bool,
}

/// Returns the first run, if a special byte ends it.
///
/// The search takes sixteen bytes at a time. Few keys are longer, so processors rarely mispredict the end of a key.
#[inline]
pub(in crate::base) fn ordinary(bytes: &[u8]) -> Option<UnescapedRun> {
    let mut length = 0;
    let mut all = 0;
    let (steps, rest) = bytes.as_chunks::<16>();
    for step in steps {
        let (words, _) = step.as_chunks::<8>();
        if let [first, second] = words {
            let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
            all |= first | second;
            let (first, second) = (mark_special_bytes(first), mark_special_bytes(second));
            if first | second != 0 {
                let behind = 8 + second.trailing_zeros() as usize / 8;
                let here = first.trailing_zeros() as usize / 8;
                length += if first == 0 { behind } else { here };
                let ascii = all & HIGH == 0;
                return Some(UnescapedRun { length, ascii });
            }
        }
        length += 16;
    }
    // The remaining bytes are padded with blanks, which need no escape.
    for left in rest.chunks(8) {
        let mut word = [b' '; 8];
        word.get_mut(..left.len())?.copy_from_slice(left);
        let word = u64::from_le_bytes(word);
        all |= word;
        let found = mark_special_bytes(word);
        if found != 0 {
            length += found.trailing_zeros() as usize / 8;
            let ascii = all & HIGH == 0;
            return Some(UnescapedRun { length, ascii });
        }
        length += 8;
    }
    None
}

/// A word with 1 in every byte, and a word with only the highest bit of every byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// Marks the bytes of a word that need an escape, in their highest bits. Only the lowest marked bit is reliable.
#[inline]
fn mark_special_bytes(word: u64) -> u64 {
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    // With this bit flipped, a quote comes right after the control characters, in place of the blank.
    let quote = below(word ^ (ONES * 0x02), 0x21);
    let escape = below(word ^ (ONES * u64::from(b'\\')), 1);
    (quote | escape) & HIGH
}

/// A key as written; `plain` is true if it is ASCII without escapes.
#[derive(Clone, Copy)]
struct ObjectKey<'t> {
    text: &'t [u8],
    plain: bool,
}

impl ObjectKey<'_> {
    /// Compares keys in the order of RFC 8785: by UTF-16 code units of the unescaped text.
    fn compare_utf16(self, other: ObjectKey<'_>) -> Ordering {
        if self.plain && other.plain {
            // Most keys start with different letters.
            return match (self.text, other.text) {
                ([mine, ..], [others, ..]) if mine != others => mine.cmp(others),
                (mine, others) => mine.cmp(others),
            };
        }
        self.unescaped()
            .encode_utf16()
            .cmp(other.unescaped().encode_utf16())
    }

    fn unescaped(self) -> String {
        // INVARIANT: the scanner accepted the text as a JSON string.
        let text = std::str::from_utf8(self.text).unwrap_or_default();
        serde_json::from_str(&format!("\"{text}\"")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::canonical_json::canonical;
    use crate::base::canonical_json::tests::any_json;
    use proptest::prelude::*;

    /// Reference for the scanner: parses the text into values and writes it again.
    fn slowly(text: &str) -> bool {
        let read = serde_json::from_str::<Value>(text);
        read.is_ok_and(|value| value.is_object() && canonical(&value) == text)
    }

    #[test]
    fn scanner_accepts_only_canonical_objects() {
        for text in [
            r"{}",
            r#"{"a":1,"b":[true,false,null,-3,0.5,1e+30,"é\"\\\n\u001f"]}"#,
            r#"{"a":{"b":{}},"c":9007199254740992,"d":-1.5e-7}"#,
            "{\"\u{e000}\":1}",
            "{\"\u{1f600}\":1,\"\u{e000}\":2}",
        ] {
            assert!(slowly(text), "{text}");
            assert!(is_canonical_object(text), "{text}");
        }
        for text in [
            "",
            "{",
            "[]",
            "1",
            "{} ",
            " {}",
            r#"{"a": 1}"#,
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":01}"#,
            r#"{"a":-0}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e5}"#,
            r#"{"a":1E30}"#,
            r#"{"a":1e30}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":+1}"#,
            r#"{"a":.5}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\u001F"}"#,
            r#"{"a":"\u000a"}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":1,}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":tru}"#,
            r"{a:1}",
            "{\"\u{e000}\":1,\"\u{1f600}\":2}",
        ] {
            assert!(!slowly(text), "{text}");
            assert!(!is_canonical_object(text), "{text}");
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_rejected_without_recursion() {
        let deep =
            |levels: usize| format!("{}{}", "{\"a\":".repeat(levels), "1") + &"}".repeat(levels);
        assert!(is_canonical_object(&deep(MAX_DEPTH - 1)));
        assert!(!is_canonical_object(&deep(MAX_DEPTH + 1)));
        assert!(!is_canonical_object(&deep(1_000_000)));
    }

    #[test]
    fn text_after_an_object_is_ignored() {
        assert_eq!(object_length(r#"{"a":"}"},"hash":1}"#), Some(9));
        assert_eq!(object_length("[]"), None);
    }

    proptest! {
        #[test]
        fn scanner_accepts_what_the_writer_writes(fields in prop::collection::btree_map(".{0,4}", any_json(), 0..5)) {
            let text = canonical(&Value::Object(fields.into_iter().collect()));
            prop_assert!(is_canonical_object(&text), "{}", text);
        }

        #[test]
        fn scanner_agrees_with_parsing_and_writing_again(
            fields in prop::collection::btree_map("[a-c]{0,2}", any_json(), 0..4),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = canonical(&Value::Object(fields.into_iter().collect())).into_bytes();
            let place = place.index(bytes.len());
            if let Some(old) = bytes.get_mut(place) {
                *old = byte;
            }
            if let Ok(text) = String::from_utf8(bytes) {
                prop_assert_eq!(is_canonical_object(&text), slowly(&text), "{}", text);
            }
        }
    }
}
