//! An insider: a person who can write the files and has no key.
//!
//! He knows the format, and does his best: the list of sessions says what his records say, positions
//! have no gaps, hashes are computed again where that helps him.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cra_core::base::canonical_json::canonical;
use cra_core::base::digest::Digest;
use cra_core::store::sqlite::FILE_NAME;
use cra_core::trace::hash::Envelope;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Everything that is in a store, in the order of writing.
#[derive(Clone)]
pub(crate) struct Copy {
    pub(crate) log: String,
    pub(crate) records: Vec<Kept>,
    pub(crate) seals: BTreeMap<u64, String>,
    /// SQL to run on the tables at the end.
    pub(crate) sql: String,
}

/// A stored record.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) text: String,
    pub(crate) hash: Digest,
    /// Names that no hash covers, for its line in an export.
    pub(crate) extra: Option<(String, String)>,
}

impl Kept {
    pub(crate) fn new(text: String) -> Self {
        let hash = Digest::of(&text);
        let extra = None;
        Self { text, hash, extra }
    }

    fn field(&self, index: usize) -> &str {
        self.text.split(':').nth(index).unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &str {
        self.field(5)
    }

    pub(crate) fn envelope(&self) -> Envelope<'_> {
        Envelope::split(&self.text).unwrap()
    }

    /// The text with its last hash and its place changed.
    fn moved(&self, sequence: u64, previous: &Digest, payload: Option<&str>) -> String {
        let envelope = self.envelope();
        let mut text = String::new();
        Envelope {
            sequence,
            previous_hash: &previous.to_string(),
            payload: payload.unwrap_or(envelope.payload),
            ..envelope
        }
        .write(&mut text);
        text
    }

    /// Its line in an export, with any content.
    fn line(&self) -> String {
        let mut fields = self.text.splitn(8, ':');
        let mut next = || fields.next().unwrap_or_default();
        let (version, event, trace, span) = (next(), next(), next(), next());
        let (parent, session, sequence, rest) = (next(), next(), next(), next());
        let (time, rest) = rest.split_at(27);
        let (kind, rest) = rest.trim_start_matches(':').split_once(':').unwrap();
        let (payload, previous) = rest.split_at(rest.len() - 65);
        let previous = previous.trim_start_matches(':');
        let hash = self.hash.to_string();
        let text = |name: &str, value: &str| Some(format!("\"{name}\":\"{value}\""));
        let some = |value: &str, field| Some(field).filter(|_| !value.is_empty()).flatten();
        let extra = self.extra.as_ref();
        let fields = [
            text("event_id", event),
            text("event_type", kind),
            text("hash", &hash),
            some(parent, text("parent_span_id", parent)),
            some(payload, Some(format!("\"payload\":{payload}"))),
            text("previous_hash", previous),
            Some(format!("\"sequence\":{sequence}")),
            text("session_id", session),
            text("span_id", span),
            text("timestamp", time),
            text("trace_id", trace),
            text("trace_version", version),
            extra.and_then(|(name, value)| text(name, value)),
        ];
        let fields: Vec<_> = fields.into_iter().flatten().collect();
        format!("{{{}}}", fields.join(","))
    }
}

impl Copy {
    /// Content of the store of a folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let store = Connection::open(folder.join(FILE_NAME)).unwrap();
        let log = store
            .query_row("SELECT log_id FROM log", [], |row| row.get(0))
            .unwrap();
        let mut events = store
            .prepare("SELECT records, hashes FROM events ORDER BY position")
            .unwrap();
        let rows = events.query_map([], |row| {
            let (lines, hashes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let hashes = hashes.as_chunks::<32>().0.to_vec();
            let records = lines.split('\n').zip(hashes).map(|(line, hash)| Kept {
                text: line.to_owned(),
                hash: Digest::from_bytes(hash),
                extra: None,
            });
            Ok(records.collect::<Vec<_>>())
        });
        let rows = rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let records = rows.concat();
        let mut seals = store.prepare("SELECT size, note FROM seals").unwrap();
        let seals = seals.query_map([], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        });
        let seals = seals.unwrap().collect::<Result<_, _>>().unwrap();
        let sql = String::new();
        Self {
            log,
            records,
            seals,
            sql,
        }
    }

    /// Where the records of a session are.
    pub(crate) fn places(&self, session: &str) -> Vec<usize> {
        let all = self.records.iter().enumerate();
        all.filter(|(_, kept)| kept.session() == session)
            .map(|(place, _)| place)
            .collect()
    }

    /// Where the entry is that the signed head of this size covers last.
    pub(crate) fn place_of_seal(&self, size: u64) -> usize {
        self.places(&self.log)[usize::try_from(size).unwrap() - 1]
    }

    /// Takes away all that was written behind a signed head.
    pub(crate) fn cut_behind(&mut self, size: u64) {
        let last = self.place_of_seal(size);
        self.records.truncate(last + 1);
        self.seals.retain(|seal, _| *seal <= size);
    }

    /// The newest signed head that covers nothing of what was written from this place on.
    pub(crate) fn seal_before(&self, place: usize) -> u64 {
        let fits = |size: &&u64| self.place_of_seal(**size) < place;
        *self.seals.keys().rev().find(fits).unwrap()
    }

    /// Takes away the signed heads that cover this place.
    pub(crate) fn drop_seals_of(&mut self, place: usize) {
        let kept = self.seal_before(place);
        self.seals.retain(|size, _| *size <= kept);
    }

    /// Computes every hash again, and lets every entry of the log say what the chains are now.
    pub(crate) fn rechain(&mut self) {
        let mut ends: BTreeMap<String, (u64, Digest)> = BTreeMap::new();
        let mut changed = BTreeSet::new();
        for kept in &mut self.records {
            let session = kept.session().to_owned();
            let end = |ends: &BTreeMap<_, _>, session: &String| {
                let end = ends.get(session).copied();
                end.unwrap_or((0, Digest::ZERO))
            };
            let sealed = (kept.envelope().event_type == "log_sealed").then(|| {
                let heads = std::mem::take(&mut changed).into_iter().map(|session| {
                    let (count, hash) = end(&ends, &session);
                    json!({"count": count, "hash": hash.to_string(), "session": session})
                });
                let mut entry: Value = serde_json::from_str(kept.envelope().payload).unwrap();
                entry["sessions"] = heads.collect::<Vec<_>>().into();
                canonical(&entry)
            });
            let (count, previous) = end(&ends, &session);
            *kept = Kept::new(kept.moved(count, &previous, sealed.as_deref()));
            ends.insert(session.clone(), (count + 1, kept.hash));
            if session != self.log {
                changed.insert(session);
            }
        }
    }

    /// The lines of an export.
    pub(crate) fn export(&self) -> String {
        let lines = self.records.iter().map(|kept| kept.line() + "\n");
        lines.collect()
    }

    /// Puts everything into the copy of a store in another folder.
    pub(crate) fn put(&self, honest: &Path, folder: &Path) {
        let file = folder.join(FILE_NAME);
        fs::copy(honest.join(FILE_NAME), &file).unwrap();
        let mut store = Connection::open(file).unwrap();
        let change = store.transaction().unwrap();
        change
            .execute_batch("DELETE FROM events; DELETE FROM sessions; DELETE FROM seals")
            .unwrap();
        let set_log = "UPDATE log SET log_id = ?1";
        change.execute(set_log, [self.log.as_str()]).unwrap();
        let mut numbers: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        let mut position = 0;
        // As a console writes them: what follows one another in a session shares a row.
        for run in self
            .records
            .chunk_by(|one, next| one.session() == next.session())
        {
            let next = i64::try_from(numbers.len()).unwrap() + 1;
            let (number, count) = numbers.entry(run[0].session()).or_insert((next, 0));
            let texts: Vec<_> = run.iter().map(|kept| kept.text.as_str()).collect();
            let hashes: Vec<_> = run.iter().map(|kept| *kept.hash.as_bytes()).collect();
            let (lines, hashes) = (texts.join("\n"), hashes.as_flattened());
            let insert = "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)";
            change
                .execute(insert, params![position, *number, *count, lines, hashes])
                .unwrap();
            let length = i64::try_from(run.len()).unwrap();
            (*count, position) = (*count + length, position + length);
        }
        for (session, (number, count)) in &numbers {
            self.list(&change, session, *number, *count);
        }
        for (size, note) in &self.seals {
            let insert = "INSERT INTO seals VALUES (?1, ?2)";
            change
                .execute(insert, params![size.cast_signed(), note])
                .unwrap();
        }
        change.commit().unwrap();
        store.execute_batch(&self.sql).unwrap();
    }

    /// Lists a session as its records have it.
    fn list(&self, store: &Connection, session: &str, number: i64, count: i64) {
        let own: Vec<_> = self
            .records
            .iter()
            .filter(|record| record.session() == session)
            .collect();
        let time = |kept: &Kept| {
            let behind = kept.text.splitn(8, ':').nth(7).unwrap_or_default();
            behind.chars().take(27).collect::<String>()
        };
        let (first, last) = (own[0], own[own.len() - 1]);
        let payload = first.text.split_once('{').map_or("", |(_, rest)| rest);
        let (payload, _) = payload.split_at(payload.len().saturating_sub(65));
        let payload: Value = serde_json::from_str(&format!("{{{payload}")).unwrap_or_default();
        let ended = own
            .iter()
            .any(|item| item.text.contains(":session_ended:{"));
        store
            .execute(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    number,
                    session,
                    count,
                    last.hash.as_bytes().as_slice(),
                    payload["agent_type"].as_str().unwrap_or_default(),
                    time(first),
                    time(last),
                    ended,
                ],
            )
            .unwrap();
    }
}
