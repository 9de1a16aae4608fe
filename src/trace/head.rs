//! Head of the log: its number of entries and the root hash over them.
//!
//! A head has the form of a C2SP checkpoint: the origin (the log's name), the size, the root of the
//! tree. A person or program that keeps a head, signed or not, can later check that the log is still
//! the same.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::note::{NoteError, SignedNote};

/// Prefix of log names. The rest is the session of the log.
const ORIGIN: &str = "cra/";

/// End of the log at a point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogHead {
    /// The log, which is a session.
    pub log: SessionId,
    /// Number of entries.
    pub size: u64,
    /// Root of the tree over them.
    pub root: Digest,
}

impl LogHead {
    /// Name of a log in heads and in its keys.
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
        // A head has exactly one text form; lines after it are extensions of other programs.
        if text.starts_with(&head.to_string()) {
            Ok(head)
        } else {
            Err(HeadError::Form)
        }
    }
}

/// A head supplied from outside, with its signatures if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHead {
    /// The head.
    pub head: LogHead,
    /// Signed note that contained the head.
    pub note: Option<SignedNote>,
}

impl KnownHead {
    /// Parses a head that was pasted or read from a file: a signed note, or the three lines alone.
    ///
    /// # Errors
    /// When the text is neither.
    pub fn read(text: &str) -> Result<Self, HeadError> {
        let text = text.replace("\r\n", "\n");
        let text = format!("{}\n", text.trim());
        match text.parse::<SignedNote>() {
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

/// Reason why a text is not a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The text has another form.
    #[error("expected three lines with the name, the size and the root of a log")]
    Form,
    /// The signed note cannot be parsed.
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
    fn a_head_parses_signed_pasted_and_bare() {
        let text = head().to_string();
        assert_eq!(text.parse(), Ok(head()));
        let signed = Signer::new("cra/log-1", &[1; 32]).unwrap().sign(&text);
        let read = KnownHead::read(&signed).unwrap();
        assert_eq!(read.head, head());
        assert!(read.note.is_some());
        // The text as a terminal or a mail program leaves it.
        let pasted = format!("\n  {}\r\n", text.trim().replace('\n', "\r\n"));
        assert_eq!(KnownHead::read(&pasted).unwrap().head, head());
    }

    #[test]
    fn invalid_heads_are_rejected() {
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
