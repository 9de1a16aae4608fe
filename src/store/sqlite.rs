//! SQLite: one file, written by one thread, readable with any SQLite tool.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{Ack, Batch, RecordedSession, StateRow, Store, StoreError};
use crate::base::clock::Boxed;
use crate::base::id::SessionId;
use crate::base::limits::WRITE_QUEUE;
use crate::trace::event::Event;
use crate::trace::verify::{Checked, Head};

mod reader;
mod schema;
mod writer;

pub use reader::Reader;

/// The file's name in its folder.
pub const FILE_NAME: &str = "cra.db";

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    // Absent only while the store is being closed.
    jobs: Option<mpsc::Sender<writer::Job>>,
    writer: Option<JoinHandle<()>>,
    reader: Option<Arc<Mutex<Reader>>>,
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
        let mut connection = connect(&path)?;
        schema::prepare(&mut connection, &path)?;
        let reader = Reader::open(&path)?;
        let (jobs, queue) = mpsc::channel(WRITE_QUEUE);
        let writer = std::thread::Builder::new()
            .name("cra-store".to_owned())
            .spawn(move || writer::run(connection, queue))
            .map_err(|error| open_error(&path, &error))?;
        Ok(Self {
            jobs: Some(jobs),
            writer: Some(writer),
            reader: Some(Arc::new(Mutex::new(reader))),
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
            let task = tokio::task::spawn_blocking(move || {
                let reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
                query(&reader)
            });
            task.await.unwrap_or_else(|error| {
                Err(StoreError::Damaged {
                    what: error.to_string(),
                })
            })
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer's connection closes last, so that everything lies in the one file; then the lock
        // goes: whoever opens the store next must not find this writer still at work.
        drop(self.reader.take());
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has written nothing more, and whoever waited was told.
            let _ = writer.join();
        }
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        Box::pin(async move {
            let (done, ack) = oneshot::channel();
            let job = writer::Job { batch, done };
            let jobs = self.jobs.as_ref().ok_or_else(closed)?;
            jobs.send(job).await.map_err(|_| closed())?;
            let ack: Ack = Box::pin(async move { ack.await.unwrap_or_else(|_| Err(closed())) });
            Ok(ack)
        })
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.read(Reader::state)
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>> {
        self.read(Reader::heads)
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.read(Reader::sessions)
    }

    fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        self.read(move |reader| reader.events(&session, from, limit))
    }

    fn verify(&self) -> Boxed<'_, Result<Vec<Checked>, StoreError>> {
        self.read(Reader::verify)
    }
}

fn closed() -> StoreError {
    StoreError::Poisoned {
        what: "its writer has stopped".to_owned(),
    }
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
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
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
