//! Checks of stored Atlas texts against the digests that the record names.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;
use serde_json::Value;

use super::super::super::StoreError;
use super::super::reader::Reader;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::trace::event::Payload;

/// Query for the log rows in which an Atlas came into force.
const LOADED: &str = "SELECT e.records FROM events e JOIN sessions s ON s.number = e.session \
    WHERE s.session_id = ?1 AND e.records LIKE '%atlas\\_loaded%' ESCAPE '\\' ORDER BY e.position";

/// Number of characters after the details of a stored record: a colon and the hash of the record
/// before.
const HASH_CHARS: usize = 65;

/// Faults: stored texts that differ from their digest, and texts named by the record that are missing.
pub(super) fn faults(reader: &Reader, log: &SessionId) -> Result<Vec<String>, StoreError> {
    let loaded = loaded(reader, log)?;
    let query = "SELECT hash, atlas_id, text FROM atlases ORDER BY hash";
    let kept = reader.rows(query, params![], |row| {
        let text: String = row.get(2)?;
        let texts: (String, String) = (row.get(0)?, row.get(1)?);
        Ok((texts, Digest::of(text.as_bytes()).to_string()))
    })?;
    let mut faults = Vec::new();
    let mut there = BTreeSet::new();
    for ((hash, atlas_id), digest) in kept {
        let recorded = loaded
            .get(&hash)
            .and_then(|(_, text_hash)| text_hash.as_ref());
        if digest != *recorded.unwrap_or(&hash) {
            let (atlas_id, hash) = (one_line(&atlas_id), one_line(&hash));
            faults.push(format!(
                "the stored text of Atlas `{atlas_id}` is not the one with the hash {hash}"
            ));
        }
        there.insert(hash);
    }
    for (hash, (atlas_id, _)) in loaded {
        if !there.contains(&hash) {
            let atlas_id = one_line(&atlas_id);
            faults.push(format!(
                "the text of Atlas `{atlas_id}` with the hash {hash} is gone"
            ));
        }
    }
    Ok(faults)
}

/// Atlases that came into force, by digest: each with its name and, if different, the digest of its
/// text alone.
fn loaded(
    reader: &Reader,
    log: &SessionId,
) -> Result<BTreeMap<String, (String, Option<String>)>, StoreError> {
    let rows: Vec<String> = reader.rows(LOADED, params![log.as_str()], |row| row.get(0))?;
    let mut loaded = BTreeMap::new();
    for line in rows.iter().flat_map(|row| row.lines()) {
        if let Some(Payload::AtlasLoaded(atlas)) = read(line) {
            loaded.insert(atlas.atlas_hash, (atlas.atlas_id, atlas.text_hash));
        }
    }
    Ok(loaded)
}

/// Details of a stored record in which an Atlas came into force.
fn read(line: &str) -> Option<Payload> {
    let payload = line.get(line.find('{')?..line.len().checked_sub(HASH_CHARS)?)?;
    let envelope = line.split('{').next()?;
    if !envelope.contains("atlas_loaded") {
        return None;
    }
    match serde_json::from_str(payload) {
        Ok(Value::Object(fields)) => Payload::read_lenient("atlas_loaded", fields)
            .ok()
            .map(|read| read.payload),
        Ok(_) | Err(_) => None,
    }
}
