//! The lock of a store, and the note of an outage that is kept in its file.
//!
//! The file has the number of the process that holds the store. When that process can record nothing
//! any more, it adds since when and why: the file is there already, so this works on a full disk too.
//! The next process that opens the store puts it on record.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::super::StoreError;
use super::{io_error, lock_path};
use crate::base::clock::{Clock, SystemClock};
use crate::base::text::one_line;

/// Bytes of the file that are looked at.
const NOTE_BYTES: u64 = 4096;

/// The right of one process to write to a store. It goes with the process, however that ends.
#[derive(Debug)]
pub(super) struct StoreLock {
    file: File,
    /// An outage that is not on record yet.
    outage: Option<String>,
}

impl StoreLock {
    /// Takes the store for this process.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = lock_path(path);
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options
            .open(&lock_path)
            .map_err(|error| io_error(&lock_path, &error))?;
        let locked = file.try_lock();
        let mut text = String::new();
        // Best effort: without it the holder is not named, and an outage not put on record.
        let _ = file.by_ref().take(NOTE_BYTES).read_to_string(&mut text);
        let (holder, outage) = text.split_once('\n').unwrap_or((&text, ""));
        if let Err(failed) = locked {
            if let TryLockError::Error(error) = failed {
                return Err(io_error(&lock_path, &error));
            }
            let holder = match holder.trim().parse::<u32>() {
                Ok(pid) => format!(" (process {pid})"),
                Err(_) => String::new(),
            };
            return Err(StoreError::InUse {
                path: path.display().to_string(),
                holder,
            });
        }
        let outage = outage.trim();
        let lock = Self {
            outage: (!outage.is_empty()).then(|| outage.to_owned()),
            file,
        };
        lock.write().map_err(|error| io_error(&lock_path, &error))?;
        Ok(lock)
    }

    /// Shares the lock with the thread that writes.
    pub(super) fn share(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            outage: self.outage.clone(),
        })
    }

    /// The outage that is not on record yet, for people.
    pub(super) fn outage(&self) -> Option<String> {
        let outage = self.outage.as_ref()?;
        let (since, what) = outage.split_once(' ').unwrap_or((outage, ""));
        let now = SystemClock.now();
        Some(format!(
            "nothing could be recorded from {since} until {now}: {what}"
        ))
    }

    /// Notes that nothing can be recorded from now on.
    pub(super) fn note_outage(&mut self, what: &str) {
        if self.outage.is_none() {
            let now = SystemClock.now();
            self.outage = Some(format!("{now} {}", one_line(what)));
            // Best effort: the file may be gone with the rest.
            let _ = self.write();
        }
    }

    /// Forgets an outage that is on record by now.
    pub(super) fn clear_outage(&mut self) {
        if self.outage.take().is_some() {
            // Best effort: otherwise it is put on record twice.
            let _ = self.write();
        }
    }

    /// Writes over what is there before the rest is cut: that needs no room on the disk.
    fn write(&self) -> io::Result<()> {
        let outage = self.outage.as_deref().unwrap_or_default();
        let text = match outage {
            "" => std::process::id().to_string(),
            outage => format!("{}\n{outage}", std::process::id()),
        };
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)?;
        (&self.file).rewind()
    }
}
