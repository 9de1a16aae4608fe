//! Anchors that a log is verified against: keys, signed heads, and heads that were kept elsewhere.

use std::collections::{BTreeMap, HashSet};

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::head::{KnownHead, LogHead};
use crate::trace::note::{SignedNote, Verifier};

/// Trust anchors of a verification.
#[derive(Clone, Debug, Default)]
pub struct TrustAnchors {
    log: Option<SessionId>,
    keys: Vec<Verifier>,
    signed: BTreeMap<u64, SignedHead>,
    /// All heads of a size: two that differ cannot both be the log's, so both are checked.
    known: BTreeMap<u64, Vec<LogHead>>,
}

#[derive(Clone, Debug)]
struct SignedHead {
    head: LogHead,
    note: SignedNote,
    /// True if its signature is checked. Not all are: the newest head of a key proves the older ones too.
    decisive: bool,
    /// True if it was supplied as proof: then a signature of an unknown key is a fault.
    demanded: bool,
}

impl TrustAnchors {
    /// Trusts only the records themselves.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The log to verify.
    #[must_use]
    pub fn log(&self) -> Option<&SessionId> {
        self.log.as_ref()
    }

    /// Sets the log to verify.
    #[must_use]
    pub fn with_log(mut self, log: SessionId) -> Self {
        self.log = Some(log);
        self
    }

    /// Trusts a key. Keys that it hands over to in the log are trusted as well.
    #[must_use]
    pub fn with_key(mut self, key: Verifier) -> Self {
        self.keys.push(key);
        self
    }

    /// True if there is a key to check signatures with.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Adds signed heads, in any order.
    #[must_use]
    pub fn with_signed_heads(
        mut self,
        heads: impl IntoIterator<Item = (LogHead, SignedNote)>,
    ) -> Self {
        for (head, note) in heads {
            // Exported lines do not name their log, nor state that there was one.
            self.log.get_or_insert_with(|| head.log.clone());
            let size = head.size;
            let signed = SignedHead {
                head,
                note,
                decisive: false,
                demanded: false,
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

    /// Adds a head that a caller supplied with its signature: it must be signed by a trusted key.
    #[must_use]
    pub fn with_supplied_head(self, head: LogHead, note: SignedNote) -> Self {
        let size = head.size;
        let mut trust = self.with_signed_heads([(head, note)]);
        if let Some(signed) = trust.signed.get_mut(&size) {
            signed.demanded = true;
        }
        trust
    }

    /// Adds a head that was kept elsewhere.
    #[must_use]
    pub fn with_known_head(mut self, known: KnownHead) -> Self {
        self.log.get_or_insert_with(|| known.head.log.clone());
        let of_size = self.known.entry(known.head.size).or_default();
        of_size.push(known.head);
        self
    }

    /// All heads from elsewhere, the smallest first.
    pub(super) fn all_known(&self) -> impl Iterator<Item = &LogHead> {
        self.known.values().flatten()
    }

    /// Signed head of this size; true if its signature must be checked.
    pub(super) fn signed_at(&self, size: u64) -> Option<(&LogHead, &SignedNote, bool)> {
        let signed = self.signed.get(&size)?;
        Some((&signed.head, &signed.note, signed.decisive))
    }

    /// True if a signed head must be signed by a trusted key: it claims to be, or was supplied as proof.
    pub(super) fn is_claimed(&self, size: u64) -> bool {
        let signed = self.signed.get(&size);
        signed.is_some_and(|signed| signed.demanded || self.is_named_by(&signed.note))
    }

    pub(super) fn known_at(&self, size: u64) -> &[LogHead] {
        self.known.get(&size).map_or(&[], Vec::as_slice)
    }

    /// Signed heads beyond this size.
    pub(super) fn signed_beyond(&self, size: u64) -> impl Iterator<Item = (&LogHead, &SignedNote)> {
        let beyond = self.signed.range(size.saturating_add(1)..);
        beyond.map(|(_, signed)| (&signed.head, &signed.note))
    }

    pub(super) fn has_signed(&self) -> bool {
        !self.signed.is_empty()
    }

    pub(super) fn signer(&self, note: &SignedNote) -> Option<&Verifier> {
        self.keys.iter().find(|key| key.has_signed(note))
    }

    /// True if a note claims the signature of a trusted key.
    pub(super) fn is_named_by(&self, note: &SignedNote) -> bool {
        self.keys.iter().any(|key| key.is_named_by(note))
    }

    pub(super) fn add_key(&mut self, key: Verifier) {
        self.keys.push(key);
    }
}

/// True if a head matches a log and the root of its tree at that size.
pub(super) fn head_matches(head: &LogHead, log: &SessionId, root: &Digest) -> bool {
    head.log == *log && head.root == *root
}
