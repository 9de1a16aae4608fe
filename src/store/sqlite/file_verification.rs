//! Verification of a whole file on all cores.
//!
//! A record can be checked on its own without its neighbours, so threads check the rows in pieces, each
//! with its own connection; one thread joins the pieces in order and checks that they fit.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::super::{StoreError, StoreReader as _};
use super::damaged;
use super::head_file::read_head;
use super::reader::{SqliteReader, count, digest, parsed};
use super::rows;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::verification::{
    self, ChainHead, ExtendResult, ListedEnd, LogVerifier, RecordContent, RecordLink, RecordOwner,
    RecordRun, TrustAnchors, VerificationProgress, VerificationReport,
};

mod atlases;
mod heads;

use heads::HeadFaults;

/// Number of events per piece. Tests have few.
const PIECE_EVENTS: u64 = if cfg!(test) { 16 } else { 4096 };

/// Pieces per thread that may wait to be joined; the limit bounds memory use.
const MAX_WAITING_PIECES: usize = 4;

/// Fewer rows than this are not worth a second thread.
const MIN_ROWS_FOR_THREADS: u64 = 4 * PIECE_EVENTS;

/// Verifies the whole record.
pub(super) fn verify(
    reader: &SqliteReader,
    trust: TrustAnchors,
    threads: usize,
    progress: &VerificationProgress,
) -> Result<VerificationReport, StoreError> {
    // All reads must see one snapshot of the file: otherwise events that a console writes between reading
    // the acknowledged heads and the events would look unacknowledged. The head file is read before the
    // snapshot: the store is never behind it.
    let known_head = read_head(&reader.path)?;
    let moment = reader.connection.unchecked_transaction();
    let _moment = moment.map_err(|error| damaged(&error))?;
    let report = verify_on_threads(
        reader,
        trust.clone(),
        known_head.as_deref(),
        threads,
        progress,
    )?;
    if report.is_sound() || threads == 1 {
        return Ok(report);
    }
    // Other connections may have seen a later snapshot. The final verdict is about one snapshot.
    verify_on_threads(reader, trust, known_head.as_deref(), 1, progress)
}

/// Verifies the whole record on this many threads.
fn verify_on_threads(
    reader: &SqliteReader,
    trust: TrustAnchors,
    known_head: Option<&str>,
    threads: usize,
    progress: &VerificationProgress,
) -> Result<VerificationReport, StoreError> {
    let log = reader.log()?.log;
    let mut head_faults = HeadFaults::default();
    let seals = heads::signed_heads(reader, &log, known_head, &mut head_faults)?;
    let mut faults = head_faults.tables;
    head_faults.log.extend(atlases::faults(reader, &log)?);
    let mut verifier = LogVerifier::new(trust.with_log(log).with_signed_heads(seals));
    let rows = RowCheck::of(reader, &mut verifier, progress.clone())?;
    if rows.outside {
        faults.push("some events are not in the order of writing".to_owned());
    }
    let marks = if threads > 1 && rows.end > MIN_ROWS_FOR_THREADS {
        check_on_threads(reader, &rows, &mut verifier, threads)?
    } else {
        check_on_one_thread(reader, &rows, &mut verifier)?
    };
    // A cancelled verification looks like a record with gaps.
    rows.check_not_cancelled()?;
    let found = rows.marks_in_index(reader)?;
    rows.check_not_cancelled()?;
    if found != marks || !rows.are_sessions_indexed(reader)? {
        faults.push("the index does not match the events".to_owned());
    }
    for listed in &rows.listed {
        let (head, agent, started_at, ended) = listed;
        verifier.check_listed(head, agent, started_at, *ended);
    }
    for what in faults {
        verifier.report_unreadable(None, &what);
    }
    for what in head_faults.log {
        verifier.diverges(&what);
    }
    verifier.demand_seals();
    Ok(verifier.finish())
}

/// Mixes two numbers into one so that every bit of both counts: the product, folded.
fn mix_bits(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    let bytes = product.to_le_bytes();
    let half = |at: usize| {
        let half = bytes.get(at..at + 8).and_then(|half| half.try_into().ok());
        u64::from_le_bytes(half.unwrap_or_default())
    };
    half(0) ^ half(8)
}

type ListedSession = (ChainHead, String, crate::base::clock::Timestamp, ListedEnd);

/// Rows to check.
struct RowCheck {
    /// Rows begin at positions from 0 up to this.
    end: u64,
    /// True if there are rows outside of that range.
    outside: bool,
    /// Sessions by number. Numbers of a store are small; others are in a separate map.
    sessions: Vec<Option<KnownSession>>,
    odd: HashMap<i64, KnownSession>,
    listed: Vec<ListedSession>,
    /// Random keys for marks that cannot be predicted.
    marks: [u64; 3],
    progress: VerificationProgress,
}

/// A session as events refer to it.
struct KnownSession {
    id: SessionId,
    place: usize,
    owner: RecordOwner,
}

impl RowCheck {
    fn of(
        reader: &SqliteReader,
        verifier: &mut LogVerifier,
        progress: VerificationProgress,
    ) -> Result<Self, StoreError> {
        let query = "SELECT number, session_id, count, hash, agent, started_at, last_at, ended
                     FROM sessions ORDER BY number";
        let mut sessions = Vec::new();
        let mut odd = HashMap::new();
        let mut listed = Vec::new();
        let found = reader.query_rows(query, [], |row| {
            let ended = if row.get(7)? {
                ListedEnd::Yes
            } else {
                ListedEnd::No
            };
            let head = ChainHead {
                session: parsed(row, 1)?,
                count: count(row, 2)?,
                hash: digest(row, 3)?,
                last_at: parsed(row, 6)?,
            };
            let number: i64 = row.get(0)?;
            Ok((number, (head, row.get(4)?, parsed(row, 5)?, ended)))
        })?;
        for (number, one) in found {
            let id = one.0.session.clone();
            let known = KnownSession {
                place: verifier.chain_index(&id),
                owner: verifier.owner(id.as_str()),
                id,
            };
            match usize::try_from(number) {
                // Sessions are numbered from 1 on, in the order in which they are read here.
                Ok(place) if place <= sessions.len() + 1 => {
                    sessions.resize_with(place, || None);
                    sessions.push(Some(known));
                }
                Ok(_) | Err(_) => drop(odd.insert(number, known)),
            }
            listed.push(one);
        }
        let ends = "SELECT coalesce(min(position), 0), coalesce(max(position), -1) FROM events";
        let ends = reader.query_rows(ends, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        let (first, last) = ends.first().copied().unwrap_or((0, -1));
        let end = u64::try_from(last).map_or(0, |last| last + 1);
        progress.begin(end);
        Ok(Self {
            end,
            outside: first < 0,
            sessions,
            odd,
            listed,
            marks: [(); 3].map(|()| RandomState::new().hash_one(0)),
            progress,
        })
    }

    fn check_not_cancelled(&self) -> Result<(), StoreError> {
        if self.progress.is_cancelled() {
            return Err(StoreError::Cancelled);
        }
        Ok(())
    }

    /// Mark of a row and its position; marks are summed up. Readers find events of a session by an index,
    /// and a wrong index entry would hide events.
    fn mark(&self, row: &Row<'_>) -> u64 {
        let number = |index| match row.get_ref(index) {
            Ok(ValueRef::Integer(number)) => number.cast_unsigned(),
            Ok(_) | Err(_) => u64::MAX,
        };
        let [first, second, third] = self.marks;
        let of_session = mix_bits(number(1) ^ first, number(2) ^ second);
        mix_bits(number(0) ^ third, of_session)
    }

    fn marks_in_index(&self, reader: &SqliteReader) -> Result<u64, StoreError> {
        let query =
            "SELECT position, session, sequence FROM events INDEXED BY sqlite_autoindex_events_1";
        let read = || {
            let mut statement = reader.connection.prepare_cached(query)?;
            let mut rows = statement.query([])?;
            let mut marks: u64 = 0;
            while let Some(row) = rows.next()?.filter(|_| !self.progress.is_cancelled()) {
                marks = marks.wrapping_add(self.mark(row));
            }
            Ok(marks)
        };
        read().map_err(|error| damaged(&error))
    }

    /// True if every session is found by its name.
    fn are_sessions_indexed(&self, reader: &SqliteReader) -> Result<bool, StoreError> {
        let query = "SELECT number FROM sessions WHERE session_id = ?1";
        let small = (0_i64..).zip(&self.sessions);
        let small = small.filter_map(|(number, known)| Some((number, known.as_ref()?)));
        let odd = self.odd.iter().map(|(number, known)| (*number, known));
        for (number, known) in small.chain(odd) {
            let found =
                reader.query_rows(query, [known.id.as_str()], |row| row.get::<_, i64>(0))?;
            if found != [number] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn known(&self, number: i64) -> Option<&KnownSession> {
        let place = usize::try_from(number).ok();
        let known = place.and_then(|place| self.sessions.get(place));
        known
            .and_then(Option::as_ref)
            .or_else(|| self.odd.get(&number))
    }

    /// Checks a row on its own, passes the results to `hand`, and returns the expected position of the next
    /// row.
    fn check<'r>(
        &self,
        row: &'r Row<'_>,
        expected: u64,
        mut hand: impl FnMut(CheckedRecords<'r>),
    ) -> u64 {
        let position = position(row).unwrap_or(expected);
        let known = match row.get_ref(1) {
            Ok(ValueRef::Integer(number)) => self.known(number),
            Ok(_) | Err(_) => None,
        };
        let Some(known) = known else {
            let what = "an event belongs to a session that is not listed".to_owned();
            hand(CheckedRecords::Bad(None, what));
            return position.saturating_add(1);
        };
        let mut bad = |what: &str| hand(CheckedRecords::Bad(Some(known.place), what.to_owned()));
        if position != expected {
            bad("the event before it is missing");
        }
        let (Ok(ValueRef::Text(lines)), Ok(ValueRef::Blob(hashes))) =
            (row.get_ref(3), row.get_ref(4))
        else {
            bad("is not stored as text with hashes");
            return position.saturating_add(1);
        };
        let length = rows::length(hashes);
        match (rows::unpacked(lines, hashes), count(row, 2)) {
            (Ok(records), Ok(sequence)) => known.check(records, sequence, hand),
            (Err(what), _) => bad(what),
            (Ok(_), Err(_)) => bad("is listed under another sequence"),
        }
        self.progress.add(length);
        position.saturating_add(length.max(1))
    }
}

impl KnownSession {
    /// Checks records that should begin with `sequence`, and passes the results to `hand`.
    fn check<'r>(
        &self,
        records: impl Iterator<Item = (&'r [u8], Digest)>,
        sequence: u64,
        mut hand: impl FnMut(CheckedRecords<'r>),
    ) {
        let mut open: Option<RecordRun> = None;
        for (sequence, (text, hash)) in (sequence..).zip(records) {
            let (rest, done) = match self.check_one(text, &hash, sequence) {
                Ok((link, RecordContent::Nothing)) => match open
                    .as_mut()
                    .map(|open| open.extend(&link))
                {
                    Some(ExtendResult::Yes) => continue,
                    Some(ExtendResult::No) | None => (open.replace(RecordRun::from(&link)), None),
                },
                Ok((link, said)) => {
                    let telling = Box::new((RecordRun::from(&link), said));
                    (
                        open.take(),
                        Some(CheckedRecords::Content(self.place, telling)),
                    )
                }
                Err(what) => (
                    open.take(),
                    Some(CheckedRecords::Bad(Some(self.place), what)),
                ),
            };
            let rest = rest.map(|stretch| CheckedRecords::Run(self.place, stretch));
            rest.into_iter().chain(done).for_each(&mut hand);
        }
        if let Some(stretch) = open {
            hand(CheckedRecords::Run(self.place, stretch));
        }
    }

    fn check_one<'r>(
        &self,
        text: &'r [u8],
        hash: &Digest,
        sequence: u64,
    ) -> Result<(RecordLink, RecordContent<'r>), String> {
        let (envelope, link) = verification::check_record(text, hash)?;
        if envelope.session_id != self.id.as_str() {
            return Err("is listed under another session".to_owned());
        }
        if envelope.sequence != sequence {
            return Err("is listed under another sequence".to_owned());
        }
        Ok((link, RecordContent::of(&envelope, text, hash, self.owner)))
    }
}

/// Position of a row.
fn position(row: &Row<'_>) -> Option<u64> {
    count(row, 0).ok()
}

const PIECE_QUERY: &str = "SELECT position, session, sequence, records, hashes FROM events
                           WHERE position >= ?1 AND position < ?2 ORDER BY position";

/// Visits the rows that begin in a piece, until the verification is cancelled.
fn each_row(
    reader: &SqliteReader,
    progress: &VerificationProgress,
    piece: std::ops::Range<u64>,
    mut take: impl FnMut(&Row<'_>),
) -> rusqlite::Result<()> {
    let mut statement = reader.connection.prepare_cached(PIECE_QUERY)?;
    let ends = params![piece.start.cast_signed(), piece.end.cast_signed()];
    let mut rows = statement.query(ends)?;
    while let Some(row) = rows.next()?.filter(|_| !progress.is_cancelled()) {
        take(row);
    }
    Ok(())
}

/// Verifies all rows on one thread. Returns the sum of the marks of all rows.
fn check_on_one_thread(
    reader: &SqliteReader,
    rows: &RowCheck,
    verifier: &mut LogVerifier,
) -> Result<u64, StoreError> {
    let mut expected = 0;
    let mut marks: u64 = 0;
    let read = each_row(reader, &rows.progress, 0..rows.end, |row| {
        marks = marks.wrapping_add(rows.mark(row));
        expected = rows.check(row, expected, |done| done.hand_to(verifier));
    });
    read.map(|()| marks).map_err(|error| damaged(&error))
}

/// Records that were checked on their own.
enum CheckedRecords<'r> {
    /// Consecutive records.
    Run(usize, RecordRun),
    /// A record with content that matters beyond its chain: rare.
    Content(usize, Box<(RecordRun, RecordContent<'r>)>),
    Bad(Option<usize>, String),
}

impl CheckedRecords<'_> {
    fn into_owned(self) -> CheckedRecords<'static> {
        match self {
            Self::Run(place, stretch) => CheckedRecords::Run(place, stretch),
            Self::Bad(place, what) => CheckedRecords::Bad(place, what),
            Self::Content(place, telling) => {
                let (stretch, said) = *telling;
                CheckedRecords::Content(place, Box::new((stretch, said.into_owned())))
            }
        }
    }

    fn hand_to(&self, verifier: &mut LogVerifier) {
        match self {
            Self::Run(place, stretch) => {
                verifier.push_run(*place, stretch, &RecordContent::Nothing);
            }
            Self::Bad(place, what) => verifier.report_unreadable(*place, what),
            Self::Content(place, telling) => verifier.push_run(*place, &telling.0, &telling.1),
        }
    }
}

type PieceResult = (u64, rusqlite::Result<CheckedPiece>);

fn check_on_threads(
    reader: &SqliteReader,
    rows: &RowCheck,
    verifier: &mut LogVerifier,
    threads: usize,
) -> Result<u64, StoreError> {
    let readers: Vec<_> = (0..threads)
        .map(|_| SqliteReader::open(&reader.path))
        .collect::<Result<_, _>>()?;
    let next = AtomicU64::new(0);
    let pieces = rows.end.div_ceil(PIECE_EVENTS);
    thread::scope(|scope| {
        let (done, pile) = mpsc::sync_channel::<PieceResult>(threads * MAX_WAITING_PIECES);
        for reader in readers {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces || rows.progress.is_cancelled() {
                        return;
                    }
                    let work = check_piece(&reader, rows, piece);
                    // Rows are shorter than pieces: a piece without rows is a gap, and so already a fault.
                    // With a forged position the range of pieces could be endless.
                    if work.as_ref().is_ok_and(|work| work.span.is_none()) {
                        next.store(pieces, Ordering::Relaxed);
                    }
                    if done.send((piece, work)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        join_pieces(&pile, verifier)
    })
    .map_err(|error| damaged(&error))
}

/// A checked piece, and the marks of its rows.
struct CheckedPiece {
    done: Vec<CheckedRecords<'static>>,
    marks: u64,
    /// Position of its first row, and expected position after its last row. `None` if it has no row.
    span: Option<(u64, u64)>,
}

fn check_piece(
    reader: &SqliteReader,
    rows: &RowCheck,
    piece: u64,
) -> rusqlite::Result<CheckedPiece> {
    let start = piece * PIECE_EVENTS;
    let end = (start + PIECE_EVENTS).min(rows.end);
    let mut work = CheckedPiece {
        done: Vec::new(),
        marks: 0,
        span: None,
    };
    each_row(reader, &rows.progress, start..end, |row| {
        work.marks = work.marks.wrapping_add(rows.mark(row));
        let here = position(row).unwrap_or(start);
        let (first, expected) = work.span.unwrap_or((here, here));
        let next = rows.check(row, expected, |done| work.done.push(done.into_owned()));
        work.span = Some((first, next));
    })?;
    Ok(work)
}

/// Joins pieces in order, whichever is finished first.
fn join_pieces(
    pile: &mpsc::Receiver<PieceResult>,
    verifier: &mut LogVerifier,
) -> rusqlite::Result<u64> {
    let mut early = HashMap::new();
    let (mut wanted, mut expected) = (0, 0);
    let mut marks: u64 = 0;
    for (piece, work) in pile {
        early.insert(piece, work?);
        while let Some(work) = early.remove(&wanted) {
            marks = marks.wrapping_add(work.marks);
            match work.span {
                Some((first, next)) if first == expected => expected = next,
                Some(_) | None => verifier.report_unreadable(None, "events are missing"),
            }
            for done in &work.done {
                done.hand_to(verifier);
            }
            wanted += 1;
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests;
