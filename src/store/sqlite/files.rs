//! Checks that the paths of an open store lead to the files that SQLite has open, with the data it
//! wrote.
//!
//! SQLite writes to files that it opened once, and reads much of its data from its own memory. When
//! such a file is deleted, replaced, truncated or overwritten, every write still succeeds, and
//! acknowledged data is lost. So the files are checked around each commit, before anything is
//! acknowledged: identity, length and modification time of both, and the frames of the write-ahead log
//! that the commit wrote.
//!
//! The write-ahead log is created when the store is opened and stays the same file until it is closed:
//! checkpoints truncate it, they do not create another. SQLite holds no lock on it, so this module can
//! open it too. The database cannot be opened twice: closing a second handle would drop the locks that
//! SQLite holds on it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::super::{CommitError, FileChange, StoreError, StoreReader as _};
use super::reader::SqliteReader;
use super::wal_end::{WalEnd, WalFault};
use super::{open_error, with_suffix};
use crate::base::id::SessionId;

/// Number of retries for a write-ahead log that seems damaged, and the pause between two.
const MAX_RETRIES: usize = 10;
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Identity of the file that a path leads to now.
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

/// Size and content modification time of a file. The inode change time is useless: SQLite changes it
/// each time it opens a write-ahead log as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreFileStamp {
    size_bytes: u64,
    modified: (i64, i64),
}

impl From<&Metadata> for StoreFileStamp {
    fn from(found: &Metadata) -> Self {
        Self {
            size_bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// Files of a store that is open for writing.
#[derive(Debug)]
pub(super) struct StoreFiles {
    database: PathBuf,
    wal: PathBuf,
    wal_file: File,
    database_id: FileId,
    wal_id: FileId,
    /// Database file after the last commit.
    stamp: StoreFileStamp,
    /// Write-ahead log after the last commit.
    wal_stamp: StoreFileStamp,
    /// `None` while the log contains no commit.
    wal_end: Option<WalEnd>,
    log: SessionId,
    /// Number of changes by other programs.
    foreign_changes: Arc<AtomicU64>,
}

/// State of the write-ahead log before a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalState {
    /// The log contains everything that was written to it.
    Whole,
    /// The log is empty: another program's checkpoint emptied it, or it was truncated. SQLite's next write
    /// shows which.
    Emptied,
}

/// Effect of a commit on the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitEffect {
    /// Nothing was written, or only data already present, which SQLite does not write again.
    NothingNew,
    /// Pages were written to the write-ahead log.
    Pages,
    /// The database was rewritten, and the write-ahead log emptied.
    Rewritten,
}

impl StoreFiles {
    /// Starts to watch the files of a store that was just opened. `opened` is the database file as found
    /// right before.
    pub(super) fn watch(
        database: &Path,
        opened: FileId,
        log: SessionId,
        foreign_changes: Arc<AtomicU64>,
    ) -> Result<Self, StoreError> {
        let wal = with_suffix(database, "-wal");
        let found = fs::metadata(database).map_err(|error| open_error(database, &error))?;
        let wal_file = File::open(&wal).map_err(|error| open_error(&wal, &error))?;
        let wal_found = wal_file.metadata();
        let wal_found = wal_found.map_err(|error| open_error(&wal, &error))?;
        if FileId::from(&found) != opened {
            return Err(open_error(
                database,
                &"the file was replaced while cra opened it",
            ));
        }
        // SQLite appends after the valid part of the log.
        let wal_end = match WalEnd::find(&wal_file, None) {
            Ok(end) => Some(end),
            Err(WalFault::Empty | WalFault::Damaged) => None,
            Err(WalFault::Io(error)) => return Err(open_error(&wal, &error)),
        };
        Ok(Self {
            database: database.to_owned(),
            wal,
            wal_file,
            database_id: opened,
            wal_id: FileId::from(&wal_found),
            stamp: StoreFileStamp::from(&found),
            wal_stamp: StoreFileStamp::from(&wal_found),
            wal_end,
            log,
            foreign_changes,
        })
    }

    /// Checks, before a commit, that both files are as the last commit left them.
    pub(super) fn check_before(&mut self) -> Result<WalState, CommitError> {
        let found = check_id(&self.database, self.database_id)?;
        let stamp = StoreFileStamp::from(&found);
        if stamp != self.stamp {
            self.foreign_changes.fetch_add(1, Ordering::Relaxed);
            self.check_changed_database(stamp)?;
            self.stamp = stamp;
        }
        let wal_stamp = StoreFileStamp::from(&check_id(&self.wal, self.wal_id)?);
        if wal_stamp == self.wal_stamp {
            return Ok(WalState::Whole);
        }
        self.foreign_changes.fetch_add(1, Ordering::Relaxed);
        match self.find_in_whole_log() {
            Ok(end) => self.wal_end = Some(end),
            Err(WalFault::Empty) if self.wal_end.is_none() => {}
            Err(WalFault::Empty) => return Ok(WalState::Emptied),
            Err(fault) => return Err(self.wal_fault(fault)),
        }
        self.wal_stamp = wal_stamp;
        Ok(WalState::Whole)
    }

    /// Checks a database file that another program changed.
    ///
    /// A program that only moves pages from the write-ahead log into the database (a checkpoint) does no
    /// harm, so a change alone is not a fault: the store must still be this one, and intact.
    fn check_changed_database(&self, stamp: StoreFileStamp) -> Result<(), CommitError> {
        if stamp.size_bytes < self.stamp.size_bytes {
            return Err(changed(&self.database, FileChange::Truncated));
        }
        let found = SqliteReader::open(&self.database).and_then(|reader| {
            let log = reader.log()?;
            Ok((log.log, reader.structure_fault()?))
        });
        match found {
            Ok((log, None)) if log == self.log => Ok(()),
            Ok((_, Some(fault))) => Err(changed(&self.database, FileChange::Damaged(fault))),
            Ok(_) | Err(_) => Err(changed(&self.database, FileChange::Overwritten)),
        }
    }

    /// Checks, after a commit, that the written data is in the files at the paths. Returns their size in
    /// bytes.
    pub(super) fn check_written(&mut self, wrote: CommitEffect) -> Result<u64, CommitFault> {
        let found = check_id(&self.database, self.database_id)?;
        let wal_found = check_id(&self.wal, self.wal_id)?;
        if wrote != CommitEffect::Rewritten && found.len() < self.stamp.size_bytes {
            return Err(changed(&self.database, FileChange::Truncated).into());
        }
        match wrote {
            CommitEffect::NothingNew if StoreFileStamp::from(&wal_found) == self.wal_stamp => {}
            // SQLite wrote nothing, so another program changed the file.
            CommitEffect::NothingNew => {
                let found = match WalEnd::find(&self.wal_file, self.wal_end.as_ref()) {
                    Ok(end) if Some(&end) == self.wal_end.as_ref() => self.find_in_whole_log(),
                    found => found,
                };
                self.wal_end = Some(self.describe_fault(found)?);
            }
            CommitEffect::Pages => self.wal_end = Some(self.find_end()?),
            CommitEffect::Rewritten => self.wal_end = WalEnd::find(&self.wal_file, None).ok(),
        }
        self.stamp = StoreFileStamp::from(&found);
        self.wal_stamp = StoreFileStamp::from(&wal_found);
        Ok(found.len().saturating_add(wal_found.len()))
    }

    /// Finds the end of a write-ahead log that another program changed. That program may be in the middle
    /// of its own commit, so apparent damage is checked again.
    fn find_in_whole_log(&self) -> Result<WalEnd, WalFault> {
        let mut found = WalEnd::find_in_whole_file(&self.wal_file, self.wal_end.as_ref());
        for _ in 0..MAX_RETRIES {
            if !matches!(found, Err(WalFault::Damaged)) {
                break;
            }
            thread::sleep(RETRY_PAUSE);
            found = WalEnd::find_in_whole_file(&self.wal_file, self.wal_end.as_ref());
        }
        found
    }

    /// Finds the end of the write-ahead log after a commit that moved it.
    fn find_end(&self) -> Result<WalEnd, CommitFault> {
        match WalEnd::find(&self.wal_file, self.wal_end.as_ref()) {
            Ok(end) if Some(&end) != self.wal_end.as_ref() => Ok(end),
            Ok(_) => self.describe_fault(Err(WalFault::Damaged)),
            Err(fault) => self.describe_fault(Err(fault)),
        }
    }

    /// Converts a fault of the write-ahead log to a message.
    fn describe_fault(&self, found: Result<WalEnd, WalFault>) -> Result<WalEnd, CommitFault> {
        match found {
            Ok(end) => Ok(end),
            Err(WalFault::Empty) => Err(CommitFault::Emptied),
            Err(fault) => Err(self.wal_fault(fault).into()),
        }
    }

    /// Treats the next commit as the first of an emptied write-ahead log.
    pub(super) fn reset_wal_end(&mut self) {
        self.wal_end = None;
    }

    /// Error of a write-ahead log that differs from what was written.
    pub(super) fn wal_fault(&self, fault: WalFault) -> CommitError {
        match fault {
            WalFault::Empty | WalFault::Damaged => {
                changed(&self.wal, FileChange::TruncatedOrOverwritten)
            }
            WalFault::Io(error) => unreadable(&self.wal, error),
        }
    }
}

/// Reason why a commit is not in the files.
#[derive(Debug)]
pub(super) enum CommitFault {
    /// The write-ahead log is empty: see [`WalState::Emptied`].
    Emptied,
    /// Any other reason.
    Other(CommitError),
}

impl From<CommitError> for CommitFault {
    fn from(error: CommitError) -> Self {
        Self::Other(error)
    }
}

fn changed(path: &Path, change: FileChange) -> CommitError {
    CommitError::FileChanged {
        path: path.to_owned(),
        change,
    }
}

fn unreadable(path: &Path, error: io::Error) -> CommitError {
    CommitError::Io {
        path: path.to_owned(),
        source: Arc::new(error),
    }
}

/// Checks that a path still leads to a file.
fn check_id(path: &Path, id: FileId) -> Result<Metadata, CommitError> {
    match fs::metadata(path) {
        Ok(found) if FileId::from(&found) == id => Ok(found),
        Ok(_) => Err(changed(path, FileChange::Replaced)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(changed(path, FileChange::Removed))
        }
        Err(error) => Err(unreadable(path, error)),
    }
}
