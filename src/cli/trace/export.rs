//! `cra trace export`: the record as a file for others.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::record::Record;
use crate::base::clock::{Clock, SystemClock};
use crate::base::id::SessionId;
use crate::cli::args::{Export, Format};
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::store::StoreError;
use crate::store::sqlite::Reader;
use crate::trace::export::html::Report;
use crate::trace::export::{ExportError, csv, html, otlp};
use crate::trace::jsonl;
use crate::trace::source::{PAGE, Source, each};

/// Writes the record, or a session of it.
pub(in crate::cli) fn export(settings: &Settings, export: &Export) -> Result<u8, Failure> {
    let (record, sessions, scope) = if let Some(name) = &export.session {
        let (record, session) = Record::named(settings, name)?;
        (record, vec![session], Scope::Session)
    } else {
        let record = Record::store(settings)?;
        let sessions = record.sessions()?;
        (record, sessions, Scope::Whole)
    };
    let part = Part {
        record: &record,
        sessions,
        scope,
    };
    let written = |out: &mut dyn Write| write_as(export.format, &part, out);
    match &export.output {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            written(&mut out)?;
            out.flush()?;
        }
        Some(path) => {
            write_file(path, written)?;
            if export.json {
                let mut out = io::stdout().lock();
                let told = json!({ "file": path, "format": export.format.name(), "sessions": part.sessions });
                writeln!(out, "{told}")?;
            }
        }
    }
    Ok(exit::OK)
}

/// What is written of a record.
struct Part<'r> {
    record: &'r Record,
    sessions: Vec<SessionId>,
    /// Whether it is all of it, and the log over it.
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Whole,
    Session,
}

fn write_as(format: Format, part: &Part<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let Part {
        record,
        sessions,
        scope,
    } = part;
    let whole = (*scope == Scope::Whole).then_some(record);
    let mut out = Output { out, failed: None };
    let written = match format {
        Format::Jsonl => match whole.and_then(|record| record.reader()) {
            Some(reader) => write_all(reader, &mut out),
            None => write_events(record, sessions, |event| {
                fmt::Write::write_fmt(&mut out, format_args!("{}\n", jsonl::line(event)))
            }),
        },
        Format::Csv => csv::header(&mut out)
            .map_err(ExportError::from)
            .and_then(|()| write_events(record, sessions, |event| csv::event(&mut out, event))),
        Format::Html => {
            let report = Report {
                made_at: SystemClock.now(),
                facts: facts(record)?,
            };
            html::write(record, &report, sessions, &mut out)
        }
        Format::Otlp => otlp::write(record, sessions, &mut out),
    };
    written.map_err(|error| match error {
        ExportError::Read(failure) => failure,
        ExportError::Write => {
            let unknown = || io::Error::other("the output cannot be written");
            Failure::from(out.failed.unwrap_or_else(unknown))
        }
    })
}

/// Writes everything in the order it was written in, the log's own entries among it: so a reader can
/// tell whether a session is missing, and hold all of it against a head.
fn write_all(reader: &Reader, out: &mut Output<'_>) -> Result<(), ExportError<Failure>> {
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

/// What a report says about the whole record.
fn facts(record: &Record) -> Result<Vec<(String, String)>, Failure> {
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

fn write_events(
    record: &Record,
    sessions: &[SessionId],
    mut write: impl FnMut(&crate::trace::event::Event) -> fmt::Result,
) -> Result<(), ExportError<Failure>> {
    for session in sessions {
        let end = record.end(session).map_err(ExportError::Read)?;
        let mut stopped = false;
        let read: Result<(), Failure> = each(record, session, (0, end), |event| {
            write(&event).map_err(|_| {
                stopped = true;
                Failure::ClosedPipe
            })
        });
        match read {
            Err(_) if stopped => return Err(ExportError::Write),
            read => read.map_err(ExportError::Read)?,
        }
    }
    Ok(())
}

/// A writer of bytes for those who write text; it keeps what went wrong.
struct Output<'o> {
    out: &'o mut dyn Write,
    failed: Option<io::Error>,
}

impl fmt::Write for Output<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

/// Writes a file that is there as a whole, or not at all. One that exists is left alone.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error| Failure::Write(path.to_owned(), error);
    if path.symlink_metadata().is_ok() {
        return Err(failed(exists()));
    }
    let partial = Partial::beside(path)?;
    let file = partial.create().map_err(failed)?;
    let mut out = BufWriter::new(file);
    write(&mut out).map_err(|failure| match failure {
        // Nobody closes a file but the disk.
        Failure::Output(error) => failed(error),
        Failure::ClosedPipe => failed(io::ErrorKind::BrokenPipe.into()),
        other => other,
    })?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    partial.finish(path).map_err(failed)
}

fn exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already")
}

/// A file beside its target that is gone unless it was finished.
struct Partial(PathBuf);

impl Partial {
    fn beside(path: &Path) -> Result<Self, Failure> {
        let Some(name) = path.file_name() else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
            return Err(Failure::Write(path.to_owned(), error));
        };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        Ok(Self(path.with_file_name(partial)))
    }

    fn create(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(&self.0)
    }

    /// Gives the file its name, unless another one has it by now.
    fn finish(self, path: &Path) -> io::Result<()> {
        match fs::hard_link(&self.0, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no second names. Then a name taken just now is not seen.
                if path.symlink_metadata().is_ok() {
                    return Err(exists());
                }
                fs::rename(&self.0, path)
            }
            linked => linked,
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Finished, it has its own name; otherwise nobody wants half of it.
        let _ = fs::remove_file(&self.0);
    }
}
