//! Files that are written completely or not at all.
//!
//! A file is written under another name in the same folder, made durable, and then given its name. Readers find the old
//! content or the new one, never a part, also after a crash. Every file of this program that replaces another one, or that
//! must be whole, is written here.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFile {
    /// The existing file stays, and nothing is written.
    Keep,
    /// The existing file is replaced.
    Replace,
}

/// Users that may read a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Its owner only.
    Owner,
    /// The users that the process's umask allows.
    Default,
    /// The users that these permissions name.
    Exactly(Permissions),
}

/// Replaces the content of a file, or creates the file.
///
/// # Errors
/// Fails when the file cannot be written. An existing file is unchanged then.
pub fn replace(path: &Path, access: FileAccess, content: &[u8]) -> io::Result<()> {
    let partial = PartialFile::create(path, access)?;
    partial.write(content)?;
    partial.rename(path)
}

/// Creates a file. An existing file is never replaced.
///
/// # Errors
/// Fails with [`io::ErrorKind::AlreadyExists`] when the file exists, and when it cannot be written.
pub fn create(path: &Path, access: FileAccess, content: &[u8]) -> io::Result<()> {
    let partial = PartialFile::create(path, access)?;
    partial.write(content)?;
    partial.link(path)
}

/// Writes a file that only its owner may read, in pieces. Temporary files that killed processes left are removed.
///
/// # Errors
/// The error of `write`, or the result of `failed` for an error of the file. An existing file is unchanged then.
pub fn write_with<E>(
    path: &Path,
    existing: ExistingFile,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    match (path.symlink_metadata(), existing) {
        (Ok(_), ExistingFile::Keep) => return Err(failed(file_exists_error())),
        (Ok(known), ExistingFile::Replace) if !known.is_file() => {
            return Err(failed(not_a_file_error()));
        }
        (Ok(_), ExistingFile::Replace) | (Err(_), _) => {}
    }
    remove_leftovers(path);
    let partial = PartialFile::create(path, FileAccess::Owner).map_err(&failed)?;
    let mut out = BufWriter::new(&partial.file);
    write(&mut out)?;
    out.flush().map_err(&failed)?;
    drop(out);
    partial.file.sync_all().map_err(&failed)?;
    match existing {
        ExistingFile::Keep => partial.link(path),
        ExistingFile::Replace => partial.rename(path),
    }
    .map_err(failed)
}

fn file_exists_error() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file already exists")
}

fn not_a_file_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "only a regular file can be overwritten",
    )
}

/// A temporary file next to its target. It is removed unless it gets the target's name.
struct PartialFile {
    path: PathBuf,
    file: File,
}

impl PartialFile {
    fn create(target: &Path, access: FileAccess) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if access != FileAccess::Default {
            options.mode(0o600);
        }
        let (path, file) = loop {
            let path = partial_path(target)?;
            match options.open(&path) {
                // An earlier process had the number of this one, and left a file.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => break (path, opened?),
            }
        };
        // The lock shows that the file is being written. Where files cannot be locked, the process number shows it.
        let _ = file.try_lock();
        let partial = Self { path, file };
        if let FileAccess::Exactly(mode) = access {
            partial.file.set_permissions(mode)?;
        }
        Ok(partial)
    }

    fn write(&self, content: &[u8]) -> io::Result<()> {
        (&self.file).write_all(content)?;
        self.file.sync_all()
    }

    /// Gives the file the name of its target. An existing file is replaced.
    fn rename(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        sync_folder(target)
    }

    /// Gives the file the name of its target, unless another file has that name by now.
    fn link(self, target: &Path) -> io::Result<()> {
        match fs::hard_link(&self.path, target) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no hard links. There, a file that was created just now is not
                // noticed.
                if target.symlink_metadata().is_ok() {
                    return Err(file_exists_error());
                }
                fs::rename(&self.path, target)?;
            }
            linked => linked?,
        }
        sync_folder(target)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // A finished file has its own name by now; a partial one is useless.
        let _ = fs::remove_file(&self.path);
    }
}

/// Number of temporary files that this process has named. Threads that write one target at a time use different files.
static PARTIAL_FILES: AtomicU64 = AtomicU64::new(0);

/// Path of a new temporary file of this process for a target.
fn partial_path(target: &Path) -> io::Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path has no file name",
        ));
    };
    let mut partial = OsString::from(".");
    partial.push(name);
    let number = PARTIAL_FILES.fetch_add(1, Ordering::Relaxed);
    partial.push(format!(".{}-{number}.partial", std::process::id()));
    Ok(target.with_file_name(partial))
}

/// True if no process writes this temporary file.
fn is_abandoned(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Makes the name of a file durable, where the file system can do that.
fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path))?.sync_all() {
        // Some network and FAT file systems do not sync folders.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|above| !above.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Removes temporary files of this target that killed processes left.
fn remove_leftovers(path: &Path) {
    let (Some(name), Ok(entries)) = (
        path.file_name().and_then(|name| name.to_str()),
        fs::read_dir(folder_of(path)),
    ) else {
        return;
    };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_str().and_then(|found| found.strip_prefix('.'));
        let process = found
            .and_then(|found| found.strip_prefix(name)?.strip_prefix('.'))
            .and_then(|found| found.strip_suffix(".partial")?.split_once('-'))
            .and_then(|(process, _)| process.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let is_other = process != std::process::id();
        let is_running = is_other && Path::new("/proc").join(process.to_string()).exists();
        if !is_running && is_abandoned(&entry.path()) {
            // Best effort: a leftover does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_replaced_file_has_the_new_content_and_access() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        replace(&path, FileAccess::Owner, b"one").unwrap();
        assert_eq!(mode(&path), 0o600);
        let shared = Permissions::from_mode(0o640);
        replace(&path, FileAccess::Exactly(shared), b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o640);
        assert_eq!(names(folder.path()), ["head"]);
    }

    #[test]
    fn an_existing_file_is_never_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, FileAccess::Owner, b"first").unwrap();
        let error = create(&path, FileAccess::Owner, b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(
            (mode(&path), names(folder.path())),
            (0o600, vec!["key".to_owned()])
        );
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_partial_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        fs::write(&path, "old").unwrap();
        let failed = write_with(
            &path,
            ExistingFile::Replace,
            |error| error,
            |out| {
                out.write_all(b"half")?;
                Err(io::Error::other("the source failed"))
            },
        );
        assert_eq!(failed.unwrap_err().to_string(), "the source failed");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["record"]);
    }

    #[test]
    fn of_many_threads_that_create_one_file_exactly_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let threads: Vec<_> = (0..16)
            .map(|number: u8| {
                let path = path.clone();
                std::thread::spawn(move || create(&path, FileAccess::Owner, &[number; 64]))
            })
            .collect();
        let results: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert!(path.exists());
        }
        let content = fs::read(&path).unwrap();
        assert!(content.len() == 64 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(names(folder.path()), ["secret"]);
    }

    #[test]
    fn leftovers_of_killed_exports_to_one_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let at = |name: &str| folder.path().join(name);
        // No process has that number: it is larger than any system's limit.
        let left = at(".record.jsonl.4194999-0.partial");
        let (other, written) = (
            at(".other.jsonl.4194999-0.partial"),
            at(".record.jsonl.4194998-7.partial"),
        );
        let own = format!(".record.jsonl.{}-", std::process::id());
        let writes = || {
            names(folder.path())
                .iter()
                .any(|name| name.starts_with(&own))
        };
        for file in [&left, &other, &written] {
            fs::write(file, "half").unwrap();
        }
        let lock = File::open(&written).unwrap();
        lock.try_lock().unwrap();
        write_with(
            &path,
            ExistingFile::Keep,
            |error: io::Error| error,
            |out| {
                assert!(writes());
                // While it is written, another export to this file does not remove it.
                remove_leftovers(&path);
                assert!(writes());
                out.write_all(b"whole")
            },
        )
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert!(!left.exists() && !writes());
        assert!(
            other.exists() && written.exists(),
            "it is not ours to remove"
        );
    }
}
