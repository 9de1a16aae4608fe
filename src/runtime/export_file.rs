//! Export of one session to a new file.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use crate::base::atomic_file::{ExistingFile, write_with};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::export::html::HtmlReport;
use crate::trace::export::{self, ExportError, ExportFormatArg};
use crate::trace::source::EventSource;

/// Writes one session as a new file, and returns its size in bytes.
///
/// # Errors
/// Fails with a message when the session cannot be read or the file cannot be written. No file exists then.
pub fn export_session<S: EventSource<Error = String>>(
    source: &S,
    session: &SessionId,
    format: ExportFormatArg,
    path: &Path,
    now: Timestamp,
) -> Result<u64, String> {
    let failed = |error: io::Error| format!("`{}`: {error}", path.display());
    let report = HtmlReport {
        made_at: now,
        facts: Vec::new(),
        log: Vec::new(),
    };
    let mut bytes = 0;
    write_with(path, ExistingFile::Keep, failed, |out| {
        let mut out = TextWriter::new(out);
        let sessions = std::slice::from_ref(session);
        let written = export::write(format, source, sessions, &report, &mut out);
        bytes = out.bytes();
        written.map_err(|error| match error {
            ExportError::Read(what) => what,
            ExportError::Write => failed(out.into_error()),
        })
    })?;
    Ok(bytes)
}

/// Adapter from text output to a byte writer. It keeps the first error.
pub struct TextWriter<'o> {
    out: &'o mut dyn Write,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<'o> TextWriter<'o> {
    /// Creates an adapter that writes to `out`.
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            bytes: 0,
            failed: None,
        }
    }

    /// Returns the number of written bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the error.
    #[must_use]
    pub fn into_error(self) -> io::Error {
        let unknown = || io::Error::other("the output cannot be written");
        self.failed.unwrap_or_else(unknown)
    }
}

impl fmt::Debug for TextWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextWriter").finish_non_exhaustive()
    }
}

impl fmt::Write for TextWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}
