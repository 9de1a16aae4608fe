//! `cra trace export`: writes the record to a file for other tools.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::json;

use super::session_source::SessionSource;
use crate::base::atomic_file::{self, ExistingFile};
use crate::base::clock::{Clock, SystemClock};
use crate::base::id::SessionId;
use crate::cli::args::{ExportArgs, ExportFormatArg};
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::runtime::export_file::TextWriter;
use crate::store::{StoreError, StoreReader, space};
use crate::trace::event::Event;
use crate::trace::export::html::HtmlReport;
use crate::trace::export::{self, ExportError};
use crate::trace::governance::session_of;
use crate::trace::jsonl;
use crate::trace::source::{EventSource, PAGE, for_each_event};

/// Writes the record, or a session of it.
pub(in crate::cli) fn export(settings: &Settings, wanted: &ExportArgs) -> Result<u8, Failure> {
    let (record, sessions, scope) = if let Some(name) = &wanted.session {
        let (record, session) = SessionSource::named(settings, name)?;
        (record, vec![session], ExportScope::Session)
    } else {
        let record = SessionSource::store(settings)?;
        let sessions = record.sessions()?;
        (record, sessions, ExportScope::Whole)
    };
    let part = ExportPart {
        record: &record,
        sessions,
        scope,
    };
    let written = |out: &mut dyn Write| write_as(wanted.format, &part, out);
    match &wanted.output {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            written(&mut out)?;
            out.flush()?;
        }
        Some(path) => {
            write_file(path, settings.store_url()?.size_bytes(), written)?;
            if wanted.json {
                let mut out = io::stdout().lock();
                let report = json!({ "file": path, "format": export::ExportFormatArg::from(wanted.format).name(), "sessions": part.sessions });
                writeln!(out, "{report}")?;
            }
        }
    }
    Ok(exit::OK)
}

/// Part of a record to write.
struct ExportPart<'r> {
    record: &'r SessionSource,
    sessions: Vec<SessionId>,
    /// Scope of the part: the whole record with its log, or sessions.
    scope: ExportScope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportScope {
    Whole,
    Session,
}

fn write_as(
    format: ExportFormatArg,
    part: &ExportPart<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let ExportPart {
        record,
        sessions,
        scope,
    } = part;
    let whole = (*scope == ExportScope::Whole).then_some(record);
    let mut out = TextWriter::new(out);
    let written = match (format, whole.and_then(|record| record.reader())) {
        (ExportFormatArg::Jsonl, Some(reader)) => write_all(reader, &mut out),
        (format, _) => {
            let (facts, log) = match format {
                ExportFormatArg::Html => (facts(record)?, governance_entries(part)?),
                ExportFormatArg::Jsonl
                | ExportFormatArg::Csv
                | ExportFormatArg::Otlp
                | ExportFormatArg::Golden => (Vec::new(), Vec::new()),
            };
            let report = HtmlReport {
                made_at: SystemClock.now(),
                facts,
                log,
            };
            export::write(format.into(), record, sessions, &report, &mut out)
        }
    };
    written.map_err(|error| match error {
        ExportError::Read(failure) => failure,
        ExportError::Write => Failure::from(out.into_error()),
    })
}

/// Writes all records in the order of writing, log entries included. A reader can then detect a missing
/// session and check everything against a head.
fn write_all(
    reader: &dyn StoreReader,
    out: &mut TextWriter<'_>,
) -> Result<(), ExportError<Failure>> {
    let mut from = 0;
    let mut line = String::new();
    loop {
        let page = reader.records(from, PAGE);
        let page = page.map_err(|error| ExportError::Read(error.into()))?;
        for record in &page {
            line.clear();
            let damaged = |what| StoreError::Damaged { what };
            let envelope = record.envelope().map_err(damaged);
            let envelope = envelope.map_err(|error| ExportError::Read(error.into()))?;
            jsonl::write_line(&envelope, &record.hash, &mut line);
            line.push('\n');
            fmt::Write::write_str(out, &line)?;
        }
        from += page.len() as u64;
        if page.len() < PAGE {
            return Ok(());
        }
    }
}

/// Entries of the governance log for a report: all of them for the whole record, or those about its
/// sessions. Seal entries are left out, because the facts show them.
fn governance_entries(part: &ExportPart<'_>) -> Result<Vec<Event>, Failure> {
    let Some(reader) = part.record.reader() else {
        return Ok(Vec::new());
    };
    let log = reader.log()?.log;
    let mut entries = Vec::new();
    let end = part.record.end(&log)?;
    for_each_event(part.record, &log, (0, end), |entry| {
        let session = session_of(&entry.payload);
        let about = |session: &str| part.sessions.iter().any(|one| one.as_str() == session);
        let wanted = part.scope == ExportScope::Whole || session.is_some_and(about);
        if wanted && entry.event_type != "log_sealed" {
            entries.push(entry);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(entries)
}

/// Facts in a report about the whole record.
fn facts(record: &SessionSource) -> Result<Vec<(String, String)>, Failure> {
    let mut facts = Vec::new();
    if let Some(log) = &record.report()?.log {
        facts.push(("Log".to_owned(), log.log.to_string()));
        facts.push(("Log, verified".to_owned(), log.verdict.to_string()));
        if let Some(key) = &log.key {
            facts.push(("Signed with".to_owned(), key.clone()));
        }
    }
    let head = match record.reader() {
        Some(reader) => reader.log()?.seal,
        None => None,
    };
    facts.extend(head.map(|head| ("Head of the log".to_owned(), head.note)));
    Ok(facts)
}

/// Writes a file atomically. An existing file is never overwritten.
///
/// An export of everything is about as large as its store.
fn write_file(
    path: &Path,
    needed_bytes: u64,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed =
        |error| Failure::Write(path.to_owned(), with_free_space(path, needed_bytes, error));
    atomic_file::write_with(path, ExistingFile::Keep, failed, |out| {
        write(out).map_err(|failure| match failure {
            // A file has no reader that could close the pipe, so this is a disk error.
            Failure::Output(error) => failed(error),
            Failure::ClosedPipe => failed(io::ErrorKind::BrokenPipe.into()),
            other => other,
        })
    })
}

/// Adds the free space to an error that is caused by a full disk.
fn with_free_space(path: &Path, needed_bytes: u64, error: io::Error) -> io::Error {
    if !space::is_full(&error) {
        return error;
    }
    io::Error::new(error.kind(), space::full_disk(path, needed_bytes))
}
