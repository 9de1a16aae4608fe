//! Inspection of the write-ahead log that the last process left.
//!
//! SQLite silently rolls back to the last whole commit. That is right for a truncated commit: it was
//! never acknowledged. It is wrong for a damaged commit that other commits follow: those were
//! acknowledged, because a writer waits for the disk before it continues. So this module inspects the
//! file before SQLite opens it. A torn end is reported; damage in the middle is rejected.
//!
//! The format is the one that SQLite documents: a header of 32 bytes, then frames of 24 bytes and a
//! page each, with a checksum over all frames so far.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::super::{StoreError, UNFINISHED_WRITE};
use super::open_error;

pub(super) const HEADER: usize = 32;
pub(super) const FRAME_HEADER: usize = 24;

/// The two magic numbers differ in the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// Page sizes that SQLite supports.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 512..=65536;

/// Inspects the write-ahead log of a store. Returns a description of an unfinished write, if any.
pub(super) fn inspect(store: &Path) -> Result<Option<String>, StoreError> {
    let path = super::with_suffix(store, "-wal");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(open_error(&path, &error)),
    };
    let found = scan_frames(BufReader::new(file)).map_err(|error| open_error(&path, &error))?;
    let lost = found.commits_behind.saturating_sub(1);
    if lost > 0 {
        return Err(StoreError::Damaged {
            what: format!(
                "`{}` is damaged after {} complete commits, and at least {lost} acknowledged commits \
                 would be lost",
                path.display(),
                found.commits
            ),
        });
    }
    let unfinished = found.frames_behind;
    Ok((unfinished > 0).then(|| format!("{UNFINISHED_WRITE} of {unfinished} pages was dropped")))
}

/// Content of a write-ahead log.
#[derive(Debug, Default, PartialEq, Eq)]
struct WalContents {
    /// Number of whole commits.
    commits: u64,
    /// Frames of this log after the last whole commit.
    frames_behind: u64,
    /// Commits among these frames.
    commits_behind: u64,
}

fn scan_frames(mut file: impl Read) -> io::Result<WalContents> {
    let mut walked = WalContents::default();
    let Some(header) = read_whole(&mut file, HEADER)? else {
        return Ok(walked);
    };
    let Some(mut form) = WalFormat::read(&header) else {
        return Ok(walked);
    };
    let page = form.page;
    let mut whole = true;
    while let Some(frame) = read_whole(&mut file, FRAME_HEADER + page)? {
        // Frames of an earlier use of the file follow the end: they have other salts.
        if !belongs_to(&frame, &header) {
            whole = false;
            continue;
        }
        whole &= form.adds_up(&frame);
        walked.frames_behind += 1;
        match (whole, is_commit(&frame)) {
            (true, true) => {
                walked.commits += 1;
                walked.frames_behind = 0;
            }
            (false, true) => walked.commits_behind += 1,
            (_, false) => {}
        }
    }
    Ok(walked)
}

/// Format of a write-ahead log according to its header, with the running checksum.
pub(super) struct WalFormat {
    order: ByteOrder,
    /// Page size in bytes.
    pub(super) page: usize,
    sum: (u32, u32),
}

impl WalFormat {
    /// Parses a header; `None` if it is damaged.
    pub(super) fn read(header: &[u8]) -> Option<Self> {
        let order = match word(header, 0, ByteOrder::Big) {
            magic if magic == MAGIC => ByteOrder::Little,
            magic if magic == MAGIC + 1 => ByteOrder::Big,
            _ => return None,
        };
        let page = word(header, 8, ByteOrder::Big) as usize;
        let mut sum = (0, 0);
        add(&mut sum, header.get(..24).unwrap_or_default(), order);
        let stated = (
            word(header, 24, ByteOrder::Big),
            word(header, 28, ByteOrder::Big),
        );
        (sum == stated && PAGE_SIZES.contains(&page)).then_some(Self { order, page, sum })
    }

    /// Adds a frame to the checksum. Returns true if the result equals the checksum in the frame.
    pub(super) fn adds_up(&mut self, frame: &[u8]) -> bool {
        let (order, sum) = (self.order, &mut self.sum);
        add(sum, frame.get(..8).unwrap_or_default(), order);
        add(sum, frame.get(FRAME_HEADER..).unwrap_or_default(), order);
        *sum == stated_sum(frame)
    }

    /// Continues after the frame with this header.
    pub(super) fn continue_after(&mut self, frame: &[u8]) {
        self.sum = stated_sum(frame);
    }
}

fn stated_sum(frame: &[u8]) -> (u32, u32) {
    (
        word(frame, 16, ByteOrder::Big),
        word(frame, 20, ByteOrder::Big),
    )
}

/// True if a frame belongs to the log with this header: both have the same salts.
pub(super) fn belongs_to(frame: &[u8], header: &[u8]) -> bool {
    frame.get(8..16) == header.get(16..24)
}

/// True if a frame is the last of a commit.
pub(super) fn is_commit(frame: &[u8]) -> bool {
    word(frame, 4, ByteOrder::Big) != 0
}

/// Reads exactly this many bytes; `None` if there are fewer.
fn read_whole(file: &mut impl Read, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; length];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Clone, Copy)]
enum ByteOrder {
    Big,
    Little,
}

fn word(bytes: &[u8], at: usize, order: ByteOrder) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    match order {
        ByteOrder::Big => u32::from_be_bytes(four.unwrap_or_default()),
        ByteOrder::Little => u32::from_le_bytes(four.unwrap_or_default()),
    }
}

/// Adds bytes to a checksum, eight at a time.
fn add(sum: &mut (u32, u32), bytes: &[u8], order: ByteOrder) {
    for eight in bytes.chunks_exact(8) {
        let (first, second) = (word(eight, 0, order), word(eight, 4, order));
        sum.0 = sum.0.wrapping_add(first).wrapping_add(sum.1);
        sum.1 = sum.1.wrapping_add(second).wrapping_add(sum.0);
    }
}
