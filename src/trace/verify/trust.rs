//! What a log is held against: keys, signed heads, and heads that were kept elsewhere.

use std::collections::{BTreeMap, HashSet};

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::head::{KnownHead, LogHead};
use crate::trace::note::{Note, Verifier};

/// What is trusted before anything is read.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    log: Option<SessionId>,
    keys: Vec<Verifier>,
    signed: BTreeMap<u64, Signed>,
    /// All of a size: two that differ cannot both be the log's, and neither is passed over.
    known: BTreeMap<u64, Vec<LogHead>>,
}

#[derive(Clone, Debug)]
struct Signed {
    head: LogHead,
    note: Note,
    /// Whether its signature is looked at. Not of every one: the newest of a key proves what the
    /// older ones do.
    decisive: bool,
}

impl Trust {
    /// Trust in nothing but what the records themselves say.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The log that is verified.
    #[must_use]
    pub fn log(&self) -> Option<&SessionId> {
        self.log.as_ref()
    }

    /// Names the log.
    #[must_use]
    pub fn of_log(mut self, log: SessionId) -> Self {
        self.log = Some(log);
        self
    }

    /// Trusts a key. Keys that it hands over to in the log are trusted as well.
    #[must_use]
    pub fn key(mut self, key: Verifier) -> Self {
        self.keys.push(key);
        self
    }

    /// Whether there is a key to hold signatures against.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Heads that are signed, in any order.
    #[must_use]
    pub fn signed(mut self, heads: impl IntoIterator<Item = (LogHead, Note)>) -> Self {
        for (head, note) in heads {
            // Lines do not say which log they are of, or that there was one.
            self.log.get_or_insert_with(|| head.log.clone());
            let size = head.size;
            let decisive = false;
            let signed = Signed {
                head,
                note,
                decisive,
            };
            self.signed.insert(size, signed);
        }
        let mut seen = HashSet::new();
        for signed in self.signed.values_mut().rev() {
            let mut newest = false;
            for id in signed.note.key_ids() {
                newest |= seen.insert(id);
            }
            signed.decisive = newest;
        }
        self
    }

    /// A head that was kept elsewhere.
    #[must_use]
    pub fn known(mut self, known: KnownHead) -> Self {
        self.log.get_or_insert_with(|| known.head.log.clone());
        let of_size = self.known.entry(known.head.size).or_default();
        of_size.push(known.head);
        self
    }

    /// All heads from elsewhere, the smallest first.
    pub(super) fn all_known(&self) -> impl Iterator<Item = &LogHead> {
        self.known.values().flatten()
    }

    /// The signed head of this size, and whether its signature decides anything. After another key
    /// was named, every signature counts until one proves that naming.
    pub(super) fn signed_at(&self, size: u64) -> Option<(&LogHead, &Note, bool)> {
        let signed = self.signed.get(&size)?;
        Some((&signed.head, &signed.note, signed.decisive))
    }

    pub(super) fn known_at(&self, size: u64) -> &[LogHead] {
        self.known.get(&size).map_or(&[], Vec::as_slice)
    }

    /// Signed heads beyond this size.
    pub(super) fn signed_beyond(&self, size: u64) -> impl Iterator<Item = (&LogHead, &Note)> {
        let beyond = self.signed.range(size.saturating_add(1)..);
        beyond.map(|(_, signed)| (&signed.head, &signed.note))
    }

    pub(super) fn has_signed(&self) -> bool {
        !self.signed.is_empty()
    }

    pub(super) fn signer(&self, note: &Note) -> Option<&Verifier> {
        self.keys.iter().find(|key| key.has_signed(note))
    }

    /// Whether a note says that a trusted key signed it.
    pub(super) fn is_named_by(&self, note: &Note) -> bool {
        self.keys.iter().any(|key| key.is_named_by(note))
    }

    pub(super) fn add_key(&mut self, key: Verifier) {
        self.keys.push(key);
    }
}

/// Whether a head says what a tree of its size came to.
pub(super) fn agrees(head: &LogHead, log: &SessionId, root: &Digest) -> bool {
    head.log == *log && head.root == *root
}
