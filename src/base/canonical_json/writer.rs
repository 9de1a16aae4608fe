//! Writer for canonical text in one pass.
//!
//! Building values costs several times as much as hashing the text, and every event is written once. A field that
//! arrives out of order is moved when its object is closed; most fields arrive in order.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use serde::ser::{self, Serialize};
use smallvec::SmallVec;

use super::scanner::ordinary;
use super::{FIRST_EXPONENT, MAX_EXACT, MAX_EXACT_DOUBLE};

mod serializer;

/// The error for a value that cannot be written. No type of this program causes it.
#[derive(Debug)]
pub(super) struct CanonicalWriteError;

impl Display for CanonicalWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value cannot be written as JSON")
    }
}

impl std::error::Error for CanonicalWriteError {}

impl ser::Error for CanonicalWriteError {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

type WriteResult = Result<(), CanonicalWriteError>;

/// Appends the value to `out`.
pub(super) fn write(value: &(impl Serialize + ?Sized), out: &mut String) -> WriteResult {
    value.serialize(CanonicalWriter { out })
}

struct CanonicalWriter<'o> {
    out: &'o mut String,
}

impl CanonicalWriter<'_> {
    fn integer(self, magnitude: u64, number: impl itoa::Integer) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number);
        if magnitude > MAX_EXACT {
            self.out.push('"');
            self.out.push_str(digits);
            self.out.push('"');
        } else {
            self.out.push_str(digits);
        }
    }

    fn double(self, number: f64) -> WriteResult {
        let text = serde_json_canonicalizer::to_string(&number).map_err(|_| CanonicalWriteError)?;
        // Without point and exponent it would be read back as an integer that cannot be kept exactly.
        let size = number.abs();
        if MAX_EXACT_DOUBLE < size && size < FIRST_EXPONENT {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "\"{text}\"");
        } else {
            self.out.push_str(&text);
        }
        Ok(())
    }
}

/// Writes a string in quotes, with the required escapes in their canonical form.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(run) = ordinary(rest.as_bytes()) {
        let at = run.length;
        let (plain, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut chars = behind.chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => drop(write!(out, "\\u{:04x}", u32::from(control))),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Compares names in the order of RFC 8785: by UTF-16 code units.
fn compare_utf16(one: &str, other: &str) -> Ordering {
    if one.is_ascii() || other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}

/// A list that is being written.
struct ListWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl ListWriter<'_> {
    fn item(&mut self, item: &(impl Serialize + ?Sized)) -> WriteResult {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(',');
        }
        write(item, self.out)
    }

    fn close(self) {
        self.out.push(']');
    }
}

/// An object that is being written.
struct ObjectWriter<'o> {
    out: &'o mut String,
    /// Offset of the first field.
    start: usize,
    fields: SmallVec<[FieldPosition; 12]>,
    /// True if all fields so far arrived in order.
    sorted: bool,
    /// True if the braces of an enum variant surround the object.
    wrapped: bool,
}

/// The position of a field in the output.
#[derive(Clone, Copy)]
struct FieldPosition {
    /// Range of the name, without quotes.
    name: (usize, usize),
    /// True if the name is ASCII without escapes, like most names.
    plain: bool,
    end: usize,
}

/// Returns the unescaped name. Most names contain no escape.
fn unescaped_name(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    // INVARIANT: the name was written here as a JSON string.
    Cow::Owned(serde_json::from_str(&format!("\"{written}\"")).unwrap_or_default())
}

impl ObjectWriter<'_> {
    /// Writes a name, with a comma before it where needed and a colon after it.
    fn name(&mut self, write: impl FnOnce(&mut String) -> WriteResult) -> WriteResult {
        if !self.fields.is_empty() {
            self.out.push(',');
        }
        let at = self.out.len();
        write(self.out)?;
        let end = self.out.len();
        let quoted = self.out.get(at..).unwrap_or_default();
        if quoted.len() < 2 || !quoted.starts_with('"') {
            return Err(CanonicalWriteError);
        }
        let field = FieldPosition {
            name: (at + 1, end - 1),
            plain: quoted.is_ascii() && !quoted.contains('\\'),
            end: 0,
        };
        if let Some(last) = self.fields.last() {
            let text = |field: &FieldPosition| {
                self.out.get(field.name.0..field.name.1).unwrap_or_default()
            };
            let (one, other) = (text(last), text(&field));
            let order = if last.plain && field.plain {
                one.cmp(other)
            } else {
                compare_utf16(&unescaped_name(one), &unescaped_name(other))
            };
            self.sorted &= order == Ordering::Less;
        }
        self.out.push(':');
        self.fields.push(field);
        Ok(())
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> WriteResult {
        write(value, self.out)?;
        let end = self.out.len();
        if let Some(field) = self.fields.last_mut() {
            field.end = end;
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> WriteResult {
        self.name(|out| {
            write_text(name, out);
            Ok(())
        })?;
        self.value(value)
    }

    fn close(mut self) {
        if !self.sorted {
            self.sort();
        }
        self.out.push('}');
        if self.wrapped {
            self.out.push('}');
        }
    }

    /// Sorts the fields.
    fn sort(&mut self) {
        let unsorted = self.out.as_bytes().get(self.start..);
        let scratch: SmallVec<[u8; 512]> = SmallVec::from_slice(unsorted.unwrap_or_default());
        let written = std::str::from_utf8(&scratch).unwrap_or_default();
        let piece = |from: usize, to: usize| {
            let piece = written.get(from - self.start..to - self.start);
            piece.unwrap_or_default()
        };
        let name = |field: &FieldPosition| piece(field.name.0, field.name.1);
        let mut fields = std::mem::take(&mut self.fields);
        fields.sort_by(|one, other| {
            if one.plain && other.plain {
                return name(one).cmp(name(other));
            }
            compare_utf16(&unescaped_name(name(one)), &unescaped_name(name(other)))
        });
        self.out.truncate(self.start);
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            // The name with its quotes, up to the end of its value.
            self.out.push_str(piece(field.name.0 - 1, field.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::tests::any_json;
    use super::super::{canonical, with_exact_integers};

    /// Reference for the writer: the `serde_json_canonicalizer` crate, for numbers that stay exact.
    fn by_the_crate(value: &Value) -> String {
        serde_json_canonicalizer::to_string(&with_exact_integers(value)).unwrap()
    }

    #[derive(serde::Serialize)]
    struct SampleStruct {
        zeta: Option<u8>,
        beta: Vec<(u64, i64)>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gone: Option<String>,
        alpha: SampleEnum,
        kept: SampleEnum,
        map: BTreeMap<String, f64>,
    }

    #[derive(serde::Serialize)]
    enum SampleEnum {
        Plain,
        Of(&'static str),
        With { b: bool, a: char },
    }

    #[test]
    fn structs_are_written_like_their_json_values() {
        for alpha in [
            SampleEnum::Plain,
            SampleEnum::Of("x\u{1}\"\\"),
            SampleEnum::With { b: true, a: 'é' },
        ] {
            let written = SampleStruct {
                zeta: None,
                beta: vec![(1, -1), (u64::MAX, i64::MIN)],
                gone: None,
                alpha,
                kept: SampleEnum::Plain,
                map: [("\u{1f600}".to_owned(), 0.5), ("\u{e000}".to_owned(), 1e30)].into(),
            };
            let value = serde_json::to_value(&written).unwrap();
            assert_eq!(canonical(&written), by_the_crate(&value));
        }
        assert_eq!(canonical(&json!({})), "{}");
        assert_eq!(canonical(&json!([])), "[]");
    }

    proptest! {
        #[test]
        fn writer_agrees_with_the_canonicalizer_crate(value in any_json()) {
            prop_assert_eq!(canonical(&value), by_the_crate(&value));
        }
    }
}
