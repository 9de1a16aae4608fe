//! Signed heads that a store is checked against: those in its tables, and the head file next to it.

use super::super::super::{StoreError, StoreReader as _};
use super::super::head_file::HEAD_FILE_NAME;
use super::super::reader::{SqliteReader, count};
use crate::base::id::SessionId;
use crate::trace::head::LogHead;
use crate::trace::note::SignedNote;

/// Faults of heads: those in the tables cast doubt on everything; others concern the log and its head
/// file.
#[derive(Debug, Default)]
pub(super) struct HeadFaults {
    pub(super) tables: Vec<String>,
    pub(super) log: Vec<String>,
}

/// Heads of a store. Faults of a head are added to `faults`.
pub(super) fn signed_heads(
    reader: &SqliteReader,
    log: &SessionId,
    kept: Option<&str>,
    faults: &mut HeadFaults,
) -> Result<Vec<(LogHead, SignedNote)>, StoreError> {
    let mut seals = Vec::new();
    for seal in reader.seals()? {
        let note = seal.note.parse::<SignedNote>();
        let head = note.as_ref().ok().map(|note| note.text.parse::<LogHead>());
        match (note, head) {
            (Ok(note), Some(Ok(head))) if head.size == seal.size => seals.push((head, note)),
            (..) => faults.tables.push(format!(
                "the signed head of {} entries is invalid",
                seal.size
            )),
        }
    }
    match kept.map(signed_head) {
        Some(Ok((head, note))) => match seals.iter().find(|(known, _)| known.size == head.size) {
            Some((known, _)) if *known == head => {}
            // The log was longer once.
            None if head.size > entries(reader, log)? => seals.push((head, note)),
            Some(_) | None => {
                faults.log.push(format!(
                    "the store does not contain the head in `{HEAD_FILE_NAME}`"
                ));
            }
        },
        Some(Err(())) => faults
            .log
            .push(format!("`{HEAD_FILE_NAME}` does not contain a signed head")),
        None => {}
    }
    Ok(seals)
}

/// Acknowledged number of log entries.
fn entries(reader: &SqliteReader, log: &SessionId) -> Result<u64, StoreError> {
    let query = "SELECT count FROM sessions WHERE session_id = ?1";
    let found = reader.query_rows(query, [log.as_str()], |row| count(row, 0))?;
    Ok(found.first().copied().unwrap_or(0))
}

/// Head in a note, with its signatures.
fn signed_head(note: &str) -> Result<(LogHead, SignedNote), ()> {
    let note = note.parse::<SignedNote>().map_err(drop)?;
    let head = note.text.parse::<LogHead>().map_err(drop)?;
    Ok((head, note))
}
