//! `cra trace`: the record, read without a console. One file per command.

use std::io::{self, BufWriter, Write};

use serde_json::Value;

use super::args::{TraceListArgs, TraceShowArgs};
use super::error::Failure;
use super::exit;
use super::settings::Settings;
use crate::base::canonical_json::canonical;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::store::RecordedSession;
use crate::store::{self, StoreReader};
use crate::trace::event::Event;
use crate::trace::jsonl;
use crate::trace::verification::ImportEntry;

mod diff;
mod export;
mod hold;
mod maintenance;
mod replay;
mod session_source;
mod verify;

pub(super) use diff::diff;
pub(super) use export::export;
pub(super) use hold::{hold, release};
pub(super) use maintenance::{head, import, in_runtime, key, prune};
pub(super) use replay::replay;
pub(super) use session_source::SessionSource;
pub(super) use verify::verify;

/// Events per read, so that memory use stays constant.
pub(super) const PAGE: usize = 1000;

/// Lists the sessions on record.
pub(super) fn list(settings: &Settings, list: &TraceListArgs) -> Result<u8, Failure> {
    let reader = open(settings)?;
    let log = reader.log_session()?;
    let sessions = match &list.session {
        None => reader.sessions()?,
        Some(name) => {
            let wanted = recorded(&*reader, name)?;
            let all = reader.sessions()?.into_iter().chain(log.clone());
            all.filter(|known| known.session == wanted).collect()
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if list.json {
        serde_json::to_writer_pretty(&mut out, &sessions).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if sessions.is_empty() {
        writeln!(out, "No sessions are on record.")?;
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
            imports,
            ..
        } in &sessions
        {
            let state = if *ended { "ended" } else { "open" };
            let agent = one_line(agent);
            let imports = imports.iter().map(|import| format!("  IMPORTED {import}"));
            let imports = imports.collect::<Vec<_>>().concat();
            writeln!(
                out,
                "{session:width$}  {started_at}  {events:>7}  {state:6}  {agent}{imports}"
            )?;
        }
    }
    if let (Some(log), None, false) = (&log, &list.session, list.json) {
        writeln!(
            out,
            "\nGovernance log {}: {} entries; cra trace show log",
            log.session, log.events
        )?;
    }
    out.flush()?;
    Ok(exit::OK)
}

/// Shows the events of a session. For the log, entries that only report seals are left out of the text
/// output.
pub(super) fn show(settings: &Settings, show: &TraceShowArgs) -> Result<u8, Failure> {
    let reader = open(settings)?;
    let session = recorded(&*reader, &show.session)?;
    let is_log = reader.log()?.log == session;
    let mut out = BufWriter::new(io::stdout().lock());
    if !show.json {
        for import in reader.session_notes()?.imports(&session) {
            writeln!(out, "{}", import_line(&import))?;
        }
    }
    let (mut from, mut left, mut seals) = (show.from, show.limit, 0);
    while left > 0 {
        let page = reader.events(&session, from, PAGE)?;
        let Some(last) = page.last() else { break };
        from = last.sequence + 1;
        for event in &page {
            if is_log && !show.json && event.event_type == SEALED {
                seals += 1;
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            write_event(&mut out, event, show)?;
        }
    }
    if seals > 0 {
        writeln!(
            out,
            "{seals} entries about signatures are not shown; --json shows them"
        )?;
    }
    out.flush()?;
    Ok(exit::OK)
}

/// Type of the log entries that record the ends of all chains.
const SEALED: &str = "log_sealed";

/// Line about an import, above the events that it brought.
fn import_line(import: &ImportEntry) -> String {
    let hash = import.file_hash.as_deref().unwrap_or("unknown");
    format!(
        "IMPORTED {import} from {} (sha256 {}); the events before the import are not proven",
        one_line(&import.source),
        one_line(hash)
    )
}

fn write_event(out: &mut impl Write, event: &Event, show: &TraceShowArgs) -> io::Result<()> {
    if show.json {
        return writeln!(out, "{}", jsonl::format_line(event));
    }
    let time = event.timestamp;
    let payload = if event.pruned {
        "pruned: the content was deleted after its retention; the hash still covers it".to_owned()
    } else {
        one_line(&canonical(&Value::from(event.payload.clone())))
    };
    writeln!(
        out,
        "{:>6}  {time}  {:22}  {payload}",
        event.sequence, event.event_type
    )
}

pub(super) fn open(settings: &Settings) -> Result<Box<dyn StoreReader>, Failure> {
    let url = settings.store_url()?;
    store::open_reader(&url)?.ok_or_else(|| Failure::NoStore(url.path()))
}

/// The store, both as a record to read in order and as a reader for its other data.
pub(super) fn store(settings: &Settings) -> Result<(SessionSource, Box<dyn StoreReader>), Failure> {
    Ok((SessionSource::store(settings)?, open(settings)?))
}

/// Alias of the governance log, in addition to the name of its session.
pub(super) const LOG_NAME: &str = "log";

/// Finds a recorded session by its name. `log` is always the governance log.
pub(super) fn recorded(reader: &dyn StoreReader, name: &str) -> Result<SessionId, Failure> {
    let log = reader.log()?.log;
    if name == LOG_NAME || name == log.as_str() {
        return Ok(log);
    }
    let known = reader
        .sessions()?
        .into_iter()
        .map(|session| session.session);
    let mut found = known.filter(|session| session.as_str() == name);
    found
        .next()
        .ok_or_else(|| Failure::NoSession(one_line(name)))
}
