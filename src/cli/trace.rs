//! `cra trace`: the record, read without a console. One file for each command.

use std::io::{self, BufWriter, Write};

use serde_json::Value;

use super::args::{List, Show};
use super::error::Failure;
use super::exit;
use super::settings::Settings;
use crate::base::canon::canonical;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::store::RecordedSession;
use crate::store::sqlite::{FILE_NAME, Reader, check_not_missing};
use crate::trace::jsonl;

mod diff;
mod export;
mod keep;
mod record;
mod replay;
mod verify;

pub(super) use diff::diff;
pub(super) use export::export;
pub(super) use keep::{head, import, in_runtime, key, prune};
pub(super) use record::Record;
pub(super) use replay::replay;
pub(super) use verify::verify;

/// Events read at a time, so that memory stays flat.
pub(super) const PAGE: usize = 1000;

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
        let names = sessions.iter().map(|s| s.session.as_str().len());
        let width = names.fold("SESSION".len(), usize::max);
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
    let (mut from, mut left) = (show.from, show.limit);
    while left > 0 {
        let page = reader.events(&session, from, left.min(PAGE))?;
        let Some(last) = page.last() else { break };
        from = last.sequence + 1;
        left -= page.len();
        for event in &page {
            if show.json {
                writeln!(out, "{}", jsonl::line(event))?;
                continue;
            }
            let time = event.timestamp;
            let payload = one_line(&canonical(&Value::from(event.payload.clone())));
            writeln!(
                out,
                "{:>6}  {time}  {:22}  {payload}",
                event.sequence, event.event_type
            )?;
        }
    }
    out.flush()?;
    Ok(exit::OK)
}

pub(super) fn open(settings: &Settings) -> Result<Reader, Failure> {
    let path = settings.data_dir()?.join(FILE_NAME);
    check_not_missing(&path)?;
    if !path.exists() {
        return Err(Failure::NoStore(path));
    }
    Ok(Reader::open(&path)?)
}

/// The store, as a record that can be read in order, and for what else it keeps.
pub(super) fn store(settings: &Settings) -> Result<(Record, Reader), Failure> {
    Ok((Record::store(settings)?, open(settings)?))
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
