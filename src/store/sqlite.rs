//! SQLite: one file, written by one thread, readable with any SQLite tool.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::writer::{Queue, Writer, closed};
use super::{Ack, AtlasText, Batch, LogState, RecordedSession, StateRow, Store, StoreError};
use crate::base::clock::Boxed;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::record::Record;
use crate::trace::verify::{Head, Progress, Report, Trust};

mod medium;
mod migrate;
mod reader;
mod rows;
mod schema;
mod verify;
mod wal;

pub use reader::Reader;

use medium::SqliteMedium;

/// The file's name in its folder.
pub const FILE_NAME: &str = "cra.db";

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    // Absent only while the store is being closed.
    queue: Option<Queue>,
    writer: Option<JoinHandle<()>>,
    reader: Option<Arc<Mutex<Reader>>>,
    /// For what takes long: it must not keep others from reading.
    path: PathBuf,
    mended: Option<String>,
    /// Held for as long as the store is open: one console, one writer, one sequence.
    _lock: File,
}

impl SqliteStore {
    /// Opens the store in `folder`, or makes a new one there.
    ///
    /// # Errors
    /// When the file cannot be opened, belongs to another program or version, is damaged, or is in
    /// use. Nothing is changed then.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        make_private_folder(folder).map_err(|error| open_error(&path, &error))?;
        let lock = take_lock(&path)?;
        make_private_file(&path).map_err(|error| open_error(&path, &error))?;
        let torn = wal::look(&path)?;
        let mut connection = connect(&path)?;
        let moved = schema::prepare(&mut connection, &path)?;
        let reader = Reader::open(&path)?;
        let medium = SqliteMedium::new(connection).map_err(|error| damaged(&error))?;
        let (queue, jobs) = Queue::new();
        let writer = std::thread::Builder::new()
            .name("cra-store".to_owned())
            .spawn(move || Writer::new(medium).run(jobs))
            .map_err(|error| open_error(&path, &error))?;
        let mended: Vec<_> = torn.into_iter().chain(moved).collect();
        Ok(Self {
            queue: Some(queue),
            writer: Some(writer),
            reader: Some(Arc::new(Mutex::new(reader))),
            path,
            mended: (!mended.is_empty()).then(|| mended.join("; ")),
            _lock: lock,
        })
    }

    /// Runs a query where blocking is allowed.
    fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Boxed<'_, Result<T, StoreError>> {
        let reader = self.reader.clone();
        Box::pin(async move {
            let reader = reader.ok_or_else(closed)?;
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
        // The writer's connection closes last, so that everything lies in the one file; then the lock
        // goes: whoever opens the store next must not find this writer still at work.
        drop(self.reader.take());
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has written nothing more, and whoever waited was told.
            let _ = writer.join();
        }
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        Box::pin(async move {
            let queue = self.queue.as_ref().ok_or_else(closed)?;
            queue.append(batch).await
        })
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.read(Reader::state)
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>> {
        self.read(Reader::heads)
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        let mended = self.mended.clone();
        self.read(move |reader| {
            let log = reader.log()?;
            Ok(LogState { mended, ..log })
        })
    }

    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.read(move |reader| reader.records(from, limit))
    }

    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>> {
        self.read(move |reader| reader.hashes(&session))
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.read(Reader::sessions)
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

    fn verify(&self, trust: Trust) -> Boxed<'_, Result<Report, StoreError>> {
        self.verify_watched(trust, Progress::default())
    }

    fn verify_watched(
        &self,
        trust: Trust,
        progress: Progress,
    ) -> Boxed<'_, Result<Report, StoreError>> {
        let path = self.path.clone();
        Box::pin(async move {
            blocking(move || Reader::open(&path)?.verify_watched(trust, &progress)).await
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

fn damaged(error: &rusqlite::Error) -> StoreError {
    StoreError::Damaged {
        what: error.to_string(),
    }
}

/// Makes the folder for its owner alone. One that exists is left as it is.
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
        // A folder is on disk when the one above says so; SQLite sees to the files inside.
        let above = folder
            .parent()
            .filter(|above| !above.as_os_str().is_empty());
        File::open(above.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Makes the file for its owner alone, before SQLite would make it for everyone.
fn make_private_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(drop)
}

/// Takes the store for this process. The lock goes with the process, however it ends.
fn take_lock(path: &Path) -> Result<File, StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let lock_path = lock_path(path);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let mut lock = options
        .open(&lock_path)
        .map_err(|error| open_error(&lock_path, &error))?;
    if let Err(failed) = lock.try_lock() {
        if let TryLockError::Error(error) = failed {
            return Err(open_error(&lock_path, &error));
        }
        let mut holder = String::new();
        // Best effort: the number is for the message only.
        let _ = lock.read_to_string(&mut holder);
        let holder = match holder.trim().parse::<u32>() {
            Ok(pid) => format!(" (process {pid})"),
            Err(_) => String::new(),
        };
        return Err(StoreError::InUse {
            path: path.display().to_string(),
            holder,
        });
    }
    let noted = lock
        .set_len(0)
        .and_then(|()| lock.rewind())
        .and_then(|()| write!(lock, "{}", std::process::id()));
    noted.map_err(|error| open_error(&lock_path, &error))?;
    Ok(lock)
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_extension("lock")
}
