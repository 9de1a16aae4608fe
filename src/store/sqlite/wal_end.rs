//! End of the write-ahead log, read from the file itself.
//!
//! SQLite relies on its own memory for what it wrote, so it does not notice a truncated or overwritten
//! file. After each commit this module reads the header of the log and the new frames from the file,
//! with their checksums: some pages that were just written. If another program touched the file, the
//! whole file is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::wal::{self, FRAME_HEADER, HEADER, WalFormat};

/// End of the last whole commit of a write-ahead log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WalEnd {
    header: [u8; HEADER],
    frames: u64,
    /// Header of the last frame. Its checksum covers everything before it.
    last: [u8; FRAME_HEADER],
}

/// Reason why a write-ahead log has no end that follows the previous one.
#[derive(Debug)]
pub(super) enum WalFault {
    /// The file is empty: it was truncated, or a checkpoint emptied it.
    Empty,
    /// The file does not contain what was written.
    Damaged,
    /// The file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for WalFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl WalEnd {
    /// Finds the end. Only the part after `before` is read, unless the log started anew.
    pub(super) fn find(file: &File, before: Option<&Self>) -> Result<Self, WalFault> {
        let Some(header) = read_at::<HEADER>(file, 0)? else {
            return Err(match file.metadata()?.len() {
                0 => WalFault::Empty,
                _ => WalFault::Damaged,
            });
        };
        let mut form = WalFormat::read(&header).ok_or(WalFault::Damaged)?;
        let mut frame = vec![0; FRAME_HEADER + form.page];
        let before = before.filter(|before| before.header == header);
        if let Some(before) = before {
            if !before.is_in(file, frame.len())? {
                return Err(WalFault::Damaged);
            }
            form.continue_after(&before.last);
        }
        let mut end = before.cloned();
        let mut frames = before.map_or(0, |before| before.frames);
        loop {
            let place = frame_offset(frames, frame.len());
            match file.read_exact_at(&mut frame, place) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error.into()),
            }
            // Frames of an earlier use of the file, or of an unfinished write, follow the end.
            if !wal::belongs_to(&frame, &header) || !form.adds_up(&frame) {
                break;
            }
            frames += 1;
            if let (true, Some(last)) = (wal::is_commit(&frame), frame.first_chunk()) {
                let last = *last;
                end = Some(Self {
                    header,
                    frames,
                    last,
                });
            }
        }
        end.ok_or(WalFault::Damaged)
    }

    /// Reads the whole file. It must contain everything up to `before`, unless the log started anew.
    pub(super) fn find_in_whole_file(file: &File, before: Option<&Self>) -> Result<Self, WalFault> {
        let end = Self::find(file, None)?;
        match before.filter(|before| before.header == end.header) {
            Some(before) if end.frames < before.frames => Err(WalFault::Damaged),
            Some(before) => Self::find(file, Some(before)),
            None => Ok(end),
        }
    }

    /// True if the last frame of this end is still in place.
    fn is_in(&self, file: &File, frame_bytes: usize) -> io::Result<bool> {
        let place = frame_offset(self.frames.saturating_sub(1), frame_bytes);
        Ok(read_at(file, place)? == Some(self.last))
    }
}

/// Offset of a frame in the file.
fn frame_offset(frame: u64, frame_bytes: usize) -> u64 {
    HEADER as u64 + frame * frame_bytes as u64
}

/// Bytes at an offset of a file; `None` if the file ends before.
fn read_at<const N: usize>(file: &File, place: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match file.read_exact_at(&mut bytes, place) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
