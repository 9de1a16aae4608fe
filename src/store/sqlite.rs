//! SQLite store: one file, written by one thread, readable with any SQLite tool.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode};

use super::space;
use super::writer::{BatchWriter, WriteActivity, WriteQueue, closed_error};
use super::{
    Ack, AtlasText, Batch, LogState, RecordedSession, StateRow, Store, StoreError, StoreReader as _,
};
use crate::base::clock::Boxed;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::record::Record;
use crate::trace::verification::{
    ChainHead, TrustAnchors, VerificationProgress, VerificationReport,
};

mod file_verification;
mod files;
mod head_file;
mod lock;
mod medium;
mod migration;
mod reader;
mod rows;
mod schema;
mod space_monitor;
mod wal;
mod wal_end;

pub use head_file::HEAD_FILE_NAME;
pub use reader::SqliteReader;

use files::{FileId, StoreFiles};
use head_file::HeadFileWriter;
use lock::StoreLock;
use medium::SqliteMedium;
use space_monitor::SpaceMonitor;

/// Name of the database file in its folder.
pub const FILE_NAME: &str = "cra.db";

/// Name of the lock file.
pub const LOCK_FILE_NAME: &str = "cra.lock";

/// Name of the write-ahead log.
const WAL_FILE_NAME: &str = "cra.db-wal";

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    // Absent only while the store is closing.
    queue: Option<WriteQueue>,
    writer: Option<JoinHandle<()>>,
    reader: Option<Arc<Mutex<SqliteReader>>>,
    /// For long operations, which open their own connection so that they do not block other readers.
    path: PathBuf,
    repair_note: Option<String>,
    activity: WriteActivity,
    space: SpaceMonitor,
    /// True if the head file next to the store was missing when it was opened.
    head_was_missing: bool,
    foreign_changes: Arc<AtomicU64>,
    /// Lock that is held while the store is open: one console, one writer, one sequence. A read-only store
    /// has none.
    lock: Option<StoreLock>,
}

impl SqliteStore {
    /// Opens the store in `folder`, or creates a new one there.
    ///
    /// # Errors
    /// When the file cannot be opened, belongs to another program or version, is damaged, is missing
    /// although its key exists, or is in use; and when the disk is full. Nothing is changed then.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        Self::open_file(folder, &path).map_err(|error| with_free_space(error, &path))
    }

    /// Sets the maximum size of the database with its write-ahead log.
    #[must_use]
    pub fn with_quota(self, quota_bytes: Option<u64>) -> Self {
        self.space.set_quota(quota_bytes);
        self
    }

    fn open_file(folder: &Path, path: &Path) -> Result<Self, StoreError> {
        make_private_folder(folder).map_err(|error| io_error(path, &error))?;
        let lock = StoreLock::take(path)?;
        check_not_missing(path)?;
        make_private_file(path).map_err(|error| io_error(path, &error))?;
        let torn = wal::inspect(path)?;
        let opened = FileId::of(path).map_err(|error| io_error(path, &error))?;
        let mut connection = connect(path)?;
        let moved = schema::prepare(&mut connection, path)?;
        let reader = SqliteReader::open(path)?;
        let log = reader.log()?;
        let room = SpaceMonitor::new(path);
        let foreign_changes = Arc::new(AtomicU64::new(0));
        let parts = medium::StoreParts {
            files: StoreFiles::watch(path, opened, log.log, Arc::clone(&foreign_changes))?,
            head: HeadFileWriter::start(path).map_err(|error| io_error(path, &error))?,
            lock: lock.share().map_err(|error| io_error(path, &error))?,
            room: room.clone(),
        };
        let medium = SqliteMedium::new(connection, Some(parts)).map_err(|error| damaged(&error))?;
        let (queue, jobs) = WriteQueue::new();
        let writer = BatchWriter::new(medium);
        let activity = writer.activity();
        let writer = std::thread::Builder::new()
            .name("cra-store".to_owned())
            .spawn(move || writer.run(jobs))
            .map_err(|error| io_error(path, &error))?;
        let headless = log.seal.is_some() && log.head_file_note.is_none();
        let headless_text = headless.then(|| {
            format!(
                "`{HEAD_FILE_NAME}` was missing: an earlier version wrote the store, or the file was removed"
            )
        });
        let mended = lock.outage().into_iter().chain(torn).chain(moved);
        let mended: Vec<_> = mended.chain(headless_text).collect();
        Ok(Self {
            queue: Some(queue),
            writer: Some(writer),
            reader: Some(Arc::new(Mutex::new(reader))),
            path: path.to_owned(),
            repair_note: (!mended.is_empty()).then(|| mended.join("; ")),
            activity,
            space: room,
            head_was_missing: headless,
            foreign_changes,
            lock: Some(lock),
        })
    }

    /// Opens the store in `folder` read-only. Another process may write to it, and its disk need not be
    /// writable.
    ///
    /// # Errors
    /// When it does not exist, or cannot be read.
    pub fn open_read_only(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        check_not_missing(&path)?;
        let reader = SqliteReader::open(&path)?;
        Ok(Self {
            queue: None,
            writer: None,
            reader: Some(Arc::new(Mutex::new(reader))),
            space: SpaceMonitor::new(&path),
            path,
            repair_note: None,
            activity: WriteActivity::default(),
            foreign_changes: Arc::default(),
            head_was_missing: false,
            lock: None,
        })
    }

    /// Runs a query on a thread where blocking is allowed.
    fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&SqliteReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Boxed<'_, Result<T, StoreError>> {
        let reader = self.reader.clone();
        Box::pin(async move {
            let reader = reader.ok_or_else(closed_error)?;
            blocking(move || {
                let reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
                query(&reader)
            })
            .await
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer's connection closes last, so that all data is in the one file. Then the lock is released:
        // the next process that opens the store must not find this writer still running.
        drop(self.reader.take());
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has written nothing more, and its callers were notified.
            let _ = writer.join();
        }
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        Box::pin(async move {
            let queue = self.queue.as_ref().ok_or_else(closed_error)?;
            queue.append(batch).await
        })
    }

    fn shortage(&self) -> Option<String> {
        let used = space::used_bytes(&[&self.path, &self.path.with_file_name(WAL_FILE_NAME)]);
        self.space.update(used).map(|what| what.to_string())
    }

    fn was_head_missing(&self) -> bool {
        self.head_was_missing
    }

    fn foreign_changes(&self) -> u64 {
        self.foreign_changes.load(Ordering::Relaxed)
    }

    fn note_outage(&self, what: &str) {
        // Best effort, like every note of an outage.
        if let Some(Ok(mut lock)) = self.lock.as_ref().map(StoreLock::share) {
            lock.note_outage(what);
        }
    }

    fn known_shortage(&self) -> Option<Arc<str>> {
        self.space.shortage()
    }

    fn writing_since(&self) -> Option<Instant> {
        self.activity.since()
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.read(SqliteReader::state)
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<ChainHead>, StoreError>> {
        self.read(SqliteReader::heads)
    }

    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<ChainHead>, StoreError>> {
        self.read(move |reader| reader.head(&session))
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        let mended = self.repair_note.clone();
        self.read(move |reader| {
            let log = reader.log()?;
            Ok(LogState {
                repair_note: mended,
                ..log
            })
        })
    }

    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.read(move |reader| reader.records(from, limit))
    }

    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>> {
        self.read(move |reader| reader.hashes(&session))
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.read(SqliteReader::sessions)
    }

    fn log_session(&self) -> Boxed<'_, Result<Option<RecordedSession>, StoreError>> {
        self.read(SqliteReader::log_session)
    }

    fn log_entries(
        &self,
        types: &'static [&'static str],
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        self.read(move |reader| reader.log_entries(types))
    }

    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.read(move |reader| reader.session_records(&session, from, limit))
    }

    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>> {
        self.read(move |reader| reader.atlas(&hash))
    }

    fn verify(&self, trust: TrustAnchors) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        self.verify_with_progress(trust, VerificationProgress::default())
    }

    fn verify_with_progress(
        &self,
        trust: TrustAnchors,
        progress: VerificationProgress,
    ) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        let path = self.path.clone();
        Box::pin(async move {
            blocking(move || SqliteReader::open(&path)?.verify_with_progress(trust, &progress))
                .await
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let task = tokio::task::spawn_blocking(work);
    task.await.unwrap_or_else(|error| {
        Err(StoreError::Damaged {
            what: error.to_string(),
        })
    })
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    Connection::open(path).map_err(|error| open_error(path, &error))
}

fn open_error(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open {
        path: path.display().to_string(),
        what: error.to_string(),
    }
}

/// Converts a file system error to a message for the operator.
fn io_error(path: &Path, error: &io::Error) -> StoreError {
    if space::is_full(error) {
        return StoreError::Full {
            what: space::full_disk(path, space::ROOM_BYTES),
        };
    }
    open_error(path, error)
}

fn damaged(error: &rusqlite::Error) -> StoreError {
    let what = error.to_string();
    if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        return StoreError::Full { what };
    }
    StoreError::Damaged { what }
}

/// Adds the free space to an error that is caused by a full disk.
fn with_free_space(error: StoreError, path: &Path) -> StoreError {
    let full = match &error {
        StoreError::Full { .. } => true,
        // Without space for its index SQLite only reports that a file cannot be opened or read.
        StoreError::Open { .. } | StoreError::Damaged { .. } => space::is_scarce(path),
        StoreError::Foreign { .. }
        | StoreError::Version { .. }
        | StoreError::Missing { .. }
        | StoreError::InUse { .. }
        | StoreError::Cancelled
        | StoreError::Poisoned(_) => false,
    };
    if !full {
        return error;
    }
    StoreError::Full {
        what: space::full_disk(path, space::ROOM_BYTES),
    }
}

/// Creates the folder with owner-only access. An existing folder stays unchanged.
pub(super) fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let new: Vec<_> = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        .collect();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    for folder in new {
        // A folder is durable when its parent is synced; SQLite syncs the files inside.
        let above = folder
            .parent()
            .filter(|above| !above.as_os_str().is_empty());
        File::open(above.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Creates the file with owner-only access, before SQLite would create it for everyone.
fn make_private_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(drop)
}

/// Refuses to begin a new record where an old one existed: its database is missing, but its other files
/// exist.
///
/// # Errors
/// When the database is missing or empty, and its key, its head or its write-ahead log exists.
pub fn check_not_missing(database: &Path) -> Result<(), StoreError> {
    let what = match fs::metadata(database) {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => "is empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing",
        Err(error) => return Err(io_error(database, &error)),
    };
    let names = [super::key::FILE_NAME, HEAD_FILE_NAME, WAL_FILE_NAME];
    refuse_relics(database, what, &names)
}

/// Fails if one of these files is next to an empty database.
fn refuse_relics(database: &Path, what: &'static str, names: &[&str]) -> Result<(), StoreError> {
    let has_content = |name: &&&str| {
        let found = fs::metadata(database.with_file_name(name));
        found.is_ok_and(|found| found.len() > 0)
    };
    let relics: Vec<_> = names.iter().filter(has_content).collect();
    if relics.is_empty() {
        return Ok(());
    }
    let relics: Vec<_> = relics.iter().map(|name| format!("`{name}`")).collect();
    Err(StoreError::Missing {
        path: database.display().to_string(),
        what,
        relics: relics.join(", "),
    })
}

/// Appends a suffix to the file name of a path.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_reported_as_a_damaged_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = rusqlite::Error::SqliteFailure(full, None);
        let no_room = io::Error::from_raw_os_error(28);
        for error in [damaged(&full), io_error(&path, &no_room)] {
            let error = with_free_space(error, &path);
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains("is full: ") && text.contains("at least 1 MiB needed"),
                "{text}"
            );
            assert!(
                error.help().starts_with("free some space"),
                "{}",
                error.help()
            );
        }
        let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        let corrupt = damaged(&rusqlite::Error::SqliteFailure(corrupt, None));
        assert_eq!(with_free_space(corrupt.clone(), &path), corrupt);
    }
}
