//! Newest signed head of the log, kept in a file next to the database.
//!
//! A lost write-ahead log takes acknowledged records with it, and the rest of the database is
//! consistent without them. The head shows how many records there were. A separate thread writes the
//! file, so that no commit waits for it; heads that arrive meanwhile are skipped in favour of the
//! newest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::StoreError;
use super::io_error;
use crate::base::atomic_file::{self, FileAccess};

/// Name of the head file in the folder of its store.
pub const HEAD_FILE_NAME: &str = "cra.head";

/// Path of the head file next to a database.
pub(super) fn head_path(database: &Path) -> PathBuf {
    database.with_file_name(HEAD_FILE_NAME)
}

/// Note in the head file, if it exists.
pub(super) fn read_head(database: &Path) -> Result<Option<String>, StoreError> {
    let path = head_path(database);
    match fs::read_to_string(&path) {
        Ok(note) => Ok(Some(note)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(&path, &error)),
    }
}

/// Least time between two writes of the file. Each write makes the file system commit twice, and a
/// database commit at the same time takes twenty times as long. Heads are signed about once a second at
/// low load, so only a busy store waits for this.
const MIN_WRITE_INTERVAL: Duration = Duration::from_millis(500);

/// Writes the newest head from the queue, until the queue is closed.
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
        if let Err(error) = atomic_file::replace(path, FileAccess::Owner, note.as_bytes()) {
            let path = path.display();
            tracing::error!(%path, %error, "cannot write the head next to the store");
        }
        next_write = Instant::now() + MIN_WRITE_INTERVAL;
    }
}

/// Handle of the thread that writes the file.
#[derive(Debug)]
pub(super) struct HeadFileWriter {
    // Absent only while the thread is being stopped.
    notes: Option<mpsc::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl HeadFileWriter {
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

    /// Queues a head that is durable in the store.
    pub(super) fn queue_head(&self, note: &str) {
        if let Some(notes) = &self.notes {
            // The thread ends only with this handle.
            let _ = notes.send(note.to_owned());
        }
    }
}

impl Drop for HeadFileWriter {
    fn drop(&mut self) {
        // Queued heads are written before the lock of the store is released.
        drop(self.notes.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
