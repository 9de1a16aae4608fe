//! Source of a session for a command: the store, or an exported file.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::verify::{store_trust, verify_file};
use super::{LOG_NAME, open, recorded};
use crate::base::id::SessionId;
use crate::base::limits::MAX_LINE_BYTES;
use crate::base::text::one_line;
use crate::cli::error::Failure;
use crate::cli::settings::Settings;
use crate::store::StoreReader;
use crate::trace::event::Event;
use crate::trace::jsonl;
use crate::trace::source::EventSource;
use crate::trace::verification::{
    ChainVerification, ImportEntry, TrustAnchors, VerificationReport,
};

/// A record with its verification result, which is computed at most once.
#[derive(Debug)]
pub(in crate::cli) struct SessionSource {
    place: RecordLocation,
    trust: TrustAnchors,
    checked: OnceCell<VerificationReport>,
    /// Acknowledged number of events of each session of a store.
    counts: OnceCell<HashMap<SessionId, u64>>,
}

#[derive(Debug)]
enum RecordLocation {
    Store(Box<dyn StoreReader>),
    File(ExportFile),
}

impl SessionSource {
    pub(super) fn store(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self::of_store(settings, open(settings)?))
    }

    /// Record and session that `name` means: `SESSION`, or `FILE:SESSION`. The name of a session has no
    /// colon.
    pub(super) fn named(settings: &Settings, name: &str) -> Result<(Self, SessionId), Failure> {
        let Some((file, session)) = name.rsplit_once(':') else {
            let reader = open(settings)?;
            let session = recorded(&*reader, name)?;
            return Ok((Self::of_store(settings, reader), session));
        };
        let exported = ExportFile::open(Path::new(file))?;
        let found = match session {
            LOG_NAME => exported.log()?,
            named => named.parse::<SessionId>().ok(),
        };
        let found = found.filter(|session| exported.places.contains_key(session));
        let session =
            found.ok_or_else(|| Failure::NoSessionIn(exported.path.clone(), one_line(session)))?;
        Ok((Self::at(RecordLocation::File(exported)), session))
    }

    /// Sessions of a store, newest first.
    pub(super) fn sessions(&self) -> Result<Vec<SessionId>, Failure> {
        match &self.place {
            RecordLocation::Store(reader) => {
                let sessions = reader.sessions()?.into_iter();
                Ok(sessions.map(|session| session.session).collect())
            }
            RecordLocation::File(exported) => Ok(exported.places.keys().cloned().collect()),
        }
    }

    /// Verification result of the whole record.
    pub(super) fn report(&self) -> Result<&VerificationReport, Failure> {
        if let Some(report) = self.checked.get() {
            return Ok(report);
        }
        let report = match &self.place {
            RecordLocation::Store(reader) => reader.verify(self.trust.clone())?,
            RecordLocation::File(exported) => exported.verify()?,
        };
        Ok(self.checked.get_or_init(|| report))
    }

    /// Reader of the store, if the record is in a store.
    pub(super) fn reader(&self) -> Option<&dyn StoreReader> {
        match &self.place {
            RecordLocation::Store(reader) => Some(&**reader),
            RecordLocation::File(_) => None,
        }
    }

    fn of_store(settings: &Settings, reader: Box<dyn StoreReader>) -> Self {
        Self {
            trust: store_trust(settings),
            ..Self::at(RecordLocation::Store(reader))
        }
    }

    fn at(place: RecordLocation) -> Self {
        Self {
            place,
            trust: TrustAnchors::nothing(),
            checked: OnceCell::new(),
            counts: OnceCell::new(),
        }
    }

    fn count(&self, reader: &dyn StoreReader, session: &SessionId) -> Result<u64, Failure> {
        if self.counts.get().is_none() {
            let sessions = reader.sessions()?.into_iter();
            let sessions = sessions.chain(reader.log_session()?);
            let counts = sessions.map(|known| (known.session, known.events));
            let _ = self.counts.set(counts.collect());
        }
        let counts = self.counts.get();
        Ok(counts
            .and_then(|counts| counts.get(session))
            .map_or(0, |count| *count))
    }
}

impl EventSource for SessionSource {
    type Error = Failure;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, Failure> {
        match &self.place {
            RecordLocation::Store(reader) => Ok(reader.events(session, from, limit)?),
            RecordLocation::File(exported) => exported.events(session, from, limit),
        }
    }

    fn end(&self, session: &SessionId) -> Result<u64, Failure> {
        let reader = match &self.place {
            RecordLocation::Store(reader) => reader,
            RecordLocation::File(exported) => return Ok(exported.end(session)),
        };
        let mut end = self.count(&**reader, session)?;
        // Events beyond the acknowledged end are shown as well, because they exist.
        while let Some(last) = reader.events(session, end, super::PAGE)?.last() {
            match last.sequence.checked_add(1).filter(|next| *next > end) {
                Some(next) => end = next,
                None => return Ok(u64::MAX),
            }
        }
        Ok(end)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, Failure> {
        Ok(self.report()?.of_session(session))
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, Failure> {
        match &self.place {
            RecordLocation::Store(reader) => Ok(reader.session_notes()?.imports(session)),
            RecordLocation::File(_) => {
                let checked = self.verify(session)?;
                Ok(checked.map(|checked| checked.imports).unwrap_or_default())
            }
        }
    }
}

/// An exported file. Only the position of each event is kept: a long session is read on demand.
#[derive(Debug)]
struct ExportFile {
    path: PathBuf,
    file: RefCell<BufReader<File>>,
    /// Sequence, offset and line of each event, by session.
    places: HashMap<SessionId, Vec<LinePosition>>,
}

#[derive(Clone, Copy, Debug)]
struct LinePosition {
    sequence: u64,
    offset: u64,
    number: u64,
}

/// Fields of a line that identify its session and position.
#[derive(Deserialize)]
struct LineIds {
    session_id: SessionId,
    sequence: u64,
}

impl ExportFile {
    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::Read(path.to_owned(), error);
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut places: HashMap<SessionId, Vec<LinePosition>> = HashMap::new();
        let (mut offset, mut number) = (0, 0);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut bounded = file.by_ref().take(MAX_LINE_BYTES);
            let read = bounded.read_until(b'\n', &mut bytes).map_err(failed)?;
            if read == 0 {
                break;
            }
            number += 1;
            let belongs: LineIds = serde_json::from_slice(&bytes)
                .map_err(|error| not_an_event(path, number, &error))?;
            places
                .entry(belongs.session_id)
                .or_default()
                .push(LinePosition {
                    sequence: belongs.sequence,
                    offset,
                    number,
                });
            offset += read as u64;
        }
        for lines in places.values_mut() {
            lines.sort_by_key(|line| line.sequence);
        }
        Ok(Self {
            path: path.to_owned(),
            file: RefCell::new(file),
            places,
        })
    }

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, Failure> {
        let lines = self.places.get(session).map_or(&[][..], Vec::as_slice);
        let first = lines.partition_point(|line| line.sequence < from);
        let wanted = lines.iter().skip(first).take(limit);
        wanted.map(|line| self.event(*line)).collect()
    }

    /// Governance log in the file, if there is one.
    fn log(&self) -> Result<Option<SessionId>, Failure> {
        for (session, lines) in &self.places {
            if let Some(first) = lines.first()
                && self.event(*first)?.event_type == "log_started"
            {
                return Ok(Some(session.clone()));
            }
        }
        Ok(None)
    }

    fn event(&self, line: LinePosition) -> Result<Event, Failure> {
        let failed = |error| Failure::Read(self.path.clone(), error);
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(line.offset)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_until(b'\n', &mut bytes).map_err(failed)?;
        jsonl::read_event(&bytes).map_err(|error| not_an_event(&self.path, line.number, &error))
    }

    fn end(&self, session: &SessionId) -> u64 {
        let last = self.places.get(session).and_then(|lines| lines.last());
        last.map_or(0, |last| last.sequence.saturating_add(1))
    }

    fn verify(&self) -> Result<VerificationReport, Failure> {
        verify_file(&self.path, TrustAnchors::nothing(), None)
    }
}

fn not_an_event(path: &Path, line: u64, error: &impl std::fmt::Display) -> Failure {
    Failure::NotAnEvent {
        file: path.to_owned(),
        line,
        what: one_line(&error.to_string()),
    }
}
