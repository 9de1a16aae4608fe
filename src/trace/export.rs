//! Export of the record to files: CSV for spreadsheets, HTML for readers without this program, OTLP for
//! tracing tools, golden traces for regression tests.
//! JSON Lines, the only format that can be verified, is in [`super::jsonl`].
//!
//! Events are written as they are read; only the span tree of the current session is kept in memory.

use std::fmt;

use super::event::Event;
use super::jsonl;
use super::source::{EventSource, for_each_event};
use super::verification::{ChainVerification, ImportEntry};
use crate::base::id::SessionId;

pub mod csv;
pub mod golden;
pub mod html;
pub mod otlp;
#[cfg(test)]
pub(crate) mod tests;

/// Reason why an export failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError<E> {
    /// The record cannot be read.
    #[error(transparent)]
    Read(E),
    /// The writer failed and knows the reason.
    #[error("cannot write the output")]
    Write,
}

impl<E> From<fmt::Error> for ExportError<E> {
    fn from(_: fmt::Error) -> Self {
        Self::Write
    }
}

/// File format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormatArg {
    /// One event per line. Only this format can be verified again.
    Jsonl,
    /// CSV for spreadsheets.
    Csv,
    /// HTML report for readers without this program.
    Html,
    /// OTLP for tracing tools.
    Otlp,
    /// Decisions without values that differ from run to run, for regression tests.
    Golden,
}

impl ExportFormatArg {
    /// Format for a file name extension.
    #[must_use]
    pub fn from_extension(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "jsonl" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "html" | "htm" => Some(Self::Html),
            "otlp" | "json" => Some(Self::Otlp),
            "golden" => Some(Self::Golden),
            _ => None,
        }
    }

    /// Name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Otlp => "otlp",
            Self::Golden => "golden",
        }
    }
}

/// Writes sessions in a format.
///
/// # Errors
/// When the record cannot be read, or the writer fails.
pub fn write<S: EventSource>(
    format: ExportFormatArg,
    source: &S,
    sessions: &[SessionId],
    report: &html::HtmlReport,
    out: &mut impl fmt::Write,
) -> Result<(), ExportError<S::Error>> {
    match format {
        ExportFormatArg::Jsonl => {
            for session in sessions {
                write_each_event(source, session, |event| {
                    writeln!(out, "{}", jsonl::format_line(event))
                })?;
            }
            Ok(())
        }
        ExportFormatArg::Csv => {
            csv::write_header(out)?;
            for session in sessions {
                let imported = imported(source, session)?;
                write_each_event(source, session, |event| {
                    csv::write_event(out, event, imported.as_deref())
                })?;
            }
            Ok(())
        }
        ExportFormatArg::Html => html::write(source, report, sessions, out),
        ExportFormatArg::Otlp => otlp::write(source, sessions, out),
        ExportFormatArg::Golden => {
            let mut golden = golden::GoldenWriter::default();
            for session in sessions {
                let origin = match imported(source, session)? {
                    Some(_) => golden::Origin::Imported,
                    None => golden::Origin::Recorded,
                };
                write_each_event(source, session, |event| {
                    golden.write_event(out, event, origin)
                })?;
            }
            Ok(())
        }
    }
}

fn write_each_event<S: EventSource>(
    source: &S,
    session: &SessionId,
    mut write: impl FnMut(&Event) -> fmt::Result,
) -> Result<(), ExportError<S::Error>> {
    let end = source.end(session).map_err(ExportError::Read)?;
    export_events(source, session, end, |event| Ok(write(&event)?))
}

/// The mark of a session that was imported: each operator, and the time.
fn imported<S: EventSource>(
    source: &S,
    session: &SessionId,
) -> Result<Option<String>, ExportError<S::Error>> {
    let imports = source.imports(session).map_err(ExportError::Read)?;
    Ok(import_mark(&imports))
}

/// The mark of a session that was imported, in words; nothing of one that was recorded here.
#[must_use]
pub fn import_mark(imports: &[ImportEntry]) -> Option<String> {
    let imports: Vec<_> = imports.iter().map(ToString::to_string).collect();
    (!imports.is_empty()).then(|| format!("IMPORTED {}", imports.join(" and ")))
}

/// Passes the events of a session with a sequence below `end` to `take`.
fn export_events<S: EventSource>(
    source: &S,
    session: &SessionId,
    end: u64,
    take: impl FnMut(Event) -> Result<(), ExportError<S::Error>>,
) -> Result<(), ExportError<S::Error>> {
    for_each_event(&ExportSource(source), session, (0, end), take)
}

/// Source whose read errors are converted to [`ExportError`].
struct ExportSource<'s, S>(&'s S);

impl<S: EventSource> EventSource for ExportSource<'_, S> {
    type Error = ExportError<S::Error>;

    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Error> {
        let events = self.0.events(session, from, limit);
        events.map_err(ExportError::Read)
    }

    fn end(&self, session: &SessionId) -> Result<u64, Self::Error> {
        self.0.end(session).map_err(ExportError::Read)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, Self::Error> {
        self.0.verify(session).map_err(ExportError::Read)
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, Self::Error> {
        self.0.imports(session).map_err(ExportError::Read)
    }
}
