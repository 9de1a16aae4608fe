//! Canonical text, written in one pass.
//!
//! Going through values costs several times what hashing the text costs, and every event is written
//! once. A field that comes before its turn is moved to its place when its object is closed; most come
//! in order.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use serde::ser::{self, Serialize};
use smallvec::SmallVec;

use super::scan::ordinary;
use super::{FIRST_EXPONENT, MAX_EXACT, MAX_EXACT_DOUBLE};

mod serialize;

/// Why something cannot be written. Nothing of this program's own gives one.
#[derive(Debug)]
pub(super) struct Unwritable;

impl Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it cannot be written as JSON")
    }
}

impl std::error::Error for Unwritable {}

impl ser::Error for Unwritable {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

type Done = Result<(), Unwritable>;

/// Writes behind what is in `out` already.
pub(super) fn write(value: &(impl Serialize + ?Sized), out: &mut String) -> Done {
    value.serialize(Writer { out })
}

struct Writer<'o> {
    out: &'o mut String,
}

impl Writer<'_> {
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

    fn double(self, number: f64) -> Done {
        let text = serde_json_canonicalizer::to_string(&number).map_err(|_| Unwritable)?;
        // Without point and exponent it would be read back as an integer that is not kept.
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

/// A string in quotes, with what must be escaped, in the one way there is.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = ordinary(rest.as_bytes()) {
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

/// The order of RFC 8785: by UTF-16 code units.
fn order(one: &str, other: &str) -> Ordering {
    if one.is_ascii() || other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}

/// A list that is being written.
struct List<'o> {
    out: &'o mut String,
    first: bool,
}

impl List<'_> {
    fn item(&mut self, item: &(impl Serialize + ?Sized)) -> Done {
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
struct Object<'o> {
    out: &'o mut String,
    /// Where its fields begin.
    start: usize,
    fields: SmallVec<[Field; 12]>,
    /// Whether the fields came in order so far.
    sorted: bool,
    /// Whether a variant's own braces are around it.
    wrapped: bool,
}

/// Where a field lies in what is written.
#[derive(Clone, Copy)]
struct Field {
    /// Its name, without quotes.
    name: (usize, usize),
    end: usize,
}

/// A name as it is meant. Most are written as they are meant.
fn meant(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    // INVARIANT: it was written here as a JSON string.
    Cow::Owned(serde_json::from_str(&format!("\"{written}\"")).unwrap_or_default())
}

impl Object<'_> {
    /// Writes a name: a comma before it where one belongs, and a colon behind.
    fn name(&mut self, write: impl FnOnce(&mut String) -> Done) -> Done {
        if !self.fields.is_empty() {
            self.out.push(',');
        }
        let at = self.out.len();
        write(self.out)?;
        let end = self.out.len();
        let quoted = self.out.get(at..).unwrap_or_default();
        if quoted.len() < 2 || !quoted.starts_with('"') {
            return Err(Unwritable);
        }
        let name = (at + 1, end - 1);
        if let Some(last) = self.fields.last() {
            let text = |(from, to): (usize, usize)| self.out.get(from..to).unwrap_or_default();
            let (last, name) = (text(last.name), text(name));
            self.sorted &= order(&meant(last), &meant(name)) == Ordering::Less;
        }
        self.out.push(':');
        self.fields.push(Field { name, end: 0 });
        Ok(())
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Done {
        write(value, self.out)?;
        let end = self.out.len();
        if let Some(field) = self.fields.last_mut() {
            field.end = end;
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Done {
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

    /// Puts the fields into their order.
    fn sort(&mut self) {
        let written = self.out.get(self.start..).unwrap_or_default();
        let place = |at: usize| at - self.start;
        let mut pieces: SmallVec<[(Cow<'_, str>, &str); 12]> = SmallVec::new();
        for field in &self.fields {
            let (from, to) = field.name;
            let name = written.get(place(from)..place(to)).unwrap_or_default();
            // With its quotes, up to the end of its value.
            let piece = written.get(place(from) - 1..place(field.end));
            pieces.push((meant(name), piece.unwrap_or_default()));
        }
        pieces.sort_by(|(one, _), (other, _)| order(one, other));
        let mut sorted = String::with_capacity(written.len());
        for (at, (_, piece)) in pieces.iter().enumerate() {
            if at > 0 {
                sorted.push(',');
            }
            sorted.push_str(piece);
        }
        drop(pieces);
        self.out.truncate(self.start);
        self.out.push_str(&sorted);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::tests::any_json;
    use super::super::{canonical, exact};

    /// What it must agree with: the crate that does nothing else, on numbers that stay exact.
    fn by_the_crate(value: &Value) -> String {
        serde_json_canonicalizer::to_string(&exact(value)).unwrap()
    }

    #[derive(serde::Serialize)]
    struct Written {
        zeta: Option<u8>,
        beta: Vec<(u64, i64)>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gone: Option<String>,
        alpha: Kind,
        kept: Kind,
        map: BTreeMap<String, f64>,
    }

    #[derive(serde::Serialize)]
    enum Kind {
        Plain,
        Of(&'static str),
        With { b: bool, a: char },
    }

    #[test]
    fn structs_come_out_as_their_values_would() {
        for alpha in [
            Kind::Plain,
            Kind::Of("x\u{1}\"\\"),
            Kind::With { b: true, a: 'é' },
        ] {
            let written = Written {
                zeta: None,
                beta: vec![(1, -1), (u64::MAX, i64::MIN)],
                gone: None,
                alpha,
                kept: Kind::Plain,
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
        fn it_agrees_with_the_crate_that_does_nothing_else(value in any_json()) {
            prop_assert_eq!(canonical(&value), by_the_crate(&value));
        }
    }
}
