//! What is known about the end of the log: how many entries it has, and what they all are.
//!
//! A head is a checkpoint of C2SP in form: the origin (the log's own name), the size, the root of the
//! tree. Whoever keeps one, signed or not, can tell later whether the log is still the same one.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::note::{Note, NoteError};

/// What names of logs begin with. The rest is the session that the log itself is.
const ORIGIN: &str = "cra/";

/// The end of the log as it was at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogHead {
    /// The log, which is a session of its own.
    pub log: SessionId,
    /// Its entries.
    pub size: u64,
    /// Root of the tree over them.
    pub root: Digest,
}

impl LogHead {
    /// The name that a log goes by in heads, and its keys with it.
    #[must_use]
    pub fn origin(log: &SessionId) -> String {
        format!("{ORIGIN}{log}")
    }
}

impl fmt::Display for LogHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = BASE64.encode(self.root.as_bytes());
        writeln!(f, "{ORIGIN}{}\n{}\n{root}", self.log, self.size)
    }
}

impl FromStr for LogHead {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut lines = text.lines();
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(HeadError::Form);
        };
        let log = origin.strip_prefix(ORIGIN).ok_or(HeadError::Form)?;
        let root = BASE64.decode(root).map_err(|_| HeadError::Form)?;
        let root: [u8; 32] = root.try_into().map_err(|_| HeadError::Form)?;
        let head = Self {
            log: log.parse().map_err(|_| HeadError::Form)?,
            size: size.parse().map_err(|_| HeadError::Form)?,
            root: Digest::from_bytes(root),
        };
        // One head, one text; lines behind it are somebody's extensions.
        if text.starts_with(&head.to_string()) {
            Ok(head)
        } else {
            Err(HeadError::Form)
        }
    }
}

/// A head that somebody handed over, with its signatures where it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHead {
    /// The head.
    pub head: LogHead,
    /// The note it came in.
    pub note: Option<Note>,
}

impl KnownHead {
    /// Reads a head as it was pasted, or as a file has it: signed, or its three lines alone.
    ///
    /// # Errors
    /// When it is neither.
    pub fn read(text: &str) -> Result<Self, HeadError> {
        let text = text.replace("\r\n", "\n");
        let text = format!("{}\n", text.trim());
        match text.parse::<Note>() {
            Ok(note) => Ok(Self {
                head: note.text.parse()?,
                note: Some(note),
            }),
            Err(_) if text.contains("\n\n") => Err(HeadError::Note(NoteError::Form)),
            Err(_) => Ok(Self {
                head: text.parse()?,
                note: None,
            }),
        }
    }
}

/// Why a text is not a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It is something else.
    #[error("it is not the head of a log: three lines with its name, its size and its root")]
    Form,
    /// It is signed in a way that cannot be read.
    #[error(transparent)]
    Note(#[from] NoteError),
}

#[cfg(test)]
mod tests {
    use super::super::note::Signer;
    use super::*;

    fn head() -> LogHead {
        LogHead {
            log: "log-1".parse().unwrap(),
            size: 42,
            root: Digest::of("x"),
        }
    }

    #[test]
    fn a_head_reads_back_signed_pasted_and_alone() {
        let text = head().to_string();
        assert_eq!(text.parse(), Ok(head()));
        let signed = Signer::new("cra/log-1", &[1; 32]).unwrap().sign(&text);
        let read = KnownHead::read(&signed).unwrap();
        assert_eq!(read.head, head());
        assert!(read.note.is_some());
        // As a terminal or a mail leaves it.
        let pasted = format!("\n  {}\r\n", text.trim().replace('\n', "\r\n"));
        assert_eq!(KnownHead::read(&pasted).unwrap().head, head());
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let good = head().to_string();
        for text in [
            String::new(),
            "a\nb\nc".to_owned(),
            good.replace("42", "042"),
            good.replace("42", "-1"),
            good.replace("cra/", ""),
            good.replace("log-1", "log 1"),
            good.lines().take(2).collect::<Vec<_>>().join("\n"),
            format!("{good}\nand a line below"),
        ] {
            assert!(KnownHead::read(&text).is_err(), "{text:?}");
        }
    }
}
