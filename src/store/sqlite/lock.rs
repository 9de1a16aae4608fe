//! Lock of a store, and the outage note in its file.
//!
//! The file holds the id of the process that uses the store. When that process can no longer record, it
//! adds the time and the reason: the file exists already, so this also works on a full disk. The next
//! process that opens the store records the outage.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::super::StoreError;
use super::{io_error, lock_path};
use crate::base::clock::{Clock, SystemClock};
use crate::base::text::one_line;

/// Most bytes of the file that are read.
const NOTE_BYTES: u64 = 4096;

/// Right of one process to write to a store. The system releases it when the process ends, also after a
/// crash.
#[derive(Debug)]
pub(super) struct StoreLock {
    file: File,
    /// An outage that is not recorded yet.
    outage: Option<String>,
}

impl StoreLock {
    /// Acquires the store for this process.
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
        // Best effort: without the text the holder is not named, and an outage is not recorded.
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

    /// Shares the lock with the writer thread.
    pub(super) fn share(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            outage: self.outage.clone(),
        })
    }

    /// Description of the outage that is not recorded yet.
    pub(super) fn outage(&self) -> Option<String> {
        let outage = self.outage.as_ref()?;
        let (since, what) = outage.split_once(' ').unwrap_or((outage, ""));
        let now = SystemClock.now();
        Some(format!(
            "cra could not record from {since} until {now}: {what}"
        ))
    }

    /// Notes that recording is impossible from now on.
    pub(super) fn note_outage(&mut self, what: &str) {
        if self.outage.is_none() {
            let now = SystemClock.now();
            self.outage = Some(format!("{now} {}", one_line(what)));
            // Best effort: the file may be gone with the rest.
            let _ = self.write();
        }
    }

    /// Clears an outage that is now recorded.
    pub(super) fn clear_outage(&mut self) {
        if self.outage.take().is_some() {
            // Best effort: otherwise the outage is recorded twice.
            let _ = self.write();
        }
    }

    /// Overwrites the file before truncating it: that needs no free disk space.
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
