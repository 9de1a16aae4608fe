//! Reads the data that the TRACE screen requests, on a blocking thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::clock::{Clock, SystemClock};
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::console::screen::trace::{
    EventRow, FullEvent, HashProof, TraceQuery, TraceRead, TraceReadResult, WindowMatches,
};
use crate::runtime::export_file::export_session;
use crate::runtime::{OperatorHandle, RecordReader};
use crate::trace::diff::{DiffSide, diff};
use crate::trace::event::Event;
use crate::trace::filter::actors;
use crate::trace::outline::OutlineWindow;
use crate::trace::record::Record;
use crate::trace::replay::ReplayState;
use crate::trace::source::{EventSource, PAGE, for_each_event};
use crate::trace::verification::{ChainVerification, ImportEntry, check_record};

/// Source of records: the runtime's store, or a few records in memory.
pub(in crate::console) trait RecordSource: EventSource<Error = String> {
    /// Returns records of a session, from a sequence number on.
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String>;
}

impl RecordSource for RecordReader {
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String> {
        self.records(session, from, limit)
    }
}

/// Flag that the console has quit.
#[derive(Clone, Debug, Default)]
pub(in crate::console) struct QuitFlag(Arc<AtomicBool>);

impl QuitFlag {
    /// Sets the flag.
    pub(in crate::console) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if the console has quit: reading a long session would keep the process from ending.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) {
            return Err("the console quit".to_owned());
        }
        Ok(())
    }
}

/// Record source that fails once the console has quit.
pub(in crate::console) struct QuittableRecords<'r, R> {
    pub(in crate::console) records: &'r R,
    pub(in crate::console) quit_flag: QuitFlag,
}

impl<R: RecordSource> EventSource for QuittableRecords<'_, R> {
    type Error = String;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, String> {
        self.quit_flag.check()?;
        self.records.events(session, from, limit)
    }

    fn end(&self, session: &SessionId) -> Result<u64, String> {
        self.records.end(session)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, String> {
        self.quit_flag.check()?;
        self.records.verify(session)
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, String> {
        self.quit_flag.check()?;
        self.records.imports(session)
    }
}

impl<R: RecordSource> RecordSource for QuittableRecords<'_, R> {
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String> {
        self.quit_flag.check()?;
        self.records.records(session, from, limit)
    }
}

/// Executes a read. Returns `None` if the reading thread was lost.
pub(super) async fn answer(
    operator_handle: &OperatorHandle,
    ask: TraceRead,
    left: QuitFlag,
) -> Option<TraceReadResult> {
    let read = operator_handle.read_record(move |records| {
        read(
            &QuittableRecords {
                records,
                quit_flag: left,
            },
            ask,
        )
    });
    read.await.ok()
}

/// Returns the sequence number of an event, if the session has it.
pub(in crate::console) async fn find_event(
    operator_handle: &OperatorHandle,
    session: SessionId,
    event: EventId,
    left: QuitFlag,
) -> Result<Option<u64>, String> {
    let read = operator_handle.read_record(move |records| {
        find_sequence(
            &QuittableRecords {
                records,
                quit_flag: left,
            },
            &session,
            &event,
        )
    });
    read.await?
}

/// Searches the sequence number of an event from the end, because operators mostly look at recent
/// events.
fn find_sequence(
    source: &impl EventSource<Error = String>,
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
pub(in crate::console) fn read(source: &impl RecordSource, ask: TraceRead) -> TraceReadResult {
    match ask {
        TraceRead::Rows {
            session,
            from,
            limit,
        } => TraceReadResult::Rows {
            rows: read_rows(source, &session, from, limit),
            session,
            from,
        },
        TraceRead::Event { session, sequence } => TraceReadResult::Event {
            event: read_full_event(source, &session, sequence),
            session,
            sequence,
        },
        TraceRead::Outline {
            session,
            from,
            limit,
            state,
        } => TraceReadResult::Outline {
            part: read_outline(source, &session, (from, limit), &state),
            session,
            from,
        },
        TraceRead::Fold {
            session,
            from,
            to,
            state,
        } => TraceReadResult::Fold {
            state: read_fold(source, &session, (from, to), &state),
            session,
            to,
        },
        TraceRead::Scan {
            session,
            ticket,
            from,
            limit,
            query,
        } => TraceReadResult::Scan {
            part: scan(source, &session, (from, limit), &query),
            session,
            ticket,
        },
        TraceRead::Compare { ticket, sessions } => TraceReadResult::Compare {
            ticket,
            difference: diff(
                diff_side(source, &sessions.0),
                diff_side(source, &sessions.1),
            )
            .map(Box::new),
        },
        TraceRead::Export {
            session,
            format,
            path,
        } => TraceReadResult::Exported {
            bytes: export_session(source, &session, format, &path, SystemClock.now()),
            path,
        },
    }
}

fn diff_side<'s, S>(source: &'s S, session: &'s SessionId) -> DiffSide<'s, S> {
    DiffSide { source, session }
}

fn read_rows(
    source: &impl RecordSource,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<EventRow>, String> {
    let events = source.events(session, from, limit)?;
    let until = from.saturating_add(limit as u64);
    let inside = events.iter().filter(|event| event.sequence < until);
    Ok(inside.map(EventRow::of).collect())
}

fn read_full_event(
    source: &impl RecordSource,
    session: &SessionId,
    sequence: u64,
) -> Result<Option<Box<FullEvent>>, String> {
    let records = source.records(session, sequence.saturating_sub(1), 2)?;
    let record_at = |wanted: u64| records.iter().find(|record| record.sequence == wanted);
    let Some(record) = record_at(sequence) else {
        return Ok(None);
    };
    let event = record.event_of()?;
    let own = match check_record(&record.text, &record.hash) {
        Err(what) => HashProof::Fails(what),
        Ok(_) if event.pruned => HashProof::Unknown("details were pruned"),
        Ok(_) => HashProof::Holds,
    };
    let before = sequence.checked_sub(1).and_then(record_at);
    let expected = match (sequence, before) {
        (0, _) => Some(Digest::ZERO),
        (_, before) => before.map(|before| before.hash),
    };
    let link = match expected {
        None => HashProof::Fails(format!("event {} is missing", sequence.saturating_sub(1))),
        Some(expected) if expected == event.previous_hash => HashProof::Holds,
        Some(_) => HashProof::Fails("not the hash of the previous event".to_owned()),
    };
    Ok(Some(Box::new(FullEvent { event, own, link })))
}

fn read_outline(
    source: &impl RecordSource,
    session: &SessionId,
    (from, limit): (u64, usize),
    state: &ReplayState,
) -> Result<(OutlineWindow, Arc<ReplayState>), String> {
    let events = source.events(session, from, limit)?;
    let next = next(from, limit, events.last().map(|event| event.sequence));
    let mut state = state.clone();
    for event in &events {
        state.apply(event);
    }
    Ok((OutlineWindow::of(&events, next), Arc::new(state)))
}

fn read_fold(
    source: &impl RecordSource,
    session: &SessionId,
    range: (u64, u64),
    state: &ReplayState,
) -> Result<Arc<ReplayState>, String> {
    let mut state = state.clone();
    for_each_event(source, session, range, |event| {
        state.apply(&event);
        Ok::<_, String>(())
    })?;
    Ok(Arc::new(state))
}

fn scan(
    source: &impl RecordSource,
    session: &SessionId,
    (from, limit): (u64, usize),
    query: &TraceQuery,
) -> Result<WindowMatches, String> {
    let mut found = WindowMatches::default();
    let (mut types, mut named) = (BTreeMap::new(), BTreeMap::new());
    let mut at = from;
    let until = from.saturating_add(limit as u64);
    // Short pages, so that the texts of a whole window are never in memory at once.
    while at < until {
        let page = source.records(session, at, PAGE.min(limit))?;
        for record in &page {
            if record.sequence < until {
                count_if_matching(record, query, &mut found, (&mut types, &mut named))?;
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

type NameCounts = BTreeMap<String, u64>;

fn count_if_matching(
    record: &Record,
    query: &TraceQuery,
    found: &mut WindowMatches,
    (types, named): (&mut NameCounts, &mut NameCounts),
) -> Result<(), String> {
    let envelope = record.envelope()?;
    if !query.matches(&envelope) {
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
