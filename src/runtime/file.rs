//! Files for others: there as a whole, or not at all, and never in the place of another.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::export::html::Report;
use crate::trace::export::{self, ExportError, Format};
use crate::trace::source::Source;

/// Writes one session as a file that was not there before, and tells how many bytes it has.
///
/// # Errors
/// In words, when it cannot be read or written. Then there is no file.
pub fn export_session<S: Source<Error = String>>(
    source: &S,
    session: &SessionId,
    format: Format,
    path: &Path,
    now: Timestamp,
) -> Result<u64, String> {
    let failed = |error: io::Error| format!("`{}`: {error}", path.display());
    let report = Report {
        made_at: now,
        facts: Vec::new(),
    };
    let mut bytes = 0;
    write_whole(path, failed, |out| {
        let mut out = TextOut::new(out);
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

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// It stays, and nothing is written.
    Stays,
    /// Somebody was asked, and it goes.
    Goes,
}

/// Writes a file that is there as a whole, or not at all. One that exists is left alone.
///
/// # Errors
/// What `write` fails with, and what `failed` makes of an error of the file's own.
pub fn write_whole<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    write_whole_as(path, There::Stays, failed, write)
}

/// The same, where one that exists stays or goes. Whatever fails, it is still there as it was.
///
/// # Errors
/// What `write` fails with, and what `failed` makes of an error of the file's own.
pub fn write_whole_as<E>(
    path: &Path,
    there: There,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    match (path.symlink_metadata(), there) {
        (Ok(_), There::Stays) => return Err(failed(exists())),
        (Ok(known), There::Goes) if !known.is_file() => return Err(failed(no_file())),
        (Ok(_), There::Goes) | (Err(_), _) => {}
    }
    let partial = Partial::beside(path).map_err(&failed)?;
    let file = partial.create().map_err(&failed)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(&failed)?;
    match there {
        There::Stays => partial.finish(path),
        There::Goes => fs::rename(&partial.0, path),
    }
    .map_err(failed)
}

/// A writer of bytes for those who write text; it keeps what went wrong.
pub struct TextOut<'o> {
    out: &'o mut dyn Write,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<'o> TextOut<'o> {
    /// Writes into `out`.
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            bytes: 0,
            failed: None,
        }
    }

    /// Bytes that were written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What went wrong.
    #[must_use]
    pub fn into_error(self) -> io::Error {
        let unknown = || io::Error::other("the output cannot be written");
        self.failed.unwrap_or_else(unknown)
    }
}

impl fmt::Debug for TextOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextOut").finish_non_exhaustive()
    }
}

impl fmt::Write for TextOut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

fn exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already")
}

fn no_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "only a file can be written over",
    )
}

/// A file beside its target that is gone unless it was finished.
struct Partial(PathBuf);

impl Partial {
    fn beside(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it names no file",
            ));
        };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        Ok(Self(path.with_file_name(partial)))
    }

    fn create(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(&self.0)
    }

    /// Gives the file its name, unless another one has it by now.
    fn finish(self, path: &Path) -> io::Result<()> {
        match fs::hard_link(&self.0, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no second names. Then a name taken just now is not seen.
                if path.symlink_metadata().is_ok() {
                    return Err(exists());
                }
                fs::rename(&self.0, path)
            }
            linked => linked,
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Finished, it has its own name; otherwise nobody wants half of it.
        let _ = fs::remove_file(&self.0);
    }
}
