//! The Atlases that a store keeps, held against the entries of the log that name them: text, name and version.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;
use serde_json::Value;

use super::super::super::StoreError;
use super::super::reader::SqliteReader;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::trace::event::{AtlasLoaded, Payload};

/// Query for the log rows in which an Atlas came into force.
const LOADED: &str = "SELECT e.records FROM events e JOIN sessions s ON s.number = e.session \
    WHERE s.session_id = ?1 AND e.records LIKE '%atlas\\_loaded%' ESCAPE '\\' ORDER BY e.position";

/// Number of characters after the details of a stored record: a colon and the hash of the record
/// before.
const HASH_CHARS: usize = 65;

/// Atlases whose text, name or version is not the one that the log has, and those that are gone.
pub(super) fn faults(reader: &SqliteReader, log: &SessionId) -> Result<Vec<String>, StoreError> {
    let loaded = loaded(reader, log)?;
    let query = "SELECT hash, atlas_id, version, text FROM atlases ORDER BY hash";
    let atlas_texts = reader.query_rows(query, params![], |row| {
        let text: String = row.get(3)?;
        Ok(Kept {
            hash: row.get(0)?,
            atlas_id: row.get(1)?,
            version: row.get(2)?,
            digest: Digest::of(text.as_bytes()).to_string(),
        })
    })?;
    let mut faults = Vec::new();
    let mut there = BTreeSet::new();
    for atlas_texts in atlas_texts {
        faults.extend(atlas_texts.fault(loaded.get(&atlas_texts.hash)));
        there.insert(atlas_texts.hash);
    }
    for (hash, atlas) in loaded {
        if !there.contains(&hash) {
            let atlas_id = one_line(&atlas.atlas_id);
            faults.push(format!(
                "the text of Atlas `{atlas_id}` with the hash {hash} is missing"
            ));
        }
    }
    Ok(faults)
}

/// An Atlas that the store keeps.
struct Kept {
    hash: String,
    atlas_id: String,
    version: String,
    /// Digest of its text.
    digest: String,
}

impl Kept {
    /// The difference to the entry of the log that names it. A text that the log does not name is held against the
    /// digest under which it is kept; then no reader is shown its other columns.
    fn fault(&self, loaded: Option<&AtlasLoaded>) -> Option<String> {
        let (atlas_id, hash) = (one_line(&self.atlas_id), one_line(&self.hash));
        let text_hash = loaded.and_then(|loaded| loaded.text_hash.as_ref());
        if self.digest != *text_hash.unwrap_or(&self.hash) {
            return Some(format!(
                "the stored text of Atlas `{atlas_id}` does not match the hash {hash}"
            ));
        }
        let loaded = loaded?;
        let named = one_line(&loaded.atlas_id);
        if self.atlas_id != loaded.atlas_id {
            return Some(format!(
                "the stored Atlas `{named}` with the hash {hash} has another name: `{atlas_id}`"
            ));
        }
        (self.version != loaded.version).then(|| {
            let (is, was) = (one_line(&self.version), one_line(&loaded.version));
            format!("the stored Atlas `{named}` has version `{is}`; the log says `{was}`")
        })
    }
}

/// The Atlases that came into force, by digest.
fn loaded(
    reader: &SqliteReader,
    log: &SessionId,
) -> Result<BTreeMap<String, AtlasLoaded>, StoreError> {
    let rows: Vec<String> = reader.query_rows(LOADED, params![log.as_str()], |row| row.get(0))?;
    let mut loaded = BTreeMap::new();
    for line in rows.iter().flat_map(|row| row.lines()) {
        if let Some(Payload::AtlasLoaded(atlas)) = read(line) {
            loaded.insert(atlas.atlas_hash.clone(), atlas);
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
