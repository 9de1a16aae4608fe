//! Canonical text, written in one pass.
//!
//! Going through values costs several times what hashing the text costs, and every event is written
//! once. A field that comes before its turn is moved to its place when its object is closed; most come
//! in order.

use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use serde::ser::{self, Serialize};
use smallvec::SmallVec;

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
    fn integer(self, magnitude: u64, number: impl Display) {
        // Writing to a string cannot fail.
        let _ = if magnitude > MAX_EXACT {
            write!(self.out, "\"{number}\"")
        } else {
            write!(self.out, "{number}")
        };
    }

    fn double(self, number: f64) -> Done {
        let text = serde_json_canonicalizer::to_string(&number).map_err(|_| Unwritable)?;
        // Without point and exponent it would be read back as an integer that is not kept.
        let size = number.abs();
        if MAX_EXACT_DOUBLE < size && size < FIRST_EXPONENT {
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
    let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\');
    while let Some(at) = rest.bytes().position(special) {
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
    /// Every field: its name as meant, and where it ends.
    fields: SmallVec<[(Name, usize); 12]>,
    /// Whether the fields came in order so far.
    sorted: bool,
    /// Whether a variant's own braces are around it.
    wrapped: bool,
}

/// A field's name.
type Name = SmallVec<[u8; 24]>;

impl Object<'_> {
    fn separate(&mut self) {
        if !self.fields.is_empty() {
            self.out.push(',');
        }
    }

    /// Notes the name of the field that was just written.
    fn named(&mut self, name: Name) {
        if let Some((last, _)) = self.fields.last() {
            let text = |name| std::str::from_utf8(name).unwrap_or_default();
            self.sorted &= order(text(last), text(&name)) == Ordering::Less;
        }
        self.out.push(':');
        self.fields.push((name, 0));
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Done {
        write(value, self.out)?;
        let end = self.out.len();
        if let Some((_, last)) = self.fields.last_mut() {
            *last = end;
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Done {
        self.separate();
        write_text(name, self.out);
        self.named(Name::from_slice(name.as_bytes()));
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
        let written = self.out.split_off(self.start);
        let mut from = self.start;
        let mut pieces: SmallVec<[(&str, &str); 12]> = SmallVec::new();
        for (name, end) in &self.fields {
            let piece = written.get(from - self.start..end - self.start);
            let name = std::str::from_utf8(name).unwrap_or_default();
            pieces.push((name, piece.unwrap_or_default()));
            // Behind it is a comma.
            from = end + 1;
        }
        pieces.sort_by(|(one, _), (other, _)| order(one, other));
        for (place, (_, piece)) in pieces.iter().enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            self.out.push_str(piece);
        }
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
