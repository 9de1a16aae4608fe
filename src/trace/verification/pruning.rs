//! Verification of pruned records.
//!
//! The hash of such a record cannot be recomputed. Pruning therefore records the digest of the remains
//! in the log, and later verification checks the remains against that digest.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::base::digest::Digest;

/// Digest over the remains of several pruned records, in the order of their chain.
#[derive(Clone, Debug, Default)]
pub struct RemainsDigest(Sha256);

impl RemainsDigest {
    /// Remains of one record: its text without the payload, and its hash.
    #[must_use]
    pub fn of(text: impl AsRef<[u8]>, hash: &Digest) -> Digest {
        Digest::of_parts([text.as_ref(), hash.as_bytes().as_slice()])
    }

    /// Adds one record.
    pub fn push(&mut self, remains: &Digest) {
        self.0.update(remains.as_bytes());
    }

    /// Digest of all added records.
    #[must_use]
    pub fn digest(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }
}

/// The pruned records of a chain.
#[derive(Debug, Default)]
pub(super) struct PrunedRecords {
    unexplained: BTreeMap<u64, Digest>,
    explained: u64,
}

impl PrunedRecords {
    pub(super) fn add(&mut self, sequence: u64, remains: Digest) {
        self.unexplained.insert(sequence, remains);
    }

    /// Checks a log entry about pruned records and the digest of their remains. Returns true if they match.
    pub(super) fn explain(&mut self, ranges: &[(u64, u64)], digest: &Digest) -> bool {
        let mut remains = RemainsDigest::default();
        let mut found = Vec::new();
        for &(first, last) in ranges {
            if first > last {
                return false;
            }
            for (sequence, one) in self.unexplained.range(first..=last) {
                remains.push(one);
                found.push(*sequence);
            }
        }
        if remains.digest() != *digest {
            return false;
        }
        self.explained += found.len() as u64;
        for sequence in found {
            self.unexplained.remove(&sequence);
        }
        true
    }

    pub(super) fn first_unexplained(&self) -> Option<u64> {
        self.unexplained.keys().next().copied()
    }

    pub(super) fn count(&self) -> u64 {
        self.explained + self.unexplained.len() as u64
    }
}
