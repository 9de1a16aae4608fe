//! `cra trace`: the record, read and verified without a console.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};

use serde_json::Value;

use super::args::{Export, List, Show};
use super::error::Failure;
use super::exit;
use super::settings::Settings;
use crate::base::canon::canonical;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::store::RecordedSession;
use crate::store::sqlite::{FILE_NAME, Reader};
use crate::trace::event::Event;
use crate::trace::jsonl;

/// Events read at a time, so that memory stays flat.
const PAGE: usize = 1000;

/// Lists the sessions on record.
pub(super) fn list(settings: &Settings, list: &List) -> Result<u8, Failure> {
    let sessions = open(settings)?.sessions()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if list.json {
        serde_json::to_writer_pretty(&mut out, &sessions).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if sessions.is_empty() {
        writeln!(out, "No session is on record.")?;
    } else {
        let width = sessions
            .iter()
            .map(|s| s.session.as_str().len())
            .max()
            .unwrap_or(0);
        writeln!(
            out,
            "{:width$}  {:27}  {:>7}  {:6}  AGENT",
            "SESSION", "STARTED", "EVENTS", "STATE"
        )?;
        for RecordedSession {
            session,
            agent,
            started_at,
            events,
            ended,
            ..
        } in &sessions
        {
            let state = if *ended { "ended" } else { "open" };
            let agent = one_line(agent);
            writeln!(
                out,
                "{session:width$}  {started_at}  {events:>7}  {state:6}  {agent}"
            )?;
        }
    }
    out.flush()?;
    Ok(exit::OK)
}

/// Shows the events of a session.
pub(super) fn show(settings: &Settings, show: &Show) -> Result<u8, Failure> {
    let reader = open(settings)?;
    let session = recorded(&reader, &show.session)?;
    let mut out = BufWriter::new(io::stdout().lock());
    each_event(&reader, &session, show.from, show.limit, |event| {
        if show.json {
            writeln!(out, "{}", jsonl::line(event))
        } else {
            let time = event.timestamp;
            let payload = one_line(&canonical(&Value::from(event.payload.clone())));
            writeln!(
                out,
                "{:>6}  {time}  {:22}  {payload}",
                event.sequence, event.event_type
            )
        }
    })?;
    out.flush()?;
    Ok(exit::OK)
}

/// Writes events as JSON Lines.
pub(super) fn export(settings: &Settings, export: &Export) -> Result<u8, Failure> {
    let reader = open(settings)?;
    let sessions = match &export.session {
        Some(name) => vec![recorded(&reader, name)?],
        None => reader
            .sessions()?
            .into_iter()
            .map(|session| session.session)
            .collect(),
    };
    match &export.output {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write_lines(&reader, &sessions, &mut out)?;
            out.flush()?;
        }
        Some(path) => {
            let failed = |error| Failure::Write(path.clone(), error);
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(failed)?;
            let mut out = BufWriter::new(file);
            write_lines(&reader, &sessions, &mut out)?;
            out.flush().map_err(failed)?;
        }
    }
    Ok(exit::OK)
}

fn write_lines(
    reader: &Reader,
    sessions: &[SessionId],
    out: &mut impl Write,
) -> Result<(), Failure> {
    for session in sessions {
        each_event(reader, session, 0, usize::MAX, |event| {
            writeln!(out, "{}", jsonl::line(event))
        })?;
    }
    Ok(())
}

fn each_event(
    reader: &Reader,
    session: &SessionId,
    mut from: u64,
    mut left: usize,
    mut take: impl FnMut(&Event) -> io::Result<()>,
) -> Result<(), Failure> {
    while left > 0 {
        let page = reader.events(session, from, left.min(PAGE))?;
        let Some(last) = page.last() else { break };
        from = last.sequence + 1;
        left -= page.len();
        for event in &page {
            take(event)?;
        }
    }
    Ok(())
}

pub(super) fn open(settings: &Settings) -> Result<Reader, Failure> {
    let path = settings.data_dir()?.join(FILE_NAME);
    if !path.exists() {
        return Err(Failure::NoStore(path));
    }
    Ok(Reader::open(&path)?)
}

pub(super) fn recorded(reader: &Reader, name: &str) -> Result<SessionId, Failure> {
    let known = reader
        .sessions()?
        .into_iter()
        .map(|session| session.session);
    let mut found = known.filter(|session| session.as_str() == name);
    found
        .next()
        .ok_or_else(|| Failure::NoSession(one_line(name)))
}
