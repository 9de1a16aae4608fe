//! Strict reader for external JSON: it accepts no text with two possible meanings.
//!
//! Contract: a text that [`read`] accepts has every key once in its object, and only numbers that `serde_json`
//! represents exactly. Every other text is rejected with its path; numbers are never rounded, and duplicate keys
//! are never resolved by "the last one wins". The check is one linear pass over the text. `serde_json` parses the
//! text afterwards and decides what valid JSON is.
//!
//! Keys are compared after unescaping: `"a"` and `"\u0061"` are one key. Keys that differ in Unicode normalisation
//! are different keys, as they are for `serde_json`.

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use super::text::one_line;

mod number;
mod path;
mod scanner;

pub use number::{compare, compare_with, is_exact, is_same_decimal};
pub use path::{
    paths_of_large_numbers, paths_of_large_numbers_in, with_numbers, write_hidden_numbers,
};

use scanner::JsonScanner;

/// Maximum length of a path or number that a message quotes.
const MAX_QUOTED_CHARS: usize = 120;

/// The reason why a text is rejected.
#[derive(Debug, thiserror::Error)]
pub enum StrictJsonError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Syntax(serde_json::Error),
    /// The text is JSON, but not what the caller expects.
    #[error("{0}")]
    Data(serde_json::Error),
    /// The text is JSON that can be read in two ways, or not exactly.
    #[error("ambiguous JSON: {0}")]
    Ambiguous(JsonFault),
}

impl StrictJsonError {
    fn of(error: serde_json::Error) -> Self {
        if error.is_data() {
            Self::Data(error)
        } else {
            Self::Syntax(error)
        }
    }

    /// Returns the line and column, where known.
    #[must_use]
    pub fn place(&self, text: &[u8]) -> (usize, usize) {
        match self {
            Self::Syntax(error) | Self::Data(error) => (error.line(), error.column()),
            Self::Ambiguous(fault) => fault.place(text),
        }
    }

    /// Returns the message without the words "not JSON", for callers that add them.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Syntax(error) | Self::Data(error) => error.to_string(),
            Self::Ambiguous(fault) => fault.to_string(),
        }
    }

    /// Returns the message without line and column, for callers that show the position.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Syntax(error) | Self::Data(error) => {
                let whole = error.to_string();
                let what = whole.split(" at line ").next();
                what.unwrap_or_default().to_owned()
            }
            Self::Ambiguous(fault) => fault.to_string(),
        }
    }
}

/// The key or number because of which a text is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// Path of the member: `params.to`, `list[2]`; empty for the whole text.
    pub path: String,
    /// Reason for the rejection.
    pub kind: JsonFaultKind,
    /// Offset of the first byte of the key or number.
    pub offset: usize,
}

/// The reason why a key or number is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonFaultKind {
    /// The key occurs more than once in its object.
    DuplicateKey,
    /// The number cannot be represented exactly; contains the number as written.
    InexactNumber(String),
}

impl JsonFault {
    /// Returns the reason without the path, for messages that start with the path.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.kind {
            JsonFaultKind::DuplicateKey => "duplicate key; send it once".to_owned(),
            JsonFaultKind::InexactNumber(token) => {
                format!(
                    "the number `{}` cannot be represented exactly; send it as a string",
                    quote(token)
                )
            }
        }
    }

    /// Returns the line and column of the key or number.
    #[must_use]
    pub fn place(&self, text: &[u8]) -> (usize, usize) {
        let before = text.get(..self.offset).unwrap_or(text);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = match memchr::memrchr(b'\n', before) {
            Some(end) => before.len() - end,
            None => before.len() + 1,
        };
        (line, column)
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.reason());
        }
        write!(f, "at `{}`: {}", self.path, self.reason())
    }
}

/// Shortens a text for quotation in a message.
fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    one_line(&shown)
}

/// Reads a text strictly.
///
/// # Errors
/// Fails when the text is not JSON, has a duplicate key, has a number that cannot be represented exactly, or is not a
/// `T`.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, StrictJsonError> {
    check(text)?;
    serde_json::from_slice(text).map_err(StrictJsonError::of)
}

/// Reads a text and converts inexact numbers to strings of their tokens. Duplicate keys are rejected.
///
/// Only for results that are recorded or shown, where numbers decide nothing.
///
/// # Errors
/// Fails when the text is not JSON, or has a duplicate key.
pub fn read_with_inexact_as_text(text: &[u8]) -> Result<Value, StrictJsonError> {
    let mut scanner = JsonScanner::new(text);
    scanner.inexact = Some(Vec::new());
    scanner
        .scan_document()
        .map_err(|stop| stop.into_error(text))?;
    let inexact = scanner.inexact.take().unwrap_or_default();
    if inexact.is_empty() {
        return serde_json::from_slice(text).map_err(StrictJsonError::of);
    }
    let mut quoted = Vec::with_capacity(text.len() + 2 * inexact.len());
    let mut end = 0;
    for token in inexact {
        quoted.extend_from_slice(text.get(end..token.start).unwrap_or_default());
        quoted.push(b'"');
        quoted.extend_from_slice(text.get(token.clone()).unwrap_or_default());
        quoted.push(b'"');
        end = token.end;
    }
    quoted.extend_from_slice(text.get(end..).unwrap_or_default());
    serde_json::from_slice(&quoted).map_err(StrictJsonError::of)
}

/// Checks that a text is JSON without duplicate keys and with exact numbers only.
///
/// # Errors
/// Fails when the text does not meet these conditions.
pub fn check(text: &[u8]) -> Result<(), StrictJsonError> {
    JsonScanner::new(text)
        .scan_document()
        .map_err(|stop| stop.into_error(text))
}

/// Checks that a text is JSON without duplicate keys. For texts that are passed on unchanged.
///
/// # Errors
/// Fails when the text does not meet these conditions.
pub fn check_keys(text: &[u8]) -> Result<(), StrictJsonError> {
    let mut scanner = JsonScanner::new(text);
    scanner.inexact = Some(Vec::new());
    scanner
        .scan_document()
        .map_err(|stop| stop.into_error(text))
}

/// Returns the byte range of the value at `path`; every step of the path is an object key.
#[must_use]
pub fn locate(text: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut scanner = JsonScanner::new(text);
    scanner.inexact = Some(Vec::new());
    scanner.skip_blanks();
    for key in path {
        scanner.enter(key)?;
    }
    let start = scanner.at;
    scanner.value(path.len()).ok()?;
    Some(start..scanner.at)
}

/// Parses a number that can be represented exactly.
///
/// # Errors
/// Fails when the text is not a JSON number, or cannot be represented exactly.
pub fn read_number(text: &str) -> Result<Number, StrictJsonError> {
    read(text.as_bytes())
}

#[cfg(test)]
mod tests;
