//! Scanner that checks a JSON text in one linear pass: no duplicate keys, exact numbers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;
use smallvec::SmallVec;

use super::number::{self, is_exact};
use super::path::{self, JsonPathStep};
use super::{JsonFault, JsonFaultKind, StrictJsonError, quote};
use crate::base::canonical_json::ordinary;

/// Maximum nesting depth. `serde_json` stops one level earlier, with its own message.
const MAX_DEPTH: usize = 128;

/// Maximum number of keys that are compared one by one. Objects with more keys use a hash set.
const MAX_LINEAR_KEYS: usize = 12;

/// The reason why scanning stopped.
pub(super) enum ScanStop {
    /// The text is not JSON, or is nested too deeply.
    Syntax,
    /// The text is rejected. The path is complete once the scanner has returned to the root.
    Fault(Box<ScanFault>),
}

pub(super) struct ScanFault {
    kind: JsonFaultKind,
    offset: usize,
    /// Innermost step first.
    path: Vec<JsonPathStep>,
}

impl ScanStop {
    fn at(kind: JsonFaultKind, offset: usize) -> Self {
        Self::Fault(Box::new(ScanFault {
            kind,
            offset,
            path: Vec::new(),
        }))
    }

    fn with_parent(mut self, step: impl FnOnce() -> JsonPathStep) -> Self {
        if let Self::Fault(found) = &mut self {
            found.path.push(step());
        }
        self
    }

    pub(super) fn into_error(self, text: &[u8]) -> StrictJsonError {
        match self {
            Self::Fault(found) => StrictJsonError::Ambiguous(JsonFault {
                path: quote(&path::format_path(found.path.iter().rev())),
                kind: found.kind,
                offset: found.offset,
            }),
            Self::Syntax => match serde_json::from_slice::<Value>(text) {
                Err(error) => StrictJsonError::of(error),
                // INVARIANT: the scanner accepts every text that serde_json accepts. If this ever fails, the text
                // is still rejected.
                Ok(_) => {
                    StrictJsonError::Syntax(serde::de::Error::custom("the text cannot be checked"))
                }
            },
        }
    }
}

pub(super) struct JsonScanner<'t> {
    text: &'t [u8],
    pub(super) at: usize,
    /// Ranges of inexact numbers, if they are collected instead of rejected.
    pub(super) inexact: Option<Vec<Range<usize>>>,
}

pub(super) type ScanResult = Result<(), ScanStop>;

impl<'t> JsonScanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            at: 0,
            inexact: None,
        }
    }

    pub(super) fn scan_document(&mut self) -> ScanResult {
        self.skip_blanks();
        self.value(0)?;
        self.skip_blanks();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(ScanStop::Syntax)
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn is_next(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, byte: u8) -> ScanResult {
        if self.is_next(byte) {
            Ok(())
        } else {
            Err(ScanStop::Syntax)
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn value(&mut self, depth: usize) -> ScanResult {
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(_) | None => Err(ScanStop::Syntax),
        }
    }

    fn word(&mut self, word: &[u8]) -> ScanResult {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(ScanStop::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn object(&mut self, depth: usize) -> ScanResult {
        if depth > MAX_DEPTH {
            return Err(ScanStop::Syntax);
        }
        self.at += 1;
        self.skip_blanks();
        if self.is_next(b'}') {
            return Ok(());
        }
        let mut keys = ObjectKeys::default();
        loop {
            let start = self.at;
            let key = self.key()?;
            if !keys.insert(key.clone()) {
                let stop = ScanStop::at(JsonFaultKind::DuplicateKey, start);
                return Err(stop.with_parent(|| JsonPathStep::of(&key)));
            }
            self.value(depth)
                .map_err(|stop| stop.with_parent(|| JsonPathStep::of(&key)))?;
            if self.is_end(b'}')? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> ScanResult {
        if depth > MAX_DEPTH {
            return Err(ScanStop::Syntax);
        }
        self.at += 1;
        self.skip_blanks();
        if self.is_next(b']') {
            return Ok(());
        }
        for index in 0.. {
            self.value(depth)
                .map_err(|stop| stop.with_parent(|| JsonPathStep::Index(index)))?;
            if self.is_end(b']')? {
                break;
            }
        }
        Ok(())
    }

    /// Scans the separator after an item; returns true at the end of the list or object.
    fn is_end(&mut self, close: u8) -> Result<bool, ScanStop> {
        self.skip_blanks();
        if self.is_next(close) {
            return Ok(true);
        }
        self.take(b',')?;
        self.skip_blanks();
        Ok(false)
    }

    /// Scans a key and its colon; returns the unescaped key.
    fn key(&mut self) -> Result<Cow<'t, [u8]>, ScanStop> {
        let (written, escaped) = self.string()?;
        self.skip_blanks();
        self.take(b':')?;
        self.skip_blanks();
        if !escaped {
            let inner = written.len().saturating_sub(1);
            return Ok(Cow::Borrowed(written.get(1..inner).unwrap_or_default()));
        }
        let meant = serde_json::from_slice::<String>(written).map_err(|_| ScanStop::Syntax)?;
        Ok(Cow::Owned(meant.into_bytes()))
    }

    /// Scans a string; returns it with its quotes, and true if it contains an escape.
    fn string(&mut self) -> Result<(&'t [u8], bool), ScanStop> {
        let start = self.at;
        self.take(b'"')?;
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += ordinary(rest).ok_or(ScanStop::Syntax)?.length;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    let written = self.text.get(start..self.at).unwrap_or_default();
                    return Ok((written, escaped));
                }
                // serde_json checks the escape.
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(_) | None => return Err(ScanStop::Syntax),
            }
        }
    }

    fn number(&mut self) -> ScanResult {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        self.at += length;
        let token = rest.get(..length).unwrap_or_default();
        if number::is_short(token) {
            return Ok(());
        }
        let token = std::str::from_utf8(token).map_err(|_| ScanStop::Syntax)?;
        if is_exact(token) {
            return Ok(());
        }
        if !number::is_token(token) {
            return Err(ScanStop::Syntax);
        }
        if let Some(inexact) = &mut self.inexact {
            inexact.push(start..self.at);
            return Ok(());
        }
        let kind = JsonFaultKind::InexactNumber(token.to_owned());
        Err(ScanStop::at(kind, start))
    }

    /// Moves to the value of a key, if this is an object with that key.
    pub(super) fn enter(&mut self, wanted: &str) -> Option<()> {
        if !self.is_next(b'{') {
            return None;
        }
        self.skip_blanks();
        if self.is_next(b'}') {
            return None;
        }
        loop {
            let key = self.key().ok()?;
            if *key == *wanted.as_bytes() {
                return Some(());
            }
            self.value(0).ok()?;
            if self.is_end(b'}').ok()? {
                return None;
            }
        }
    }
}

/// The keys of one object.
#[derive(Default)]
struct ObjectKeys<'t> {
    few: SmallVec<[Cow<'t, [u8]>; MAX_LINEAR_KEYS]>,
    many: HashSet<Cow<'t, [u8]>>,
}

impl<'t> ObjectKeys<'t> {
    /// Adds a key; returns `false` if the key was already present.
    fn insert(&mut self, key: Cow<'t, [u8]>) -> bool {
        if self.many.is_empty() {
            if self.few.contains(&key) {
                return false;
            }
            if self.few.len() < MAX_LINEAR_KEYS {
                self.few.push(key);
                return true;
            }
            self.many.extend(self.few.drain(..));
        }
        self.many.insert(key)
    }
}
