//! Layout of records in rows.
//!
//! A session usually gets several events at a time, and they are written in one commit. So a row holds
//! a run of them: consecutive records of one session, one per line, and their hashes concatenated in a
//! separate column. Reading the whole record takes far fewer steps, and the index has far fewer
//! entries.

use crate::base::digest::Digest;
use crate::trace::record::Record;

/// Most text in a row. Longer text goes into the next row, or fills a row alone: a few rows should fit
/// into a page.
const ROW_BYTES: usize = 8000;

/// Size of a hash in bytes.
const HASH: usize = 32;

/// Splits records into runs that share a row.
pub(super) fn runs(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    let mut bytes = 0;
    records.chunk_by(move |one, next| {
        bytes += one.text.len() + 1;
        let fits = bytes + next.text.len() <= ROW_BYTES;
        let follows = one.session == next.session && one.sequence + 1 == next.sequence;
        if !(fits && follows) {
            bytes = 0;
        }
        fits && follows
    })
}

/// Packs a run for a row: the lines, and the hashes.
pub(super) fn packed(run: &[Record]) -> (String, Vec<u8>) {
    let mut lines = String::with_capacity(run.iter().map(|record| record.text.len() + 1).sum());
    let mut hashes = Vec::with_capacity(run.len() * HASH);
    for record in run {
        if !hashes.is_empty() {
            lines.push('\n');
        }
        lines.push_str(&record.text);
        hashes.extend_from_slice(record.hash.as_bytes());
    }
    (lines, hashes)
}

/// Lines of a row that begins with `sequence`, without the details of the records in `range`.
pub(super) fn without_content(
    lines: &str,
    sequence: u64,
    range: std::ops::RangeInclusive<u64>,
) -> String {
    let kept = (sequence..).zip(lines.split('\n')).map(|(sequence, line)| {
        // The payload is the text between the first brace and the `:` before the previous hash.
        let content = line.find('{').filter(|_| range.contains(&sequence));
        let around = content.and_then(|start| {
            let end = line.len().checked_sub(HASH * 2 + 1)?;
            Some([line.get(..start)?, line.get(end..)?])
        });
        around.map_or_else(|| line.to_owned(), |around| around.concat())
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Number of records in a row with these hashes.
pub(super) fn length(hashes: &[u8]) -> u64 {
    (hashes.len() / HASH) as u64
}

/// Records of a row, each with its hash. Excess text after the last line belongs to the last record and
/// makes it invalid.
pub(super) fn unpacked<'r>(
    lines: &'r [u8],
    hashes: &'r [u8],
) -> Result<impl Iterator<Item = (&'r [u8], Digest)>, &'static str> {
    let (hashes, odd) = hashes.as_chunks::<HASH>();
    if hashes.is_empty() || !odd.is_empty() {
        return Err("does not have one hash per record");
    }
    let last = hashes.len() - 1;
    let mut rest = lines;
    Ok(hashes.iter().enumerate().map(move |(place, hash)| {
        let end = match memchr::memchr(b'\n', rest) {
            Some(end) if place < last => end,
            Some(_) | None => rest.len(),
        };
        let (line, behind) = rest.split_at_checked(end).unwrap_or_default();
        rest = behind.get(1..).unwrap_or_default();
        (line, Digest::from_bytes(*hash))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Timestamp;

    fn record(session: &str, sequence: u64, bytes: usize) -> Record {
        Record {
            session: session.parse().unwrap(),
            sequence,
            timestamp: Timestamp::from_micros(0),
            ends_session: false,
            text: "x".repeat(bytes),
            hash: Digest::ZERO,
        }
    }

    #[test]
    fn a_row_holds_consecutive_records_of_one_session_up_to_its_size() {
        let records = [
            record("a", 0, 10),
            record("a", 1, 10),
            record("b", 2, 10),
            record("b", 3, 10),
            record("b", 5, 10),
            record("a", 2, ROW_BYTES + 1),
            record("a", 3, ROW_BYTES / 2),
            record("a", 4, ROW_BYTES / 2 - 1),
            record("a", 5, 1),
        ];
        let runs: Vec<_> = runs(&records).map(<[_]>::len).collect();
        assert_eq!(runs, [2, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn packed_records_unpack_to_themselves() {
        let records = [record("a", 0, 3), record("a", 1, 5), record("a", 2, 1)];
        for count in 1..=3 {
            let (lines, hashes) = packed(&records[..count]);
            assert_eq!(length(&hashes), count as u64);
            let unpacked = unpacked(lines.as_bytes(), &hashes).unwrap();
            let texts: Vec<_> = unpacked.map(|(text, _)| text.len()).collect();
            assert_eq!(texts, [3, 5, 1][..count]);
        }
        assert!(unpacked(b"x", &[]).is_err());
        assert!(unpacked(b"x", &[0; 33]).is_err());
        // Fewer lines than hashes, and more.
        let lines = |text: &'static [u8], hashes: &'static [u8]| {
            let records = unpacked(text, hashes).unwrap();
            records.map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert_eq!(lines(b"x", &[0; 64]), [&b"x"[..], b""]);
        assert_eq!(lines(b"x\ny\nz", &[0; 64]), [&b"x"[..], b"y\nz"]);
    }

    #[test]
    fn only_named_records_lose_their_content() {
        let hash = "0".repeat(64);
        let line = |n: u64, payload: &str| format!("1.0:{n}:{payload}:{hash}");
        let lines = [line(3, "{\"a\":1}"), line(4, "{\"b\":{}}"), line(5, "")];
        let taken = without_content(&lines.join("\n"), 3, 4..=9);
        assert_eq!(
            taken,
            [line(3, "{\"a\":1}"), line(4, ""), line(5, "")].join("\n")
        );
        assert_eq!(without_content("short {", 0, 0..=0), "short {");
    }
}
