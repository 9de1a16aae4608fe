//! Reads the data that the TRACE screen requests, on a blocking thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::clock::{Clock, SystemClock};
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::console::screen::trace::{Ask, Found, Proof, Query, Row, Told, Whole};
use crate::runtime::file::export_session;
use crate::runtime::{Desk, Reading};
use crate::trace::diff::{Side, diff};
use crate::trace::event::Event;
use crate::trace::filter::actors;
use crate::trace::outline::Window;
use crate::trace::record::Record;
use crate::trace::replay::State;
use crate::trace::source::{PAGE, Source, each};
use crate::trace::verify::{Checked, Imported, check};

/// Source of records: the runtime's store, or a few records in memory.
pub(in crate::console) trait Records: Source<Error = String> {
    /// Returns records of a session, from a sequence number on.
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String>;
}

impl Records for Reading {
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String> {
        self.records(session, from, limit)
    }
}

/// Flag that the console has quit.
#[derive(Clone, Debug, Default)]
pub(in crate::console) struct Left(Arc<AtomicBool>);

impl Left {
    /// Sets the flag.
    pub(in crate::console) fn leave(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if the console has quit: reading a long session would keep the process from ending.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) {
            return Err("the console was left".to_owned());
        }
        Ok(())
    }
}

/// Record source that fails once the console has quit.
pub(in crate::console) struct Until<'r, R> {
    pub(in crate::console) records: &'r R,
    pub(in crate::console) left: Left,
}

impl<R: Records> Source for Until<'_, R> {
    type Error = String;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, String> {
        self.left.check()?;
        self.records.events(session, from, limit)
    }

    fn end(&self, session: &SessionId) -> Result<u64, String> {
        self.records.end(session)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<Checked>, String> {
        self.left.check()?;
        self.records.verify(session)
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<Imported>, String> {
        self.left.check()?;
        self.records.imports(session)
    }
}

impl<R: Records> Records for Until<'_, R> {
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String> {
        self.left.check()?;
        self.records.records(session, from, limit)
    }
}

/// Executes a read. Returns `None` if the reading thread was lost.
pub(super) async fn answer(desk: &Desk, ask: Ask, left: Left) -> Option<Told> {
    let read = desk.read(move |records| read(&Until { records, left }, ask));
    read.await.ok()
}

/// Returns the sequence number of an event, if the session has it.
pub(in crate::console) async fn find(
    desk: &Desk,
    session: SessionId,
    event: EventId,
    left: Left,
) -> Result<Option<u64>, String> {
    let read = desk.read(move |records| number_of(&Until { records, left }, &session, &event));
    read.await?
}

/// Searches the sequence number of an event from the end, because operators mostly look at recent
/// events.
fn number_of(
    source: &impl Source<Error = String>,
    session: &SessionId,
    event: &EventId,
) -> Result<Option<u64>, String> {
    let mut end = source.end(session)?;
    while end > 0 {
        let from = end.saturating_sub(PAGE as u64);
        let events = source.events(session, from, PAGE)?;
        if let Some(found) = events.iter().find(|candidate| candidate.event_id == *event) {
            return Ok(Some(found.sequence));
        }
        end = from;
    }
    Ok(None)
}

/// Reads the requested data.
pub(in crate::console) fn read(reading: &impl Records, ask: Ask) -> Told {
    match ask {
        Ask::Rows {
            session,
            from,
            limit,
        } => Told::Rows {
            rows: rows(reading, &session, from, limit),
            session,
            from,
        },
        Ask::Event { session, sequence } => Told::Event {
            event: whole(reading, &session, sequence),
            session,
            sequence,
        },
        Ask::Outline {
            session,
            from,
            limit,
            state,
        } => Told::Outline {
            part: outline(reading, &session, (from, limit), &state),
            session,
            from,
        },
        Ask::Fold {
            session,
            from,
            to,
            state,
        } => Told::Fold {
            state: fold(reading, &session, (from, to), &state),
            session,
            to,
        },
        Ask::Scan {
            session,
            ticket,
            from,
            limit,
            query,
        } => Told::Scan {
            part: scan(reading, &session, (from, limit), &query),
            session,
            ticket,
        },
        Ask::Compare { ticket, sessions } => Told::Compare {
            ticket,
            difference: diff(side(reading, &sessions.0), side(reading, &sessions.1)).map(Box::new),
        },
        Ask::Export {
            session,
            format,
            path,
        } => Told::Exported {
            bytes: export_session(reading, &session, format, &path, SystemClock.now()),
            path,
        },
    }
}

fn side<'s, S>(source: &'s S, session: &'s SessionId) -> Side<'s, S> {
    Side { source, session }
}

fn rows(
    reading: &impl Records,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<Row>, String> {
    let events = reading.events(session, from, limit)?;
    let until = from.saturating_add(limit as u64);
    let inside = events.iter().filter(|event| event.sequence < until);
    Ok(inside.map(Row::of).collect())
}

fn whole(
    reading: &impl Records,
    session: &SessionId,
    sequence: u64,
) -> Result<Option<Box<Whole>>, String> {
    let records = reading.records(session, sequence.saturating_sub(1), 2)?;
    let of = |wanted: u64| records.iter().find(|record| record.sequence == wanted);
    let Some(record) = of(sequence) else {
        return Ok(None);
    };
    let event = record.event()?;
    let own = match check(&record.text, &record.hash) {
        Err(what) => Proof::Fails(what),
        Ok(_) if event.pruned => Proof::Unknown("its details were pruned"),
        Ok(_) => Proof::Holds,
    };
    let before = sequence.checked_sub(1).and_then(of);
    let expected = match (sequence, before) {
        (0, _) => Some(Digest::ZERO),
        (_, before) => before.map(|before| before.hash),
    };
    let link = match expected {
        None => Proof::Fails(format!("event {} is not there", sequence.saturating_sub(1))),
        Some(expected) if expected == event.previous_hash => Proof::Holds,
        Some(_) => Proof::Fails("it is not the hash of the event before".to_owned()),
    };
    Ok(Some(Box::new(Whole { event, own, link })))
}

fn outline(
    reading: &impl Records,
    session: &SessionId,
    (from, limit): (u64, usize),
    state: &State,
) -> Result<(Window, Arc<State>), String> {
    let events = reading.events(session, from, limit)?;
    let next = next(from, limit, events.last().map(|event| event.sequence));
    let mut state = state.clone();
    for event in &events {
        state.apply(event);
    }
    Ok((Window::of(&events, next), Arc::new(state)))
}

fn fold(
    reading: &impl Records,
    session: &SessionId,
    range: (u64, u64),
    state: &State,
) -> Result<Arc<State>, String> {
    let mut state = state.clone();
    each(reading, session, range, |event| {
        state.apply(&event);
        Ok::<_, String>(())
    })?;
    Ok(Arc::new(state))
}

fn scan(
    reading: &impl Records,
    session: &SessionId,
    (from, limit): (u64, usize),
    query: &Query,
) -> Result<Found, String> {
    let mut found = Found::default();
    let (mut types, mut named) = (BTreeMap::new(), BTreeMap::new());
    let mut at = from;
    let until = from.saturating_add(limit as u64);
    // Short pages, so that the texts of a whole window are never in memory at once.
    while at < until {
        let page = reading.records(session, at, PAGE.min(limit))?;
        for record in &page {
            if record.sequence < until {
                judge(record, query, &mut found, (&mut types, &mut named))?;
            }
        }
        let last = page.last().map(|record| record.sequence);
        let next = next(at, PAGE.min(limit), last);
        if next <= at || page.is_empty() {
            break;
        }
        at = next;
    }
    found.next = until;
    found.types = types.into_iter().collect();
    found.actors = named.into_iter().collect();
    Ok(found)
}

type Counts = BTreeMap<String, u64>;

fn judge(
    record: &Record,
    query: &Query,
    found: &mut Found,
    (types, named): (&mut Counts, &mut Counts),
) -> Result<(), String> {
    let envelope = record.envelope()?;
    let wanted = |filter: &crate::trace::filter::Filter| filter.matches(&envelope, &query.agent);
    if !query.filters.iter().all(wanted) {
        return Ok(());
    }
    found.hits.extend(u32::try_from(record.sequence));
    *types.entry(envelope.event_type.to_owned()).or_default() += 1;
    for actor in actors(&envelope) {
        *named.entry(actor).or_default() += 1;
    }
    Ok(())
}

/// Returns the end of a window that begins at `from`: after its last event, or at its limit.
fn next(from: u64, limit: usize, last: Option<u64>) -> u64 {
    let until = from.saturating_add(limit as u64);
    last.map_or(until, |last| last.saturating_add(1))
}
