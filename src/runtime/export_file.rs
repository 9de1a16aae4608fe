//! Export files: written completely or not at all, and never over an existing file unless asked.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::export::html::HtmlReport;
use crate::trace::export::{self, ExportError, ExportFormatArg};
use crate::trace::source::EventSource;

/// Writes one session as a new file, and returns its size in bytes.
///
/// # Errors
/// Fails with a message when the session cannot be read or the file cannot be written. No file exists then.
pub fn export_session<S: EventSource<Error = String>>(
    source: &S,
    session: &SessionId,
    format: ExportFormatArg,
    path: &Path,
    now: Timestamp,
) -> Result<u64, String> {
    let failed = |error: io::Error| format!("`{}`: {error}", path.display());
    let report = HtmlReport {
        made_at: now,
        facts: Vec::new(),
        log: Vec::new(),
    };
    let mut bytes = 0;
    write_file(path, failed, |out| {
        let mut out = TextWriter::new(out);
        let sessions = std::slice::from_ref(session);
        let written = export::write(format, source, sessions, &report, &mut out);
        bytes = out.bytes();
        written.map_err(|error| match error {
            ExportError::Read(what) => what,
            ExportError::Write => failed(out.into_error()),
        })
    })?;
    Ok(bytes)
}

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFile {
    /// The existing file stays, and nothing is written.
    Keep,
    /// The existing file is replaced: the user agreed.
    Replace,
}

/// Writes a file completely or not at all. An existing file is not changed.
///
/// # Errors
/// The error of `write`, or the result of `failed` for an error of the file.
pub fn write_file<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    write_or_replace_file(path, ExistingFile::Keep, failed, write)
}

/// Writes a file completely or not at all, and keeps or replaces an existing file. After any failure the
/// existing file is unchanged.
///
/// # Errors
/// The error of `write`, or the result of `failed` for an error of the file.
pub fn write_or_replace_file<E>(
    path: &Path,
    there: ExistingFile,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    match (path.symlink_metadata(), there) {
        (Ok(_), ExistingFile::Keep) => return Err(failed(file_exists_error())),
        (Ok(known), ExistingFile::Replace) if !known.is_file() => return Err(failed(no_file())),
        (Ok(_), ExistingFile::Replace) | (Err(_), _) => {}
    }
    remove_leftovers(path);
    let partial = PartialFile::next_to(path).map_err(&failed)?;
    let file = partial.create().map_err(&failed)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(&failed)?;
    match there {
        ExistingFile::Keep => partial.finish(path),
        ExistingFile::Replace => fs::rename(&partial.0, path),
    }
    .map_err(failed)
}

/// Adapter from text output to a byte writer. It keeps the first error.
pub struct TextWriter<'o> {
    out: &'o mut dyn Write,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<'o> TextWriter<'o> {
    /// Creates an adapter that writes to `out`.
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            bytes: 0,
            failed: None,
        }
    }

    /// Returns the number of written bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the error.
    #[must_use]
    pub fn into_error(self) -> io::Error {
        let unknown = || io::Error::other("the output cannot be written");
        self.failed.unwrap_or_else(unknown)
    }
}

impl fmt::Debug for TextWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextWriter").finish_non_exhaustive()
    }
}

impl fmt::Write for TextWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

fn file_exists_error() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file already exists")
}

fn no_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "only a regular file can be overwritten",
    )
}

/// A temporary file next to its target. It is removed unless it is finished.
struct PartialFile(PathBuf);

impl PartialFile {
    fn next_to(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path has no file name",
            ));
        };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        Ok(Self(path.with_file_name(partial)))
    }

    fn create(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // The content of agents and operators is for the owner only.
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&self.0)?;
        // The lock shows that the file is being written. Where files cannot be locked, the process id shows
        // it.
        let _ = file.try_lock();
        Ok(file)
    }

    /// Renames the file to its target, unless another file has that name by now.
    fn finish(self, path: &Path) -> io::Result<()> {
        match fs::hard_link(&self.0, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no hard links. There, a file that was created just now is not
                // noticed.
                if path.symlink_metadata().is_ok() {
                    return Err(file_exists_error());
                }
                fs::rename(&self.0, path)
            }
            linked => linked,
        }
    }
}

/// Removes temporary files that killed exports to this file left behind.
fn remove_leftovers(path: &Path) {
    let folder = path.parent().filter(|above| !above.as_os_str().is_empty());
    let (Some(name), Ok(entries)) = (
        path.file_name().and_then(|name| name.to_str()),
        fs::read_dir(folder.unwrap_or(Path::new("."))),
    ) else {
        return;
    };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_str().and_then(|found| found.strip_prefix('.'));
        let process = found
            .and_then(|found| found.strip_prefix(name)?.strip_prefix('.'))
            .and_then(|found| found.strip_suffix(".partial")?.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let is_at_work = Path::new("/proc").join(process.to_string()).exists();
        let is_free = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_free && !is_at_work {
            // Best effort: a leftover does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // A finished file has its own name by now; a partial one is useless.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_exports_to_one_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let at = |name: &str| folder.path().join(name);
        // No process has that number: it is larger than any system's limit.
        let left = at(".record.jsonl.4194999.partial");
        let (other, written) = (
            at(".other.jsonl.4194999.partial"),
            at(".record.jsonl.4194998.partial"),
        );
        let ours = at(&format!(".record.jsonl.{}.partial", std::process::id()));
        for file in [&left, &other, &written] {
            fs::write(file, "half").unwrap();
        }
        let lock = File::open(&written).unwrap();
        lock.try_lock().unwrap();
        write_file(
            &path,
            |error| error,
            |out| {
                assert!(ours.exists());
                // While it is written, another export to this file does not remove it.
                remove_leftovers(&path);
                assert!(ours.exists());
                out.write_all(b"whole")
            },
        )
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert!(!left.exists() && !ours.exists());
        assert!(
            other.exists() && written.exists(),
            "it is not ours to remove"
        );
    }
}
