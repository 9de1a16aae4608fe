//! Free disk space and disk-full errors.

use std::io;
use std::path::Path;

/// Space that a start needs: the write-ahead log, its index, and the first records.
pub(super) const ROOM_BYTES: u64 = 1 << 20;

/// With less than this SQLite cannot create its index, and reports an input/output error.
const SCARCE_BYTES: u64 = 64 << 10;

/// Free bytes for this user on the file system of a path, which need not exist.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let mut there = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let there = there.find(|path| path.exists()).unwrap_or(Path::new("."));
    let found = rustix::fs::statvfs(there).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Message about a full disk: the free space at `path` and the needed space.
#[must_use]
pub fn full_disk(path: &Path, needed_bytes: u64) -> String {
    let shown = path.display();
    let needed = size_text(needed_bytes);
    match free_bytes(path) {
        Some(free) => format!(
            "the disk of `{shown}` is full: {} free, at least {needed} needed",
            size_text(free)
        ),
        None => format!("the disk of `{shown}` is full: at least {needed} needed"),
    }
}

/// Total size of the files that exist.
pub(super) fn used_bytes(files: &[&Path]) -> u64 {
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|found| found.len()).sum()
}

/// Reason why space for more records is missing, if any: the quota is used up, or the disk is full.
pub(super) fn shortage(path: &Path, used_bytes: u64, quota_bytes: Option<u64>) -> Option<String> {
    if let Some(quota) = quota_bytes.filter(|quota| used_bytes >= *quota) {
        return Some(format!(
            "the record uses {}, and its quota is {}: prune the record, or raise `--quota`",
            size_text(used_bytes),
            size_text(quota)
        ));
    }
    let free = free_bytes(path)?;
    (free < ROOM_BYTES).then(|| full_disk(path, ROOM_BYTES))
}

/// Parses a size such as `500MiB`, `20GiB` or a number of bytes.
///
/// # Errors
/// When the text is not a size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(wrong_size(text)),
    };
    let count: u64 = digits.trim().parse().map_err(|_| wrong_size(text))?;
    let bytes = count.checked_mul(1 << shift);
    bytes
        .filter(|bytes| *bytes >= ROOM_BYTES)
        .ok_or_else(|| wrong_size(text))
}

fn wrong_size(text: &str) -> String {
    format!("`{text}` is not a size of at least 1 MiB: write `500MiB` or `20GiB`")
}

/// True if so little space is free that a failed write was probably caused by it.
pub(super) fn is_scarce(path: &Path) -> bool {
    free_bytes(path).is_some_and(|free| free < SCARCE_BYTES)
}

/// True if an error means that the disk is full.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Formats a number of bytes for display.
fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if bytes >> shift > 0 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_used_up_when_the_files_reach_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |used| shortage(folder.path(), used, Some(2 << 20));
        assert_eq!(at((2 << 20) - 1), None);
        let text = at(2 << 20).unwrap();
        assert!(text.contains("quota is 2 MiB"), "{text}");
        assert_eq!(shortage(folder.path(), u64::MAX, None), None);
    }

    #[test]
    fn sizes_are_parsed_with_their_units() {
        assert_eq!(parse_size("1048576"), Ok(1 << 20));
        assert_eq!(parse_size("500MiB"), Ok(500 << 20));
        assert_eq!(parse_size("20 GiB"), Ok(20 << 30));
        assert_eq!(parse_size("3g"), Ok(3 << 30));
        for wrong in ["", "GiB", "1048575", "-1GiB", "5 parsecs", "99999999999TiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_full_disk_message_names_free_and_needed_space() {
        let folder = tempfile::tempdir().unwrap();
        let text = full_disk(&folder.path().join("not/there/yet"), 3 << 20);
        assert!(
            text.contains("is full: ") && text.contains(" free, at least 3 MiB needed"),
            "{text}"
        );
        assert_eq!(size_text(1023), "1023 bytes");
        assert_eq!(size_text(1024), "1 KiB");
        assert_eq!(size_text(5 << 30), "5 GiB");
        assert!(is_full(&io::Error::from_raw_os_error(28)));
        assert!(!is_full(&io::Error::from_raw_os_error(13)));
    }
}
