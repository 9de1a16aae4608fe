//! The files of an open store: the paths must lead to the files that SQLite has open.
//!
//! SQLite writes to files it opened once. When such a file is deleted or replaced, every write still
//! succeeds, and none of it is in the folder any more. So the paths are looked at around each commit,
//! before anything is acknowledged: a few system calls, no reading.
//!
//! The write-ahead log is made when the store is opened and stays the same file until it is closed:
//! checkpoints cut it, they do not make another.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::reader::Reader;
use super::{open_error, with_suffix};
use crate::base::id::SessionId;

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file that a path leads to now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::from(&found))
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// Size and time of the last change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        Self {
            size_bytes: found.len(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        }
    }
}

/// The files of a store that is open for writing.
#[derive(Debug)]
pub(super) struct StoreFiles {
    database: PathBuf,
    wal: PathBuf,
    database_id: FileId,
    wal_id: FileId,
    /// The database file as the last commit left it.
    stamp: Stamp,
    log: SessionId,
}

impl StoreFiles {
    /// Begins to watch the files of a store that was just opened. `opened` is the database file as it
    /// was found right before.
    pub(super) fn watch(
        database: &Path,
        opened: FileId,
        log: SessionId,
    ) -> Result<Self, StoreError> {
        let wal = with_suffix(database, "-wal");
        let found = fs::metadata(database).map_err(|error| open_error(database, &error))?;
        let wal_id = FileId::of(&wal).map_err(|error| open_error(&wal, &error))?;
        if FileId::from(&found) != opened {
            return Err(open_error(database, &"it was replaced while it was opened"));
        }
        Ok(Self {
            database: database.to_owned(),
            wal,
            database_id: opened,
            wal_id,
            stamp: Stamp::from(&found),
            log,
        })
    }

    /// Checks, before a commit, that no other program wrote over the database since the last one.
    ///
    /// A program that only moves pages from the write-ahead log into the database (a checkpoint) does
    /// no harm, so a change alone is not a fault: the store must still be this one.
    pub(super) fn check_content(&mut self) -> Result<(), String> {
        let stamp = Stamp::from(&check_id(&self.database, self.database_id)?);
        if stamp == self.stamp {
            return Ok(());
        }
        let found = Reader::open(&self.database).and_then(|reader| reader.log());
        match found {
            Ok(found) if found.log == self.log => {
                self.stamp = stamp;
                Ok(())
            }
            Ok(_) | Err(_) => Err(format!(
                "`{}` was overwritten by another program while cra was running",
                self.database.display()
            )),
        }
    }

    /// Checks, after a commit, that what was written is in the files that the paths lead to.
    pub(super) fn check_written(&mut self) -> Result<(), String> {
        let found = check_id(&self.database, self.database_id)?;
        check_id(&self.wal, self.wal_id)?;
        self.stamp = Stamp::from(&found);
        Ok(())
    }
}

/// Checks that a path still leads to a file.
fn check_id(path: &Path, id: FileId) -> Result<Metadata, String> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if FileId::from(&found) == id => Ok(found),
        Ok(_) => Err(format!(
            "`{shown}` is another file now: it was replaced while cra was running"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "`{shown}` is gone: it was deleted or moved while cra was running"
        )),
        Err(error) => Err(format!("`{shown}` cannot be looked at: {error}")),
    }
}
