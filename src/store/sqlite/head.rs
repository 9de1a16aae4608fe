//! The newest signed head of the log, kept in a file beside the database.
//!
//! A write-ahead log that is lost takes acknowledged records with it, and what is left of the database
//! holds by itself. The head says how much there was. A thread of its own writes the file, so that no
//! commit waits for it; heads that come meanwhile are passed over for the newest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::StoreError;
use super::{io_error, with_suffix};

/// The file's name in the folder of its store.
pub const HEAD_FILE_NAME: &str = "cra.head";

/// The head's file beside a database.
pub(super) fn head_path(database: &Path) -> PathBuf {
    database.with_file_name(HEAD_FILE_NAME)
}

/// The note in the file beside a database, if there is one.
pub(super) fn read_head(database: &Path) -> Result<Option<String>, StoreError> {
    let path = head_path(database);
    match fs::read_to_string(&path) {
        Ok(note) => Ok(Some(note)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(&path, &error)),
    }
}

/// Writes the file: after a crash it has the head before, or this one, and never a part.
fn write_head(path: &Path, note: &str) -> io::Result<()> {
    let new = with_suffix(path, ".tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new)?;
    file.write_all(note.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Least time between two writes of the file. Each makes the file system commit twice, and a commit of the database
/// that meets one takes twenty times as long. Heads are signed about once a second while little happens, so only a
/// busy store waits for this.
const PAUSE: Duration = Duration::from_millis(500);

/// Writes the newest head that comes, until no more can come.
fn write_heads(path: &Path, queue: &mpsc::Receiver<String>) {
    let mut next_write = Instant::now();
    while let Ok(mut note) = queue.recv() {
        loop {
            let pause = next_write.saturating_duration_since(Instant::now());
            match queue.recv_timeout(pause) {
                Ok(newer) => note = newer,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Err(error) = write_head(path, &note) {
            let path = path.display();
            tracing::error!(%path, %error, "the head beside the store cannot be written");
        }
        next_write = Instant::now() + PAUSE;
    }
}

/// The thread that writes the file.
#[derive(Debug)]
pub(super) struct HeadKeeper {
    // Absent only while it ends.
    notes: Option<mpsc::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl HeadKeeper {
    /// Starts the thread.
    pub(super) fn start(database: &Path) -> io::Result<Self> {
        let path = head_path(database);
        let (notes, queue) = mpsc::channel::<String>();
        let thread = std::thread::Builder::new()
            .name("cra-head".to_owned())
            .spawn(move || write_heads(&path, &queue))?;
        Ok(Self {
            notes: Some(notes),
            thread: Some(thread),
        })
    }

    /// Keeps a head that is durable in the store.
    pub(super) fn keep(&self, note: &str) {
        if let Some(notes) = &self.notes {
            // The thread ends only with the keeper.
            let _ = notes.send(note.to_owned());
        }
    }
}

impl Drop for HeadKeeper {
    fn drop(&mut self) {
        // What was handed over is written before the lock of the store goes.
        drop(self.notes.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
