//! Journal of commits on the simulated disk: for each a marker, a length, a digest and the batches.
//!
//! A commit is one write and one sync. After a power cut the end may be torn: unreadable data there was
//! never acknowledged and is dropped. Unreadable data that is followed by whole commits is different:
//! those were acknowledged, so nothing is dropped and the disk is rejected.

use super::super::writer::Medium;
use super::super::{
    AtlasText, Batch, CommitError, PruneRanges, Seal, StateRow, StoreError, UNFINISHED_WRITE,
};
use super::disk::SimulatedDisk;
use super::tables::MemoryTables;
use crate::base::digest::Digest;
use crate::trace::record::Record;

const MARK: [u8; 4] = *b"cra\n";

#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) disk: SimulatedDisk,
    pub(super) tables: MemoryTables,
}

impl Journal {
    /// Opens the journal on a disk. Also returns a description of a torn end that was dropped.
    pub(super) fn open(mut disk: SimulatedDisk) -> Result<(Self, Option<String>), StoreError> {
        let bytes = disk.bytes();
        let mut tables = MemoryTables::default();
        let mut rest = bytes.as_slice();
        while let Some((batches, behind)) = frame(rest) {
            for batch in batches {
                tables.apply(batch);
            }
            rest = behind;
        }
        let torn = rest.len();
        if torn > 0 && (1..torn).any(|at| rest.get(at..).and_then(frame).is_some()) {
            return Err(StoreError::Damaged {
                what: format!("the journal is damaged at byte {}", bytes.len() - torn),
            });
        }
        disk.truncate(bytes.len() - torn);
        let mended = (torn > 0).then(|| format!("{UNFINISHED_WRITE} of {torn} bytes was dropped"));
        Ok((Self { disk, tables }, mended))
    }
}

impl Medium for Journal {
    fn commit(&mut self, batches: &[&Batch]) -> Result<(), CommitError> {
        if let Some(misfit) = self.tables.conflict(batches) {
            return Err(CommitError::Record(misfit));
        }
        let mut body = Vec::new();
        put_list(&mut body, batches, |out, batch| put_batch(out, batch));
        let mut bytes = MARK.to_vec();
        put_number(&mut bytes, body.len());
        bytes.extend_from_slice(Digest::of(&body).as_bytes());
        bytes.extend_from_slice(&body);
        self.disk.write(&bytes).map_err(CommitError::backend)?;
        self.disk.sync().map_err(CommitError::backend)?;
        for batch in batches {
            self.tables.apply((*batch).clone());
        }
        Ok(())
    }
}

/// Batches of the first commit, and the bytes after it.
fn frame(bytes: &[u8]) -> Option<(Vec<Batch>, &[u8])> {
    let mut input = bytes.strip_prefix(&MARK)?;
    let length = take_number(&mut input)?;
    let (digest, input) = input.split_first_chunk::<32>()?;
    let (mut body, behind) = input.split_at_checked(length)?;
    if Digest::of(body).as_bytes() != digest {
        return None;
    }
    let batches = take_list(&mut body, take_batch)?;
    body.is_empty().then_some((batches, behind))
}

fn put_batch(out: &mut Vec<u8>, batch: &Batch) {
    put_list(out, &batch.records, |out, record| {
        put_text(out, &record.text);
        out.extend_from_slice(record.hash.as_bytes());
    });
    put_list(out, &batch.state, |out, row| {
        put_text(out, &row.kind);
        put_text(out, &row.key);
        let body: Vec<_> = row.body.iter().collect();
        put_list(out, &body, |out, body| put_text(out, body));
    });
    put_list(out, &batch.seals, |out, seal| {
        out.extend_from_slice(&seal.size.to_be_bytes());
        put_text(out, &seal.note);
    });
    put_list(out, &batch.atlases, |out, atlas| {
        for text in [&atlas.hash, &atlas.atlas_id, &atlas.version, &atlas.text] {
            put_text(out, text);
        }
    });
    put_list(out, &batch.prune, |out, prune| {
        put_text(out, prune.session.as_str());
        put_list(out, &prune.ranges, |out, (first, last)| {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&last.to_be_bytes());
        });
    });
}

fn take_batch(input: &mut &[u8]) -> Option<Batch> {
    Some(Batch {
        records: take_list(input, |input| {
            let text = take_text(input)?;
            let hash = Digest::from_bytes(*take(input)?);
            Record::read(text, hash).ok()
        })?,
        state: take_list(input, |input| {
            Some(StateRow {
                kind: take_text(input)?,
                key: take_text(input)?,
                body: take_list(input, take_text)?.pop(),
            })
        })?,
        seals: take_list(input, |input| {
            Some(Seal {
                size: u64::from_be_bytes(*take(input)?),
                note: take_text(input)?,
            })
        })?,
        atlases: take_list(input, |input| {
            Some(AtlasText {
                hash: take_text(input)?,
                atlas_id: take_text(input)?,
                version: take_text(input)?,
                text: take_text(input)?,
            })
        })?,
        // A journal has no free pages.
        compact: false,
        prune: take_list(input, |input| {
            Some(PruneRanges {
                session: take_text(input)?.parse().ok()?,
                ranges: take_list(input, |input| {
                    let first = u64::from_be_bytes(*take(input)?);
                    Some((first, u64::from_be_bytes(*take(input)?)))
                })?,
            })
        })?,
    })
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    // INVARIANT: no value in a batch comes near four gigabytes.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    out.extend_from_slice(&number.to_be_bytes());
}

fn take_number(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(*take(input)?)).ok()
}

fn take<'a, const N: usize>(input: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(taken)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn take_text(input: &mut &[u8]) -> Option<String> {
    let length = take_number(input)?;
    let (text, rest) = input.split_at_checked(length)?;
    *input = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(out, items.len());
    for item in items {
        put(out, item);
    }
}

fn take_list<T>(input: &mut &[u8], take: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let length = take_number(input)?;
    // A length that exceeds the input is rejected.
    if length > input.len() {
        return None;
    }
    (0..length).map(|_| take(input)).collect()
}
